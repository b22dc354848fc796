"""Compiled inner loops of the operators; each file is imported by its operator at the first product, not before."""

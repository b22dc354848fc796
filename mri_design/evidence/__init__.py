"""Measured lines that are held back from a reconstruction to choose its model, its correction and its error bars."""

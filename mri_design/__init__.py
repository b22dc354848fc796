"""Bayesian design of MRI k-space measurements, and reconstruction with error bars."""

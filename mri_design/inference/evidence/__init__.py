"""Bounds on the probability of the data, and scales and noise learnt by them."""

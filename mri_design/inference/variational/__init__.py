"""Variational Gaussian inference, with a natural gradient or decoupled."""

"""Laplace propagation and filtering: a Gaussian from chunks of sites, or from one site after another."""

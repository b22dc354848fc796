"""The sparse linear model: a likelihood, blocks of sites, and its posterior's precision matrix."""

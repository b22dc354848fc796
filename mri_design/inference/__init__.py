"""Inference: the posterior of a model, by one of several engines."""

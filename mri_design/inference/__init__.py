"""Posteriors: engines that turn a model into the Gaussian closest to what its data leave open, and what they share."""

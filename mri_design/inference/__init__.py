"""Posteriors: engines that turn a model into the Gaussian closest to what its data leave open, and what they share."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

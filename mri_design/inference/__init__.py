"""Posteriors: engines that turn a model into the Gaussian closest to what its data leave open, and what they share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

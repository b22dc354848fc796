"""The sparse linear model: a likelihood, blocks of sites, and its posterior's precision matrix."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

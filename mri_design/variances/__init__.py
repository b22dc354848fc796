"""Marginal variances of the posterior: z = diag(B A^-1 B^H)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

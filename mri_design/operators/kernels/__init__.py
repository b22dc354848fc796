"""Compiled inner loops of the operators; each file is imported at the first product that needs it, not before."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

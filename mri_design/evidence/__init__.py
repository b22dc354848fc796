"""Measured lines that are held back from a reconstruction to choose its model, its correction and its error bars."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Judging and showing: error measures, predictions held against the truth, figures, tables and pages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

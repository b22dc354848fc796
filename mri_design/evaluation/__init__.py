"""Evaluation and reports: image errors, predictions compared with the truth, figures, tables, pages, run folders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

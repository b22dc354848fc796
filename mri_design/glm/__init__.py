"""Active learning: which case to label next, and which measurement to make where it can be designed freely."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Signal models of echoes and their maximum-likelihood fit, and maps of what they show with their errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""One object from scan to image for scripts and notebooks: what the verbs compute, held in memory."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

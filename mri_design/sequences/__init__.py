"""Lines become a sequence that a scanner plays: gradient echoes and trains of spin echoes in the Pulseq format."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

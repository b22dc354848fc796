"""Sites t(s): factors of prior and likelihood, each a function of one coefficient or of a few."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

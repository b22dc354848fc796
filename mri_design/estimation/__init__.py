"""Point estimates: the most probable image by L-BFGS, ADMM or IRLS, least squares, and bounds on what is left."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

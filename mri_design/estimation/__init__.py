"""Point estimates: the most probable image by L-BFGS, ADMM or IRLS, least squares, and bounds on what is left."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

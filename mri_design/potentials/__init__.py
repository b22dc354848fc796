"""Sites t(s): factors of prior and likelihood, each a function of one coefficient or of a few."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

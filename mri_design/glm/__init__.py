"""Active learning: which label to ask for next, and which measurement to make where it can be designed freely."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

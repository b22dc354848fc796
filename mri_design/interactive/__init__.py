"""One object from scan to image for scripts and notebooks: what the verbs compute, held in memory."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

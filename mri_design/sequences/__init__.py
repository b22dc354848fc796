"""Lines become a sequence that a scanner plays: gradient echoes and trains of spin echoes in the Pulseq format."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

"""Which line, sample or shot to measure next: candidates, constraints, the engine, its record and its end."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

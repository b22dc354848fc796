"""Images and designs in the formats of other programs, as bytes."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

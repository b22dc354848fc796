"""One folder per verb of the command line: what it computes, and the report that shows it."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

"""The composition root: recipes, inputs and names become models, engines and strategies."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

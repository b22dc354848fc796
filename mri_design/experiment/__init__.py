"""The composition root: recipes, inputs and names become models, engines and strategies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Bayesian design of MRI k-space measurements, and reconstruction with error bars.

The public face: names are looked up when first used, so that importing the package costs nothing. `__init__.pyi` says
where each of them is, for this file and for editors.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

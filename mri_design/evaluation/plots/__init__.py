"""Figures of results; the only place that imports the plotting library, and only when a figure is drawn.

The library takes a third of a second to import, and runs without a report draw nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

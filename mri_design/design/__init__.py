"""Which line, sample or shot to measure next: candidates, constraints, the engine, its record and its end."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

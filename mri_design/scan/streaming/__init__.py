"""A scan that arrives readout by readout: the protocol, the grid that it fills, and the requests to the scanner."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

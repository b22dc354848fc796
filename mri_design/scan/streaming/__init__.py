"""A scan that comes readout by readout: protocols, what has arrived, and the conversation with the scanner."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""A scan that comes readout by readout: protocols, what has arrived, and the conversation with the scanner."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)

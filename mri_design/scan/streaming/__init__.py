"""A scan that comes readout by readout: protocols, what has arrived, and the conversation with the scanner."""

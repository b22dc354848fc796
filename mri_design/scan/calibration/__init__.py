"""Noise and coil maps, estimated from the scan itself."""

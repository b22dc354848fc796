"""Phantoms, random heads and a simulated scanner."""

"""Posteriors: what every engine shares; each engine has a room of its own."""

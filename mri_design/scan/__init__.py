"""Scans: their data and which samples were measured."""

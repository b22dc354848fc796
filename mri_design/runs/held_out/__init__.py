"""Strategies held against each other on scans that none of them was tuned on."""

"""Verb ``export``: what a run left, in the formats of other programs and of scanners."""

"""Models that know an image's phase."""

"""`design`: which lines of one scan to measure, in which order."""

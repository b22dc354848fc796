"""Readers of files from outside, within bounds, and atomic writers."""

"""Compiled Fourier transforms of images, a strip of columns at a time in cache."""

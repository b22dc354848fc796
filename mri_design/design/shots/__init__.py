"""Shots at angles: what a design over them begins with, sets of angles, and angles chosen by the posterior."""

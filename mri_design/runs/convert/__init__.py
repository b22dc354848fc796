"""Verb ``convert``: a scan or images from one file format to another."""

"""Siemens raw data: the measurements of a file, its protocol, and its readouts as acquisitions."""

"""ISMRMRD files: header, readouts, calibration lines and noise."""

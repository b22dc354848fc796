"""Coil sensitivities from k-space samples: arrays in, arrays out."""

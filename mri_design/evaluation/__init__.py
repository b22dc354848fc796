"""Judging and showing: error measures, predictions held against the truth, figures, tables and pages."""

"""`demo`: a comparison and a design on embedded data, on one page."""

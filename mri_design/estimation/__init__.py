"""Point estimates of the image."""

"""What the image is: point estimates."""

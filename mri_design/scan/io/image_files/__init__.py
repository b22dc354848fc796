"""Files of images without k-space, as radiology keeps them."""

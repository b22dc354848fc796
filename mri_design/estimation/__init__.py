"""Point estimates: the most probable image by L-BFGS, ADMM or IRLS, least squares, and bounds on what is left."""

"""`protocol`: one mask for many slices and subjects."""

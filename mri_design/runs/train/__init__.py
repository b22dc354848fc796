"""`train`: a line order learnt from other scans."""

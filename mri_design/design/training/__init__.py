"""What other scans teach: line orders learnt from reconstructions, and exchanges of single lines."""

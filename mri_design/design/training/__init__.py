"""Orders and protocols that are learnt from other scans: by reconstructing them, and by exchanging single lines."""

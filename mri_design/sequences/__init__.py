"""Lines become a sequence that a scanner plays: gradient echoes and trains of spin echoes in the Pulseq format."""

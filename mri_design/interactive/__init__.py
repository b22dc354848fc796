"""One object from scan to image for scripts and notebooks: what the verbs compute, held in memory."""

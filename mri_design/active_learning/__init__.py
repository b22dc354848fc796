"""Which label to ask next, and which query."""

"""Active learning: which label to ask for next, and which measurement to make where it can be designed freely."""

"""Verbs that write nothing."""

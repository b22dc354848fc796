"""The convex variational bound of the papers, by a double loop."""

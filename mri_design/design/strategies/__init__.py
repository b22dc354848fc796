"""Strategies: the rules by which a design chooses what to measure next; none of them imports another."""

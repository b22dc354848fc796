"""Krylov methods on callables x -> A x."""

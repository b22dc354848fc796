"""Posteriors and slices, as the tests of line designs have them."""

from tests.design.conftest import make_posterior, make_slice, rng

__all__ = ["make_posterior", "make_slice", "rng"]

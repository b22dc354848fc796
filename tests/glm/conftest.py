"""Posteriors and slices as the tests of line designs have them, engines and quadrature as those of inference."""

from tests.design.conftest import make_posterior, make_slice, rng
from tests.inference.conftest import accurate

__all__ = ["accurate", "make_posterior", "make_slice", "rng"]

"""Random numbers as the tests of line designs have them, an engine as those of inference."""

from tests.design.conftest import rng
from tests.inference.conftest import accurate

__all__ = ["accurate", "rng"]

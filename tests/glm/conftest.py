"""An engine as those of inference."""

from tests.inference.conftest import accurate

__all__ = ["accurate"]

"""Files are read in the process of the tests."""

from tests.read_here import read_here

__all__ = ["read_here"]

"""Small scans and recipes, as the tests of judging and showing have them."""

from tests.evaluation.conftest import make_image, phased_slice, tiny

__all__ = ["make_image", "phased_slice", "tiny"]

import numpy as np

from mri_design import SparsityBlock
from mri_design.model.sparsity import DETERMINED

BLOCK = SparsityBlock("pixels", 100.0, tau_limit=0.4, tau_limit_bright=0.02)
GRID = (24, 24)


def half_bright() -> np.ndarray:
    """Rows above the middle are dark, those below as bright as the image is."""
    image = np.zeros(GRID, dtype=np.complex64)
    image[12:] = 2j
    return image


def limits(variance: float, block: SparsityBlock = BLOCK) -> np.ndarray:
    limit = block.where_determined(variance, half_bright()).tau_limit
    return np.broadcast_to(np.asarray(limit), GRID)


def test_only_bright_pixels_of_a_determined_image_have_the_lower_limit() -> None:
    found = limits(DETERMINED[0])
    np.testing.assert_allclose(found[:6], 0.4)
    np.testing.assert_allclose(found[18:], 0.02)
    assert np.all(np.diff(found[:, 0]) <= 1e-9)
    np.testing.assert_array_equal(found, limits(2.0))


def test_images_that_are_not_determined_and_blocks_without_the_setting_keep_the_usual_limit() -> None:
    assert BLOCK.where_determined(DETERMINED[1], half_bright()) is BLOCK
    assert BLOCK.where_determined(1e9, half_bright()) is BLOCK
    between = float(np.sqrt(np.prod(DETERMINED)))  # half of the way, in logarithms
    np.testing.assert_allclose(limits(between), np.sqrt(0.4 * limits(DETERMINED[0])), rtol=1e-6)
    plain = SparsityBlock("pixels", 100.0, tau_limit=0.4)
    assert plain.where_determined(2.0, half_bright()) is plain
    low = SparsityBlock("pixels", 100.0, tau_limit=0.01, tau_limit_bright=0.02)
    np.testing.assert_allclose(limits(2.0, low), 0.01)


def test_a_limit_of_every_pixel_is_that_of_its_site_also_where_it_is_reweighted() -> None:
    """tau = 100 sigma / signal = 0.1 where the limit is larger."""
    block = BLOCK.where_determined(2.0, half_bright())
    tau = block.beside_non_local().sites(GRID, 1.0, 0.001).potential.scale
    np.testing.assert_allclose(tau, np.minimum(0.1, block.tau_limit), rtol=1e-6)
    np.testing.assert_array_equal(BLOCK.less_where_bright(half_bright()).tau_limit, limits(DETERMINED[0]))

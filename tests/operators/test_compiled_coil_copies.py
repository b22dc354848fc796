"""The compiled coil copies of ADMM against NumPy, over precisions and numbers of pixels that fill no register."""

import numpy as np
import pytest

from mri_design.operators.kernels.copies import relax_coils, renew_coils, seen_by_coils

ROUNDING = {np.complex64: 1e-5, np.complex128: 1e-13}


@pytest.fixture(params=[(1, 3, 3), (3, 8, 8), (4, 5, 7), (2, 1, 1)], ids=str)
def shape(request):
    return request.param


@pytest.fixture(params=list(ROUNDING))
def arrays(request, shape):
    """Four arrays (coil, ky, kx) and an image."""
    rng = np.random.default_rng(0)
    made = rng.standard_normal((4, *shape)) + 1j * rng.standard_normal((4, *shape))
    image = rng.standard_normal(shape[1:]) + 1j * rng.standard_normal(shape[1:])
    return [*made.astype(request.param), image.astype(request.param)]


def near(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=ROUNDING[found.dtype.type])


def test_what_copies_say_of_the_image(arrays):
    maps, copies, scaled = arrays[:3]
    near(seen_by_coils(maps, copies, scaled), np.sum(np.conj(maps) * (copies - scaled), axis=0))


def test_relaxed_coil_images_are_added(arrays):
    maps, copies, scaled, _, image = arrays
    expected = scaled + scaled.real.dtype.type(1.7) * maps * image + scaled.real.dtype.type(-0.7) * copies
    relax_coils(maps, image, copies, scaled, 1.7)
    near(scaled, expected)


def test_copies_and_multipliers_are_renewed(arrays):
    data, filtered, copies, scaled = arrays[:4]
    change = scaled.real.dtype.type(0.4) * (data - filtered)
    expected = scaled + change
    renew_coils(data, filtered, copies, scaled, 0.4)
    near(copies, expected)
    near(scaled, -change)

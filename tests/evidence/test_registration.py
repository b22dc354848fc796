"""Rigid registration: motion of images of another contrast is found again, and none is made up."""

import numpy as np
import pytest
from skimage.metrics import normalized_mutual_information
from skimage.transform import AffineTransform, warp

from mri_design import InputError
from mri_design.evidence import RigidMotion, alikeness, register
from mri_design.evidence.companions import BINS


def head(contrast: tuple[float, ...], shape: tuple[int, int] = (64, 60)) -> np.ndarray:
    """A head with a nose, ventricles and a spot, which no motion brings upon themselves."""
    y, x = (np.linspace(-1, 1, n) for n in shape)
    y, x = y[:, None], x[None, :]
    regions = [
        np.hypot(y * 1.1, x * 1.4) < 0.85,
        np.hypot((y - 0.7) * 2, x * 4) < 0.5,
        np.hypot(y * 1.3, x * 1.7) < 0.75,
        np.hypot((y + 0.1) * 3, (x - 0.15) * 6) < 0.6,
        np.hypot(y - 0.25, x + 0.3) < 0.12,
    ]
    image = np.zeros(shape)
    for region, level in zip(regions, contrast, strict=True):
        image[region] = level
    return image


FIRST, OTHER = head((0.9, 0.9, 0.6, 0.2, 0.9)), head((0.3, 0.4, 0.7, 1.0, 0.5))


def noisy(image: np.ndarray, seed: int, sd: float = 0.02) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return image + sd * (rng.standard_normal(image.shape) + 1j * rng.standard_normal(image.shape))


def test_a_motion_is_that_of_another_library():
    motion = RigidMotion((2.5, -1.25), 7.0)
    turn, (rows, columns) = np.deg2rad(7.0), FIRST.shape
    middle = np.array([(columns - 1) / 2, (rows - 1) / 2])
    back = AffineTransform(translation=-middle) + AffineTransform(rotation=-turn)
    there = back + AffineTransform(translation=middle + np.array([-1.25, 2.5]))
    np.testing.assert_allclose(motion.applied(FIRST, order=1), warp(FIRST, there.inverse, order=1), atol=1e-6)
    still = RigidMotion()
    assert still.applied(FIRST) is FIRST


def test_real_and_imaginary_parts_move_together():
    motion = RigidMotion((1.5, 2.0), -3.0)
    moved = motion.applied(FIRST + 2j * OTHER)
    np.testing.assert_allclose(moved, motion.applied(FIRST) + 2j * motion.applied(OTHER), atol=1e-9)


def test_alikeness_is_that_of_another_library():
    rng = np.random.default_rng(0)
    one, other = np.clip(FIRST + 0.05 * rng.random(FIRST.shape), 0, 1), np.clip(OTHER, 0, 1)
    one.flat[0], one.flat[1], other.flat[0], other.flat[1] = 0, 1, 0, 1  # so that both count over the same range
    assert alikeness(one, other) == pytest.approx(normalized_mutual_information(one, other, bins=BINS), abs=5e-3)


@pytest.mark.parametrize("seed", (0, 1, 2))
def test_motion_is_found_again_between_contrasts(seed):
    rng = np.random.default_rng(seed)
    motion = RigidMotion((float(rng.uniform(-4, 4)), float(rng.uniform(-4, 4))), float(rng.uniform(-5, 5)))
    found = register(noisy(FIRST, seed), motion.applied(noisy(OTHER, seed + 9)))
    assert found.angle == pytest.approx(-motion.angle, abs=1.0)
    y, x = np.nonzero(FIRST)
    back = found.applied(motion.applied(OTHER, order=1), order=1)
    moved_error = np.linalg.norm((motion.applied(OTHER, order=1) - OTHER)[y, x])
    assert np.linalg.norm((back - OTHER)[y, x]) < 0.5 * moved_error


def test_images_that_lie_upon_each_other_stay():
    assert register(noisy(FIRST, 3), noisy(OTHER, 4)) == RigidMotion()


@pytest.mark.parametrize(
    ("fixed", "moving"),
    [
        (FIRST, OTHER[:-1]),
        (FIRST, np.zeros_like(FIRST)),
        (np.full_like(FIRST, np.nan), OTHER),
        (FIRST[None], OTHER[None]),
    ],
    ids=["shapes", "zeros", "nan", "stack"],
)
def test_images_that_cannot_be_compared_are_refused(fixed, moving):
    with pytest.raises(InputError):
        register(fixed, moving)

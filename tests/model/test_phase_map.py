"""The phase of an image: found where it is smooth and there is signal, doubted elsewhere, refused in noise."""

import numpy as np

from mri_design.model import estimate_phase
from mri_design.scan.simulation import smooth_phase

N = (64, 48)


def disc() -> np.ndarray:
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    return 1.0 * (y**2 + x**2 < 0.1)


def noise(sd: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return sd * (rng.standard_normal(N) + 1j * rng.standard_normal(N))


def test_a_smooth_phase_is_found_in_the_object_and_trusted():
    angle = smooth_phase(N, np.random.default_rng(1), amplitude=1.5, degree=2)
    found = estimate_phase(disc() * np.exp(1j * angle) + noise(0.1), 0.01)
    wrong = np.abs(np.angle(found.rotation * np.exp(-1j * angle)))[disc() > 0]
    assert np.median(wrong) < 0.05
    assert np.median(found.confidence[disc() > 0]) > 0.9
    assert found.confidence[disc() > 0].mean() > 2 * found.confidence[:4].mean()


def test_a_phase_that_jumps_is_doubted_where_it_does():
    angle = np.where(np.arange(N[0]) < N[0] // 2, 0, np.pi)[:, None] * np.ones(N)
    found = estimate_phase(disc() * np.exp(1j * angle), 1e-6)
    centre = N[0] // 2
    assert found.confidence[centre - 1 : centre + 1, 24].max() < 0.2
    assert found.confidence[centre - 12, 24] > 0.8


def test_a_global_phase_turns_with_the_image_and_scale_does_not_matter():
    image = disc() + noise(0.05)
    one, other = estimate_phase(image, 0.0025), estimate_phase(7 * np.exp(0.8j) * image, 49 * 0.0025)
    np.testing.assert_allclose(other.rotation, np.exp(0.8j) * one.rotation, atol=1e-10)
    np.testing.assert_allclose(other.confidence, one.confidence, atol=1e-10)

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, coil_combined, load_phantom
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.reference_noise import error_beyond_noise, noise_caption, reference_noise
from mri_design.operators.cartesian_fourier import CentredFFT


def scan(coils: int, noise: float) -> KSpaceData:
    return load_phantom("t2w", shape=(64, 64), noise=noise, n_coils=coils, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("coils", "noise"), [(1, 0.01), (1, 0.05), (1, 0.2), (4, 0.05)])
def test_it_is_how_far_the_true_image_is_from_the_scans_own(coils: int, noise: float) -> None:
    data = scan(coils, noise)
    assert data.reference is not None
    truth, own = data.reference[0], coil_combined(data)[0]
    level = reference_noise(replace(data, reference=None), own)
    assert level == pytest.approx(relative_l2(truth, own), rel=0.1)


def test_lines_that_were_not_measured_bring_no_noise() -> None:
    data = scan(1, 0.05)
    assert data.reference is not None
    inner = np.abs(np.arange(64) - 32) < 16
    fft = CentredFFT((64, 64))
    truth = fft.H(fft(data.reference[0]) * inner[:, None])
    data = replace(data, kspace=data.kspace * inner[:, None], measured=inner, reference=None)
    own = coil_combined(data)[0]
    assert reference_noise(data, own) == pytest.approx(relative_l2(truth, own), rel=0.1)


def test_a_true_image_has_none() -> None:
    data = scan(1, 0.05)
    assert data.reference is not None
    assert reference_noise(data, data.reference[0]) is None


def test_the_caption_counts_the_images_it_is_about() -> None:
    assert noise_caption([None, None]) == ""
    assert " The reference is the scan's own" in noise_caption([0.06]) and "6.0 %" in noise_caption([0.06])
    assert "of 2 of 3 images" in noise_caption([0.06, None, 0.02]) and "4.0 %" in noise_caption([0.06, None, 0.02])


@pytest.mark.parametrize(("coils", "share"), [(1, 0.25), (1, 0.8), (4, 0.25)])
def test_errors_of_pixels_beyond_noise_are_those_against_the_true_image(coils: int, share: float) -> None:
    """An image that keeps the noise of what it was made from, and has an error of its own that differs over it."""
    data, rng = scan(coils, 0.03), np.random.default_rng(1)
    assert data.reference is not None and data.noise_variance is not None
    truth, own = data.reference[0], coil_combined(data)[0]
    fft, used = CentredFFT((64, 64)), rng.random(64) < share
    size = 0.03 + 0.07 * (np.arange(64) > 40)[:, None]
    image = truth + size * (rng.standard_normal((64, 64)) + 1j * rng.standard_normal((64, 64)))
    image += fft.H(fft(own - truth) * used[:, None])
    known = replace(data, reference=None)
    found = error_beyond_noise(image, known, own, 1.0, float(used.mean()))
    true = np.abs(image - truth)
    for part in (slice(0, 40), slice(41, 64)):
        for level in (0.5, 0.8, 0.95):
            assert np.quantile(found[part], level) == pytest.approx(np.quantile(true[part], level), rel=0.07)
    plain = np.abs(image - own)
    assert abs(np.median(plain[:40]) / np.median(true[:40]) - 1) > 0.15  # what would be found without
    np.testing.assert_array_equal(error_beyond_noise(image, data, truth, 1.0, 0.5), true)

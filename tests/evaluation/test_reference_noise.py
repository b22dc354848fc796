from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, coil_combined, load_phantom
from mri_design.evaluation.metrics import error_beyond_noise, noise_caption, reference_noise, relative_l2
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


def known_exactly(
    noise: float, used: np.ndarray, inside: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, KSpaceData]:
    """A random object, dark outside; what is known of it from some lines, mean and deviation; and its complete scan."""
    rng, n = np.random.default_rng(seed), len(used)

    def white(scale: float) -> np.ndarray:
        return scale * (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))

    prior = np.where(inside, 1.0, 1e-3)  # variance of each component, the same in all columns
    truth, fft = (
        np.sqrt(prior)[:, None] * white(1.0),
        np.fft.fftshift(np.fft.fft(np.fft.ifftshift(np.eye(n), axes=0), axis=0, norm="ortho"), axes=0),
    )
    kspace = CentredFFT((n, n))(truth) + white(noise)
    profiles = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(kspace, axes=1), axis=1, norm="ortho"), axes=1)
    X = fft[used]
    gain = (prior[:, None] * X.conj().T) @ np.linalg.inv((X * prior) @ X.conj().T + noise**2 * np.eye(used.sum()))
    variance = prior - np.real(np.einsum("ij,ji->i", gain, X * prior))
    data = KSpaceData(kspace[None, None].astype(np.complex64), np.ones(n, dtype=bool), noise_variance=noise**2)
    return truth, gain @ profiles[used], np.sqrt(2 * variance)[:, None] * np.ones((n, n)), data


@pytest.mark.parametrize(("noise", "share"), [(0.3, 0.3), (0.3, 0.8), (0.6, 0.5)])
def test_errors_of_pixels_beyond_noise_are_nearly_those_against_the_true_image(noise: float, share: float) -> None:
    inside = np.abs(np.arange(64) - 32) < 20
    used = np.random.default_rng(5).permutation(64) < 64 * share
    truth, image, std, data = known_exactly(noise, used, inside, 1)
    own = coil_combined(data)[0]
    plain, true = np.abs(image - own), np.abs(image - truth)
    found = error_beyond_noise(image, std, data, own, 1.0, used)
    middle, dark = np.abs(np.arange(64) - 32) < 17, np.abs(np.arange(64) - 32) > 23
    for level in (0.5, 0.8, 0.95):
        assert np.quantile(found[middle], level) == pytest.approx(np.quantile(true[middle], level), rel=0.15)
    assert np.median(plain[dark]) > 7 * np.median(true[dark])  # noise is all there is to see
    assert np.median(found[dark]) < 0.75 * np.median(plain[dark])
    whole = np.sqrt([np.mean(one**2) for one in (found, plain, true)])
    assert abs(whole[0] - whole[2]) < 0.1 * whole[2]
    in_other_units = error_beyond_noise(5 * image, 3 * std, data, 5 * own, 5.0, used)  # error bars of any size
    np.testing.assert_allclose(in_other_units, 5 * found, rtol=1e-3)
    known = replace(data, reference=truth[None].astype(np.complex64))
    np.testing.assert_array_equal(error_beyond_noise(image, std, known, truth, 1.0, used), true)

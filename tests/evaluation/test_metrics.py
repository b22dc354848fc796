"""Metrics by hand, and images that are folded."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from mri_design import InputError, KSpaceData, load_phantom, measure
from mri_design.evaluation import (
    RelativeError,
    error_beyond_noise,
    looks_folded,
    object_mask,
    paired_sign_test,
    reference_noise,
    relative_l2,
)
from mri_design.operators import CentredFFT
from mri_design.scan import coil_combined

METRICS = [relative_l2, measure]


@pytest.fixture
def reference() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(size=(16, 12)) + 1j * rng.normal(size=(16, 12))


def test_errors_by_hand():
    reference, image = np.zeros((2, 3, 3), dtype=complex)
    reference[0, 0], reference[1, 1] = 3.0, 4.0
    image[0, 0], image[0, 1], image[1, 1] = 3.0j, 1.0, 2.0
    metrics = measure(image, reference)
    # magnitudes differ by (0, 1, 0, 2); complex values by (3j - 3, 1, 0, -2); the peak is 4
    assert metrics.relative_l2 == relative_l2(image, reference) == pytest.approx(math.sqrt(5) / 5)
    assert metrics.relative_l2_complex == pytest.approx(math.sqrt(18 + 1 + 4) / 5)
    # the object is the two bright pixels, whose magnitudes differ by 0 and 2
    assert metrics.psnr == pytest.approx(10 * math.log10(16 / (4 / 2)))


def test_ssim_of_one_window_by_hand():
    rng = np.random.default_rng(0)
    reference, image = rng.uniform(size=(2, 7, 7))
    peak = reference.max()
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    covariance = np.cov(reference.ravel(), image.ravel())
    product = (2 * reference.mean() * image.mean() + c1) * (2 * covariance[0, 1] + c2)
    norm = (reference.mean() ** 2 + image.mean() ** 2 + c1) * (covariance[0, 0] + covariance[1, 1] + c2)
    assert measure(image, reference).ssim == pytest.approx(product / norm)


def test_equal_images_are_perfect_and_a_global_phase_shows_in_the_complex_error_only(reference):
    metrics = measure(reference, reference)
    assert (metrics.relative_l2, metrics.relative_l2_complex, metrics.psnr) == (0.0, 0.0, math.inf)
    assert metrics.ssim == pytest.approx(1.0)
    metrics = measure(reference * np.exp(0.5j), reference)
    assert metrics.relative_l2 == pytest.approx(0.0, abs=1e-12)
    assert metrics.relative_l2_complex == pytest.approx(abs(np.exp(0.5j) - 1))
    assert metrics.ssim == pytest.approx(1.0)


def test_metrics_depend_neither_on_the_scanners_unit_nor_on_the_precision(reference):
    image = reference + 0.1
    plain = measure(image, reference)
    for scale in (1e-7, 1e7):
        scaled = measure(scale * image, scale * reference)
        assert (scaled.psnr, scaled.ssim) == pytest.approx((plain.psnr, plain.ssim))
        assert scaled.relative_l2 == pytest.approx(plain.relative_l2)
    assert relative_l2(image.astype(np.complex64), reference) == pytest.approx(plain.relative_l2, rel=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_images_that_do_not_fit_are_refused_and_odd_ones_work(metric):
    for shape in ((8, 9), (3, 3), (5, 64)):
        image = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
        assert metric(image, image) is not None
    ones, bad = np.ones((8, 8), complex), np.ones((2, 8, 8), complex)
    bad[:, 2, 3] = np.nan, np.inf
    cases = (
        (ones, 0 * ones, "reference"),
        (np.ones((8, 9)), ones, "image"),
        (np.ones((2, 8, 8)),) * 2 + ("reference",),
    )
    for image, reference, field in (*cases, (bad[0], ones, "image"), (bad[1], ones, "image")):
        with pytest.raises(InputError) as caught:
            metric(image, reference)
        assert caught.value.field == field
    with pytest.raises(InputError):
        measure(np.ones((1, 1)), np.ones((1, 1)))


def test_sign_test_is_the_two_sided_binomial_test():
    # 5 of 5 pairs smaller: 2 * (1/2)^5; the tie does not count
    assert paired_sign_test([1, 1, 1, 1, 1, 7], [2, 3, 4, 5, 6, 7]) == pytest.approx(2 / 32)
    # 3 smaller, 1 larger: 2 * (1 + 4) / 16
    assert paired_sign_test([1, 1, 1, 3], [2, 2, 2, 2]) == pytest.approx(10 / 16)
    assert paired_sign_test([1, 2], [1, 2]) == 1.0
    for pairs in (1, 2, 7, 12, 61):
        for smaller in range(pairs + 1):
            a = np.where(np.arange(pairs) < smaller, 0.0, 2.0)
            assert paired_sign_test(a, np.ones(pairs)) == pytest.approx(binomtest(smaller, pairs, 0.5).pvalue)


def test_air_counts_for_neither_psnr_nor_ssim():
    """Noise of the air changes nothing; the same noise inside the object does; holes belong to the object."""
    rng, inside = np.random.default_rng(1), disc(0.7, 96) > 0
    truth = inside * (1 - 0.97 * (disc(0.2, 96) > 0)) + 0.02 * rng.standard_normal((96, 96))
    mask = object_mask(np.abs(truth))
    assert np.mean(mask != inside) < 0.01 and mask[48, 48]
    image = truth + 0.03 * rng.standard_normal((96, 96)) * inside
    noise = 0.03 * rng.standard_normal((96, 96))
    plain, in_air, in_object = (
        measure(one, truth) for one in (image, image + noise * (disc(0.9, 96) == 0), image + noise)
    )
    assert (in_air.psnr, in_air.ssim) == pytest.approx((plain.psnr, plain.ssim))
    assert in_air.relative_l2 > plain.relative_l2
    assert in_object.psnr < plain.psnr - 2 and in_object.ssim < plain.ssim
    by_hand = np.mean((np.abs(image) - np.abs(truth))[mask] ** 2) / np.abs(truth).max() ** 2
    assert plain.psnr == pytest.approx(-10 * math.log10(by_hand))


def disc(radius: float, side: int = 48) -> np.ndarray:
    y, x = (np.arange(side) - side // 2) / (side / 2), (np.arange(side) - side // 2) / (side / 2)
    return (np.hypot(y[:, None], x) < radius).astype(float)


def test_an_object_beyond_the_edges_folds_and_one_that_an_edge_cuts_does_not() -> None:
    noise = 0.02 * np.random.default_rng(0).standard_normal((48, 48))
    folded = [looks_folded(disc(radius) * np.exp(1j) + noise) for radius in (0.8, 0.95, 1.25, 1.4)]
    assert folded == [False, False, True, True]
    assert not looks_folded(np.roll(disc(0.7), 12, axis=0) * (np.arange(48) > 12)[:, None])


# ---- noise of the reference ----


def scan(coils: int, noise: float) -> KSpaceData:
    return load_phantom("t2w", shape=(64, 64), noise=noise, n_coils=coils, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("coils", "noise"), [(1, 0.01), (1, 0.05), (1, 0.2), (4, 0.05)])
def test_it_is_how_far_the_true_image_is_from_the_scans_own(coils: int, noise: float) -> None:
    data = scan(coils, noise)
    truth, own = data.reference[0], coil_combined(data)[0]
    assert reference_noise(data, truth) is None  # a true image has none
    level = reference_noise(replace(data, reference=None), own)
    assert level == pytest.approx(relative_l2(truth, own), rel=0.1)


def test_lines_that_were_not_measured_bring_no_noise() -> None:
    data = scan(1, 0.05)
    inner = np.abs(np.arange(64) - 32) < 16
    fft = CentredFFT((64, 64))
    truth = fft.H(fft(data.reference[0]) * inner[:, None])
    data = replace(data, kspace=data.kspace * inner[:, None], measured=inner, reference=None)
    own = coil_combined(data)[0]
    assert reference_noise(data, own) == pytest.approx(relative_l2(truth, own), rel=0.1)


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


def test_errors_of_several_images_are_averaged_over_those_of_which_both_are_known() -> None:
    pair, alone = {"predicted_error": 0.2, "found_error": 0.1}, {"predicted_error": 0.9, "found_error": None}
    assert RelativeError().over([pair, {"predicted_error": 0.4, "found_error": 0.2}, alone]).columns == {
        "predicted_error": pytest.approx(0.3),
        "found_error": pytest.approx(0.15),
    }
    assert RelativeError().over([alone]) == RelativeError(0.9) and RelativeError(0.3).over([]) == RelativeError(0.3)
    assert RelativeError(against="r.npy").over([pair]) == RelativeError(0.2, 0.1, against="r.npy")
    assert RelativeError().settings == {}

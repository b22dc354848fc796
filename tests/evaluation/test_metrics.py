"""Metrics by hand, and images that are folded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from mri_design import InputError, measure
from mri_design.evaluation.metrics import (
    looks_folded,
    object_mask,
    paired_sign_test,
    relative_l2,
)

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


def test_equal_images_are_perfect(reference):
    metrics = measure(reference, reference)
    assert (metrics.relative_l2, metrics.relative_l2_complex) == (0.0, 0.0)
    assert metrics.psnr == math.inf
    assert metrics.ssim == pytest.approx(1.0)


def test_a_global_phase_shows_in_the_complex_error_only(reference):
    metrics = measure(reference * np.exp(0.5j), reference)
    assert metrics.relative_l2 == pytest.approx(0.0, abs=1e-12)
    assert metrics.relative_l2_complex == pytest.approx(abs(np.exp(0.5j) - 1))
    assert metrics.ssim == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_metrics_do_not_depend_on_the_scanners_unit(reference, scale):
    image = reference + 0.1
    scaled, plain = measure(scale * image, scale * reference), measure(image, reference)
    assert scaled.psnr == pytest.approx(plain.psnr)
    assert scaled.ssim == pytest.approx(plain.ssim)
    assert scaled.relative_l2 == pytest.approx(plain.relative_l2)


def test_single_precision_images_are_measured_in_double(reference):
    image = (reference + 0.1).astype(np.complex64)
    assert relative_l2(image, reference) == pytest.approx(relative_l2(reference + 0.1, reference), rel=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(8, 9), (3, 3), (5, 64)])
def test_small_odd_and_oblong_images_work(metric, shape):
    image = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    assert metric(image, image) is not None


@pytest.mark.parametrize("metric", METRICS)
def test_zero_reference_is_refused(metric):
    with pytest.raises(InputError, match="all zeros"):
        metric(np.ones((8, 8), complex), np.zeros((8, 8), complex))


@pytest.mark.parametrize("metric", METRICS)
def test_other_shape_is_refused_with_both_shapes(metric):
    with pytest.raises(InputError, match=r"\(8, 9\).*\(8, 8\)"):
        metric(np.ones((8, 9)), np.ones((8, 8)))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_pixels_are_refused(metric, bad):
    image = np.ones((8, 8), complex)
    image[2, 3] = bad
    with pytest.raises(InputError, match="image"):
        metric(image, np.ones((8, 8)))


def test_a_stack_or_a_single_pixel_is_refused():
    with pytest.raises(InputError, match="one image"):
        relative_l2(np.ones((2, 8, 8)), np.ones((2, 8, 8)))
    with pytest.raises(InputError, match="3 x 3"):
        measure(np.ones((1, 1)), np.ones((1, 1)))


def test_sign_test_by_hand():
    # 5 of 5 pairs smaller: 2 * (1/2)^5; the tie does not count
    assert paired_sign_test([1, 1, 1, 1, 1, 7], [2, 3, 4, 5, 6, 7]) == pytest.approx(2 / 32)
    # 3 smaller, 1 larger: 2 * (1 + 4) / 16
    assert paired_sign_test([1, 1, 1, 3], [2, 2, 2, 2]) == pytest.approx(10 / 16)
    assert paired_sign_test([1, 2], [1, 2]) == 1.0


def test_sign_test_is_the_two_sided_binomial_test():
    for pairs in (1, 2, 7, 12, 61):
        for smaller in range(pairs + 1):
            a = np.where(np.arange(pairs) < smaller, 0.0, 2.0)
            assert paired_sign_test(a, np.ones(pairs)) == pytest.approx(binomtest(smaller, pairs, 0.5).pvalue)


def test_sign_test_refuses_what_is_not_paired():
    for a, b in (([1, 2], [1]), ([], []), ([np.nan], [1.0]), ([[1.0]], [[2.0]])):
        with pytest.raises(InputError):
            paired_sign_test(a, b)


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


@pytest.mark.parametrize(("radius", "folded"), [(0.8, False), (0.95, False), (1.25, True), (1.4, True)])
def test_an_object_beyond_the_edges_is_told(radius: float, folded: bool) -> None:
    noise = 0.02 * np.random.default_rng(0).standard_normal((48, 48))
    assert looks_folded(disc(radius) * np.exp(1j) + noise) == folded


def test_an_object_that_one_edge_cuts_is_not_folded() -> None:
    assert not looks_folded(np.roll(disc(0.7), 12, axis=0)[:, :] * (np.arange(48) > 12)[:, None])

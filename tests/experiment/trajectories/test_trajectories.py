"""Samples along spokes, calibrated and reconstructed: noise, maps, images and error bars against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.calibration import rim_noise
from mri_design.experiment import Image
from mri_design.operators import NonUniformFourier

pytest.importorskip("finufft")
N, SPOKES, NOISE_SD = 32, 24, 0.007
RECIPE = md.Recipe.of({"inference": {"loops": 4, "samples": 8, "tolerance": 0.1}})


def spokes(count: int) -> np.ndarray:
    radius, angles = np.arange(-N, N) / 2, np.pi * np.arange(count)[:, None] / count
    return np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module", params=[1, 4], ids=["one coil", "four coils"])
def scan(request: pytest.FixtureRequest) -> md.TrajectoryData:
    """A head along spokes, its maps and noise known, and its truth."""
    phantom = md.load_phantom(
        "brain", shape=(N, N), noise=NOISE_SD, n_coils=request.param, rng=np.random.default_rng(0)
    )
    maps = phantom.coil_maps
    X = NonUniformFourier(spokes(SPOKES), (N, N), None if request.param == 1 or maps is None else maps[0])
    samples, rng = X(phantom.reference[0]), np.random.default_rng(1)
    samples = samples + NOISE_SD * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
    return md.TrajectoryData(
        samples[None].astype(np.complex64),
        spokes(SPOKES),
        (N, N),
        n_readouts=SPOKES,
        noise_variance=NOISE_SD**2,
        coil_maps=maps if request.param > 1 else None,
        reference=phantom.reference,
    )


def image_of(scan: md.KSpaceData, method: str, recipe: md.Recipe = RECIPE) -> Image:
    model = scan.slice_model(0, **recipe.slice_settings)
    return md.reconstruct(model, None, method, recipe, np.random.default_rng(2))


def error(image: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(np.abs(image) - np.abs(truth)) / np.linalg.norm(truth))


@pytest.mark.slow
def test_every_method_shows_the_image_and_the_mean_shows_it_best(scan: md.TrajectoryData) -> None:
    prepared = md.calibrate(scan, RECIPE)
    images = {method: image_of(prepared, method) for method in ("zero-filled", "least-squares", "map", "mean")}
    errors = {method: error(result.image, scan.reference[0]) for method, result in images.items()}
    assert errors["mean"] < 0.12 and errors["map"] < 0.12
    assert errors["mean"] < errors["least-squares"] < errors["zero-filled"] * 1.1
    std = images["mean"].std
    assert std.shape == (N, N)
    assert all(images[method].std is None for method in ("zero-filled", "least-squares", "map"))
    actual = np.sqrt(np.mean(np.abs(images["mean"].image - scan.reference[0]) ** 2))
    assert 0.4 < np.sqrt(np.mean(std**2)) / actual < 1.5
    assert images["mean"].std_factor is not None and images["mean"].std_factor.held_back > 0
    assert not images["mean"].left_out and not images["map"].left_out


@pytest.mark.slow
def test_what_is_unknown_is_estimated(scan: md.TrajectoryData) -> None:
    unknown = replace(scan, noise_variance=None, coil_maps=None)
    prepared = md.calibrate(unknown, RECIPE)
    assert prepared.noise_variance == rim_noise(scan.kspace, scan.trajectory, scan.grid_shape)[0]
    if scan.n_coils == 1:
        return
    known, guessed = (image_of(p, "least-squares").image for p in (md.calibrate(scan, RECIPE), prepared))
    assert error(guessed, scan.reference[0]) < error(known, scan.reference[0]) + 0.05


def test_given_noise_and_amplitudes_far_from_one(scan: md.TrajectoryData) -> None:
    recipe = RECIPE.replacing("input", noise=2.0**0.5)
    assert md.calibrate(scan, recipe).noise_variance == pytest.approx(2.0)
    tiny = md.calibrate(scan.scaled(1e-14), RECIPE)
    ordinary = md.calibrate(scan, RECIPE)
    assert 1e-3 < np.abs(tiny.kspace).max() < 1e3 and ordinary.unit == 1
    images = [image_of(p, "least-squares").image for p in (tiny, ordinary)]
    np.testing.assert_allclose(images[0], 1e-14 * images[1], rtol=1e-3, atol=1e-16)


def test_noise_that_the_scanner_measured_whitens_the_coils(scan: md.TrajectoryData) -> None:
    gains = np.linspace(1, 4, scan.n_coils)
    louder = (scan.kspace * gains[:, None]).astype(np.complex64)
    covariance = np.diag((NOISE_SD * gains) ** 2).astype(np.complex128)
    unknown = replace(scan, kspace=louder, noise_variance=None, noise_covariance=covariance, reference=None)
    prepared = md.calibrate(unknown, RECIPE)
    if scan.n_coils == 1:
        assert prepared.noise_variance == pytest.approx(NOISE_SD**2)
        np.testing.assert_array_equal(prepared.kspace, scan.kspace)
        return
    assert prepared.noise_variance == prepared.unit == 1
    np.testing.assert_allclose(prepared.kspace, scan.kspace / NOISE_SD, rtol=1e-4)
    tiny = md.calibrate(unknown.scaled(1e-14), RECIPE)
    np.testing.assert_allclose(tiny.kspace, prepared.kspace, rtol=1e-4)
    assert md.calibrate(unknown, RECIPE.replacing("input", noise=2.0**0.5)).noise_variance == pytest.approx(2.0)

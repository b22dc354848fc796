"""No covariance of the coils' noise shades an image, and all runs on a scan have one reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, TrajectoryData, calibrate, load_phantom, reconstruct
from mri_design.experiment import truth_of
from mri_design.operators import to_image

RECIPE = Recipe()


def head(scale: float = 1.0) -> KSpaceData:
    """A head seen by six coils of very unequal noise, two of which share some; nothing is said about it."""
    scan = load_phantom("t2w", shape=(64, 64), noise=0.0, n_coils=6, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((2, 1, 6, 64, 64))
    noise = (noise[0] + 1j * noise[1]) * (0.001 * np.geomspace(1, 8, 6))[:, None, None]
    noise[:, 1] += noise[:, 0]
    kspace = ((scan.kspace + noise) * scale).astype(np.complex64)
    return KSpaceData(kspace, np.ones(64, dtype=bool), name="head")


def off_and_ratio(image: np.ndarray, data: KSpaceData) -> tuple[float, float, float]:
    """Of image over root sum of squares, over the object: how far from its median, the median, 95th over 5th."""
    rss = np.linalg.norm(to_image(data.kspace[0]), axis=0)
    ratio = (np.abs(image) / rss)[rss > 0.1 * np.quantile(rss, 0.99)]
    middle = float(np.median(ratio))
    low, high = np.quantile(ratio, [0.05, 0.95])
    return float(np.median(np.maximum(ratio / middle, middle / ratio))), middle, float(high / low)


def least_squares(data: KSpaceData) -> np.ndarray:
    scan = calibrate(data, RECIPE, ordinary=True)
    lines = np.flatnonzero(data.measured).tolist()
    found = reconstruct(
        scan.slice_model(0, **RECIPE.slice_settings), lines, "least-squares", RECIPE, np.random.default_rng(0)
    )
    return np.asarray(found.image)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e18])
def test_unequal_noise_of_coils_does_not_shade(scale: float) -> None:
    data = head(scale)
    off, middle, spread = off_and_ratio(least_squares(data), data)
    assert off < 1.03 and spread < 1.3 and middle == pytest.approx(1, abs=0.05)
    if scale == 1:
        one = calibrate(data, RECIPE).slice_model(0, **RECIPE.slice_settings)
        made = reconstruct(one, method="mean", recipe=RECIPE)
        off, middle, _ = off_and_ratio(made.image, data)
        assert off < 1.05 and middle == pytest.approx(1, abs=0.05) and np.ndim(one.image_unit) == 2  # pixel by pixel
        assert made.std is not None and np.median(made.std) < 0.2 * np.abs(made.image).max()


def test_a_truth_keeps_the_units_of_the_file() -> None:
    data = load_phantom("t2w", shape=(64, 64), noise=0.01, n_coils=4, rng=np.random.default_rng(0))
    white = replace(data, noise_variance=None, noise_covariance=np.diag([1e-4, 4e-4, 1e-3, 1e-2]).astype(complex))
    scan = calibrate(white, RECIPE)
    reference = truth_of(scan)
    np.testing.assert_allclose(reference * scan.image_unit(0), data.reference[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("noise", [1.0, 1e-18])  # the latter is less than can be reckoned with
def test_samples_along_a_trajectory_are_not_shaded_by_their_covariance(noise: float) -> None:
    data = load_phantom("t2w", shape=(32, 32), noise=0.01, n_coils=4, rng=np.random.default_rng(0))
    points = np.stack(np.meshgrid(np.arange(32) - 16.0, np.arange(32) - 16.0, indexing="ij"), axis=-1).reshape(-1, 2)
    along = TrajectoryData(
        data.kspace.reshape(1, 4, -1),
        points,
        (32, 32),
        n_readouts=32,
        coil_maps=data.coil_maps,
        reference=data.reference,
        noise_covariance=noise * np.diag([1e-4, 4e-4, 1e-3, 1e-2]).astype(complex),
    )
    scan = calibrate(along, RECIPE)
    assert (scan.provenance.noise.raised > 1) == (noise < 1)
    np.testing.assert_allclose(scan.reference[0] * scan.image_unit(0), data.reference[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("given", [None, 1e-4])
def test_runs_that_calibrate_with_other_lines_have_one_reference(given: float | None) -> None:
    """In the units of the file its modulus is the same, its phase that of the run's own maps."""
    data, recipe = head(), RECIPE.replacing("input", noise=None if given is None else given**0.5)
    found = []
    for lines in (8, 24):
        scan = calibrate(data, recipe, calibration_lines=lines)
        reference = truth_of(scan)
        own = np.sum(scan.coil_maps[0].conj() * to_image(scan.kspace[0]), axis=0)
        assert np.abs(np.vdot(own / np.abs(own), reference / np.abs(reference))) == pytest.approx(own.size, rel=1e-5)
        found.append(np.abs(reference * scan.image_unit(0)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4 * found[1].max())

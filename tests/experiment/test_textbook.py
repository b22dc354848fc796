"""Textbook rivals: what they minimise, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
import pywt

from mri_design import Recipe, load_phantom, prepare, reconstruct
from mri_design.experiment import TEXTBOOK
from mri_design.experiment.reconstruction import ITERATIONS, textbook
from mri_design.model import SliceModel

GRID = (32, 24)
LINES = [0, 3, 6, 9, 12, 13, 14, 15, 16, 17, 18, 19, 21, 24, 27, 30]


@pytest.fixture(scope="module", params=[1, 4])
def one(request: pytest.FixtureRequest) -> SliceModel:
    scan = load_phantom("brain", shape=GRID, n_coils=request.param, rng=np.random.default_rng(1))
    return prepare(scan, Recipe()).slice_model(0, Recipe())


def objective(one: SliceModel, image: np.ndarray, method: str, weight: float) -> float:
    """By this program's own operators and PyWavelets."""
    x = one.measurement(LINES)
    scale = weight * np.abs(x.adjoint(one.acquire(LINES))).max()
    misfit = np.sum(np.abs(x(image) - one.acquire(LINES)) ** 2) / 2
    if method == "total-variation":
        return float(misfit + scale * sum(np.abs(image - np.roll(image, 1, axis)).sum() for axis in (0, 1)))
    bands = pywt.wavedecn(image, "db4", mode="zero")
    return float(misfit + scale * np.abs(pywt.coeffs_to_array(bands)[0]).sum())


@pytest.mark.parametrize("method", TEXTBOOK)
def test_the_image_has_a_lower_objective_than_others(one: SliceModel, method: str) -> None:
    image, convergence = textbook(one, LINES, method, 0.01)
    found = objective(one, image, method, 0.01)
    noise = np.random.default_rng(2).normal(size=(2, *GRID)).astype(np.float32) * np.abs(image).max() / 100
    others = [one.plain_image(LINES), reconstruct(one, LINES, "least-squares").image, image + noise[0] + 1j * noise[1]]
    others += [0.97 * image, 1.03 * image, *(textbook(one, LINES, method, weight)[0] for weight in (0.02, 0.005))]
    assert all(found < objective(one, other, method, 0.01) for other in others)
    assert convergence.converged and image.dtype == np.complex64


def test_total_variation_is_at_its_minimum(one: SliceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival that stops on the way is none."""
    image, _ = textbook(one, LINES, "total-variation", 0.002)
    monkeypatch.setattr("mri_design.experiment.reconstruction.ITERATIONS", 3 * ITERATIONS)
    least, _ = textbook(one, LINES, "total-variation", 0.002)
    assert np.linalg.norm(image - least) < 0.005 * np.linalg.norm(least)


@pytest.mark.parametrize("method", TEXTBOOK)
def test_scans_in_other_units_have_the_same_image_and_runs_the_same_bits(one: SliceModel, method: str) -> None:
    image, _ = textbook(one, LINES, method, 0.01)
    weighted = Recipe().replacing("reconstruction", weight=0.01)
    np.testing.assert_array_equal(reconstruct(one, LINES, method, weighted).image, image)
    brighter = replace(one, kspace=one.kspace * np.float32(1024))
    np.testing.assert_allclose(textbook(brighter, LINES, method, 0.01)[0], 1024 * image, rtol=1e-4, atol=1e-3)

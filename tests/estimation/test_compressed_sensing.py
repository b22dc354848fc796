"""Textbook reconstructions: the images of SigPy's own, at the minimum of their objectives, with the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import pywt
from sigpy.linop import Wavelet
from sigpy.mri.app import L1WaveletRecon, TotalVariationRecon
from sigpy.thresh import soft_thresh

import mri_design as md
from mri_design.estimation.compressed_sensing import ITERATIONS, TEXTBOOK, shrunken_wavelets, textbook

GRID = (32, 24)
WITH_GAPS = [0, 3, 6, 9, 12, 13, 14, 15, 16, 17, 18, 19, 21, 24, 27, 30]


@pytest.fixture(scope="module", params=[1, 4])
def rival(request: pytest.FixtureRequest) -> md.SliceModel:
    scan = md.load_phantom("brain", shape=GRID, n_coils=request.param, rng=np.random.default_rng(1))
    return md.calibrate(scan, md.Recipe()).slice_model(0, **md.Recipe().slice_settings)


def objective(rival: md.SliceModel, image: np.ndarray, method: str, weight: float) -> float:
    """By this program's own operators and PyWavelets."""
    x = rival.measurement(WITH_GAPS)
    scale = weight * np.abs(x.adjoint(rival.acquire(WITH_GAPS))).max()
    misfit = np.sum(np.abs(x(image) - rival.acquire(WITH_GAPS)) ** 2) / 2
    if method == "total-variation":
        return float(misfit + scale * sum(np.abs(image - np.roll(image, 1, axis)).sum() for axis in (0, 1)))
    bands = pywt.wavedecn(image, "db4", mode="zero")
    return float(misfit + scale * np.abs(pywt.coeffs_to_array(bands)[0]).sum())


@pytest.mark.parametrize("method", TEXTBOOK)
def test_the_image_has_a_lower_objective_than_others(rival: md.SliceModel, method: str) -> None:
    image, convergence = textbook(rival, WITH_GAPS, method, 0.01)
    found = objective(rival, image, method, 0.01)
    noise = np.random.default_rng(2).normal(size=(2, *GRID)).astype(np.float32) * np.abs(image).max() / 100
    others = [
        rival.plain_image(WITH_GAPS),
        md.reconstruct(rival, WITH_GAPS, "least-squares").image,
        image + noise[0] + 1j * noise[1],
    ]
    others += [0.97 * image, 1.03 * image, *(textbook(rival, WITH_GAPS, method, weight)[0] for weight in (0.02, 0.005))]
    assert all(found < objective(rival, other, method, 0.01) for other in others)
    assert convergence.converged and image.dtype == np.complex64


def test_total_variation_is_at_its_minimum(rival: md.SliceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival that stops on the way is none."""
    image, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    monkeypatch.setattr("mri_design.estimation.compressed_sensing.ITERATIONS", 3 * ITERATIONS)
    least, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    assert np.linalg.norm(image - least) < 0.005 * np.linalg.norm(least)


@pytest.mark.parametrize("method", TEXTBOOK)
def test_scans_in_other_units_have_the_same_image_and_runs_the_same_bits(rival: md.SliceModel, method: str) -> None:
    image, _ = textbook(rival, WITH_GAPS, method, 0.01)
    weighted = md.Recipe().replacing("reconstruction", weight=0.01)
    np.testing.assert_array_equal(md.reconstruct(rival, WITH_GAPS, method, weighted).image, image)
    brighter = replace(rival, kspace=rival.kspace * np.float32(1024))
    np.testing.assert_allclose(textbook(brighter, WITH_GAPS, method, 0.01)[0], 1024 * image, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(32, 24), (31, 45), (9, 16), (7, 7), (2, 3)], ids=str)
def test_wavelets_are_shrunken_as_by_sigpy(shape: tuple[int, int]) -> None:
    u = np.random.default_rng(0).standard_normal((2, *shape, 2)).view(complex)[0, ..., 0]
    W = Wavelet(shape, wave_name="db4")
    np.testing.assert_allclose(shrunken_wavelets(u, 0.75), W.H(soft_thresh(0.75, W(u))), atol=1e-12)


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("grid", [GRID, (27, 30)], ids=str)
@pytest.mark.parametrize("coils", [1, 4])
@pytest.mark.parametrize("method", TEXTBOOK)
def test_the_image_is_that_of_sigpys_own_app(grid: tuple[int, int], coils: int, method: str, plane: bool) -> None:
    """In double precision: after so many steps, rounding in single precision is some 3e-5."""
    scan = md.load_phantom("brain", shape=grid, n_coils=coils, rng=np.random.default_rng(1))
    one = md.calibrate(scan, md.Recipe()).slice_model(0, **md.Recipe().slice_settings)
    lines = [line for line in WITH_GAPS if line < grid[0]]
    one = replace(one, kspace=one.kspace.astype(complex))
    if plane:
        one = replace(one, samples=np.random.default_rng(2).random(grid) < 0.7)
    image, _ = textbook(one, lines, method, 0.01)
    X = one.measurement(lines)
    data, taken = X.placed(one.acquire(lines)), X.placed(np.ones(X.out_shape[1:]))
    scale = np.abs(X.adjoint(one.acquire(lines))).max()
    maps = np.ones((1, *grid)) if one.maps is None else one.maps
    settings = {"weights": taken, "max_iter": ITERATIONS, "show_pbar": False}
    if method == "l1-wavelet":
        app = L1WaveletRecon(data / scale, maps, 0.01, alpha=1, **settings)
    else:
        app = TotalVariationRecon(data / scale, maps, 0.01, tau=1 / (9 * 0.03), sigma=0.03, **settings)
    expected = scale * app.run()
    assert np.linalg.norm(image - expected) < 1e-8 * np.linalg.norm(expected)

"""Textbook reconstructions: the images of SigPy's own, at the minimum of their objectives, with the same bits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import pywt
from sigpy.linop import Wavelet
from sigpy.mri.app import L1WaveletRecon, TotalVariationRecon
from sigpy.thresh import soft_thresh

import mri_design as md
from mri_design.estimation.compressed_sensing import ITERATIONS, TEXTBOOK, Textbook, shrunken_wavelets, textbook

GRID = (32, 24)
WITH_GAPS = [0, 3, 6, 9, 12, 13, 14, 15, 16, 17, 18, 19, 21, 24, 27, 30]


@pytest.fixture(scope="module", params=[1, 4])
def rival(request: pytest.FixtureRequest) -> md.SliceModel:
    scan = md.load_phantom("brain", shape=GRID, n_coils=request.param, rng=np.random.default_rng(1))
    return md.calibrate(scan, md.Recipe()).slice_model(0, **md.Recipe().slice_settings)


METHODS = [("l1-wavelet", True), ("l1-wavelet", False), ("total-variation", False)]
"""And whether wavelets are shifted."""


def objective(rival: md.SliceModel, image: np.ndarray, method: str, weight: float, shifts: bool) -> float:
    """By this program's own operators and PyWavelets, with the mean over all shifts of the one level that fits."""
    x = rival.measurement(WITH_GAPS)
    scale = weight * np.abs(x.adjoint(rival.acquire(WITH_GAPS))).max()
    misfit = np.sum(np.abs(x(image) - rival.acquire(WITH_GAPS)) ** 2) / 2
    if method == "total-variation":
        return float(misfit + scale * sum(np.abs(image - np.roll(image, 1, axis)).sum() for axis in (0, 1)))
    turned = [np.roll(image, shift, (0, 1)) for shift in itertools.product(range(1 + shifts), repeat=2)]
    bands = [pywt.coeffs_to_array(pywt.wavedecn(one, "db4", mode="zero"))[0] for one in turned]
    return float(misfit + scale * np.mean([np.abs(one).sum() for one in bands]))


@pytest.mark.parametrize(("method", "shifts"), METHODS)
def test_the_image_has_a_lower_objective_than_others(rival: md.SliceModel, method: Textbook, shifts: bool) -> None:
    image, convergence = textbook(rival, WITH_GAPS, method, 0.01, shifts=shifts)
    found = objective(rival, image, method, 0.01, shifts)
    noise = np.random.default_rng(2).normal(size=(2, *GRID)).astype(np.float32) * np.abs(image).max() / 100
    others = [
        rival.plain_image(WITH_GAPS),
        md.reconstruct(rival, WITH_GAPS, "least-squares").image,
        image + noise[0] + 1j * noise[1],
    ]
    others += [0.97 * image, 1.03 * image]
    others += [textbook(rival, WITH_GAPS, method, weight, shifts=shifts)[0] for weight in (0.02, 0.005)]
    if method == "l1-wavelet":
        others.append(textbook(rival, WITH_GAPS, method, 0.01, shifts=not shifts)[0])
    assert all(found < objective(rival, other, method, 0.01, shifts) for other in others)
    assert convergence.converged and image.dtype == np.complex64


def test_total_variation_is_at_its_minimum(rival: md.SliceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival that stops on the way is none."""
    image, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    monkeypatch.setattr("mri_design.estimation.compressed_sensing.ITERATIONS", 3 * ITERATIONS)
    least, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    assert np.linalg.norm(image - least) < 0.005 * np.linalg.norm(least)


@pytest.mark.parametrize(("method", "shifts"), METHODS)
def test_scans_in_other_units_have_the_same_image_and_runs_the_same_bits(
    rival: md.SliceModel, method: Textbook, shifts: bool
) -> None:
    image, _ = textbook(rival, WITH_GAPS, method, 0.01, shifts=shifts)
    weighted = md.Recipe().replacing("reconstruction", weight=0.01, wavelet_shifts=shifts)
    np.testing.assert_array_equal(md.reconstruct(rival, WITH_GAPS, method, weighted).image, image)
    brighter = replace(rival, kspace=rival.kspace * np.float32(1024))
    expected = textbook(brighter, WITH_GAPS, method, 0.01, shifts=shifts)[0]
    np.testing.assert_allclose(expected, 1024 * image, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(32, 24), (31, 45), (9, 16), (7, 7), (2, 3)], ids=str)
def test_wavelets_are_shrunken_as_by_sigpy(shape: tuple[int, int]) -> None:
    u = np.random.default_rng(0).standard_normal((2, *shape, 2)).view(complex)[0, ..., 0]
    W = Wavelet(shape, wave_name="db4")
    np.testing.assert_allclose(shrunken_wavelets(u, 0.75), W.H(soft_thresh(0.75, W(u))), atol=1e-12)


def turned_and_shrunken(u: np.ndarray, threshold: float, shift: tuple[int, int]) -> np.ndarray:
    """By PyWavelets; for sides that are even."""
    bands, places = pywt.coeffs_to_array(pywt.wavedecn(np.roll(u, shift, (0, 1)), "db4", mode="zero"))
    bands *= np.maximum(1 - threshold / np.maximum(np.abs(bands), 1e-300), 0)
    image = pywt.waverecn(pywt.array_to_coeffs(bands, places, "wavedecn"), "db4", mode="zero")
    return np.roll(image, (-shift[0], -shift[1]), (0, 1))


@pytest.mark.parametrize("shift", [(0, 0), (3, 0), (5, 14)])
def test_wavelets_of_a_shifted_image_are_shrunken(shift: tuple[int, int]) -> None:
    u = np.random.default_rng(0).standard_normal((32, 44, 2)).view(complex)[..., 0]
    found = shrunken_wavelets(u, 0.75, shift=shift)
    np.testing.assert_allclose(found, turned_and_shrunken(u, 0.75, shift), atol=1e-12)


def test_a_short_run_with_shifts_is_that_of_plain_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that the momentum meets its limit."""
    monkeypatch.setattr("mri_design.estimation.compressed_sensing.SHIFTED", 80)
    scan = md.load_phantom("brain", shape=(32, 32), n_coils=3, rng=np.random.default_rng(1))
    one = md.calibrate(scan, md.Recipe()).slice_model(0, **md.Recipe().slice_settings)
    one = replace(one, kspace=one.kspace.astype(complex))
    X = one.measurement(WITH_GAPS)
    plain = X.adjoint(one.acquire(WITH_GAPS))
    threshold, x, old, images = 0.01 * np.abs(plain).max(), np.zeros_like(plain), np.zeros_like(plain), []
    t, momentum, plastic = 1.0, 0.0, 1.3247179572447460
    for k in range(1, 81):
        following = (1 + np.sqrt(1 + 4 * t**2)) / 2
        ahead = x + min(momentum, 0.95) * (x - old)
        t, momentum = following, (t - 1) / following
        shift = (int(4 * (k / plastic % 1)), int(4 * (k / plastic**2 % 1)))
        old, x = x, turned_and_shrunken(ahead - X.adjoint(X(ahead)) + plain, threshold, shift)
        images.append(x)
    image, convergence = textbook(one, WITH_GAPS, "l1-wavelet", 0.01)
    expected = np.mean(images[40:], axis=0)
    assert np.linalg.norm(image - expected) < 1e-8 * np.linalg.norm(expected)
    change = np.linalg.norm(expected - np.mean(images[40:60], axis=0)) / np.linalg.norm(expected)
    assert convergence.matvecs == 80 and abs(convergence.residual - change) < 1e-8


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
    image, _ = textbook(one, lines, method, 0.01, shifts=False)
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

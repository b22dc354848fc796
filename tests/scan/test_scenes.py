"""Closed-form k-space, coil sensitivities and phase, against rasterised scenes and the theorems of the transform."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import fft
from scipy.ndimage import gaussian_filter

from mri_design import load_phantom
from mri_design.scan import random_head, scenes, with_volume_noise
from tests.refusals import refuses

Y, X = np.linspace(-0.5, 0.5, 31), np.linspace(-0.5, 0.5, 23)


@pytest.mark.parametrize("n_coils", [1, 3, 32])
@pytest.mark.parametrize("shape", [(40, 33), (31, 64)])
def test_maps_have_unit_root_sum_of_squares(n_coils, shape):
    maps = scenes.simulate_coil_maps(shape, n_coils, np.random.default_rng(0))
    assert maps.shape == (n_coils, *shape)
    assert maps.dtype == np.complex64
    np.testing.assert_allclose((np.abs(maps) ** 2).sum(axis=0), 1, atol=1e-5)


def test_same_seed_gives_the_same_coils_on_every_grid():
    fine = scenes.simulate_coil_maps(64, 4, np.random.default_rng(3))
    coarse = scenes.simulate_coil_maps((32, 64), 4, np.random.default_rng(3))
    np.testing.assert_allclose(fine[:, ::2], coarse, atol=1e-6)
    other = scenes.simulate_coil_maps(64, 4, np.random.default_rng(4))
    assert np.abs(fine - other).max() > 0.1


def test_smooth_phase_is_a_polynomial_of_its_degree():
    phase = scenes.smooth_phase(40, np.random.default_rng(1), degree=2)
    mixed = np.diff(np.diff(phase, n=2, axis=0), axis=1)
    for third in (np.diff(phase, n=3, axis=0), np.diff(phase, n=3, axis=1), mixed):
        assert np.abs(third).max() < 1e-12
    assert np.abs(np.diff(phase, n=2, axis=0)).max() > 1e-6


@pytest.mark.parametrize("amplitude", [0.3, np.pi / 2, np.pi])
def test_phase_series_has_unit_modulus_and_keeps_its_range(amplitude):
    for seed in range(3):
        values = scenes.series_values(scenes.phase_series(np.random.default_rng(seed), amplitude), Y, X)
        np.testing.assert_allclose(np.abs(values), 1, atol=1e-6)
        turned = np.unwrap(np.unwrap(np.angle(values), axis=0), axis=1)
        assert 0 < np.ptp(turned) <= 2 * amplitude + 1e-6


def test_wrong_settings_are_refused_by_name():
    rng = np.random.default_rng(0)
    for amplitude in (-1.0, np.nan):
        refuses("amplitude", scenes.smooth_phase, 16, rng, amplitude=amplitude)
    refuses("degree", scenes.smooth_phase, 16, rng, degree=0)
    for n_coils in (0, 129, 2.0, True):
        refuses("n_coils", scenes.simulate_coil_maps, 16, n_coils, rng)
    for shape in (3, (8, 2), (8, 8, 8), 8.5, "8", (True, 8), 10**6):
        refuses("shape", scenes.checked_shape, shape)


CONSTANT = (np.ones((1, 1), np.complex128),)


def scene(intensities=(1.0, -0.6, 0.4)):
    return scenes.EllipsePhantom(
        centres=np.array([[0.02, -0.03], [-0.1, 0.12], [0.15, -0.1]]),
        semi_axes=np.array([[0.3, 0.38], [0.08, 0.15], [0.11, 0.05]]),
        angles=np.array([0.0, 0.5, -1.1]),
        intensities=np.array(intensities),
    )


def centred_fft(image):
    return fft.fftshift(fft.fft2(fft.ifftshift(image), norm="ortho"))


def rasterised_kspace(phantom, shape, fineness, weight=None):
    """FFT of point samples on a finer grid, cut to the frequencies of the coarse one."""
    fine_shape = shape[0] * fineness, shape[1] * fineness
    image = phantom.image(fine_shape, supersampling=1, weight=weight)
    fine = centred_fft(image) / fineness
    start = [f // 2 - n // 2 for f, n in zip(fine_shape, shape, strict=True)]
    return fine[start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]]


@pytest.mark.parametrize("shape", [(32, 32), (31, 28), (24, 41)])
@pytest.mark.parametrize("smooth", [False, True])
def test_the_closed_form_is_the_limit_of_ever_finer_rasters(shape, smooth):
    wave = scenes.phase_series(np.random.default_rng(4)) if smooth else CONSTANT[0]
    exact, errors = scene().kspace(shape, (wave,))[0], []
    for fineness in (4, 32):
        raster = rasterised_kspace(scene(), shape, fineness, weight=partial(scenes.series_values, wave))
        errors.append(np.linalg.norm(raster - exact) / np.linalg.norm(exact))
    assert errors[1] < 0.5 * errors[0] and errors[1] < 3e-3


def test_frequency_zero_is_intensity_times_area():
    phantom, shape = scene((1.0, -0.6 + 0.2j, 0.4)), (33, 20)
    area = np.pi * phantom.semi_axes.prod(axis=1)
    total = (phantom.intensities * area).sum()
    assert phantom.spectrum(0.0, 0.0) == pytest.approx(total, rel=1e-12)
    assert phantom.spectrum(1e-12, -1e-12) == pytest.approx(total, rel=1e-5)
    assert phantom.kspace(shape)[0, 16, 10] == pytest.approx(total * np.sqrt(33 * 20), rel=1e-12)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("centres", np.zeros((2, 2))),
        ("centres", np.zeros((3, 3))),
        ("centres", np.full((3, 2), np.nan)),
        ("semi_axes", np.array([[0.1, 0.1], [0.1, 0.0], [0.1, 0.1]])),
        ("angles", np.zeros((3, 1))),
        ("intensities", np.zeros((0,))),
        ("intensities", np.array([1.0, np.inf, 1.0])),
    ],
)
def test_wrong_scenes_are_refused_by_name(field, value):
    refuses(field, replace, scene(), **{field: value})


def test_samples_anywhere_are_the_limit_of_ever_finer_sums():
    """The Fourier integral of scene x phase x coil by the midpoint rule on 512 and 1024 points a side."""
    phantom, wave = scene(), scenes.phase_series(np.random.default_rng(4))
    coil = scenes.coil_series(2, np.random.default_rng(2))[1]
    k = np.random.default_rng(5).uniform(-8, 8, (40, 2))
    exact = phantom.samples(k, 16, (*CONSTANT, scenes.series_product(coil, wave)))
    errors = []
    for n in (128, 1024):
        at = (np.arange(n) + 0.5) / n - 0.5
        waves_y, waves_x = (np.exp(-2j * np.pi * np.outer(k[:, axis], at)) for axis in (0, 1))
        plain = phantom._points(at, at)
        weighted = plain * scenes.series_values(coil, at, at) * scenes.series_values(wave, at, at)
        sums = np.stack([((waves_y @ image) * waves_x).sum(axis=1) for image in (plain, weighted)])
        errors.append(np.linalg.norm(16 * sums / n**2 - exact, axis=1) / np.linalg.norm(exact, axis=1))
    assert (errors[1] < 1e-3).all() and (errors[1] < 0.3 * errors[0]).all()


ONE = scenes.EllipsoidPhantom(np.array([[0.05, -0.1, 0.08]]), np.array([[0.3, 0.2, 0.25]]), np.array([2.0]))
TWO = scenes.EllipsoidPhantom(
    np.array([[0.0, 0.0, 0.0], [0.1, 0.05, -0.08]]),
    np.array([[0.4, 0.35, 0.3], [0.1, 0.12, 0.09]]),
    np.array([1.0, 1j]),
)


def test_dc_is_the_volume_and_the_closed_form_is_smooth_there() -> None:
    volume = 2.0 * 4 / 3 * np.pi * 0.3 * 0.2 * 0.25
    assert ONE.spectrum(0, 0, 0) == pytest.approx(volume)
    near = ONE.spectrum(np.geomspace(1e-6, 1e-2, 30), 0, 0)
    np.testing.assert_allclose(np.abs(near), volume, rtol=1e-4)


def test_a_fine_raster_has_the_same_low_frequencies() -> None:
    n = 48
    raster = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(TWO.image(n, (n, n), supersampling=4)))) / n**3
    few = slice(n // 2 - 3, n // 2 + 4)
    k = np.arange(-3, 4)
    exact = TWO.spectrum(k[:, None, None], k[:, None], k)
    np.testing.assert_allclose(raster[few, few, few], exact, atol=2e-3 * np.abs(exact).max())


def test_planes_are_the_readout_transformed() -> None:
    planes = TWO.planes(12, (10, 8))
    x, y, z = (np.arange(n) - n // 2 for n in (12, 10, 8))
    whole = TWO.spectrum(x[:, None, None], y[:, None], z) * np.sqrt(12 * 10 * 8)
    rows = np.exp(2j * np.pi * np.outer(x, x) / 12) / np.sqrt(12)
    np.testing.assert_allclose(planes, np.einsum("pk,kyz->pyz", rows, whole), atol=1e-12)
    assert np.abs(planes[0]).max() < 0.1 * np.abs(planes[6]).max()  # beside the object


def test_the_shipped_volume_is_a_scan_of_planes_with_air_at_the_ends() -> None:
    data = load_phantom("head-3d", shape=32, noise=0.01, rng=np.random.default_rng(0))
    assert data.kspace.shape == (32, 1, 32, 32) and data.volume and data.reference is not None
    shown = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(data.kspace[16, 0]), norm="ortho"))
    difference = np.linalg.norm(np.abs(shown) - np.abs(data.reference[16])) / np.linalg.norm(data.reference[16])
    assert 0.01 < difference < 0.25  # it rings: the image is not the raster that made it
    kept = np.random.default_rng(1).random((32, 32)) < 0.4
    holes = load_phantom("head-3d", shape=32, noise=0.05, rng=np.random.default_rng(0))
    found = with_volume_noise(replace(holes, kspace=holes.kspace * kept, noise_variance=None)).noise_covariance
    assert found is not None and found[0, 0].real == pytest.approx(0.05**2, rel=0.15)
    refuses("coils", load_phantom, "head-3d", n_coils=4, rng=np.random.default_rng(0))


def test_a_head_is_bright_inside_and_dark_around_and_the_seed_decides() -> None:
    for seed in range(4):
        magnitude = np.abs(random_head((96, 90), np.random.default_rng(seed)))
        assert np.percentile(magnitude, 99.5) == pytest.approx(1)
        assert magnitude[:12, :12].max() < 0.1  # ringing at most
        assert magnitude[40:56, 37:53].mean() > 0.05
    again, other = (np.abs(random_head((96, 90), np.random.default_rng(s))) for s in (3, 4))
    np.testing.assert_array_equal(magnitude, again)
    assert not np.allclose(magnitude, other)


@pytest.mark.slow
def test_spectra_fall_off_as_those_of_heads() -> None:
    """Between |k| = 8 and 48 the energy of 3 T brain images falls by 1.7 to 2.1 decades; the average head agrees."""
    falls = []
    for seed in range(8):
        image = random_head(128, np.random.default_rng(seed), phase="flat")
        lines = np.sum(np.abs(np.fft.fft2(image)) ** 2, axis=1)
        falls.append(np.log10(lines[6:11].mean() / lines[46:51].mean()))
    assert 1.3 < np.mean(falls) < 2.5


def test_flat_phases_have_small_exceptions_and_rough_ones_more_than_smooth_ones() -> None:
    def local_share(kind: str) -> float:
        shares = []
        for seed in range(4):
            image = random_head(64, np.random.default_rng(seed), phase=kind)  # type: ignore[arg-type]
            smooth = gaussian_filter(image.real, 3) + 1j * gaussian_filter(image.imag, 3)
            turned = image * np.exp(-1j * np.angle(smooth))
            shares.append(np.sum(turned.imag**2) / np.sum(turned.real**2))
        return float(np.mean(shares))

    assert local_share("smooth") < local_share("flat") < 0.05
    assert local_share("smooth") < local_share("rough")

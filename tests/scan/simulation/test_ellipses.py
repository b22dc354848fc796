"""Closed-form k-space of ellipses against rasterised scenes and the theorems of the Fourier transform."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import fft

from mri_design import InputError
from mri_design.scan.simulation.coil_maps import coil_series
from mri_design.scan.simulation.ellipses import EllipsePhantom, phase_series
from mri_design.scan.simulation.settings import pixel_positions


def scene(intensities=(1.0, -0.6, 0.4)):
    return EllipsePhantom(
        centres=np.array([[0.02, -0.03], [-0.1, 0.12], [0.15, -0.1]]),
        semi_axes=np.array([[0.3, 0.38], [0.08, 0.15], [0.11, 0.05]]),
        angles=np.array([0.0, 0.5, -1.1]),
        intensities=np.array(intensities),
    )


def centred_fft(image):
    return fft.fftshift(fft.fft2(fft.ifftshift(image), norm="ortho"))


def centred_ifft(kspace):
    return fft.fftshift(fft.ifft2(fft.ifftshift(kspace), norm="ortho"))


def rasterised_kspace(phantom, shape, fineness, weight=None):
    """FFT of point samples on a finer grid, cut to the frequencies of the coarse one."""
    fine_shape = shape[0] * fineness, shape[1] * fineness
    image = phantom.image(fine_shape, supersampling=1, weight=weight)
    fine = centred_fft(image) / fineness
    start = [f // 2 - n // 2 for f, n in zip(fine_shape, shape, strict=True)]
    return fine[start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]]


@pytest.mark.parametrize("shape", [(32, 32), (31, 33), (24, 41), (64, 30)])
def test_closed_form_is_the_limit_of_ever_finer_rasters(shape):
    phantom = scene()
    exact = phantom.kspace(shape)
    errors = []
    for fineness in (4, 16, 32):
        raster = rasterised_kspace(phantom, shape, fineness)
        errors.append(np.linalg.norm(raster - exact) / np.linalg.norm(exact))
    assert errors[2] < 0.5 * errors[0]
    assert errors[2] < 3e-3


@pytest.mark.parametrize("shape", [(32, 32), (31, 28)])
def test_closed_form_with_smooth_phase_is_the_limit_of_ever_finer_rasters(shape):
    phantom, wave = scene(), phase_series(np.random.default_rng(4))
    exact = phantom.kspace(shape, modulation=wave)
    plain_error = np.linalg.norm(phantom.kspace(shape) - exact) / np.linalg.norm(exact)
    raster = rasterised_kspace(phantom, shape, 32, weight=wave.values)
    assert np.linalg.norm(raster - exact) / np.linalg.norm(exact) < 3e-3
    assert plain_error > 0.5  # the phase matters


def test_low_frequencies_match_the_pixel_averages():
    phantom, shape = scene(), (64, 48)
    exact = phantom.kspace(shape)
    pixels = centred_fft(phantom.image(shape, supersampling=16))
    centre = np.s_[32 - 3 : 32 + 4, 24 - 3 : 24 + 4]
    assert np.linalg.norm((pixels - exact)[centre]) < 0.01 * np.linalg.norm(exact[centre])


def test_frequency_zero_is_intensity_times_area():
    phantom, shape = scene((1.0, -0.6 + 0.2j, 0.4)), (33, 20)
    area = np.pi * phantom.semi_axes.prod(axis=1)
    total = (phantom.intensities * area).sum()
    assert phantom.spectrum(0.0, 0.0) == pytest.approx(total, rel=1e-12)
    assert phantom.kspace(shape)[16, 10] == pytest.approx(total * np.sqrt(33 * 20), rel=1e-12)


def test_spectrum_is_continuous_at_zero():
    phantom = scene()
    at_zero = phantom.spectrum(0.0, 0.0)
    for step in (1e-14, 1e-12, 1e-10, 1e-6):
        assert phantom.spectrum(step, -step) == pytest.approx(at_zero, rel=1e-5)


def test_parseval_energy_is_approached_from_below():
    one = EllipsePhantom(np.array([[0.05, -0.02]]), np.array([[0.2, 0.31]]), np.array([0.3]), np.array([1.5]))
    energy = 1.5**2 * np.pi * 0.2 * 0.31
    missing = [1 - np.linalg.norm(one.kspace(n)) ** 2 / (n * n * energy) for n in (64, 128, 256)]
    assert 0 < missing[2] < missing[1] < missing[0] < 0.02
    assert missing[0] / missing[2] == pytest.approx(4, rel=0.15)  # the tail falls like 1 / N


def test_shift_theorem_for_any_shift_and_frequency():
    phantom = scene()
    ky, kx = np.array([[-3.3], [0.0], [7.25]]), np.array([-2.0, 0.5, 4.1])
    moved = replace(phantom, centres=phantom.centres + np.array([0.03, -0.011]))
    expected = phantom.spectrum(ky, kx) * np.exp(-2j * np.pi * (0.03 * ky - 0.011 * kx))
    np.testing.assert_allclose(moved.spectrum(ky, kx), expected, atol=1e-14)


def test_rotation_theorem():
    phantom, turn = scene(), 0.7
    c, s = np.cos(turn), np.sin(turn)
    y, x = phantom.centres.T
    turned = replace(phantom, centres=np.stack([c * y + s * x, c * x - s * y], axis=1), angles=phantom.angles + turn)
    ky, kx = np.meshgrid(np.linspace(-9, 9, 7), np.linspace(-5, 8, 6), indexing="ij")
    np.testing.assert_allclose(turned.spectrum(c * ky + s * kx, c * kx - s * ky), phantom.spectrum(ky, kx), atol=1e-13)


def test_image_and_spectrum_turn_the_same_way():
    long = EllipsePhantom(np.zeros((1, 2)), np.array([[0.4, 0.05]]), np.array([np.pi / 2]), np.array([1.0]))
    image = long.image(32)
    assert (image.sum(axis=1) > 0).sum() > 20 > (image.sum(axis=0) > 0).sum()  # long along y
    assert abs(long.spectrum(0.0, 5.0)) > 5 * abs(long.spectrum(5.0, 0.0))


@pytest.mark.parametrize("shape", [(64, 64), (63, 65), (48, 80)])
def test_inverse_transform_shows_the_image_up_to_ringing(shape):
    phantom = scene()
    shown, image = centred_ifft(phantom.kspace(shape)), phantom.image(shape)
    assert np.linalg.norm(shown - image) < 0.12 * np.linalg.norm(image)
    flipped = np.linalg.norm(shown[::-1] - image)
    assert flipped > 0.3 * np.linalg.norm(image)


def test_pixel_averages_converge_and_keep_the_area():
    phantom = scene()
    finest = phantom.image((20, 30), supersampling=64)
    errors = [np.abs(phantom.image((20, 30), supersampling=s) - finest).max() for s in (1, 4, 16)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    area = (phantom.intensities * np.pi * phantom.semi_axes.prod(axis=1)).sum()
    assert finest.mean() == pytest.approx(area, rel=1e-3)


def test_large_and_small_bands_give_the_same_image(monkeypatch):
    phantom = scene()
    whole = phantom.image((37, 20), supersampling=5)
    monkeypatch.setattr("mri_design.scan.simulation.ellipses._BAND_SAMPLES", 1000)
    np.testing.assert_array_equal(phantom.image((37, 20), supersampling=5), whole)


def test_weight_multiplies_before_averaging():
    phantom, wave = scene(), phase_series(np.random.default_rng(1))
    weighted = phantom.image(200, weight=wave.values)
    positions = pixel_positions(200)
    centre_weighted = phantom.image(200) * wave.values(positions, positions)
    difference = np.abs(weighted - centre_weighted).max()
    assert 1e-6 < difference < 0.02


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("centres", np.zeros((2, 2))),
        ("centres", np.full((3, 2), np.nan)),
        ("semi_axes", np.array([[0.1, 0.1], [0.1, 0.0], [0.1, 0.1]])),
        ("angles", np.zeros((3, 1))),
        ("intensities", np.zeros((0,))),
        ("intensities", np.array([1.0, np.inf, 1.0])),
    ],
)
def test_wrong_fields_are_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        replace(scene(), **{field: value})
    assert refusal.value.field == field


@pytest.mark.parametrize("shape", [3, (8, 2), (8, 8, 8), 8.5, "8", (True, 8), 10**6])
def test_wrong_grids_are_refused(shape):
    with pytest.raises(InputError, match="shape"):
        scene().kspace(shape)
    with pytest.raises(InputError, match="shape"):
        scene().image(shape)


@pytest.mark.parametrize("supersampling", [0, -1, 2.5, 65])
def test_wrong_supersampling_is_refused(supersampling):
    with pytest.raises(InputError, match="supersampling"):
        scene().image(16, supersampling=supersampling)


def grid_positions(rows, columns):
    ky, kx = np.meshgrid(np.arange(rows) - rows // 2, np.arange(columns) - columns // 2, indexing="ij")
    return np.stack([ky, kx], axis=-1).reshape(-1, 2).astype(float)


@pytest.mark.parametrize("shape", [(16, 16), (15, 18)])
def test_samples_at_grid_positions_are_those_of_the_grid(shape):
    phantom = scene((1.0, -0.6 + 0.2j, 0.4))
    coils = coil_series(3, np.random.default_rng(1))
    modulations = (None, phase_series(np.random.default_rng(0)), *coils)
    found = phantom.samples(grid_positions(*shape), shape, modulations)
    expected = np.stack(phantom.kspace_of_products(shape, modulations)).reshape(5, -1)
    np.testing.assert_allclose(found, expected, atol=3e-8 * np.abs(expected).max())  # negligible waves


def test_samples_anywhere_are_the_limit_of_ever_finer_sums():
    """The Fourier integral of scene x phase x coil by the midpoint rule on 512 and 1024 points a side."""
    phantom, wave = scene(), phase_series(np.random.default_rng(4))
    coil = coil_series(2, np.random.default_rng(2))[1]
    k = np.random.default_rng(5).uniform(-8, 8, (40, 2))
    exact = phantom.samples(k, 16, (None, coil * wave))
    errors = []
    for n in (128, 1024):
        at = (np.arange(n) + 0.5) / n - 0.5
        waves_y, waves_x = (np.exp(-2j * np.pi * np.outer(k[:, axis], at)) for axis in (0, 1))
        plain = phantom._points(at, at)
        weighted = plain * coil.values(at, at) * wave.values(at, at)
        sums = np.stack([((waves_y @ image) * waves_x).sum(axis=1) for image in (plain, weighted)])
        errors.append(np.linalg.norm(16 * sums / n**2 - exact, axis=1) / np.linalg.norm(exact, axis=1))
    assert (errors[1] < 1e-3).all() and (errors[1] < 0.3 * errors[0]).all()


def test_beyond_the_field_of_view_grid_samples_wrap_and_others_do_not():
    """An ellipse one field of view away cannot be told from one in the middle at whole frequencies, else it can."""
    inside = EllipsePhantom(np.zeros((1, 2)), np.array([[0.2, 0.1]]), np.zeros(1), np.ones(1))
    outside = replace(inside, centres=np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(outside.kspace(16), inside.kspace(16), atol=1e-12)
    between = grid_positions(16, 16) + np.array([0.5, 0.0])
    here, there = (p.samples(between, 16, (None,)) for p in (inside, outside))
    np.testing.assert_allclose(there, -here, atol=1e-12)


def test_few_positions_at_once_give_the_same_samples(monkeypatch):
    phantom, wave = scene(), phase_series(np.random.default_rng(4))
    k = np.random.default_rng(5).uniform(-8, 8, (30, 2))
    whole = phantom.samples(k, 16, (wave,))
    monkeypatch.setattr("mri_design.scan.simulation.ellipses._MOST_AT_ONCE", 100)
    np.testing.assert_allclose(phantom.samples(k, 16, (wave,)), whole, rtol=1e-12)
    with pytest.raises(InputError, match="trajectory"):
        phantom.samples(k[None], 16, (wave,))

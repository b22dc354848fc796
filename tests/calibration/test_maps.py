"""Coil maps match the coils that made the scan: by ESPIRiT and NLINV, from complete centres and lines with gaps."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sigpy.mri.app import EspiritCalib

from mri_design import KSpaceData, TrajectoryData, load_phantom
from mri_design.calibration import (
    central,
    dense_centre,
    joint_estimate,
    maps_from_lines,
    maps_of_waves,
    maps_on_grid,
    rim_noise,
)
from mri_design.calibration import coils as module
from mri_design.calibration.coils import espirit
from mri_design.experiment import load_scan
from mri_design.operators import NonUniformFourier, to_image, to_kspace
from mri_design.scan import calibration_lines, coil_combined, estimate_coil_maps, explained_by_maps, gridded_centre
from mri_design.scan.scenes import simulate_coil_maps
from tests.arrays import noise, spokes
from tests.calibration.scenes import truth
from tests.refusals import refused
from tests.slow_cases import slow_case


@pytest.mark.parametrize(("shape", "coils", "width", "kernel"), [((40, 33), 5, 24, 6), ((25, 32), 3, 12, 4)])
def test_maps_are_those_of_the_images_of_all_kernels(shape, coils, width, kernel, monkeypatch):
    kspace = truth(*shape, coils).scan(0.01).kspace[0]
    wanted = EspiritCalib(kspace, calib_width=width, kernel_width=kernel, crop=0, show_pbar=False).run()
    short = espirit(kspace, np.eye(coils, dtype=np.complex128), width)
    assert np.linalg.norm(short - wanted) < 2e-3 * np.linalg.norm(wanted)
    monkeypatch.setattr(module, "_TERMS", 50)  # of the series, which stand for all of its hundred
    for size in (module._BYTES, 1):  # all rows at once, and one by one
        monkeypatch.setattr(module, "_BYTES", size)
        found = espirit(kspace, np.eye(coils, dtype=np.complex128), width)
        np.testing.assert_allclose(found, wanted, atol=3e-5)
    outside = np.where(central(np.ones(shape), width).any(), 9, 0) + kspace
    central(outside, width)[:] = central(kspace, width)
    np.testing.assert_array_equal(espirit(outside.astype(np.complex64), np.eye(coils) + 0j, width), found)


@pytest.mark.parametrize("coils", [2, 32])
def test_directions_are_those_of_an_eigendecomposition_whatever_the_scale(coils: int) -> None:
    halves = noise((50, coils, coils)) * np.geomspace(1, 1e-3, 50)[:, np.newaxis, np.newaxis]
    halves *= np.geomspace(1, 0.1, coils)
    matrices = (halves @ np.moveaxis(halves, 1, 2).conj()).astype(np.complex64)
    values, directions = np.linalg.eigh(matrices)
    clear = values[:, -2] < 0.9 * values[:, -1]
    alike = np.abs(np.sum(module._strongest_directions(matrices).conj() * directions[..., -1], axis=-1))
    assert clear.sum() >= 25 and alike[clear].min() > 0.999


def with_centre(data: KSpaceData, first: int, last: int) -> KSpaceData:
    keep = np.arange(data.grid_shape[0]) % 4 == 0
    keep[first : last + 1] = True
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep)


def maps_of(data: KSpaceData, **settings: object) -> np.ndarray:
    return estimate_coil_maps(data, **settings).coil_maps


@pytest.mark.parametrize(("ny", "nx", "coils"), [(64, 64, 6), (63, 65, 4)])
def test_maps_of_smooth_coils_are_smooth_and_the_same_in_every_run_and_unit(ny: int, nx: int, coils: int) -> None:
    scene = truth(ny, nx, coils)
    data, inside = scene.scan(0.005), scene.inside
    maps = maps_of(data)
    np.testing.assert_allclose(np.linalg.norm(maps[0], axis=0), 1, atol=1e-5)
    likeness = np.abs(np.sum(maps[0].conj() * scene.maps, axis=0))[inside]
    assert likeness.min() > 0.995 and likeness.mean() > 0.9995
    np.testing.assert_array_equal(maps, maps_of(data))
    np.testing.assert_allclose(maps, maps_of(replace(data, kspace=data.kspace * np.float32(2.0**-40))), atol=1e-4)
    for axis, both in ((-2, inside[1:] & inside[:-1]), (-1, inside[:, 1:] & inside[:, :-1])):
        assert np.abs(np.diff(maps[0], axis=axis))[:, both].max() < 0.2


@pytest.mark.parametrize("lines", [8, 16])
def test_few_lines_of_an_undersampled_scan_suffice(lines: int) -> None:
    scene = truth(64, 64, 6)
    data = with_centre(scene.scan(0.005), 32 - lines // 2, 31 + lines // 2)
    assert calibration_lines(data) == lines + 1  # the comb adds the line after an even block
    likeness = np.abs(np.sum(maps_of(data, lines=lines)[0].conj() * scene.maps, axis=0))[scene.inside]
    assert likeness.mean() > 0.995
    # Nothing but the central lines was looked at.
    rest = data.kspace.copy()
    rest[:, :, : 32 - lines // 2] *= 2
    np.testing.assert_allclose(maps_of(replace(data, kspace=rest), lines=lines), maps_of(data, lines=lines), atol=2e-3)


def test_a_dead_first_coil_an_empty_slice_and_a_single_coil_have_maps() -> None:
    data = truth(64, 64, 4).scan(0.005)
    kspace = np.concatenate([data.kspace, np.zeros_like(data.kspace)])
    kspace[:, 0] = 0
    maps = maps_of(KSpaceData(kspace, data.measured))
    assert np.isfinite(maps).all()
    np.testing.assert_allclose(np.linalg.norm(maps, axis=1), 1, atol=1e-5)
    assert np.abs(maps[0, 0]).max() < 1e-3
    single = truth(64, 64, 1).scan(0.005)
    np.testing.assert_array_equal(maps_of(single), 1)


@pytest.mark.parametrize(("first", "last", "count"), [(29, 35, 9), (29, 34, 6), (30, 60, 5), (0, 63, 64), (40, 50, 1)])
def test_the_block_around_the_centre_is_counted(first: int, last: int, count: int) -> None:
    assert calibration_lines(with_centre(truth(64, 64, 1).scan(0.01), first, last)) == count


def test_too_small_a_centre_and_senseless_settings_are_refused() -> None:
    whole = truth(64, 64, 4).scan(0.005)
    few = with_centre(whole, 30, 34)
    for scan, settings, field in ((few, {}, "measured"), (whole, {"lines": 4}, "calibration lines")):
        with refused(field):
            estimate_coil_maps(scan, **settings)


def test_the_combined_image_is_the_object() -> None:
    scene = truth(64, 64, 6)
    data = scene.scan(0.01)
    exact = coil_combined(replace(data, coil_maps=scene.maps[np.newaxis].astype(np.complex64)))[0]
    error = exact - scene.image
    assert np.mean(np.abs(error) ** 2) / 2 == pytest.approx(0.01**2, rel=0.1)
    estimated = coil_combined(data)[0]
    assert estimated.dtype == np.complex64
    difference = np.abs(estimated) - np.abs(scene.image)
    assert np.linalg.norm(difference[scene.inside]) < 0.03 * np.linalg.norm(scene.image)


def test_missing_lines_are_refused_but_zero_filled_edges_are_not() -> None:
    data = truth(64, 64, 1).scan(0.01)
    measured = data.measured.copy()
    measured[[0, 1, 63]] = False
    edges = replace(data, kspace=np.where(measured[:, np.newaxis], data.kspace, 0), measured=measured)
    assert coil_combined(edges).shape == (1, 64, 64)
    measured = measured.copy()
    measured[20] = False
    for lines in (measured, np.arange(64) < 48):
        with refused(data.name):
            coil_combined(replace(data, measured=lines))


def undersampled(data: KSpaceData, rows: int, columns: int = 1) -> KSpaceData:
    kspace = data.kspace.copy()
    for axis, every in ((-2, rows), (-1, columns)):
        keep = np.zeros(kspace.shape[axis], dtype=bool)
        keep[kspace.shape[axis] // 2 % every :: every] = True
        np.moveaxis(kspace, axis, -1)[..., ~keep] = 0
    return replace(data, kspace=kspace, measured=kspace.any(axis=(0, 1, 3)), reference=None)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize(("coils", "shape"), [(4, (64, 64)), slow_case(8, (96, 70)), slow_case(8, (65, 81))])
def test_the_right_maps_explain_nearly_all_and_others_less(rows, columns, coils, shape):
    whole = load_phantom("t2w", shape=shape, n_coils=coils, rng=np.random.default_rng(coils))
    data = undersampled(whole, rows, columns)
    assert explained_by_maps(data) > 0.99
    for wrong in (np.roll(data.coil_maps, 1, axis=1), data.coil_maps[..., ::-1, ::-1], data.coil_maps.conj()):
        assert explained_by_maps(replace(data, coil_maps=wrong)) < 0.94


def test_noise_that_is_known_is_not_held_against_the_maps() -> None:
    data = undersampled(load_phantom("t2w", shape=(64, 64), n_coils=6, rng=np.random.default_rng(0)), 2)
    sd = 0.05 * float(np.abs(data.kspace).max())
    noisy = data.kspace + sd * noise(data.kspace.shape, seed=1)
    noisy = replace(data, kspace=np.where(data.kspace != 0, noisy, 0).astype(np.complex64))
    unknown, known = (explained_by_maps(replace(noisy, noise_variance=given)) for given in (None, sd**2))
    assert unknown < 0.95 < 0.98 < known


@pytest.fixture(scope="module")
def head():
    """Six coils of a raw head at a low resolution, (coil, ky, kx)."""
    return load_scan("phantom:head-16ch").kspace[0, :6, 32:96, 32:96]


def lines(*some):
    measured = np.zeros(64, dtype=bool)
    measured[list(some)] = True
    return measured


DESIGNED = lines(6, 14, 19, 22, 25, 27, *range(29, 36), 37, 40, 43, 47, 55)
"""As a design measures: dense at the centre, where seven lines have no gap, and thin outside."""


def unexplained(kspace, maps):
    """Part of the coil images that an image seen through the maps cannot be."""
    images = to_image(kspace)
    seen = maps * np.sum(maps.conj() * images, axis=0)
    return np.linalg.norm(images - seen) / np.linalg.norm(images)


@pytest.mark.parametrize("method", ["espirit", "nlinv"])
def test_maps_rest_on_measured_lines_alone(head, method):
    measured = DESIGNED | lines(36, 28)
    poisoned = np.where(measured[:, None], head, np.nan)
    estimate = maps_from_lines(poisoned, measured, method=method)
    assert np.isfinite(estimate.maps).all()
    np.testing.assert_array_equal(estimate.maps, maps_from_lines(head, measured, method=method).maps)


def test_lines_with_gaps_give_maps_as_good_as_those_of_the_whole_scan(head):
    whole = maps_from_lines(head, np.ones(64, dtype=bool))
    few = maps_from_lines(head, DESIGNED)
    unchecked = maps_from_lines(head, DESIGNED, check=False)
    np.testing.assert_array_equal(unchecked.maps, few.maps)
    assert (whole.method, few.method) == ("espirit", "nlinv") and isnan(unchecked.prediction_error)
    of_centre = maps_from_lines(head, DESIGNED | lines(28), method="espirit").maps
    assert unexplained(head, few.maps) < 0.9 * unexplained(head, of_centre)
    assert unexplained(head, few.maps) < 1.1 * unexplained(head, whole.maps)
    assert few.prediction_error < 0.1
    assert not few.predicts_badly


def test_maps_that_were_asked_for_before_are_made_again_from_their_waves(head, monkeypatch):
    own, asked = module.OwnMaps(), [DESIGNED | lines(number, 28) for number in (36, 38, 40, 44)]
    before = [own.of(head, measured, rough=True).maps for measured in asked]
    monkeypatch.setattr(module, "joint_estimate", None)
    for maps, measured in zip(before, asked, strict=True):
        np.testing.assert_array_equal(own.of(head, measured, rough=True).maps, maps)


@pytest.mark.parametrize(
    "some",
    [
        (3, 9, 14, 19, 23, 27, 31, 32, 33, 36, 40, 45, 50, 56),
        (3, 8, 13, 17, 21, 25, 28, 31, 32, 35, 38, 42, 46, 51, 57),
    ],
)
def test_maps_of_regular_gaps_know_where_the_object_is(head, some, monkeypatch):
    """Of lines two to five apart, with two or three gapless ones; without an envelope maps are 6 and 24 % worse."""
    few, whole = (unexplained(head, maps_from_lines(head, m).maps) for m in (lines(*some), np.ones(64, dtype=bool)))
    monkeypatch.setattr(module, "_ENVELOPE", (1, 1))
    without = unexplained(head, maps_from_lines(head, lines(*some)).maps)
    assert few < 1.12 * whole and few < 0.96 * without


def test_what_is_held_back_is_predicted_without_being_seen(head):
    """The same check by hand: coils held back line by line, whose samples are no numbers, and what is predicted."""
    measured = np.repeat(DESIGNED[:, None], 64, axis=1)
    held = np.zeros(head.shape, dtype=bool)
    for number, line in enumerate(np.flatnonzero(DESIGNED[16:48]) + 16):
        held[-number % 8 :: 8, line, 16:48] = True
    _, predicted, _ = joint_estimate(np.where(held, np.nan, head), measured & ~held, rough=True)
    wanted = np.where(held, head, 0)[:, 16:48, 16:48]
    missed = np.where(held[:, 16:48, 16:48], predicted, 0) - wanted
    error = np.linalg.norm(missed) / np.linalg.norm(wanted)
    assert maps_from_lines(head, DESIGNED).prediction_error == pytest.approx(error, rel=1e-3)


def test_samples_of_a_plane_give_maps_too(head):
    kept = np.random.default_rng(1).random((64, 64)) < 0.3
    kept[28:36, 28:36] = True
    estimate, whole = (maps_from_lines(np.where(m, head, np.nan), m) for m in (kept, np.ones((64, 64), bool)))
    assert unexplained(head, estimate.maps) < 1.1 * unexplained(head, whole.maps)


def test_silent_and_equal_coils_stay_what_they_are(head):
    coils = np.stack([head[0], np.zeros_like(head[0]), *head[2:4], head[0]])
    maps = maps_from_lines(coils, DESIGNED).maps
    assert np.abs(maps[1]).max() < 1e-6
    np.testing.assert_allclose(maps[0], maps[4], atol=1e-4)


@pytest.mark.parametrize(
    ("measured", "settings", "field"),
    [
        (lines(*range(30, 35)), {"method": "espirit"}, "measured"),
        (lines(*range(2, 64, 3)), {"method": "nlinv"}, "measured"),
        (np.zeros(64, dtype=bool), {}, "measured"),
        (DESIGNED, {"method": "walsh"}, "maps"),
    ],
)
def test_too_small_a_centre_and_unknown_methods_are_refused(head, measured, settings, field):
    with refused(field):
        maps_from_lines(head, measured, **settings)
    with refused("kspace"):
        maps_from_lines(np.zeros_like(head), DESIGNED)


def test_noise_is_no_error_of_maps_that_are_sound(head):
    """A signal of ten times the noise; the check would call the maps of such a scan bad by its noise alone."""
    sd = np.percentile(np.sqrt(np.sum(np.abs(to_image(head)) ** 2, axis=0)), 99) / 10
    added, centre = sd * noise(head.shape), lines(*range(20, 44))
    noisy = (head + added).astype(np.complex64)
    assert maps_from_lines(noisy, centre).predicts_badly
    assert not maps_from_lines(noisy, centre, noise_variance=sd**2).predicts_badly
    turns = np.exp(2j * np.pi * np.random.default_rng(0).random(head.shape))
    of_turned = maps_from_lines((head * turns + added).astype(np.complex64), centre, noise_variance=sd**2)
    assert of_turned.predicts_badly and not replace(of_turned, maps=of_turned.maps[:2]).predicts_badly


def smooth(shape, field=(1.0, 1.0)):
    """Two maps by place in fields of view of the first grid, over a field that is so many times as wide."""
    y, x = ((np.arange(n) - n // 2) / n * wide for n, wide in zip(shape, field, strict=True))
    maps = np.stack([np.exp(1j * (y[:, None] + 2 * x)), 1 + 0.5 * x + 0.2j * y[:, None]])
    return (maps / np.linalg.norm(maps, axis=0)).astype(np.complex64)


def test_other_grids_and_fields_of_view_keep_places_and_beyond_them_maps_are_those_of_the_edge():
    found = maps_on_grid(smooth((40, 50)), (64, 30), (0.5, 0.75))
    np.testing.assert_allclose(found, smooth((64, 30), (0.5, 0.75)), atol=2e-3)

    found = maps_on_grid(smooth((16, 16)), (32, 32), (2.0, 2.0))
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(found[:, 16, 0], found[:, 16, 8], atol=1e-6)


N = 32


def measured(trajectory: np.ndarray, images: np.ndarray, noise_sd: float = 0.0) -> TrajectoryData:
    pytest.importorskip("finufft")
    samples = NonUniformFourier(trajectory, (N, N))(images)[:, 0]
    samples = samples + noise_sd * noise(samples.shape)
    return TrajectoryData(samples[None].astype(np.complex64), trajectory, (N, N))


def coil_images() -> np.ndarray:
    y, x = np.meshgrid(*2 * (np.linspace(-1, 1, N),), indexing="ij")
    head = (np.hypot(y / 0.8, x / 0.6) < 1) - 0.5 * (np.hypot(y - 0.2, x) < 0.2)
    return np.array([head * np.exp(-((y - a) ** 2) - (x + a) ** 2 + 1j * a * x) for a in (-1, 0, 1)])


@pytest.mark.parametrize(("count", "side"), [(4, 3), (8, 7), (16, 15), (96, 24)])
def test_spokes_are_dense_as_far_as_they_are_close(count: int, side: int) -> None:
    assert abs(dense_centre(spokes(count, N), 24) - side) <= 1


def test_the_centre_is_that_of_the_fourier_transform() -> None:
    images = coil_images()
    centre = gridded_centre(measured(spokes(48, N), images), 16)
    inside = (slice(None), slice(8, 24), slice(8, 24))
    truth = to_kspace(images)[inside]
    assert centre.measured.sum() == 16
    assert np.count_nonzero(centre.kspace[0]) == 3 * 16 * 16
    assert np.linalg.norm(centre.kspace[0][inside] - truth) < 0.05 * np.linalg.norm(truth)


@pytest.mark.parametrize("n_coils", [1, 3])
def test_the_noise_is_that_of_the_outermost_samples_where_signal_is_told_from_it(n_coils: int) -> None:
    """Ten draws of noise alone are never taken for signal; where signal makes the estimate too large, it is said."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parts = rng.standard_normal((2, 1, n_coils, len(spokes(32, N)))).astype(np.float32)
        assert not rim_noise(parts[0] + 1j * parts[1], spokes(32, N), (N, N))[1]
    sharp = np.zeros((n_coils, N, N), dtype=complex)
    sharp[:, 10:22, 8:20] = 1  # edges, whose transform falls slowly
    of_edges = measured(spokes(32, N), sharp, noise_sd=1e-3)
    variance, signal = rim_noise(of_edges.kspace, of_edges.trajectory, (N, N))
    assert variance > 4 * 1e-6 and signal
    weak = measured(spokes(32, N), 1e-3 * coil_images(), noise_sd=0.1)
    assert rim_noise(weak.kspace, weak.trajectory, (N, N))[0] == pytest.approx(0.01, rel=0.1)


def test_a_centre_that_is_not_dense_and_samples_without_noise_are_refused() -> None:
    samples = np.zeros((1, 1, 64), np.complex64)
    samples[..., 32] = 1
    with refused("trajectory"):
        gridded_centre(measured(spokes(8, N), coil_images()), 24)
    with refused("noise_variance"):
        rim_noise(samples, spokes(1, N), (N, N))


SIDE, COILS = 10, 2


@pytest.fixture(scope="module")
def scan():
    """Samples (coil, ky, kx) of a small image behind two smooth maps, and which of them are measured."""
    rng = np.random.default_rng(3)
    place = (np.arange(SIDE) - SIDE // 2) / SIDE
    image = (np.hypot(place[:, None], place) < 0.35) * (1 + 0.2 * rng.standard_normal((SIDE, SIDE)))
    maps = np.stack([np.exp(1j * place[:, None]) * (1 + place), (1 - place) * np.ones((SIDE, 1))])
    samples = np.ones((SIDE, SIDE), dtype=bool)
    samples[[0, 2, 7, 8]] = False
    return to_kspace(image * maps).astype(np.complex64), samples


def dense_solution(kspace, samples, steps=17):
    """The same iteration (Uecker et al. 2008, equations 4 to 11) with all matrices written out, solved directly.

    In the second half of the steps an image is held at the envelope of the one before, and by the inverse square of it.
    """
    n = SIDE * SIDE
    transform = np.stack([to_kspace(e.reshape(SIDE, SIDE)).ravel() for e in np.eye(n)], axis=1)[samples.ravel()]
    cycles = np.arange(-6, 7)
    waves = np.exp(2j * np.pi * np.outer(np.arange(SIDE) - SIDE // 2, cycles) / SIDE)
    square = (cycles / 96) ** 2
    weights = ((1 + 220 * (square[:, None] + square)) ** -16.0).ravel()
    smooth = np.kron(waves, waves) * weights / SIDE
    data = (kspace[:, samples] * 100 / np.linalg.norm(kspace[:, samples])).ravel()
    start = np.concatenate([np.ones(n), np.zeros(COILS * len(weights))]).astype(complex)
    unknown, held = start.copy(), np.ones(len(start))
    for step in range(steps):
        image, spectra = unknown[:n], unknown[n:].reshape(COILS, -1)
        maps = spectra @ smooth.T
        if step > steps // 2:
            seen = gaussian_filter((np.abs(image) * np.linalg.norm(maps, axis=0)).reshape(SIDE, SIDE), 0.7, mode="wrap")
            seen = np.clip(seen / np.sqrt(np.sum(seen**4) / np.sum(seen**2)), 0.005, 1.5).ravel()
            start[:n], held[:n] = seen, seen**-2
        by_map = transform @ (image[:, None] * smooth)
        rows = [[transform * maps[c], *(by_map * (c == d) for d in range(COILS))] for c in range(COILS)]
        derivative = np.block(rows)
        residual = data - np.concatenate([transform @ (image * m) for m in maps])
        right = derivative.conj().T @ residual + 0.5**step * held * (start - unknown)
        unknown = unknown + np.linalg.solve(derivative.conj().T @ derivative + 0.5**step * np.diag(held), right)
    maps = unknown[n:].reshape(COILS, -1) @ smooth.T
    return (maps / np.linalg.norm(maps, axis=0)).reshape(COILS, SIDE, SIDE)


def test_the_maps_are_those_of_a_dense_iteration(scan, monkeypatch):
    kspace, samples = scan
    monkeypatch.setattr(module, "_TOLERANCE", 1e-4)
    monkeypatch.setattr(module, "_INNER", 400)
    fast, dense = maps_of_waves(joint_estimate(kspace, samples)[0][0], (SIDE, SIDE)), dense_solution(kspace, samples)
    assert np.abs(np.sum(fast.conj() * dense, axis=0)).min() > 0.9995  # 1 where they differ by a phase alone


def test_maps_are_the_same_on_any_grid(scan):
    (waves,), _, _ = joint_estimate(*scan)
    np.testing.assert_allclose(maps_of_waves(waves, (20, 30))[:, ::2, ::3], maps_of_waves(waves, (10, 10)), atol=1e-5)


def test_maps_have_no_pole_where_the_phase_of_the_object_turns():
    """The phase of a head turns by 6.8: begun from ones alone, the maps vanish at a pixel, and are 6 % off."""
    side, lines = 64, [18, 19, 20, 24, 25, 30, 31, 32, 33, 35, 37, 39, 41, 44, 45, 51]
    place = (np.arange(side) - side // 2) / side
    phase = 6.8 * np.exp(-((place[:, None] - 0.22) ** 2 + (place + 0.1) ** 2) / (2 * 0.15**2))
    head = load_phantom("t1w", shape=(side, side), noise=0.007, phase="none", n_coils=1, rng=np.random.default_rng(1))
    image, maps = head.reference[0], simulate_coil_maps(side, 4, np.random.default_rng(83))
    samples = np.zeros((side, side), dtype=bool)
    samples[lines] = True
    (waves,), _, dip = joint_estimate(
        to_kspace(maps * image * np.exp(1j * phase)).astype(np.complex64), samples, rough=True
    )
    along = np.minimum(np.abs(np.sum(maps_of_waves(waves, image.shape).conj() * maps, axis=0)), 1)
    assert dip > 0.8
    assert np.linalg.norm(image * np.sqrt(1 - along**2)) < 0.03 * np.linalg.norm(image)


@pytest.mark.parametrize(("left", "second"), [(0.5, True), (0.95, False)])
def test_a_second_solution_with_a_dip_counts_where_it_leaves_less_of_the_samples(scan, monkeypatch, left, second):
    kspace, samples = scan
    width = min(SIDE, module.BLOCK)
    data = module._SCALE * central(kspace, width) / np.linalg.norm(central(np.where(samples, kspace, 0), width))
    found = [
        (np.full(1, number), (data * (1 - part)).astype(np.complex64), 0.3) for number, part in ((1, 1), (2, left))
    ]
    monkeypatch.setattr(module._Problem, "estimate", lambda *_: found.pop(0))
    monkeypatch.setattr(module._Problem, "solution", lambda *_: None)
    assert joint_estimate(kspace, samples)[0][0] == (2 if second else 1)

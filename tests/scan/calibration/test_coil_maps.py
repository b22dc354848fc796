"""Maps from the central lines match the coils that made the scan, and combine it to the object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError, KSpaceData, coil_combined, estimate_coil_maps, load_phantom
from mri_design.scan.calibration.coil_maps import calibration_lines, explained_by_maps
from tests.slow_cases import slow_case


def with_centre(data: KSpaceData, first: int, last: int) -> KSpaceData:
    keep = np.arange(data.grid_shape[0]) % 4 == 0
    keep[first : last + 1] = True
    return replace(data, kspace=np.where(keep[:, np.newaxis], data.kspace, 0), measured=keep)


def maps_of(data: KSpaceData, **settings: object) -> np.ndarray:
    maps = estimate_coil_maps(data, **settings).coil_maps  # type: ignore[arg-type]
    assert maps is not None
    return maps


@pytest.mark.parametrize(("ny", "nx", "coils"), [(64, 64, 6), (63, 65, 4), (48, 80, 2)])
def test_maps_of_smooth_coils(truth: Callable, ny: int, nx: int, coils: int) -> None:
    scene = truth(ny, nx, coils)
    maps = maps_of(scene.scan(0.005))[0]
    np.testing.assert_allclose(np.linalg.norm(maps, axis=0), 1, atol=1e-5)
    likeness = np.abs(np.sum(maps.conj() * scene.maps, axis=0))[scene.inside]
    assert likeness.min() > 0.995
    assert likeness.mean() > 0.9995


@pytest.mark.parametrize("lines", [8, 16])
def test_few_lines_of_an_undersampled_scan_suffice(truth: Callable, lines: int) -> None:
    scene = truth(64, 64, 6)
    data = with_centre(scene.scan(0.005), 32 - lines // 2, 31 + lines // 2)
    assert calibration_lines(data) == lines + 1  # the comb adds the line after an even block
    likeness = np.abs(np.sum(maps_of(data, lines=lines)[0].conj() * scene.maps, axis=0))[scene.inside]
    assert likeness.mean() > 0.995
    # Nothing but the central lines was looked at.
    rest = data.kspace.copy()
    rest[:, :, : 32 - lines // 2] *= 2
    np.testing.assert_allclose(maps_of(replace(data, kspace=rest), lines=lines), maps_of(data, lines=lines), atol=2e-3)


def test_the_phase_conventions(truth: Callable) -> None:
    scene = truth(64, 64, 6)
    data = scene.scan(0.005)
    strong = np.abs(scene.image) > 0.5

    def roughness(phase: str) -> float:
        image = coil_combined(replace(data, coil_maps=maps_of(data, phase=phase)))[0]
        modulus = np.abs(image)
        steps = strong[1:] & strong[:-1]
        return float(np.abs(np.diff(image, axis=0))[steps].sum() / np.abs(np.diff(modulus, axis=0))[steps].sum())

    assert roughness("image") < roughness("virtual-coil") < 3
    combined = coil_combined(replace(data, coil_maps=maps_of(data, phase="image")))[0]
    assert np.linalg.norm(combined.imag[strong]) < 0.1 * np.linalg.norm(combined[strong])


def test_maps_are_smooth_and_the_same_in_every_run_and_unit(truth: Callable) -> None:
    scene = truth(64, 64, 6)
    data = scene.scan(0.005)
    maps = maps_of(data)
    np.testing.assert_array_equal(maps, maps_of(data))
    tiny = maps_of(replace(data, kspace=data.kspace * np.float32(2.0**-40)))
    np.testing.assert_allclose(maps, tiny, atol=1e-4)
    inside = scene.inside
    for axis, both in ((-2, inside[1:] & inside[:-1]), (-1, inside[:, 1:] & inside[:, :-1])):
        assert np.abs(np.diff(maps[0], axis=axis))[:, both].max() < 0.2


def test_a_dead_first_coil_and_an_empty_slice_leave_no_nan(truth: Callable) -> None:
    data = truth(64, 64, 4).scan(0.005)
    kspace = np.concatenate([data.kspace, np.zeros_like(data.kspace)])
    kspace[:, 0] = 0
    maps = maps_of(KSpaceData(kspace, data.measured))
    assert np.isfinite(maps).all()
    np.testing.assert_allclose(np.linalg.norm(maps, axis=1), 1, atol=1e-5)
    assert np.abs(maps[0, 0]).max() < 1e-3


def test_a_single_coil_has_the_map_one(truth: Callable) -> None:
    data = truth(64, 64, 1).scan(0.005)
    np.testing.assert_array_equal(maps_of(data), 1)
    assert np.abs(np.abs(maps_of(data, phase="image")) - 1).max() < 1e-5


@pytest.mark.parametrize(("first", "last", "count"), [(29, 35, 9), (29, 34, 6), (30, 60, 5), (0, 63, 64), (40, 50, 1)])
def test_the_block_around_the_centre_is_counted(truth: Callable, first: int, last: int, count: int) -> None:
    assert calibration_lines(with_centre(truth(64, 64, 1).scan(0.01), first, last)) == count


def test_too_small_a_centre_is_refused_with_a_cure(truth: Callable) -> None:
    data = with_centre(truth(64, 64, 4).scan(0.005), 30, 34)
    with pytest.raises(InputError, match="Give coil maps, measure a centre"):
        estimate_coil_maps(data)
    for settings in ({"lines": 4}, {"phase": "none"}):
        with pytest.raises(InputError):
            estimate_coil_maps(truth(64, 64, 4).scan(0.005), **settings)


def test_the_combined_image_is_the_object(truth: Callable) -> None:
    scene = truth(64, 64, 6)
    data = scene.scan(0.01)
    exact = coil_combined(replace(data, coil_maps=scene.maps[np.newaxis].astype(np.complex64)))[0]
    error = exact - scene.image
    assert np.mean(np.abs(error) ** 2) / 2 == pytest.approx(0.01**2, rel=0.1)
    estimated = coil_combined(data)[0]
    assert estimated.dtype == np.complex64
    difference = np.abs(estimated) - np.abs(scene.image)
    assert np.linalg.norm(difference[scene.inside]) < 0.03 * np.linalg.norm(scene.image)


def test_missing_lines_are_refused_but_zero_filled_edges_are_not(truth: Callable) -> None:
    data = truth(64, 64, 1).scan(0.01)
    measured = data.measured.copy()
    measured[[0, 1, 63]] = False
    edges = replace(data, kspace=np.where(measured[:, np.newaxis], data.kspace, 0), measured=measured)
    assert coil_combined(edges).shape == (1, 64, 64)
    measured = measured.copy()
    measured[20] = False
    with pytest.raises(InputError, match="lines 20 are missing"):
        coil_combined(replace(edges, measured=measured))
    partial = np.arange(64) < 48
    with pytest.raises(InputError, match="partial Fourier, lines 48-63 are missing"):
        coil_combined(replace(data, measured=partial))


def undersampled(data: KSpaceData, rows: int, columns: int = 1) -> KSpaceData:
    kspace = data.kspace.copy()
    for axis, every in ((-2, rows), (-1, columns)):
        keep = np.zeros(kspace.shape[axis], dtype=bool)
        keep[kspace.shape[axis] // 2 % every :: every] = True
        np.moveaxis(kspace, axis, -1)[..., ~keep] = 0
    return replace(data, kspace=kspace, measured=kspace.any(axis=(0, 1, 3)), reference=None)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize(("coils", "shape"), [(4, (64, 64)), slow_case(8, (96, 70)), slow_case(8, (65, 81))])
def test_the_right_maps_explain_nearly_all_and_others_less(
    rows: int, columns: int, coils: int, shape: tuple[int, int]
) -> None:
    whole = load_phantom("t2w", shape=shape, n_coils=coils, rng=np.random.default_rng(coils))
    data = undersampled(whole, rows, columns)
    assert data.coil_maps is not None
    assert explained_by_maps(data) > 0.99
    for wrong in (np.roll(data.coil_maps, 1, axis=1), data.coil_maps[..., ::-1, ::-1], data.coil_maps.conj()):
        assert explained_by_maps(replace(data, coil_maps=wrong)) < 0.94


def test_noise_that_is_known_is_not_held_against_the_maps() -> None:
    data = undersampled(load_phantom("t2w", shape=(64, 64), n_coils=6, rng=np.random.default_rng(0)), 2)
    rng = np.random.default_rng(1)
    sd = 0.05 * float(np.abs(data.kspace).max())
    noise = sd * (rng.standard_normal(data.kspace.shape) + 1j * rng.standard_normal(data.kspace.shape))
    noisy = replace(data, kspace=np.where(data.kspace != 0, data.kspace + noise, 0).astype(np.complex64))
    unknown = explained_by_maps(replace(noisy, noise_variance=None))
    known = explained_by_maps(replace(noisy, noise_variance=sd**2))
    assert unknown < 0.95 < 0.98 < known

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, KSpaceData, Recipe, calibrate, load_phantom, reconstruct
from mri_design.experiment import MapsOfScan, causes_of_bad_maps, load_scan, truth_of, with_given_maps
from mri_design.operators import to_image
from mri_design.scan import explained_by_maps
from mri_design.scan.provenance import LEAST_EXPLAINED
from tests.refusals import refused


def simulating(recipe: Recipe, **settings: object) -> Recipe:
    return recipe.replacing("input", matrix=settings.pop("matrix", None)).replacing("simulation", **settings)


def unknown_noise(data: KSpaceData) -> KSpaceData:
    return replace(data, noise_variance=None, coil_maps=None)


def bare(recipe: Recipe, coils: int, matrix: int = 48) -> KSpaceData:
    """A head in full, whose coil maps and truth are not known."""
    data = load_scan("phantom:brain", simulating(recipe, matrix=matrix, coils=coils))
    return replace(data, coil_maps=None, reference=None)


def like(maps: np.ndarray | None, others: np.ndarray | None, data: KSpaceData) -> float:
    """How alike coil maps of a slice are, where the object is bright."""
    image = np.linalg.norm(to_image(data.kspace[0]), axis=0)
    return float(np.average(np.abs(np.sum(maps[0].conj() * others[0], axis=0)), weights=image**2))


@pytest.mark.parametrize("source", ["phantom:", "phantom:../brain"])
def test_an_unknown_phantom_is_refused_with_all_known_ones(small: Recipe, source: str) -> None:
    with refused("input"):
        load_scan(source, small)


def test_a_matrix_need_not_be_square(small: Recipe) -> None:
    assert load_scan("phantom:brain", small.replacing("input", matrix=[32, 24])).grid_shape == (32, 24)


def test_several_coils_are_whitened_and_mapped(small: Recipe) -> None:
    data = load_scan("phantom:brain", simulating(small, matrix=48, coils=4))
    unknown = replace(unknown_noise(data), reference=None)
    scan = calibrate(unknown, small)
    assert (scan.noise_variance, scan.provenance.maps.calibration_lines) == (1, 24)
    np.testing.assert_allclose(np.sum(np.abs(scan.coil_maps) ** 2, axis=1), 1, rtol=1e-3)
    reference = truth_of(scan)
    assert np.corrcoef(np.abs(reference).ravel(), np.abs(data.reference[0]).ravel())[0, 1] > 0.98
    assert calibrate(unknown, small, calibration_lines=12).provenance.maps.calibration_lines == 12


@pytest.mark.parametrize("coils", [1, 2])
def test_coil_maps_and_image_come_from_the_lines_of_the_mask(small: Recipe, coils: int) -> None:
    """Lines that a mask leaves out cannot tell: with the noise known, garbage in them changes nothing."""
    data, mask = bare(small, coils), np.zeros(48, dtype=bool)
    mask[12:36] = mask[::5] = True
    garbage = np.where(mask[:, None], data.kspace, 2 * (1 + 1j)).astype(np.complex64)
    honest, fooled = (calibrate(replace(data, kspace=k), small, measured=mask) for k in (data.kspace, garbage))
    images = [reconstruct(one.slice_model(**small.slice_settings), mask, recipe=small) for one in (honest, fooled)]
    np.testing.assert_array_equal(images[0].image, images[1].image)
    np.testing.assert_array_equal(images[0].std, images[1].std)


@pytest.mark.parametrize("coils", [1, 2])
def test_the_noise_is_the_scanner_s_whatever_the_mask(small: Recipe, coils: int) -> None:
    data = unknown_noise(bare(small, coils))
    mask = np.zeros(48, dtype=bool)
    mask[12:36] = True
    whole, masked = (calibrate(data, small, measured=lines) for lines in (None, mask))
    assert whole.noise_variance == masked.noise_variance
    np.testing.assert_array_equal(whole.kspace, masked.kspace)


def test_noise_readouts_come_before_an_estimate_and_a_header_and_after_the_recipe(small: Recipe) -> None:
    data = unknown_noise(load_scan("phantom:brain", simulating(small, matrix=48, coils=1)))
    scanned = replace(data, noise_covariance=np.array([[0.04 + 0j]]))
    known = calibrate(replace(scanned, noise_variance=9.0), small)
    assert known.noise_variance == 0.04
    np.testing.assert_array_equal(known.kspace, data.kspace)
    given = calibrate(scanned, Recipe.of({"input": {"noise": 0.5}}))
    assert given.noise_variance == 0.25 and given.provenance.noise.source == "given"
    assert given.provenance.noise.doubt == "too large"
    assert calibrate(replace(data, noise_variance=9.0), small).noise_variance == 9


@pytest.mark.parametrize("coils", [1, 2])
def test_noise_that_signal_stood_in_the_way_of_is_doubted_unless_it_is_given(small: Recipe, coils: int) -> None:
    """Samples of an image of twice the resolution: the outermost ones hold signal."""
    fine = load_scan("phantom:t2w", simulating(small, matrix=128, coils=coils, noise=0.001))
    middle = fine.kspace[:, :, 44:84, 44:84]
    data = KSpaceData(np.ascontiguousarray(middle), np.ones(40, dtype=bool))
    found = calibrate(data, small)
    assert found.provenance.noise.doubt == "signal" and found.provenance.noise.wants_better
    given = calibrate(replace(data, noise_covariance=1e-6 * np.eye(coils, dtype=complex)), small).provenance.noise
    assert (given.source, given.doubt) == ("readouts", "")


def test_a_calibration_scan_gives_maps_and_no_line_that_a_design_must_begin_with(small: Recipe) -> None:
    every = bare(small, 3)
    few = np.arange(48) % 3 == 0
    sparse = replace(every, kspace=np.where(few[:, None], every.kspace, 0), measured=few)
    with refused("measured"):
        calibrate(sparse, small)
    centre = np.abs(np.arange(48) - 24) < 13
    scanned = np.where(centre[:, None], every.kspace, 0)
    found = calibrate(replace(sparse, calibration=scanned), small)
    assert found.provenance.maps.calibration_lines == 0
    expected = calibrate(every, small).coil_maps
    np.testing.assert_allclose(found.coil_maps, expected, atol=1e-5)
    assert calibrate(replace(every, calibration=scanned), small).provenance.maps.calibration_lines == 24


def test_maps_of_lines_with_gaps_are_nearly_those_of_the_whole_scan(small: Recipe) -> None:
    data = load_scan("phantom:brain", simulating(small, matrix=48, coils=4))
    few = np.zeros(48, dtype=bool)
    few[[4, 11, 15, 18, 20, *range(22, 27), 28, 31, 34, 40]] = True
    sparse = replace(data, kspace=np.where(few[:, None], data.kspace, 0), measured=few, coil_maps=None, reference=None)
    scan = calibrate(sparse, small)
    maps = scan.provenance.maps
    assert (maps.source, maps.lines, maps.bad, scan.provenance.maps.calibration_lines) == ("nlinv", 12, False, 5)
    assert like(calibrate(sparse, small, measured=few).coil_maps, data.coil_maps, data) > 0.995
    with refused("measured"):
        calibrate(sparse, small.replacing("coils", maps="espirit"))


def test_centre_lines_that_one_image_and_smooth_maps_do_not_explain_are_doubted(small: Recipe) -> None:
    """Coils that changed places on every other line, as a wrong table of channels does it."""
    data = bare(small, 4)
    swapped = data.kspace.copy()
    swapped[:, :, 1::2] = np.roll(swapped[:, :, 1::2], 1, axis=1)
    assert not calibrate(data, small).provenance.maps.bad
    found = calibrate(replace(data, kspace=swapped), small)
    assert found.provenance.maps.bad and causes_of_bad_maps(found) == ("alternate lines",)
    assert found.second_maps is None
    by_nlinv = calibrate(replace(data, kspace=swapped), small.replacing("coils", maps="nlinv"))
    assert by_nlinv.provenance.maps.bad and by_nlinv.second_maps is None


def test_maps_of_a_prescan_lie_where_the_scan_does(small: Recipe, tmp_path: Path) -> None:
    data = bare(small, 4, 64)
    low = np.ascontiguousarray(data.kspace[..., 16:48, 16:48])
    np.savez(tmp_path / "prescan.npz", kspace=low, noise_variance=np.float64(data.noise_variance or 0))
    np.savez(tmp_path / "turned.npz", kspace=low[:, [1, 2, 3, 0]], noise_variance=np.float64(data.noise_variance or 0))
    found = with_given_maps(data, MapsOfScan(tmp_path / "prescan.npz"), small)
    assert like(calibrate(found, small).coil_maps, calibrate(data, small).coil_maps, data) > 0.995
    with refused("turned.npz"):
        with_given_maps(data, MapsOfScan(tmp_path / "turned.npz"), small)
    with refused("prescan.npz"):
        with_given_maps(replace(data, kspace=data.kspace[:, :3]), MapsOfScan(tmp_path / "prescan.npz"), small)


def test_maps_of_a_file_come_before_those_of_the_scan(small: Recipe, tmp_path: Path) -> None:
    recipe = simulating(small, matrix=32, coils=6)
    data = load_scan("phantom:brain", recipe)
    np.savez(tmp_path / "scan.npz", kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    np.save(tmp_path / "maps.npy", 2 * data.coil_maps[0])
    found = load_scan(str(tmp_path / "scan.npz"), recipe, maps=tmp_path / "maps.npy")
    np.testing.assert_allclose(found.coil_maps, data.coil_maps, atol=1e-6)
    assert found.provenance.maps.explained > 0.95
    scan = calibrate(found, recipe)
    assert (scan.provenance.maps.calibration_lines, scan.provenance.maps.file) == (0, "maps.npy")
    for name, wrong in (("order", data.coil_maps[:, [2, 0, 1, 5, 4, 3]]), ("turned", data.coil_maps.swapaxes(-1, -2))):
        np.save(tmp_path / f"{name}.npy", wrong)
        with pytest.raises(InputError):
            load_scan(str(tmp_path / "scan.npz"), recipe, maps=tmp_path / f"{name}.npy")


def test_maps_are_held_against_a_noisy_scan_without_its_noise(small: Recipe, tmp_path: Path) -> None:
    data = load_scan("phantom:brain", simulating(small, matrix=32, coils=6, noise=0.2))
    assert explained_by_maps(replace(data, noise_variance=None)) < LEAST_EXPLAINED
    np.save(tmp_path / "right.npy", data.coil_maps[0])
    np.save(tmp_path / "wrong.npy", data.coil_maps[0, [2, 0, 1, 5, 4, 3]])
    with_given_maps(unknown_noise(data), tmp_path / "right.npy", small)
    with refused("wrong.npy"):
        with_given_maps(unknown_noise(data), tmp_path / "wrong.npy", small)


@pytest.mark.parametrize(("size", "coils", "known"), [(1e-30, 1, True), (1e30, 1, False), (1e-19, 2, False)])
def test_amplitudes_far_from_one_are_calculated_with_as_ordinary_numbers(
    small: Recipe, size: float, coils: int, known: bool
) -> None:
    data = load_scan("phantom:brain", simulating(small, matrix=32, coils=coils))
    data = replace(data, coil_maps=None, reference=None, noise_variance=data.noise_variance if known else None)
    far = replace(
        data,
        kspace=(data.kspace * size).astype(np.complex64),
        noise_variance=None if data.noise_variance is None else data.noise_variance * size**2,
    )
    near, found = calibrate(data, small), calibrate(far, small, ordinary=True)
    assert 1e-3 < float(np.abs(found.kspace).max()) < 1e4
    white = coils > 1 and not known
    assert found.unit * np.abs(found.kspace).max() == pytest.approx(
        np.abs(near.kspace).max() * (1 if white else size), rel=1e-3
    )
    images = []
    for scan in (near, found):
        result = reconstruct(
            scan.slice_model(0, **small.slice_settings), range(8, 24), "mean", small, np.random.default_rng(0)
        )
        assert result.std is not None and result.convergence.converged
        images.append((result.image.astype(np.complex128), result.std.astype(np.float64)))
    for one, other in zip(*images, strict=True):
        expected = one * size
        assert np.linalg.norm(other - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize(("side", "used"), [(10, 10), (32, 24)])
def test_a_plane_starts_with_the_calibration_square_that_was_measured(side: int, used: int) -> None:
    data = load_phantom("brain", shape=(32, 32), n_coils=2, rng=np.random.default_rng(0))
    held = np.zeros((32, 32), dtype=bool)
    held[::2, ::2] = True
    held[16 - side // 2 : 16 + side // 2, 16 - side // 2 : 16 + side // 2] = True
    kspace = data.kspace * held
    scan = KSpaceData(kspace, held.any(axis=1), noise_variance=data.noise_variance)
    recipe = Recipe.of({"design": {"encoding": "plane"}})
    assert calibrate(scan, recipe).provenance.maps.calibration_lines == used


@pytest.mark.parametrize(("coils", "least"), [(1, 1e-8), (4, 1e-4)])
def test_noise_that_cannot_be_reckoned_with_is_raised_and_this_is_said(small: Recipe, coils: int, least: float) -> None:
    data = load_scan("phantom:t2w", simulating(small, matrix=32, coils=coils, noise=1e-3))
    ordinary, tiny = (calibrate(replace(data, noise_variance=sd**2), small) for sd in (0.01, 1e-12))
    assert ordinary.provenance.noise.raised == 1 and ordinary.noise_variance == 0.01**2
    assert tiny.provenance.noise.raised > 1 and tiny.provenance.noise.limit
    assert tiny.noise_variance is not None and np.sqrt(tiny.noise_variance) > least


def test_maps_of_the_scans_own_file_are_held_against_it() -> None:
    data = load_phantom("brain", shape=(24, 24), n_coils=4, rng=np.random.default_rng(1))
    assert not calibrate(data).provenance.maps.bad
    wrong = calibrate(replace(data, coil_maps=data.coil_maps[:, [2, 0, 3, 1]]))
    assert wrong.provenance.maps.bad and wrong.provenance.maps.explained < LEAST_EXPLAINED
    with refused("coil_maps"):
        calibrate(replace(data, coil_maps=0 * data.coil_maps))

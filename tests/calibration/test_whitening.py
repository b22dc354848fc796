"""Coils made of independent noise, or combined into virtual ones: what they hold, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.calibration import coil_directions, compression, virtual_directions
from mri_design.operators import to_image, to_kspace
from mri_design.scan.calibration import mixed_coils
from tests.calibration.scenes import truth
from tests.refusals import refused

MIXING = np.array([[2, 0.5, 0], [0.3j, 1, 0.2], [0, 0.4, 0.5 - 0.2j]])


def test_a_given_covariance_becomes_the_identity() -> None:
    scene, covariance = truth(coils=3), 0.02**2 * MIXING @ MIXING.conj().T
    noisy, silent = (md.scan.prewhiten(scene.scan(sd, mixing=MIXING), covariance).kspace for sd in (0.02, 0))
    noise = np.moveaxis(noisy - silent, 1, 0).reshape(3, -1)
    np.testing.assert_allclose(noise @ noise.conj().T / (2 * noise.shape[1]), np.eye(3), atol=0.04)


def test_maps_and_reference_still_explain_the_data() -> None:
    scene = truth(coils=3)
    data = replace(
        scene.scan(0.02, mixing=MIXING),
        kspace=scene.kspace.astype(np.complex64),
        coil_maps=scene.maps[np.newaxis].astype(np.complex64),
        reference=scene.image[np.newaxis].astype(np.complex64),
    )
    whitened = md.scan.prewhiten(data, 0.02**2 * MIXING @ MIXING.conj().T)
    np.testing.assert_allclose(np.linalg.norm(whitened.coil_maps, axis=1), 1, rtol=1e-5)
    model = to_kspace(whitened.coil_maps * whitened.reference[:, np.newaxis])
    np.testing.assert_allclose(model, whitened.kspace, atol=1e-4 * np.abs(whitened.kspace).max())


def test_cropped_maps_stay_cropped_and_a_lone_reference_is_dropped() -> None:
    scene = truth(coils=3)
    maps = (scene.maps * scene.inside)[np.newaxis].astype(np.complex64)
    data = replace(scene.scan(0.02), reference=scene.image[np.newaxis].astype(np.complex64))
    whitened = md.scan.prewhiten(replace(data, coil_maps=maps))
    assert not whitened.coil_maps[:, :, ~scene.inside].any()
    assert md.scan.prewhiten(data).reference is None


def test_a_single_coil_is_scaled_with_its_reference() -> None:
    scene = truth(coils=1)
    reference = (scene.image * scene.maps[0])[np.newaxis].astype(np.complex64)
    whitened = md.scan.prewhiten(replace(scene.scan(0.01), reference=reference), np.array([[0.01**2]]))
    np.testing.assert_allclose(whitened.reference, reference * 100, rtol=1e-5)
    difference = to_image(whitened.kspace[:, 0]) - whitened.reference
    assert np.mean(np.abs(difference) ** 2) / 2 == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("covariance", [np.eye(2), np.ones((3, 3))], ids=["size", "singular"])
def test_matrices_that_are_no_covariance_are_refused(covariance: np.ndarray) -> None:
    with refused("covariance"):
        md.scan.prewhiten(truth(coils=3).scan(0.02), covariance)


GRID, COILS, NOISE = (48, 40), 8, 1e-6


def scan(seed: int = 0, coils: int = COILS) -> md.KSpaceData:
    return md.load_phantom("brain", shape=GRID, n_coils=coils, rng=np.random.default_rng(seed))


def undersampled(coils: int = COILS) -> tuple[md.KSpaceData, np.ndarray]:
    """A scan without maps, and every second of its lines with the centre."""
    lines = np.zeros(GRID[0], bool)
    lines[::2] = lines[16:32] = True
    return replace(scan(coils=coils), coil_maps=None, reference=None, noise_variance=NOISE), lines


def compressing(count: int | str) -> md.Recipe:
    return md.Recipe().replacing("coils", coil_compression=count)


def test_the_directions_are_those_of_a_singular_value_decomposition_and_leave_out_what_is_said() -> None:
    data = scan()
    found = compression(data.kspace, NOISE, 3)
    lines = data.kspace[0][:, GRID[0] // 2 - 2 : GRID[0] // 2 + 2].reshape(COILS, -1).astype(np.complex128)
    left, strength, _ = np.linalg.svd(lines, full_matrices=False)
    np.testing.assert_allclose(found.matrix.conj().T @ found.matrix, left[:, :3] @ left[:, :3].conj().T, atol=1e-6)
    np.testing.assert_allclose(found.matrix @ found.matrix.conj().T, np.eye(3), atol=1e-12)
    energies = np.maximum(strength**2 - 2 * NOISE * lines.shape[1], 0)
    assert found.lost == pytest.approx(energies[3:].sum() / energies.sum(), rel=1e-6)
    image = np.zeros_like(data.kspace[0])
    image[:, GRID[0] // 2 - 2 : GRID[0] // 2 + 2] = lines.reshape(COILS, 4, -1)
    seen = np.linalg.norm(to_image(image), axis=0)
    missed = energies[3:].sum() * (seen**2).sum() / seen.sum() ** 2  # in a pixel of the object
    assert found.left_out == pytest.approx(np.sqrt(missed / (2 * NOISE)), rel=1e-4)


@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_the_noise_decides_how_many_virtual_coils_there_are(noise: float) -> None:
    data = scan(coils=16)
    found = compression(data.kspace, noise)
    fewer = compression(data.kspace, noise, len(found.matrix) - 1)
    assert found.left_out <= 0.25 and (fewer.left_out > 0.25 or len(found.matrix) == 8)
    assert len(compression(data.kspace, noise / 100).matrix) > len(found.matrix)


@pytest.mark.parametrize(("count", "coils", "virtual"), [("auto", 12, 12), ("none", 16, 16), (16, 16, 16), (5, 16, 5)])
def test_coils_are_combined_beyond_twelve_or_as_stated(count: int | str, coils: int, virtual: int) -> None:
    made = md.calibrate(scan(coils=coils), compressing(count))
    assert made.n_coils == made.coil_maps.shape[1] == virtual and made.noise_variance > 0
    assert (made.provenance.combined is None) == (virtual == coils)


def test_design_mask_and_other_lines_have_the_same_virtual_coils() -> None:
    data, lines = undersampled(16)
    noisy = replace(data, noise_variance=1e-4)
    start = np.isin(np.arange(GRID[0]), np.arange(22, 26))
    every, mask, first = (
        md.calibrate(noisy, measured=which, growing=grows)
        for which, grows in ((None, False), (lines, False), (start, True))
    )
    assert 8 <= every.n_coils < 16
    np.testing.assert_array_equal(every.mixing, mask.mixing)
    np.testing.assert_array_equal(every.mixing, first.mixing)


def test_all_coils_are_the_same_image_and_fewer_lose_as_much_as_is_said() -> None:
    data, lines = undersampled()

    def image(count: int) -> np.ndarray:
        recipe = compressing(count)
        made = md.calibrate(data, recipe, measured=lines)
        assert (made.provenance.combined is not None) == (count < COILS)  # else there is nothing to do
        found = md.reconstruct(made.slice_model(0, **recipe.slice_settings), lines, "least-squares", recipe)
        return np.abs(found.image)

    whole = image(COILS)
    errors = [np.linalg.norm(image(count) - whole) / np.linalg.norm(whole) for count in (6, 3)]
    assert errors[0] < 0.02 < errors[1] < 0.3


def test_a_rotation_of_all_coils_leaves_the_image_as_it_is() -> None:
    data = replace(scan(), noise_variance=NOISE)
    lines = undersampled()[1]
    rotated = mixed_coils(data, compression(data.kspace, NOISE, COILS).matrix)
    one, other = (
        md.reconstruct(each.slice_model(0, **md.Recipe().slice_settings), lines, "least-squares").image
        for each in (data, rotated)
    )
    assert np.linalg.norm(one - other) < 1e-5 * np.linalg.norm(one)


def test_virtual_coils_are_judged_as_the_coils_that_were_read() -> None:
    data, lines = undersampled(16)
    noisy = replace(data, noise_variance=scan().noise_variance)
    images = []
    for how in ("none", "auto"):
        recipe = md.load_recipe("local").with_settings([f"coils.coil_compression={how}"])
        made = md.calibrate(noisy, recipe, measured=lines)
        strength = np.linalg.norm(made.kspace[0], axis=(1, 2))
        assert made.slice_model().coils_read == 16 and strength.max() < 4 * strength.min()
        rng = np.random.default_rng(0)
        images.append(md.reconstruct(made.slice_model(0, **recipe.slice_settings), lines, "mean", recipe, rng=rng))
    assert images[1].misfit == pytest.approx(images[0].misfit, rel=0.05)


def test_samples_that_were_not_measured_have_no_say() -> None:
    data, lines = undersampled()
    poisoned = data.kspace.copy()
    poisoned[:, :, ~lines] *= 1e3
    one, other = (
        md.calibrate(replace(data, kspace=k), compressing(4), measured=lines) for k in (data.kspace, poisoned)
    )
    np.testing.assert_array_equal(one.mixing, other.mixing)
    np.testing.assert_array_equal(one.coil_maps, other.coil_maps)


def test_of_a_plane_the_samples_next_to_the_centre_decide() -> None:
    kspace = scan().kspace.copy()
    wanted = compression(kspace, NOISE, 4, square=True).matrix
    outside = np.ones(GRID, bool)
    outside[20:28, 16:24] = False
    kspace[:, :, outside] *= 1e3
    np.testing.assert_array_equal(compression(kspace, NOISE, 4, square=True).matrix, wanted)


def test_maps_that_are_given_are_combined_too_and_still_explain_the_scan() -> None:
    data = scan(1)
    made = md.calibrate(data, compressing(4))
    np.testing.assert_allclose(np.linalg.norm(made.coil_maps[0], axis=0), 1, atol=1e-5)
    seen = made.coil_maps[0] * made.reference[0]
    matrix = compression(data.kspace, data.noise_variance, 4, maps=data.coil_maps).matrix
    expected = np.tensordot(matrix, data.coil_maps[0] * data.reference[0], axes=1)
    np.testing.assert_allclose(seen, expected, atol=1e-3 * np.abs(expected).max())
    known = compression(data.kspace, data.noise_variance, maps=data.coil_maps)
    estimated = compression(data.kspace, data.noise_variance)
    assert known.lost == pytest.approx(estimated.lost, abs=1e-3)


def test_the_phase_of_a_volume_runs_on_through_slices_that_are_combined_differently() -> None:
    first, second = scan(0), scan(1)
    stack = np.concatenate([first.kspace, second.kspace])
    energies = sum(np.tensordot(k, k.conj(), ((1, 2), (1, 2))) for k in stack.astype(np.complex128))
    common = coil_directions(np.asarray(energies))
    for data in (first, second):
        matrix = compression(data.kspace, NOISE, 4).matrix
        own = virtual_directions(matrix, common)
        np.testing.assert_allclose(own.conj().T @ own, np.eye(4), atol=1e-10)
        along = own[:, 0].conj() @ (matrix @ common[:, 0])
        assert along.real > 0.9 and abs(along.imag) < 1e-10


def test_samples_as_the_scanner_measured_them_cannot_be_had_from_virtual_coils() -> None:
    made = md.calibrate(scan(), compressing(3))
    with pytest.raises(md.InputError):
        made.as_read(made.kspace[0], None, 1.0)


@pytest.mark.parametrize("count", [0, 9, "some", 2.5])
def test_refuses_more_virtual_coils_than_there_are_and_what_is_no_number(count: object) -> None:
    with refused("coils.coil_compression"):
        md.calibrate(scan(), md.Recipe.of({"coils": {"coil_compression": count}}))


def many_coils(noise: float) -> md.KSpaceData:
    return replace(undersampled(16)[0], noise_variance=noise)


@pytest.mark.parametrize("noise", [1e-12, 1e6])
def test_where_noise_is_next_to_nothing_or_hides_the_signal_all_coils_stay(noise: float) -> None:
    made = md.calibrate(many_coils(noise), md.Recipe(), measured=undersampled(16)[1])
    assert made.n_coils == 16 and made.provenance.combined is None


def test_the_units_of_a_prescan_do_not_decide_how_many_coils_there_are() -> None:
    data, lines = undersampled(16)
    data = replace(data, noise_variance=scan().noise_variance)
    counts = [
        md.calibrate(replace(data, calibration=gain * data.kspace), md.Recipe(), measured=lines).n_coils
        for gain in (1, 1e-3, 1e3)
    ]
    assert counts[0] < 16 and counts == [counts[0]] * 3


def test_a_slice_without_samples_has_no_say_in_virtual_coils() -> None:
    kspace = undersampled(16)[0].kspace
    both = np.concatenate([kspace, np.zeros_like(kspace)])
    one, other = (compression(each, scan().noise_variance) for each in (kspace, both))
    np.testing.assert_allclose(one.matrix, other.matrix)
    with refused("kspace"):
        compression(np.zeros_like(kspace), 1.0)

"""Coils made of independent noise, or combined into virtual ones: what they hold, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.calibration import coil_directions, compression, virtual_directions
from mri_design.operators import to_image, to_kspace
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


GRID, COILS = (48, 40), 8


def scan(seed: int = 0) -> md.KSpaceData:
    return md.load_phantom("brain", shape=GRID, n_coils=COILS, rng=np.random.default_rng(seed))


def undersampled() -> tuple[md.KSpaceData, np.ndarray]:
    """A scan without maps, and every second of its lines with the centre."""
    lines = np.zeros(GRID[0], bool)
    lines[::2] = lines[16:32] = True
    return replace(scan(), coil_maps=None, reference=None, noise_variance=1e-6), lines


def compressing(count: int) -> md.Recipe:
    return md.Recipe().replacing("coils", compress=count)


def test_the_directions_are_those_of_a_singular_value_decomposition() -> None:
    data = scan()
    matrix, lost = compression(data.kspace, 3, 16)
    rows, columns = (slice(n // 2 - w, n // 2 + w) for n, w in zip(GRID, (8, 16), strict=True))
    centre = data.kspace[0][:, rows, columns].reshape(COILS, -1).astype(np.complex128)
    left, strength, _ = np.linalg.svd(centre, full_matrices=False)
    np.testing.assert_allclose(np.abs(matrix @ left[:, :3]), np.eye(3), atol=1e-6)
    assert lost == pytest.approx(1 - (strength[:3] ** 2).sum() / (strength**2).sum(), rel=1e-6)
    np.testing.assert_allclose(matrix @ matrix.conj().T, np.eye(3), atol=1e-12)


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


def test_samples_that_were_not_measured_have_no_say() -> None:
    data, lines = undersampled()
    poisoned = data.kspace.copy()
    poisoned[:, :, ~lines] *= 1e3
    one, other = (
        md.calibrate(replace(data, kspace=k), compressing(4), measured=lines) for k in (data.kspace, poisoned)
    )
    np.testing.assert_array_equal(one.mixing, other.mixing)
    np.testing.assert_array_equal(one.coil_maps, other.coil_maps)


def test_maps_that_are_given_are_combined_too_and_still_explain_the_scan() -> None:
    data = scan(1)
    made = md.calibrate(data, compressing(4))
    np.testing.assert_allclose(np.linalg.norm(made.coil_maps[0], axis=0), 1, atol=1e-5)
    seen = made.coil_maps[0] * made.reference[0]
    matrix, _ = compression(data.kspace, 4, 24)
    expected = np.tensordot(matrix, data.coil_maps[0] * data.reference[0], axes=1)
    np.testing.assert_allclose(seen, expected, atol=1e-3 * np.abs(expected).max())


def test_the_phase_of_a_volume_runs_on_through_slices_that_are_combined_differently() -> None:
    first, second = scan(0), scan(1)
    stack = np.concatenate([first.kspace, second.kspace])
    energies = sum(np.tensordot(k, k.conj(), ((1, 2), (1, 2))) for k in stack.astype(np.complex128))
    common = coil_directions(np.asarray(energies))
    for data in (first, second):
        matrix, _ = compression(data.kspace, 4, 24)
        own = virtual_directions(matrix, common)
        np.testing.assert_allclose(own.conj().T @ own, np.eye(4), atol=1e-10)
        along = own[:, 0].conj() @ (matrix @ common[:, 0])
        assert along.real > 0.9 and abs(along.imag) < 1e-10


def test_samples_as_the_scanner_measured_them_cannot_be_had_from_virtual_coils() -> None:
    made = md.calibrate(scan(), compressing(3))
    with pytest.raises(md.InputError):
        made.as_read(made.kspace[0], None, 1.0)


@pytest.mark.parametrize("count", [0, 9])
def test_refuses_more_coils_than_there_are(count: int) -> None:
    with refused("virtual coils"):
        compression(scan().kspace, count, 24)

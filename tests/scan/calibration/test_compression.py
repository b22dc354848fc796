"""Coils combined into virtual ones: what they hold, and what stays as it was."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError, KSpaceData, Recipe, load_phantom, prepare, reconstruct
from mri_design.calibration.espirit import coil_directions
from mri_design.scan.calibration.compression import COMPRESSED, compression

GRID, COILS = (48, 40), 8


def scan(seed: int = 0) -> KSpaceData:
    return load_phantom("brain", shape=GRID, n_coils=COILS, rng=np.random.default_rng(seed))


def compressing(count: int) -> Recipe:
    return Recipe().replacing("coils", compress_coils=count)


def test_the_directions_are_those_of_a_singular_value_decomposition() -> None:
    data = scan()
    made = compression(data, 3, 16)
    rows, columns = (slice(n // 2 - w, n // 2 + w) for n, w in zip(GRID, (8, 16), strict=True))
    centre = data.kspace[0][:, rows, columns].reshape(COILS, -1).astype(np.complex128)
    left, strength, _ = np.linalg.svd(centre, full_matrices=False)
    np.testing.assert_allclose(np.abs(made.matrix @ left[:, :3]), np.eye(3), atol=1e-6)
    assert made.lost == pytest.approx(1 - (strength[:3] ** 2).sum() / (strength**2).sum(), rel=1e-6)
    np.testing.assert_allclose(made.matrix @ made.matrix.conj().T, np.eye(3), atol=1e-12)


def test_all_coils_are_the_same_image_and_fewer_lose_as_much_as_is_said() -> None:
    data = replace(scan(), coil_maps=None, reference=None, noise_variance=1e-6)
    lines = np.zeros(GRID[0], bool)
    lines[::2] = lines[16:32] = True

    def image(count: int | None) -> tuple[np.ndarray, str]:
        recipe = Recipe() if count is None else compressing(count)
        made = prepare(data, recipe, measured=lines)
        found = reconstruct(made.slice_model(0, recipe), lines, "least-squares", recipe)
        return np.asarray(found.image), str(made.data.header.get(COMPRESSED, ""))

    whole, nothing = image(None)
    assert not nothing and image(COILS)[1] == ""  # as many as there are: nothing to do
    errors = {}
    for count in (6, 3):
        fewer, said = image(count)
        errors[count] = np.linalg.norm(np.abs(fewer) - np.abs(whole)) / np.linalg.norm(whole)
        assert f"8 coils combined into {count}" in said
    assert errors[6] < 0.02 < errors[3] < 0.3


def test_samples_that_were_not_measured_have_no_say() -> None:
    data = replace(scan(), coil_maps=None, reference=None, noise_variance=1e-6)
    lines = np.zeros(GRID[0], bool)
    lines[::2] = lines[16:32] = True
    poisoned = data.kspace.copy()
    poisoned[:, :, ~lines] *= 1e3
    one, other = (prepare(replace(data, kspace=k), compressing(4), measured=lines) for k in (data.kspace, poisoned))
    np.testing.assert_array_equal(one.mixing, other.mixing)
    np.testing.assert_array_equal(one.data.coil_maps, other.data.coil_maps)


def test_maps_that_are_given_are_combined_too_and_still_explain_the_scan() -> None:
    data = scan(1)
    assert data.coil_maps is not None and data.reference is not None
    made = prepare(data, compressing(4))
    assert made.data.coil_maps is not None and made.data.reference is not None
    np.testing.assert_allclose(np.linalg.norm(made.data.coil_maps[0], axis=0), 1, atol=1e-5)
    seen = made.data.coil_maps[0] * made.data.reference[0]
    matrix = compression(data, 4, 24).matrix
    expected = np.tensordot(matrix, data.coil_maps[0] * data.reference[0], axes=1)
    np.testing.assert_allclose(seen, expected, atol=1e-3 * np.abs(expected).max())


def test_the_phase_of_a_volume_runs_on_through_slices_that_are_combined_differently() -> None:
    first, second = scan(0), scan(1)
    stack = np.concatenate([first.kspace, second.kspace])
    energies = sum(np.tensordot(k, k.conj(), ((1, 2), (1, 2))) for k in stack.astype(np.complex128))
    common = coil_directions(np.asarray(energies))
    for data in (first, second):
        made = compression(data, 4, 24)
        own = made.directions(common)
        np.testing.assert_allclose(own.conj().T @ own, np.eye(4), atol=1e-10)
        along = own[:, 0].conj() @ (made.matrix @ common[:, 0])
        assert along.real > 0.9 and abs(along.imag) < 1e-10


def test_samples_as_the_scanner_measured_them_cannot_be_had_from_virtual_coils() -> None:
    made = prepare(scan(), compressing(3))
    with pytest.raises(InputError, match="3 of 8 coils"):
        made.as_read(made.data.kspace[0], None, 1.0)


@pytest.mark.parametrize("count", [0, 9])
def test_refuses_more_coils_than_there_are(count: int) -> None:
    with pytest.raises(InputError, match="virtual coils"):
        compression(scan(), count, 24)

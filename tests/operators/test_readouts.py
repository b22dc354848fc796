"""Lines, samples of a plane and shots are candidates of one kind: rows, data, values and energies by number."""

from importlib.util import find_spec

import numpy as np
import pytest

from mri_design import turned
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts

GRID = (6, 5)
SHOT = np.stack([np.zeros(5), np.arange(5) - 2.0], axis=1)
SHOTS = ShotReadouts(GRID, turned(SHOT, np.linspace(0, np.pi, 7, endpoint=False)))
needs_finufft = pytest.mark.skipif(find_spec("finufft") is None, reason="needs FINUFFT")


def random_complex(*shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def waves(points: np.ndarray) -> np.ndarray:
    """Rows of the Fourier transform at any points of k-space, (point, ky, kx), written out."""
    rows, columns = ((np.arange(n) - n // 2) / n for n in GRID)
    phases = points[:, 0, None, None] * rows[:, None] + points[:, 1, None, None] * columns
    return np.exp(-2j * np.pi * phases) / np.sqrt(np.prod(GRID))


KINDS = [LineReadouts(GRID), PlaneReadouts(GRID), pytest.param(SHOTS, marks=needs_finufft)]


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("encoding", KINDS, ids=["lines", "plane", "shots"])
def test_rows_measure_what_data_takes_from_full_kspace_and_values_have_their_energy(encoding: Readouts, coils) -> None:
    image, maps = random_complex(*GRID), None if coils == 1 else random_complex(coils, *GRID, seed=1)
    shots = isinstance(encoding, ShotReadouts)
    points = SHOTS.shots if shots else np.moveaxis(np.indices(GRID), 0, -1) - np.array(GRID) // 2
    full = np.einsum("syx,cyx->cs", waves(points.reshape(-1, 2)), image[None] if maps is None else maps * image)
    full, ids = full.reshape(coils, *points.shape[:2]), [4, 0, 3]
    data = encoding.rows(ids, maps)(image)
    np.testing.assert_allclose(data, encoding.data(full, ids), atol=1e-12)
    power = np.sum(np.abs(full.reshape(coils, encoding.size, -1)) ** 2, axis=(0, 2))
    np.testing.assert_allclose(encoding.energies(data, ids), power[ids], rtol=1e-12)
    values = encoding.values(image[None], maps)
    assert values.shape[:3] == (1, coils, encoding.size)
    np.testing.assert_allclose(np.sum(np.abs(values) ** 2, axis=(0, 1, 3)), power, rtol=1e-12)
    if shots:
        np.testing.assert_allclose(values[0], full, atol=1e-12)


def test_noise_of_a_sample_is_the_same_whichever_others_are_measured() -> None:
    plane = PlaneReadouts(GRID)
    few, many = ([3, 17], [0, 3, 9, 17, 29])
    drawn = [plane.rows(ids).unit_noise(np.random.default_rng(5), 2, np.dtype(float)) for ids in (few, many)]
    np.testing.assert_array_equal(drawn[0], drawn[1][..., [1, 3]])


def test_frequencies_distances_and_opposites() -> None:
    plane = PlaneReadouts(GRID)
    centre = 3 * GRID[1] + 2
    assert plane.frequencies[centre].tolist() == [0, 0] and plane.radius[centre] == 0
    assert plane.outwards[0] == centre == plane.opposite[centre]
    assert np.all(np.diff(plane.radius[plane.outwards]) > -1e-9)
    k = {tuple(pair): number for number, pair in enumerate(plane.frequencies.tolist())}
    assert plane.opposite[k[1, 2]] == k[-1, -2]
    assert plane.opposite[k[-3, 1]] == k[-3, -1]  # the edge of an even grid is its own opposite


def test_the_central_run_is_the_largest_ellipse_without_a_gap() -> None:
    plane = PlaneReadouts((16, 16))
    inner = plane.outwards[:37].tolist()
    beyond = plane.outwards[40:60].tolist()
    assert plane.central_run([*beyond, *inner]) == sorted(inner)
    assert plane.central_run(beyond) == sorted(beyond)
    assert plane.nearest_to_centre([*beyond, *inner], 3) == plane.outwards[:3].tolist()


def test_shots_are_candidates_by_number() -> None:
    ids = [4, 0, 6]
    assert SHOTS.size == 7 and SHOTS.shape == (7,) and SHOTS.unit == "spoke" and SHOTS.density(ids).shape == (15,)
    assert SHOTS.central_run(ids) == ids and SHOTS.nearest_to_centre(ids, 2) == [4, 0]


@needs_finufft
def test_noise_of_a_shot_is_the_same_whichever_are_measured_behind_it() -> None:
    drawn = [SHOTS.rows(ids).unit_noise(np.random.default_rng(5), 2, np.dtype(float)) for ids in ([3, 1], [3, 1, 6])]
    np.testing.assert_array_equal(drawn[0], drawn[1][..., :10])


def test_shots_need_the_whole_grid() -> None:
    holes = np.ones(GRID, dtype=bool)
    assert SHOTS.measured_flags(holes).tolist() == [True] * 7
    holes[2, 3] = False
    assert not SHOTS.measured_flags(holes).any()

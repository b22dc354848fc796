"""Readouts and any trajectory: rows, values and transforms against plain sums, and conventions."""

import numpy as np
import pytest

from mri_design.operators import (
    CartesianSamples,
    DirectFourier,
    NonUniformFourier,
    checked_trajectory,
    density_weights,
    equispaced_angles,
    look_of_trajectory,
    radial_spokes,
    turned,
)
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from tests.arrays import noise, spokes
from tests.refusals import refused

pytest.importorskip("finufft")
GRID = (6, 5)
SHOT = np.stack([np.zeros(5), np.arange(5) - 2.0], axis=1)
SHOTS = ShotReadouts(GRID, turned(SHOT, np.linspace(0, np.pi, 7, endpoint=False)))
SHAPES = [(8, 8), (9, 7), (6, 11), (16, 8)]


def random_maps(shape: tuple[int, int]) -> np.ndarray:
    return noise((3, *shape), seed=3)


def points(shape: tuple[int, int], count: int = 40) -> np.ndarray:
    return np.random.default_rng(1).uniform(-0.5, 0.5, (count, 2)) * shape


POINTS = points((8, 8))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("coils", [False, True])
@pytest.mark.parametrize("kind", [DirectFourier, NonUniformFourier])
def test_samples_are_sums_over_pixels_at_whole_numbers_those_of_the_grid(kind, shape, coils):
    mask, maps = np.random.default_rng(2).random(shape) < 0.5, random_maps(shape) if coils else None
    on_grid, samples = kind(np.argwhere(mask) - np.array(shape) // 2, shape, maps), CartesianSamples(mask, maps)
    u = noise((2, *shape))
    np.testing.assert_allclose(on_grid(u), samples(u), atol=1e-11)
    np.testing.assert_allclose(on_grid.gram(u), samples.gram(u), atol=1e-11)
    if kind is NonUniformFourier:
        np.testing.assert_allclose(on_grid.circulant_spectrum(), samples.circulant_spectrum(), atol=1e-11)
    k, (y, x) = points(shape), (np.arange(n) - n // 2 for n in shape)
    waves = [np.exp(-2j * np.pi * (a * y[:, None] / shape[0] + b * x / shape[1])) for a, b in k]
    expected = [[np.sum(w * s * u[0]) / np.sqrt(u[0].size) for w in waves] for s in (maps if coils else [1])]
    np.testing.assert_allclose(kind(k, shape, maps)(u[0]), expected, atol=1e-11 if kind is NonUniformFourier else 1e-13)


def test_single_precision_is_accurate_to_one_in_ten_thousand():
    shape, u = (16, 12), noise((16, 12))
    maps = random_maps(shape)
    X, Y = (NonUniformFourier(points(shape), shape, maps.astype(kind)) for kind in (np.complex64, np.complex128))
    v = Y(u)
    for single, double in (
        (X(u.astype(np.complex64)), v),
        (X.adjoint(v.astype(np.complex64)), Y.adjoint(v)),
        (X.gram(u.astype(np.complex64)), Y.gram(u)),
    ):
        assert single.dtype == np.complex64
        assert np.linalg.norm(single - double) < 2e-4 * np.linalg.norm(double)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("coils", [False, True])
def test_weighted_gram_operators_and_their_circulants(shape, coils):
    X = NonUniformFourier(points(shape), shape, random_maps(shape) if coils else None)
    full = np.random.default_rng(4).uniform(0.1, 3, X.out_shape)
    u, fourier = noise(shape), np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in shape))
    for weights in (1.0, full, full[:1], full[0], full[:, :1]):
        gram = X.toeplitz_gram(weights)
        np.testing.assert_allclose(gram(u), X.adjoint(weights * X(u)), atol=1e-10)
        nearest = np.einsum("ki,ij,kj->k", fourier, gram.to_dense(), fourier.conj()).real.reshape(shape)
        np.testing.assert_allclose(X.circulant_spectrum(weights), nearest, atol=1e-10)


@pytest.mark.parametrize(
    ("few", "more", "chosen"),
    [
        (lambda: PlaneReadouts(GRID).rows([3, 17]), lambda: PlaneReadouts(GRID).rows([0, 3, 9, 17, 29]), [1, 3]),
        (lambda: SHOTS.rows([3, 1]), lambda: SHOTS.rows([3, 1, 6]), range(10)),
        (lambda: NonUniformFourier(POINTS[:15], (8, 8)), lambda: NonUniformFourier(POINTS, (8, 8)), range(15)),
    ],
)
def test_samples_keep_their_noise_when_others_are_added(few, more, chosen):
    rngs = [np.random.default_rng(5) for _ in range(2)]
    first, all_of_it = (
        made().unit_noise(rng, 4, np.dtype(np.float32)) for made, rng in zip((few, more), rngs, strict=True)
    )
    np.testing.assert_array_equal(first, all_of_it[..., chosen])
    assert first.dtype == np.complex64 and first.shape == (4, *few().out_shape)
    assert rngs[0].random() == rngs[1].random()


def test_noise_has_unit_variance_and_its_adjoint_the_covariance_of_the_gram():
    X = NonUniformFourier(points((4, 3)), (4, 3), random_maps((4, 3)))
    drawn = X.unit_noise(np.random.default_rng(6), 8000, np.dtype(np.float64))
    np.testing.assert_allclose([drawn.real.var(), drawn.imag.var()], 1, rtol=0.02)
    drawn = X.adjoint(drawn).reshape(8000, -1)
    covariance, gram = drawn.T @ drawn.conj() / 16000, X.gram.to_dense()
    assert np.linalg.norm(covariance - gram) < 0.04 * np.linalg.norm(gram)


def test_samples_of_a_grid_stand_for_themselves_and_such_as_come_twice_share_their_weight():
    k = np.argwhere(np.ones((9, 8))) - np.array([4, 4])
    np.testing.assert_allclose(density_weights(k, (9, 8)), 1, rtol=1e-9)
    k = np.argwhere(np.ones((8, 8))) - 4
    weights = density_weights(np.concatenate([k, k[:20]]), (8, 8))
    np.testing.assert_allclose(weights[20:64], 1, rtol=1e-4)
    np.testing.assert_allclose(weights[:20] + weights[64:], 1, rtol=1e-4)


def test_along_spokes_weights_grow_with_the_distance_from_the_centre():
    count, n = 48, 24
    k = spokes(count, n)
    weights, radius = density_weights(k, (n, n)), np.linalg.norm(k, axis=1)
    ring = (radius > 2) & (radius < 9)
    area = np.pi * radius[ring] / count / 2  # between spokes, and between samples
    np.testing.assert_allclose(weights[ring], area, rtol=0.05)
    assert weights[radius == 0].max() < area.min() / 5


def test_the_weighted_adjoint_shows_the_image():
    n = 24
    k = spokes(48, n)
    X = NonUniformFourier(k, (n, n))
    y, x = np.meshgrid(*2 * (np.arange(n) - n // 2,), indexing="ij")
    image = np.exp(-((y - 2) ** 2 + 2 * (x + 1) ** 2) / 30) * (1 + 0.5j)
    shown = X.adjoint(density_weights(k, (n, n)) * X(image))
    assert np.linalg.norm(shown - image) < 0.02 * np.linalg.norm(image)
    plain = X.adjoint(X(image))
    fitted = plain * np.vdot(plain, image) / np.vdot(plain, plain)
    assert np.linalg.norm(fitted - image) > 0.3 * np.linalg.norm(image)


def test_given_weights_keep_their_ratios_and_get_the_area_of_the_computed_ones() -> None:
    k = np.random.default_rng(1).uniform(-4, 4, (40, 2))
    given = np.random.default_rng(0).uniform(0, 100, len(k))
    weights = density_weights(k, (8, 8), given=given)
    np.testing.assert_allclose(weights / weights[0], given / given[0], rtol=1e-12)
    np.testing.assert_allclose(weights.sum(), density_weights(k, (8, 8)).sum(), rtol=1e-12)
    np.testing.assert_array_equal(density_weights(k, (8, 8), given=0 * given), density_weights(k, (8, 8)))


SHAPE = (64, 64)
SPOKES = radial_spokes(64, equispaced_angles(7), oversampling=2)


@pytest.mark.parametrize(
    ("trajectory", "shape", "convention"),
    [
        (SPOKES, SHAPE, "cycles per field of view"),
        (SPOKES.astype(np.float32), SHAPE, "cycles per field of view"),
        (SPOKES / 64, SHAPE, "cycles per pixel"),
        (SPOKES / 64 * 2 * np.pi, SHAPE, "radians per pixel"),
        (SPOKES / 32, SHAPE, "fractions of the largest frequency"),
        (SPOKES / 0.24, SHAPE, "cycles per metre"),
        (SPOKES / 0.24 * 2 * np.pi, SHAPE, "radians per metre"),
        (2 * SPOKES, SHAPE, "cycles per field of view of a larger grid"),
        (SPOKES * [0.5, 1.0], (64, 32), "swapped columns"),
        (SPOKES * [0.5, 1.0], (32, 64), "cycles per field of view"),
        (np.moveaxis(SPOKES, -1, 0), SHAPE, "coordinates on the first axis"),
        (np.zeros((3, 128, 7)), SHAPE, "coordinates on the first axis"),
        (np.zeros((3, 128, 7), complex), SHAPE, "coordinates on the first axis"),
        (SPOKES[..., 1] + 1j * SPOKES[..., 0], SHAPE, "complex kx + i ky"),
        (np.zeros((7, 128, 3)), SHAPE, "three columns"),
        (np.zeros((7, 128)), SHAPE, "unknown"),
    ],
)
def test_looks_and_refusals(trajectory, shape, convention):
    found, _, cure = look_of_trajectory(trajectory, shape)
    assert found == convention
    if convention == "cycles per field of view":
        assert not cure
        np.testing.assert_array_equal(checked_trajectory(trajectory, shape), trajectory)
        return
    with refused("trajectory") as caught:
        checked_trajectory(trajectory, shape)
    assert caught.value.cure == cure


def test_without_a_grid_only_the_layout_is_looked_at():
    assert checked_trajectory(SPOKES / 64).dtype == np.float64
    assert checked_trajectory([[1, 2]]).tolist() == [[1.0, 2.0]]


def waves(points: np.ndarray) -> np.ndarray:
    """Rows of the Fourier transform at any points of k-space, (point, ky, kx), written out."""
    rows, columns = ((np.arange(n) - n // 2) / n for n in GRID)
    phases = points[:, 0, None, None] * rows[:, None] + points[:, 1, None, None] * columns
    return np.exp(-2j * np.pi * phases) / np.sqrt(np.prod(GRID))


def test_without_the_spectrum_of_x_there_are_no_moments() -> None:
    for encoding in (LineReadouts(GRID), PlaneReadouts(GRID)):
        assert encoding.moments(np.ones(GRID), None, ()) is None


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("encoding", [LineReadouts(GRID), PlaneReadouts(GRID), SHOTS], ids=["lines", "plane", "shots"])
def test_rows_measure_what_data_takes_from_full_kspace_and_values_have_their_energy(encoding: Readouts, coils) -> None:
    image, maps = noise(GRID), None if coils == 1 else noise((coils, *GRID), seed=1)
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


def test_shots_are_candidates_by_number_and_need_the_whole_grid() -> None:
    ids = [4, 0, 6]
    assert SHOTS.size == 7 and SHOTS.shape == (7,) and SHOTS.unit == "spoke" and SHOTS.density(ids).shape == (15,)
    assert SHOTS.central_run(ids) == ids and SHOTS.nearest_to_centre(ids, 2) == [4, 0]

    holes = np.ones(GRID, dtype=bool)
    assert SHOTS.measured_flags(holes).tolist() == [True] * 7
    holes[2, 3] = False
    assert not SHOTS.measured_flags(holes).any()

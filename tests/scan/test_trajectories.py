"""Spokes and spirals, waveforms that gradients can play, point spread, and the conventions of other packages.

Translations are held against sums written out and, where they are installed, against the other packages themselves:
factors of 2 (and pi), half a sample, a swapped column or another sign change every sample that is compared.
"""

import shutil
import subprocess
import warnings

import numpy as np
import pytest

import mri_design as md
from mri_design import scan
from mri_design.scan import GradientLimits
from mri_design.scan.trajectories import MRI_NUFFT_SAMPLES, PROTON
from tests.refusals import refuses


@pytest.mark.parametrize("matrix", [16, 17])
def test_the_first_spoke_is_the_grids_own_line(matrix):
    spokes = md.operators.radial_spokes(matrix, md.operators.equispaced_angles(4))
    assert spokes.shape == (4, matrix, 2)
    np.testing.assert_array_equal(spokes[0], np.stack([np.zeros(matrix), np.arange(matrix) - matrix // 2], axis=1))
    np.testing.assert_allclose(spokes[2][:, 0], np.arange(matrix) - matrix // 2, atol=1e-14)


@pytest.mark.parametrize(
    ("tiny", "degrees"),
    [(1, 111.2461), (2, 68.7539), (3, 49.7508), (4, 38.9776), (5, 32.0397), (6, 27.1984), (7, 23.6281)],
)
def test_tiny_golden_angles_are_those_of_the_paper(tiny, degrees):
    for turns in (1, 2):
        angles = md.operators.golden_angles(2, tiny=tiny, turn=turns * np.pi)
        assert np.rad2deg(angles[1]) == pytest.approx(turns * degrees, abs=turns * 1e-4)


@pytest.mark.parametrize(
    ("spread", "count", "step"), [("half-turn", 6, 30), ("full-turn", 6, 60), ("one-missing", 6, 360 / 7)]
)
def test_spreads(spread, count, step):
    np.testing.assert_allclose(np.rad2deg(md.operators.interleaf_angles(count, spread)), step * np.arange(count))


def test_turning_goes_from_kx_to_ky():
    shot = np.array([[0.0, 3.0], [1.0, 0.0]])
    there = md.operators.turned(shot, [0.0, np.pi / 2])
    np.testing.assert_allclose(there[0], shot)
    np.testing.assert_allclose(there[1], [[3.0, 0.0], [0.0, -1.0]], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(md.operators.turned(shot, [0.3]), axis=-1), [[3.0, 1.0]])


LIMITS = GradientLimits(amplitude=0.03, slew=120.0)
FIELD = 0.24


def crossings(curve):
    """Radii at which a spiral crosses the positive kx axis."""
    angle = np.unwrap(np.arctan2(curve[:, 0], curve[:, 1]))
    whole = np.arange(1, int(angle[-1] / (2 * np.pi) + 1e-9) + 1) * 2 * np.pi
    return np.interp(whole, angle, np.linalg.norm(curve, axis=1))


@pytest.mark.parametrize("density", [1.0, 1.5, 2.5])
def test_gaps_are_those_of_nyquist_at_the_rim_and_narrower_inside_where_density_varies(density):
    turns = md.scan.nyquist_turns(64, 4, density=density)
    t = np.array([1 - 1 / turns, 1.0])
    assert np.diff(32 * t**density)[0] == pytest.approx(4.0)  # four interleaves: one cycle each
    gaps = np.diff(crossings(scan.spiral_curve(64, turns, density=density, points=40_000)))
    if density == 1:
        np.testing.assert_allclose(gaps, 4.0, rtol=1e-3)
    else:
        assert (np.diff(gaps) > 0).all() and gaps[0] < 0.9 * gaps[-1]


@pytest.mark.parametrize("density", [1.0, 1.5])
@pytest.mark.parametrize(("matrix", "shots", "amplitude", "slew"), [(64, 8, 0.03, 120.0), (64, 12, 0.08, 5.0)])
def test_the_readout_keeps_the_limits_and_uses_them_all_the_time(matrix, shots, amplitude, slew, density):
    """In weak systems, too, where a raster time's step is shorter than the points of the usual curve are apart."""
    limits = GradientLimits(amplitude=amplitude, slew=slew)
    turns = md.scan.nyquist_turns(matrix, shots, density=density)
    made = md.scan.spiral_readout(matrix, turns, limits, field_of_view=FIELD, density=density)
    speed = np.linalg.norm(made.gradients, axis=1) / amplitude
    change = np.linalg.norm(np.diff(made.gradients, axis=0, prepend=0), axis=1) / (limits.raster * slew)
    assert speed.max() <= 1 + 1e-9 and change.max() <= 1 + 1e-9
    assert np.mean((speed > 0.98) | (change > 0.95)) > 0.95  # no faster way is left


def test_the_samples_are_those_of_the_waveform_and_stay_on_the_spiral():
    turns = md.scan.nyquist_turns(64, 8)
    made = md.scan.spiral_readout(64, turns, LIMITS, field_of_view=FIELD)
    played = np.cumsum(made.gradients, axis=0) * PROTON * LIMITS.raster * FIELD
    per_step = round(made.raster / made.dwell)
    ends = np.arange(len(made.samples) * 100 + 1) / (100 * per_step)  # of hundredths of a dwell time, in raster times
    corners = np.concatenate([[0.0], np.arange(len(made.gradients)) + 0.5])
    waveform = np.stack([np.interp(ends, corners, [0.0, *column]) for column in made.gradients.T], axis=1)
    walked = np.cumsum((waveform[1:] + waveform[:-1]) / 2, axis=0) * PROTON * made.dwell / 100 * FIELD
    whole = (len(made.gradients) - 1) * per_step  # the last step goes on as it began
    np.testing.assert_allclose(made.samples[:whole], walked[49::100][:whole], atol=1e-6)
    largest_step = np.linalg.norm(np.diff(made.samples, axis=0), axis=1).max()
    assert largest_step <= 1.0
    curve = scan.spiral_curve(64, turns, points=40_000)
    angle = np.unwrap(np.arctan2(curve[1:, 0], curve[1:, 1]))
    at = np.unwrap(np.arctan2(played[:, 0], played[:, 1]))
    radius = np.linalg.norm(played, axis=1)
    assert np.abs(radius - np.interp(at, angle, np.linalg.norm(curve[1:], axis=1))).max() < 1e-3
    assert radius[-1] == pytest.approx(32, abs=largest_step * per_step)


def test_a_straight_readout_takes_the_time_of_the_trapezium():
    """From rest with slew S to amplitude G, then on: k = gamma (G t - G^2 / (2 S))."""
    line = np.stack([np.zeros(2001), np.linspace(0, 100, 2001)], axis=1)
    made = scan.fastest_readout(line, LIMITS, field_of_view=FIELD)
    G, S = 0.99 * LIMITS.amplitude, 0.99 * LIMITS.slew
    expected = 100 / (FIELD * PROTON * G) + G / (2 * S)
    assert made.duration == pytest.approx(expected, abs=1.1 * LIMITS.raster)


HARDWARE = GradientLimits(amplitude=0.04, slew=150.0)


def test_a_waveform_within_the_limits_passes_and_each_limit_is_refused_by_name():
    ramp = np.linspace(0.0015, 0.0395, 27)[:, None] * np.array([[0.6, 0.8]])
    scan.require_playable(ramp, HARDWARE)
    for waveform, limit in (
        (np.concatenate([ramp, 0.0405 * np.array([[0.6, 0.8]])]), "amplitude"),
        (ramp + 0.0005 * np.array([[0.6, 0.8]]), "slew rate"),  # it would begin with a jump
        (np.array([[0.0015], [0.0], [-0.002]]), "slew rate"),
    ):
        refuses(f"gradient {limit}", scan.require_playable, waveform, HARDWARE)


def test_a_corner_cannot_be_played_at_speed():
    """The fastest readout slows down for it: what it makes keeps the limits, or is refused."""
    out = np.linspace(0, 20, 400)
    corner = np.concatenate([np.stack([out, 0 * out], 1), np.stack([20 + 0 * out, out], 1)[1:]])
    made = scan.fastest_readout(corner, HARDWARE, field_of_view=0.25)
    speed = np.linalg.norm(made.gradients, axis=1)
    at_corner = np.argmin(np.linalg.norm(np.cumsum(made.gradients, axis=0) - made.gradients.sum(0) * [1, 0], axis=1))
    assert speed[at_corner] < 0.2 * speed.max()


def grid(rows, columns):
    ky, kx = np.meshgrid(np.arange(rows) - rows // 2, np.arange(columns) - columns // 2, indexing="ij")
    return np.stack([ky, kx], axis=-1).astype(float)


@pytest.mark.parametrize("shape", [(8, 12), (9, 7)])
def test_the_point_spread_is_the_mean_of_waves(shape):
    """Of more samples than are held at once."""
    k = np.random.default_rng(3).uniform(-0.5, 0.5, (3, 3000, 2)) * shape
    y, x = ((np.arange(n) - n // 2) / n for n in shape)
    waves_y, waves_x = np.exp(2j * np.pi * np.outer(k[..., 0], y)), np.exp(2j * np.pi * np.outer(k[..., 1], x))
    np.testing.assert_allclose(md.scan.point_spread(k, shape), waves_y.T @ waves_x / len(waves_x), atol=1e-12)


LINE = np.stack([np.zeros(50), np.linspace(0, 10, 50)], axis=1)


@pytest.mark.parametrize(
    ("field", "made", "arguments", "settings"),
    [
        ("matrix", md.operators.radial_spokes, (2, [0.0]), {}),
        ("oversampling", md.operators.radial_spokes, (16, [0.0]), {"oversampling": 0}),
        ("centre_out", md.operators.radial_spokes, (16, [0.0]), {"centre_out": 1}),
        ("count", md.operators.equispaced_angles, (0,), {}),
        ("turn", md.operators.equispaced_angles, (3,), {"turn": 0.0}),
        ("tiny", md.operators.golden_angles, (3,), {"tiny": 0}),
        ("spread", md.operators.interleaf_angles, (3, "quarter-turn"), {}),
        ("shot", md.operators.turned, (np.zeros((2, 3, 2)), [0.0]), {}),
        ("angles", md.operators.turned, (np.ones((3, 2)), [np.nan]), {}),
        ("interleaves", md.scan.nyquist_turns, (16, 9), {}),
        ("density", scan.spiral_curve, (16, 2.0), {"density": 0.0, "points": 10}),
        ("turns", md.scan.spiral_readout, (16, -1.0, LIMITS), {"field_of_view": FIELD}),
        ("field_of_view", md.scan.spiral_readout, (16, 2.0, LIMITS), {"field_of_view": 0.0}),
        ("amplitude", GradientLimits, (), {"amplitude": 40.0, "slew": 150.0}),
        ("slew", GradientLimits, (), {"amplitude": 0.04, "slew": 150_000.0}),
        ("raster", GradientLimits, (), {"amplitude": 0.04, "slew": 150.0, "raster": 10.0}),
        ("amplitude", GradientLimits, (), {"amplitude": 0.0, "slew": 150.0}),
        ("slew", GradientLimits, (), {"amplitude": 0.04, "slew": float("nan")}),
        ("curve", scan.fastest_readout, (np.zeros((5, 2)), HARDWARE), {"field_of_view": 0.2}),
        ("limits", scan.fastest_readout, (LINE, 0.04), {"field_of_view": 0.2}),
        ("raster", scan.fastest_readout, (LINE, HARDWARE), {"field_of_view": 1e-7}),
        ("field_of_view", scan.fastest_readout, (LINE, HARDWARE), {"field_of_view": 24}),
        ("trajectory", md.scan.point_spread, (grid(8, 8), (6, 6)), {}),
    ],
)
def test_wrong_settings_are_refused_by_name(field, made, arguments, settings):
    refuses(field, made, *arguments, **settings)


ARM = scan.spiral_curve(64, md.scan.nyquist_turns(64, 24), points=400)


def redundancy(count, spread):
    return scan.conjugate_redundancy(md.operators.turned(ARM, md.operators.interleaf_angles(count, spread)))


def test_an_even_number_of_spirals_over_the_full_turn_measures_everything_twice():
    assert redundancy(6, "full-turn") > 0.99
    for count, spread in ((6, "half-turn"), (6, "one-missing"), (5, "full-turn"), (7, "full-turn")):
        assert redundancy(count, spread) < 0.4, (count, spread)


@pytest.mark.parametrize("shape", [(12,), (15,), (8, 9), (7, 6)])
def test_the_spread_of_a_mask_is_the_sum_over_its_samples(shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(1).random(shape) < 0.4
    grid = (*shape, 1) if len(shape) == 1 else shape
    k = np.argwhere(mask.reshape(grid)) - np.array(grid) // 2
    np.testing.assert_allclose(scan.spread_of_mask(mask).reshape(grid), md.scan.point_spread(k, grid), atol=1e-12)


def test_side_lobes_are_maxima_beside_the_point_whatever_its_width() -> None:
    comb = np.arange(32) % 4 == 0
    assert scan.largest_side_lobe(scan.spread_of_mask(comb)) == (pytest.approx(1), (-16,))
    assert scan.largest_side_lobe(scan.spread_of_mask(np.ones(32, dtype=bool)))[0] == 0
    low_pass = abs(np.arange(64) - 32) <= 4  # nine lines: sin(9 x) / (9 sin x), whose first lobe lies at 9 x = 4.4934
    height, place = scan.largest_side_lobe(scan.spread_of_mask(low_pass))
    x = np.pi * np.arange(1, 32) / 64
    kernel = abs(np.sin(9 * x) / (9 * np.sin(x)))
    assert height == pytest.approx(kernel[8:14].max()) and abs(place[0]) == 9 + kernel[8:14].argmax()
    plane = np.outer(low_pass, np.ones(16, dtype=bool))
    assert scan.largest_side_lobe(scan.spread_of_mask(plane)) == (pytest.approx(height), (place[0], 0))


SHAPE = (24, 32)
SHOTS = md.operators.radial_spokes(24, md.operators.golden_angles(5), oversampling=2) * np.array([1.0, 32 / 24]) * 0.8


@pytest.fixture(scope="module")
def image():
    rng = np.random.default_rng(0)
    return rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)


@pytest.fixture(scope="module")
def expected(image):
    """Samples of the image by the sum that the convention states."""
    y, x = (np.arange(24) - 12) / 24, (np.arange(32) - 16) / 32
    waves_y = np.exp(-2j * np.pi * SHOTS[..., :1] * y)
    waves_x = np.exp(-2j * np.pi * SHOTS[..., 1:] * x)
    return np.einsum("tsy,yx,tsx->ts", waves_y, image, waves_x) / np.sqrt(24 * 32)


def error(found, expected):
    return np.linalg.norm(np.ravel(found) - np.ravel(expected)) / np.linalg.norm(expected)


def write_cfl(path, array):
    path.with_suffix(".hdr").write_text("# Dimensions\n" + " ".join(map(str, array.shape)) + "\n")
    array.astype(np.complex64).ravel(order="F").tofile(path.with_suffix(".cfl"))


def read_cfl(path):
    lengths = [int(n) for n in path.with_suffix(".hdr").read_text().splitlines()[1].split()]
    return np.fromfile(path.with_suffix(".cfl"), np.complex64).reshape(lengths, order="F")


def bart(*command):
    subprocess.run([shutil.which("bart"), *map(str, command)], check=True, stdout=subprocess.DEVNULL, timeout=60)


needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed")


@needs_bart
def test_bart_takes_the_same_samples(tmp_path, image, expected):
    write_cfl(tmp_path / "trajectory", md.exchange.to_bart(SHOTS))
    write_cfl(tmp_path / "image", md.exchange.maps_to_bart(image[None]))
    bart("nufft", tmp_path / "trajectory", tmp_path / "image", tmp_path / "samples")
    found = md.exchange.samples_from_bart(read_cfl(tmp_path / "samples"))[0]
    assert found.shape == expected.shape
    assert error(found, expected) < 3e-3  # its own gridding
    for wrong in (md.exchange.to_bart(SHOTS[..., ::-1]), -md.exchange.to_bart(SHOTS), md.exchange.to_bart(SHOTS + 0.5)):
        write_cfl(tmp_path / "trajectory", wrong)
        bart("nufft", tmp_path / "trajectory", tmp_path / "image", tmp_path / "samples")
        assert error(md.exchange.samples_from_bart(read_cfl(tmp_path / "samples")), expected) > 0.5


@needs_bart
@pytest.mark.parametrize(("options", "offset"), [((), 0.5), (("-c",), 0.0)])
def test_spokes_of_bart_keep_their_half_sample(tmp_path, options, offset):
    bart("traj", "-x", 16, "-y", 3, "-r", *options, tmp_path / "trajectory")
    found = md.exchange.from_bart(read_cfl(tmp_path / "trajectory"))
    assert found.shape == (3, 16, 2)
    along = np.linalg.norm(found[1] - found[1, :1], axis=-1) - np.linalg.norm(found[1, 0])
    np.testing.assert_allclose(along, np.arange(16) - 8 + offset, atol=1e-5)


def test_bart_layout_there_and_back():
    there = md.exchange.to_bart(SHOTS)
    assert there.shape == (3, 48, 5) and there.dtype == np.complex64
    np.testing.assert_allclose(there[:2, :, 2].real, SHOTS[2, :, ::-1].T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(md.exchange.from_bart(there[..., None, None]), SHOTS, atol=1e-5)
    assert md.exchange.from_bart(md.exchange.to_bart(SHOTS[0])).shape == (1, 48, 2)
    for wrong in (there + 1, there * 1j, SHOTS, np.zeros((3, 2, 2, 2))):
        refuses("trajectory", md.exchange.from_bart, wrong)
    refuses("trajectory", md.exchange.to_bart, there)


@pytest.mark.parametrize(
    ("name", "field", "shape", "arranged", "optional", "unfit"),
    [
        ("samples", "kspace", (4, 5, 48), lambda a: a.T[None], 1, [(2, 8, 3, 4), (1, 8, 3, 4, 2)]),
        ("maps", "maps", (4, 24, 32), lambda a: a.T[:, :, None], None, [(8, 8, 3, 4)]),
        ("planes", "planes", (3, 4, 6, 5), lambda a: np.moveaxis(a, 1, 3), 0, [(3, 6, 5, 4, 2)]),
    ],
)
def test_arrays_of_bart_there_and_back(name, field, shape, arranged, optional, unfit):
    values = np.random.default_rng(1).standard_normal(shape)
    there, back = (getattr(md.exchange, f"{name}_{way}_bart") for way in ("to", "from"))
    np.testing.assert_array_equal(there(values), arranged(values).astype(np.complex64))
    np.testing.assert_allclose(back(there(values)[..., None]), values, rtol=1e-6)
    if optional is not None:
        one = np.take(values, [0], axis=optional)
        np.testing.assert_array_equal(there(one.squeeze(optional)), there(one))
    refuses(field, there, values[0, 0])
    for wrong in unfit:
        refuses(field, back, np.zeros(wrong))


@pytest.mark.slow
def test_sigpy_takes_the_same_samples(image, expected):
    import sigpy

    assert error(sigpy.nufft(image, SHOTS, oversamp=2, width=6), expected) < 1e-4
    for wrong in (SHOTS[..., ::-1] * np.array([1.0, 0.7]), -SHOTS, SHOTS + 0.5, SHOTS / 2):
        assert error(sigpy.nufft(image, wrong, oversamp=2, width=6), expected) > 0.5


@pytest.mark.slow
def test_mri_nufft_takes_half_of_the_same_samples(image, expected):
    mrinufft = pytest.importorskip("mrinufft")
    pytest.importorskip("finufft")
    positions = md.exchange.to_mri_nufft(SHOTS, SHAPE).astype(np.float32).reshape(-1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says which range it has guessed
        operator = mrinufft.get_operator("finufft")(positions, SHAPE, n_coils=1)
    found = operator.op(image.astype(np.complex64))
    assert error(found / MRI_NUFFT_SAMPLES, expected) < 1e-4


def test_normalised_units_there_and_back():
    there = md.exchange.to_mri_nufft(SHOTS, SHAPE)
    np.testing.assert_allclose(2 * there, SHOTS / (np.array(SHAPE) / 2))
    np.testing.assert_allclose(md.exchange.from_mri_nufft(there, SHAPE), SHOTS, rtol=1e-14, atol=1e-14)
    for other in (2 * np.pi * there, SHOTS):
        refuses("samples", md.exchange.from_mri_nufft, other, SHAPE)

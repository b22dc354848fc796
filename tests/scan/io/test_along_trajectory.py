"""Archives with a trajectory: which axes are what, which grid, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, TrajectoryData, read
from mri_design.scan.io.companions import with_maps

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-0.5, 0.5, (3, 5, 2)) * (16, 12)
SAMPLES = (RNG.standard_normal((2, 4, 3, 5)) + 1j * RNG.standard_normal((2, 4, 3, 5))).astype(np.complex64)


def saved(folder: Path, **changes: object) -> Path:
    """A scan of two slices, four coils, three readouts of five samples; None leaves an array out."""
    arrays = {"kspace": SAMPLES, "trajectory": POINTS, "matrix": (16, 12), **changes}
    np.savez(folder / "scan.npz", **{name: array for name, array in arrays.items() if array is not None})
    return folder / "scan.npz"


def scan_of(path: Path) -> TrajectoryData:
    scan = read(path)
    assert isinstance(scan, TrajectoryData)
    return scan


@pytest.mark.parametrize("lead", [(), (4,), (2, 4)], ids=str)
@pytest.mark.parametrize("flat", [False, True])
def test_slices_coils_and_readouts_may_be_missing(tmp_path: Path, lead: tuple[int, ...], flat: bool) -> None:
    kspace, trajectory = SAMPLES[(0,) * (2 - len(lead))], POINTS
    if flat:
        kspace, trajectory = kspace.reshape(*lead, 15), POINTS.reshape(15, 2)
    scan = scan_of(saved(tmp_path, kspace=kspace, trajectory=trajectory))
    slices, coils = (1, 1, *lead)[-2:]
    np.testing.assert_array_equal(scan.kspace, kspace.reshape(slices, coils, 15))
    np.testing.assert_array_equal(scan.trajectory, POINTS.reshape(15, 2))
    assert (scan.n_slices, scan.n_coils, scan.n_readouts) == (slices, coils, 1 if flat else 3)
    assert scan.kspace.dtype == np.complex64 and scan.name == "scan" and scan.noise_variance is None


def test_what_stands_beside_the_samples_is_read_too(tmp_path: Path) -> None:
    maps = RNG.standard_normal((4, 16, 12)) + 0j
    scan = scan_of(saved(tmp_path, noise_variance=0.5, coil_maps=maps, reference=np.ones((2, 16, 12))))
    assert scan.noise_variance == 0.5 and scan.header["file"] == "scan.npz"
    assert scan.coil_maps is not None and scan.reference is not None
    np.testing.assert_allclose(scan.coil_maps[1], maps, rtol=1e-6)
    assert scan.reference.shape == (2, 16, 12)


def test_maps_of_a_file_of_their_own_take_the_place_of_its_own(tmp_path: Path) -> None:
    scan, maps = scan_of(saved(tmp_path)), RNG.standard_normal((4, 16, 12)) + 0j
    np.save(tmp_path / "maps.npy", maps)
    found = with_maps(scan, tmp_path / "maps.npy")
    assert found.coil_maps is not None and "maps.npy" in found.header["coil_maps_file"]
    np.testing.assert_allclose(found.coil_maps[0], maps / np.linalg.norm(maps, axis=0), rtol=1e-5)


@pytest.mark.parametrize(("reach", "side"), [((8, 7.8), 16), ((7.96, 7.96), 16), ((7.00005, 7), 14)])
def test_a_square_matrix_is_told_from_the_trajectory(tmp_path: Path, reach: tuple[float, float], side: int) -> None:
    points = POINTS / np.abs(POINTS).max(axis=(0, 1)) * reach
    assert scan_of(saved(tmp_path, trajectory=points, matrix=None)).grid_shape == (side, side)
    assert scan_of(saved(tmp_path, trajectory=points, matrix=20)).grid_shape == (20, 20)


@pytest.mark.parametrize(("unit", "edge"), [("cycles per pixel", 0.5), ("radians per pixel", np.pi)])
def test_a_header_may_name_another_unit(tmp_path: Path, unit: str, edge: float) -> None:
    path = saved(tmp_path, trajectory=POINTS / (8, 6) * edge)
    path.with_suffix(".json").write_text(json.dumps({"trajectory_unit": unit}))
    np.testing.assert_allclose(scan_of(path).trajectory, POINTS.reshape(-1, 2), rtol=1e-6)


@pytest.mark.parametrize("flat", [False, True])
def test_a_third_column_of_zeros_is_kz_of_the_plane(tmp_path: Path, flat: bool) -> None:
    spatial = np.concatenate([POINTS, np.zeros((3, 5, 1))], axis=-1)
    kspace = SAMPLES.reshape(2, 4, 15) if flat else SAMPLES
    scan = scan_of(saved(tmp_path, trajectory=spatial.reshape(15, 3) if flat else spatial, kspace=kspace))
    np.testing.assert_array_equal(scan.trajectory, POINTS.reshape(15, 2))
    for bad in (1e-3, np.nan):
        spatial[1, 2, 2] = bad
        with pytest.raises(
            InputError, match=r"trajectory: got float64 \(3, 5, 3\), whose column kz is not zero.*trajectory_axes"
        ):
            read(saved(tmp_path, trajectory=spatial))


@pytest.mark.parametrize(
    ("axes", "columns"), [(["kx", "ky", "kz"], (1, 0, 2)), (["kz", "ky", "kx"], (2, 0, 1)), (["kx", "ky"], (1, 0))]
)
def test_columns_may_have_another_order_that_the_headers_says(
    tmp_path: Path, axes: list[str], columns: tuple[int, ...]
) -> None:
    spatial = np.concatenate([POINTS, np.zeros((3, 5, 1))], axis=-1)
    path = saved(tmp_path, trajectory=spatial[..., columns])
    (tmp_path / "scan.json").write_text(json.dumps({"trajectory_axes": axes}))
    np.testing.assert_array_equal(scan_of(path).trajectory, POINTS.reshape(15, 2))


@pytest.mark.parametrize("axes", [["kx", "ky"], ["kx", "kx", "kz"], ["x", "y", "z"], "yes"])
def test_axes_that_are_not_those_of_the_columns_are_refused(tmp_path: Path, axes: object) -> None:
    path = saved(tmp_path, trajectory=np.concatenate([POINTS, np.zeros((3, 5, 1))], axis=-1))
    (tmp_path / "scan.json").write_text(json.dumps({"trajectory_axes": axes}))
    with pytest.raises(InputError, match=r"trajectory_axes: got .*; wanted the names of the 3 columns"):
        read(path)


FILLED = POINTS / np.abs(POINTS).max(axis=(0, 1)) * (8, 6)
"""To 8 and 6 cycles per field of view."""


@pytest.mark.parametrize(
    ("unit", "points", "match"),
    [
        (
            "radians per pixel",
            FILLED / (16, 12),
            "radians per pixel, by its header, but values up to 0.5, which look like cycles per pixel; wanted values "
            r'in \[-pi, pi\], not all within 1/2. Say "trajectory_unit": "cycles per pixel" in the header',
        ),
        ("radians per pixel", FILLED, "8, which look like cycles per field of view; .* Leave .* out of the header"),
        (
            "cycles per pixel",
            FILLED / (8, 6) * np.pi,
            'look like radians per pixel; .*"radians per pixel" in the header',
        ),
        ("cycles per pixel", FILLED, "8, which look like cycles per field of view; .* Leave .* out of the header"),
        ("cycles per pixel", FILLED[..., ::-1], "look like swapped columns; .* Swap the columns.* Then leave"),
        ("radians per pixel", FILLED * 4, "look like cycles per metre; .*Multiply by the field of view .* Then leave"),
        ("radians per pixel", np.where(POINTS[1, 2] == POINTS, np.inf, POINTS), "not finite"),
        ("cycles per pixel", np.where(POINTS[1, 2] == POINTS, np.nan, POINTS), "not finite"),
    ],
)
def test_a_header_with_a_unit_that_the_values_cannot_have_is_refused(
    tmp_path: Path, unit: str, points: np.ndarray, match: str
) -> None:
    path = saved(tmp_path, trajectory=points, matrix=(16, 14))
    path.with_suffix(".json").write_text(json.dumps({"trajectory_unit": unit}))
    with pytest.raises(InputError, match=f"trajectory: got .*{match}"):
        read(path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"matrix": None}, "matrix: got none beside 4 x 3 x 5 samples .* reaches .* along ky.*Give the pixels"),
        ({"matrix": None, "trajectory": POINTS / 16}, "matrix: got none.*looks like cycles per pixel.*trajectory_unit"),
        (
            {"matrix": None, "trajectory": POINTS / np.abs(POINTS).max() * np.pi},
            'matrix: got none.*which looks like radians per pixel.*"trajectory_unit": "radians per pixel" too',
        ),
        ({"trajectory": POINTS / 16}, "looks like cycles per pixel.*Multiply the columns by the grid's lengths"),
        ({"trajectory": POINTS / 16}, 'Say "trajectory_unit": "cycles per pixel" in the JSON header'),
        (
            {"trajectory": FILLED * 3},
            "a larger grid; .* 16 x 12 pixels. .*matrix=\\[48, 36\\] .*cycles per metre instead, multiply",
        ),
        ({"trajectory": FILLED, "matrix": (4, 4)}, r"larger grid; .*matrix=\[16, 12\]"),
        ({"trajectory": FILLED * 21}, "looks like radians per metre; .*Multiply by the field of view"),
        ({"matrix": (16.5, 12)}, r"matrix: got \[16.5, 12.0\]"),
        ({"matrix": (16, 12, 1)}, "matrix: got"),
        ({"matrix": (2, 12)}, "matrix: got"),
        ({"matrix": (16, 8)}, "cycles per field of view of a larger grid; wanted .* up to 8 and 4"),
        ({"trajectory": POINTS[:, :4]}, r"kspace: got shape \(2, 4, 3, 5\) beside a trajectory of \(3, 4, 2\)"),
        ({"trajectory": POINTS[..., 0]}, r"trajectory: got float64 \(3, 5\).*\(readout, sample, 2\)"),
        ({"trajectory": POINTS + 0j}, "trajectory: got complex128"),
        ({"trajectory": np.where(POINTS[1, 2] == POINTS, np.nan, POINTS)}, "not finite"),
        ({"kspace": SAMPLES[None]}, r"kspace: got shape \(1, 2, 4, 3, 5\)"),
        ({"kspace": np.where(SAMPLES[0, 0, 0, 0] == SAMPLES, np.inf, SAMPLES)}, "kspace: .*infinite"),
        ({"kspace": 0 * SAMPLES}, "kspace: got zeros only"),
        ({"kspace": SAMPLES.real}, "kspace: got dtype float32"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"coil_maps": np.ones((4, 12, 16))}, r"coil_maps: got shape \(4, 12, 16\); wanted \(4, 16, 12\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, object], match: str) -> None:
    path = saved(tmp_path, **changes)
    before = path.read_bytes()
    with pytest.raises(InputError, match=match):
        read(path)
    assert path.read_bytes() == before


def test_a_header_with_a_shape_for_every_member_says_matrix_and_unit_too(tmp_path: Path) -> None:
    """As archives of spirals come: readouts called interleaves, weights beside them, cycles per pixel."""
    header = {
        "shape": {"kspace": [2, 4, 3, 5], "trajectory": [3, 5, 2], "density": [3, 5]},
        "dims": ["slice", "coil", "interleave", "sample"],
        "trajectory_unit": "cycles per pixel",
    }
    path = saved(tmp_path, trajectory=POINTS / (16, 12), matrix=None, other=np.ones((3, 5)))
    path.with_suffix(".json").write_text(json.dumps(header))
    with pytest.raises(InputError, match=r"matrix: got none beside 4 x 3 x 5 samples \(coil, readout, sample\)"):
        read(path)
    path.with_suffix(".json").write_text(json.dumps(header | {"matrix": [16, 12]}))
    scan = scan_of(path)
    assert scan.grid_shape == (16, 12) and scan.header["members_not_read"] == "other"
    np.testing.assert_allclose(scan.trajectory, POINTS.reshape(15, 2), rtol=1e-12)
    path.with_suffix(".json").write_text(json.dumps(header | {"matrix": 16, "trajectory_unit": "furlongs"}))
    with pytest.raises(InputError, match="trajectory_unit: got 'furlongs'"):
        read(path)
    shapes = {"kspace": [2, 4, 3, 5], "trajectory": [3, 4, 2]}
    path.with_suffix(".json").write_text(json.dumps(header | {"matrix": 16, "shape": shapes}))
    with pytest.raises(InputError, match=r"trajectory: shape: got \(3, 5, 2\); wanted \(3, 4, 2\), as its header says"):
        read(path)
    path.with_suffix(".json").write_text(json.dumps(header | {"shape": {"kspace": "large"}}))
    with pytest.raises(InputError, match=r"scan\.json: kspace: got 'large'"):
        read(path)


def test_slices_and_readouts_are_chosen() -> None:
    scan = TrajectoryData(SAMPLES.reshape(2, 4, 15), POINTS.reshape(15, 2), (16, 12), n_readouts=3)
    second = scan.select_slice(-1)
    np.testing.assert_array_equal(second.kspace[0], scan.kspace[1])
    assert second.name == "scan[1]"
    two = scan.select_readouts(np.array([True, False, True]))
    np.testing.assert_array_equal(two.trajectory, POINTS[[0, 2]].reshape(10, 2))
    np.testing.assert_array_equal(two.kspace, SAMPLES[:, :, [0, 2]].reshape(2, 4, 10))
    assert two.n_readouts == 2
    for wrong in (lambda: scan.select_slice(2), lambda: scan.select_readouts(np.zeros(3, dtype=bool))):
        with pytest.raises(InputError, match=r"slice|readouts"):
            wrong()


@pytest.mark.parametrize("flat", [False, True])
def test_density_weights_are_those_of_the_file(tmp_path: Path, flat: bool) -> None:
    density = RNG.uniform(0, 3, (3, 5))
    arrays = {"kspace": SAMPLES.reshape(2, 4, 15), "trajectory": POINTS.reshape(15, 2), "density": density.ravel()}
    scan = scan_of(saved(tmp_path, **(arrays if flat else {"density": density})))
    assert scan.density is not None and "members_not_read" not in scan.header
    np.testing.assert_array_equal(scan.density, density.ravel())
    if not flat:
        some = scan.select_readouts(np.array([True, False, True])).density
        assert some is not None
        np.testing.assert_array_equal(some, density[[0, 2]].ravel())


@pytest.mark.parametrize(
    "density",
    [np.ones(15), np.ones((3, 4)), -np.ones((3, 5)), np.zeros((3, 5)), np.full((3, 5), np.nan), np.ones((3, 5)) * 1j],
    ids=["flat", "short", "negative", "zeros", "nan", "complex"],
)
def test_density_weights_that_are_none_are_refused(tmp_path: Path, density: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"scan\.npz: density: got"):
        read(saved(tmp_path, density=density))


def test_density_without_a_trajectory_is_told_as_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "lines.npz", kspace=np.ones((8, 8), complex), density=np.ones(8))
    assert read(tmp_path / "lines.npz").header["members_not_read"] == "density"

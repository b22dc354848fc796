"""Archives with a trajectory: which axes are what, which grid, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import TrajectoryData
from mri_design.scan.io import read, with_maps
from tests.refusals import refused, refuses

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-0.5, 0.5, (3, 5, 2)) * (16, 12)
FILLED = POINTS / np.abs(POINTS).max(axis=(0, 1)) * (8, 6)
"""To 8 and 6 cycles per field of view."""
SPATIAL = np.concatenate([POINTS, np.zeros((3, 5, 1))], axis=-1)
SAMPLES = (RNG.standard_normal((2, 4, 3, 5)) + 1j * RNG.standard_normal((2, 4, 3, 5))).astype(np.complex64)
NAN, INF = (np.where(POINTS[1, 2] == POINTS, bad, POINTS) for bad in (np.nan, np.inf))


def saved(folder: Path, header: dict[str, Any] | None = None, **changes: object) -> Path:
    """A scan of two slices, four coils, three readouts of five samples; None leaves an array out."""
    arrays = {"kspace": SAMPLES, "trajectory": POINTS, "matrix": (16, 12), **changes}
    np.savez(folder / "scan.npz", **{name: array for name, array in arrays.items() if array is not None})
    if header is not None:
        (folder / "scan.json").write_text(json.dumps(header))
    return folder / "scan.npz"


@pytest.mark.parametrize("lead", [(), (4,), (2, 4)], ids=str)
@pytest.mark.parametrize("flat", [False, True])
def test_slices_coils_and_readouts_may_be_missing(tmp_path: Path, lead: tuple[int, ...], flat: bool) -> None:
    axes = (15,) if flat else (3, 5)
    kspace, density = SAMPLES[(0,) * (2 - len(lead))].reshape(*lead, *axes), RNG.uniform(0, 3, axes)
    trajectory = SPATIAL.reshape(*axes, 3)[..., : 3 if lead else 2]  # with kz of the plane, and without
    scan = read(saved(tmp_path, kspace=kspace, trajectory=trajectory, density=density))
    slices, coils = (1, 1, *lead)[-2:]
    np.testing.assert_array_equal(scan.kspace, kspace.reshape(slices, coils, 15))
    np.testing.assert_array_equal(scan.trajectory, POINTS.reshape(15, 2))
    np.testing.assert_array_equal(scan.density, density.ravel())
    assert (scan.n_slices, scan.n_coils, scan.n_readouts) == (slices, coils, 1 if flat else 3)
    assert scan.kspace.dtype == np.complex64 and scan.name == "scan" and scan.noise_variance is None
    assert not scan.provenance.left_out


def test_what_stands_beside_the_samples_is_read_too(tmp_path: Path) -> None:
    maps = RNG.standard_normal((4, 16, 12)) + 0j
    scan = read(saved(tmp_path, noise_variance=0.5, coil_maps=maps, reference=np.ones((2, 16, 12))))
    assert scan.noise_variance == 0.5 and scan.header["file"] == "scan.npz"
    np.testing.assert_allclose(scan.coil_maps[1], maps, rtol=1e-6)
    assert scan.reference.shape == (2, 16, 12)
    np.save(tmp_path / "maps.npy", maps)  # in the place of its own
    found = with_maps(scan, tmp_path / "maps.npy").coil_maps
    np.testing.assert_allclose(found[0], maps / np.linalg.norm(maps, axis=0), rtol=1e-5)
    np.savez(tmp_path / "lines.npz", kspace=np.ones((8, 8), complex), density=np.ones(8))  # no trajectory
    assert read(tmp_path / "lines.npz").provenance.left_out["members_not_read"] == ("density",)


@pytest.mark.parametrize(("reach", "side"), [((8, 7.8), 16), ((7.96, 7.96), 16), ((7.00005, 7), 14)])
def test_a_square_matrix_follows_from_the_trajectory(tmp_path: Path, reach: tuple[float, float], side: int) -> None:
    points = POINTS / np.abs(POINTS).max(axis=(0, 1)) * reach
    assert read(saved(tmp_path, trajectory=points, matrix=None)).grid_shape == (side, side)
    assert read(saved(tmp_path, trajectory=points, matrix=20)).grid_shape == (20, 20)
    stated = saved(tmp_path, {"matrix": [18, 20]}, trajectory=points, matrix=None)
    assert read(stated).grid_shape == read(stated, matrix=(32, 32)).grid_shape == (18, 20)
    assert read(saved(tmp_path, {}, trajectory=points, matrix=None), matrix=(32, 24)).grid_shape == (32, 24)
    shown = saved(tmp_path, {}, trajectory=points, matrix=None, reference=np.ones((20, 18)))
    assert read(shown, matrix=(32, 24)).grid_shape == (20, 18)


@pytest.mark.parametrize(
    ("header", "trajectory"),
    [
        ({"trajectory_unit": "cycles per pixel"}, POINTS / (16, 12)),
        ({"trajectory_unit": "radians per pixel"}, POINTS / (16, 12) * 2 * np.pi),
        ({"trajectory_axes": ["kx", "ky", "kz"]}, SPATIAL[..., (1, 0, 2)]),
        ({"trajectory_axes": ["kz", "ky", "kx"]}, SPATIAL[..., (2, 0, 1)]),
        ({"trajectory_axes": ["kx", "ky"]}, POINTS[..., ::-1]),
        (  # as archives of spirals come: readouts called interleaves
            {
                "shape": {"kspace": [2, 4, 3, 5], "trajectory": [3, 5, 2], "density": [3, 5]},
                "dims": ["slice", "coil", "interleave", "sample"],
                "trajectory_unit": "cycles per pixel",
            },
            POINTS / (16, 12),
        ),
    ],
)
def test_a_header_may_name_another_unit_and_other_columns(tmp_path, header, trajectory):
    scan = read(saved(tmp_path, header, trajectory=trajectory))
    np.testing.assert_allclose(scan.trajectory, POINTS.reshape(-1, 2), rtol=1e-6)


UNIT = 'Say "trajectory_unit": "cycles per pixel"'
METRES = "Multiply by the field of view"


@pytest.mark.parametrize(
    ("header", "changes", "field", "cure"),
    [
        (None, {"matrix": None}, "matrix", "Give the pixels"),
        (None, {"matrix": None, "trajectory": POINTS / 16}, "matrix", '"trajectory_unit": "cycles per pixel"'),
        (
            None,
            {"matrix": None, "trajectory": POINTS / np.abs(POINTS).max() * np.pi},
            "matrix",
            '"trajectory_unit": "radians per pixel"',
        ),
        (None, {"trajectory": POINTS / 16}, "trajectory", UNIT),
        (None, {"trajectory": FILLED * 3}, "trajectory", "matrix=[48, 36]"),
        (None, {"trajectory": FILLED, "matrix": (4, 4)}, "trajectory", "matrix=[16, 12]"),
        (None, {"matrix": (16, 8)}, "trajectory", "matrix=[16, 12]"),
        (None, {"trajectory": FILLED * 21}, "trajectory", METRES),
        (None, {"matrix": (16.5, 12)}, "matrix", ""),
        (None, {"matrix": (16, 12, 1)}, "matrix", ""),
        (None, {"matrix": (2, 12)}, "matrix", ""),
        ({"matrix": "large"}, {"matrix": None}, "matrix", ""),
        (None, {"trajectory": POINTS[:, :4]}, "kspace", ""),
        (None, {"trajectory": POINTS[..., 0]}, "trajectory", ""),
        (None, {"trajectory": POINTS + 0j}, "trajectory", ""),
        (None, {"trajectory": NAN}, "trajectory", ""),
        (None, {"trajectory": np.where(SPATIAL == 0, 1e-3, SPATIAL)}, "trajectory", '"trajectory_axes"'),
        (None, {"trajectory": np.where(SPATIAL == 0, np.nan, SPATIAL)}, "trajectory", '"trajectory_axes"'),
        (None, {"kspace": SAMPLES[None]}, "kspace", ""),
        (None, {"kspace": np.where(SAMPLES[0, 0, 0, 0] == SAMPLES, np.inf, SAMPLES)}, "kspace", ""),
        (None, {"kspace": 0 * SAMPLES}, "kspace", ""),
        (None, {"kspace": SAMPLES.real}, "kspace", ""),
        (None, {"noise_variance": -1.0}, "noise_variance", ""),
        (None, {"coil_maps": np.ones((4, 12, 16))}, "coil_maps", ""),
        *(
            (None, {"density": density}, "density", "")
            for density in (np.ones(15), np.ones((3, 4)), -np.ones((3, 5)), np.zeros((3, 5)), np.ones((3, 5)) * 1j)
        ),
        (None, {"density": np.full((3, 5), np.nan)}, "density", ""),
        *(
            ({"trajectory_axes": axes}, {"trajectory": SPATIAL}, "trajectory_axes", '["kx", "ky", "kz"]')
            for axes in (["kx", "ky"], ["kx", "kx", "kz"], ["x", "y", "z"], "yes")
        ),
        ({"trajectory_unit": "furlongs"}, {}, "trajectory_unit", ""),
        ({"trajectory_unit": "radians per pixel"}, {"trajectory": FILLED / (16, 12)}, "trajectory", UNIT),
        ({"trajectory_unit": "radians per pixel"}, {"trajectory": FILLED}, "trajectory", "Leave"),
        ({"trajectory_unit": "cycles per pixel"}, {"trajectory": FILLED}, "trajectory", "Leave"),
        ({"trajectory_unit": "cycles per pixel"}, {"trajectory": FILLED[..., ::-1]}, "trajectory", "Swap the columns"),
        ({"trajectory_unit": "radians per pixel"}, {"trajectory": FILLED * 4}, "trajectory", METRES),
        ({"trajectory_unit": "radians per pixel"}, {"trajectory": INF}, "trajectory", ""),
        ({"trajectory_unit": "cycles per pixel"}, {"trajectory": NAN}, "trajectory", ""),
        ({"shape": {"kspace": [2, 4, 3, 5], "trajectory": [3, 4, 2]}}, {}, "trajectory: shape", ""),
        ({"shape": {"kspace": "large"}}, {}, "scan.json: kspace", ""),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, header, changes, field, cure):
    if header is not None and "trajectory_unit" in header:
        changes = {"matrix": (16, 14), **changes}
    with refused(field, cure):
        read(saved(tmp_path, header, **changes))


def test_slices_and_readouts_are_chosen() -> None:
    density = RNG.uniform(0, 3, 15)
    scan = TrajectoryData(SAMPLES.reshape(2, 4, 15), POINTS.reshape(15, 2), (16, 12), n_readouts=3, density=density)
    second = scan.select_slice(-1)
    np.testing.assert_array_equal(second.kspace[0], scan.kspace[1])
    assert second.name == "scan[1]"
    two = scan.only(np.array([True, False, True]))
    np.testing.assert_array_equal(two.trajectory, POINTS[[0, 2]].reshape(10, 2))
    np.testing.assert_array_equal(two.kspace, SAMPLES[:, :, [0, 2]].reshape(2, 4, 10))
    np.testing.assert_array_equal(two.density, density.reshape(3, 5)[[0, 2]].ravel())
    assert two.n_readouts == 2
    refuses("slice", scan.select_slice, 2)
    refuses("readouts", scan.only, np.zeros(3, dtype=bool))

"""Coil maps and masks from files of their own."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import KSpaceData
from mri_design.scan.io import read_mask, with_maps
from tests.refusals import refused
from tests.scan.io.test_bart import complex_numbers, write_pair


@pytest.fixture
def data(scan: np.ndarray) -> KSpaceData:
    return KSpaceData(scan, np.ones(12, dtype=bool))


def unit(maps: np.ndarray) -> np.ndarray:
    return maps / np.linalg.norm(maps, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["coil_maps", "maps", "sensitivities", "", "bart"])
def test_one_set_serves_all_slices_and_is_scaled(tmp_path: Path, data: KSpaceData, scan: np.ndarray, name: str) -> None:
    path = tmp_path / ("maps.npz" if name else "maps.npy")
    if name == "bart":  # several sets (x, y, 1, coil), of which the first is taken
        first = scan[0].transpose(2, 1, 0)[:, :, np.newaxis]
        path = write_pair(tmp_path / "maps", np.stack([first, 0.1 + first], axis=-1))
    elif name:
        np.savez(path, **{name: scan[0]})
    else:
        np.save(path, scan[0])
    found = with_maps(data, path)
    np.testing.assert_allclose(found.coil_maps, unit(np.stack([scan[0], scan[0]])), rtol=1e-6)
    assert "scaled from" in found.header["coil_maps_file"]


@pytest.mark.parametrize("turned", [False, True])
def test_every_slice_may_have_its_own_and_empty_pixels_stay_empty(
    tmp_path: Path, data: KSpaceData, scan: np.ndarray, turned: bool
) -> None:
    maps = unit(scan)
    maps[1, :, 3, 4] = 0
    np.save(tmp_path / "maps.npy", maps.swapaxes(-1, -2) if turned else maps)  # as the scan lies in its file
    found = with_maps(replace(data, orientation="ky-columns" if turned else "ky-rows"), tmp_path / "maps.npy")
    np.testing.assert_allclose(found.coil_maps, maps, atol=1e-6)
    assert not found.coil_maps[1, :, 3, 4].any()
    assert found.header["coil_maps_file"] == "maps.npy"


@pytest.mark.parametrize(
    "maps",
    [
        np.ones((3, 12, 15), np.complex64),
        np.ones((2, 12, 16), np.complex64),
        np.zeros((3, 12, 16), np.complex64),
        np.full((3, 12, 16), np.nan + 0j),
        np.ones((3, 12, 16), np.int16),
        np.ones(5),
        {"image": np.ones((3, 12, 16))},
        "no array",
    ],
    ids=lambda maps: type(maps).__name__,
)
def test_maps_that_do_not_fit_are_refused(tmp_path: Path, data: KSpaceData, maps: object) -> None:
    path = tmp_path / "maps.npy"
    if isinstance(maps, str):
        path.write_text(maps)
    elif isinstance(maps, dict):
        path = tmp_path / "maps.npz"
        np.savez(path, **maps)
    else:
        np.save(path, maps)
    with refused(path.name):
        with_maps(data, path)


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 2, 1), (2, 1, 0)])
@pytest.mark.parametrize("turned", [False, True])
def test_maps_in_another_order_are_refused_with_what_turns_them(
    tmp_path: Path, data: KSpaceData, order: tuple[int, ...], turned: bool
) -> None:
    path, maps = tmp_path / "maps.npy", np.random.default_rng(0).standard_normal((3, 12, 16)).astype(np.complex64)
    scan = replace(data, orientation="ky-columns" if turned else "ky-rows")
    stored = np.transpose(maps.swapaxes(-1, -2) if turned else maps, np.argsort(order))
    np.save(path, stored)
    with refused("maps.npy", f"numpy.transpose(maps, {order})"):
        with_maps(scan, path)
    np.save(path, np.transpose(stored, order))
    assert with_maps(scan, path).coil_maps is not None
    np.save(path, np.stack([maps, 0 * maps, maps]))
    with refused("maps.npy", "maps[0]"):
        with_maps(data, path)


LINES = np.array([False, True, True, False, True, True, False, True])
SAMPLES = np.random.default_rng(1).random((8, 6)) < 0.4
EVERYWHERE = np.ones((8, 6), dtype=bool)
SQUARE = np.ones((8, 8), dtype=bool)


@pytest.fixture
def mask_of(tmp_path: Path) -> Callable[..., np.ndarray]:
    """Write an array, a text or a pair of BART, and read it as the mask of a scan of 8 lines of 6 samples."""

    def read_back(
        stored: object, samples: np.ndarray = EVERYWHERE, name: str = "mask.npy", **given: bool
    ) -> np.ndarray:
        if isinstance(stored, str):
            (tmp_path / name).write_text(stored)
        elif name.endswith("cfl"):
            write_pair(tmp_path / name, np.asarray(stored))
        else:
            np.save(tmp_path / name, stored)
        return read_mask(tmp_path / name, samples.any(axis=1), samples, **given)

    return read_back


@pytest.mark.parametrize("dtype", [bool, int, np.uint8, float])
@pytest.mark.parametrize("turned", [False, True])
def test_masks_of_any_type_are_turned_where_the_sides_show_it(mask_of: Callable, turned: bool, dtype: type) -> None:
    for mask, wanted in ((SAMPLES, SAMPLES), (np.outer(LINES, np.ones(6)), LINES), (LINES[:, None], LINES)):
        stored = mask.astype(dtype)
        np.testing.assert_array_equal(mask_of(stored.T if turned else stored), wanted)
    np.testing.assert_array_equal(mask_of(np.flatnonzero(LINES)), LINES)
    np.testing.assert_array_equal(mask_of(np.outer(LINES, np.ones(6)), plane=True), np.outer(LINES, np.ones(6)) > 0)


def test_of_equal_sides_what_was_measured_shows_how_the_mask_lies(mask_of: Callable) -> None:
    whole, some = np.outer(LINES, np.ones(8)) > 0, np.outer(LINES | (np.arange(8) == 0), np.ones(8)) > 0
    np.testing.assert_array_equal(mask_of(whole.T, some), LINES)
    with refused("mask.npy", "plane"):
        mask_of(whole.T, SQUARE)
    np.testing.assert_array_equal(mask_of(whole.T, SQUARE, plane=True), whole.T)
    part = np.outer(np.ones(8), np.arange(8) < 5) > 0  # a partial echo
    np.testing.assert_array_equal(mask_of(part, SQUARE), part)


@pytest.mark.parametrize("name", ["mask.csv", "mask.txt"])
def test_tables_of_lines_and_of_samples_are_masks(mask_of: Callable, name: str) -> None:
    lines = np.flatnonzero(LINES)[::-1]
    order = "".join(f"{n},{line},{line - 4},{n},1\n" for n, line in enumerate(lines))
    np.testing.assert_array_equal(mask_of(f"order,line,ky,shot,echo\n{order}", name=name), LINES)
    np.testing.assert_array_equal(mask_of("\n".join(f"{line:.18e}" for line in lines), name=name), LINES)
    rows = np.argwhere(SAMPLES)
    text = "".join(f"{n},{6 * y + z},{y - 4},{z - 3},0,1\n" for n, (y, z) in enumerate(rows))
    np.testing.assert_array_equal(mask_of(f"order,sample,ky,kz,shot,echo\n{text}", name=name), SAMPLES)
    np.testing.assert_array_equal(mask_of(rows), SAMPLES)  # as export --to npy writes them


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (LINES[None], LINES),  # one column, as of a run without an image
        (np.broadcast_to(LINES, (6, 8)), LINES),
        (SAMPLES.T, SAMPLES),  # samples inside lines
        (SAMPLES[None], SAMPLES),  # a plane
        (np.broadcast_to(SAMPLES, (5, 8, 6)), SAMPLES),
    ],
)
def test_a_mask_of_bart_is_one_of_lines_or_of_samples(
    mask_of: Callable, stored: np.ndarray, wanted: np.ndarray
) -> None:
    np.testing.assert_array_equal(mask_of(stored, name="mask.cfl"), wanted)


@pytest.mark.parametrize(
    ("name", "stored", "cure"),
    [
        ("mask.npy", "no array", "numpy.save"),
        ("mask.npy", np.repeat([0, 255], 4), ""),
        ("mask.npy", np.ones(7, dtype=int), ""),
        ("mask.npy", np.full(8, 0.5), ""),
        ("mask.npy", np.zeros(8, dtype=bool), ""),
        ("mask.npy", np.array([1, 0, 1, 1, 0, 1]), "other axis"),
        ("mask.csv", "order,line,ky\n0,3,0\n", ""),  # of a grid of 6 or 7 lines
        ("mask.csv", "order,sample,ky,kz\n0,4,-5,-1\n", ""),
        ("mask.csv", "order,line\n0,8\n", ""),
        ("mask.csv", "order,line\n0,1.5\n", ""),
        ("mask.csv", "order,line\n0\n", ""),
        ("mask.csv", "a,b\n1,2\n", ""),
        ("mask.csv", "1,2\n3,4\n", ""),
        ("mask.csv", "\n" * 2**22 + "1", ""),
        ("mask.cfl", complex_numbers(6, 8), "bart pattern"),
        ("mask.cfl", np.ones((6, 8, 1, 2)), ""),
        ("mask.cfl", np.random.default_rng(2).random((5, 8, 6)) < 0.5, ""),
        ("mask.cfl", np.ones((6, 7)), ""),
        ("mask.cfl", np.zeros((6, 8)), ""),
    ],
)
def test_what_is_no_mask_of_this_scan_is_refused(mask_of: Callable, name: str, stored: object, cure: str) -> None:
    with refused(name, cure):
        mask_of(stored, name=name)


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART")
def test_the_pattern_that_bart_makes_is_read(tmp_path: Path) -> None:
    write_pair(tmp_path / "ksp", SAMPLES[None, ..., None] * complex_numbers(1, 8, 6, 3))
    subprocess.run(["bart", "pattern", "ksp", "mask"], cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask", EVERYWHERE[:, 0], EVERYWHERE), SAMPLES)

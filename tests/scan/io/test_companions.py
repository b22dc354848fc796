"""Coil maps from a file of their own."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, KSpaceData
from mri_design.scan.io.companions import read_mask, with_maps
from tests.scan.io.test_bart import complex_numbers, write_pair


@pytest.fixture
def data(scan: np.ndarray) -> KSpaceData:
    return KSpaceData(scan, np.ones(12, dtype=bool))


def unit(maps: np.ndarray) -> np.ndarray:
    return maps / np.linalg.norm(maps, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["coil_maps", "maps", "sensitivities", ""])
def test_one_set_serves_all_slices_and_is_scaled(tmp_path: Path, data: KSpaceData, scan: np.ndarray, name: str) -> None:
    path = tmp_path / "maps.npz"
    if name:
        np.savez(path, **{name: scan[0]})
    else:
        np.save(path.with_suffix(".npy"), scan[0])
    found = with_maps(data, path if name else path.with_suffix(".npy"))
    np.testing.assert_allclose(found.coil_maps, unit(np.stack([scan[0], scan[0]])), rtol=1e-6)
    assert "scaled from" in found.header["coil_maps_file"]


def test_every_slice_may_have_its_own_and_empty_pixels_stay_empty(
    tmp_path: Path, data: KSpaceData, scan: np.ndarray
) -> None:
    maps = unit(scan)
    maps[1, :, 3, 4] = 0
    np.save(tmp_path / "maps.npy", maps)
    found = with_maps(data, tmp_path / "maps.npy")
    assert found.coil_maps is not None
    np.testing.assert_allclose(found.coil_maps, maps, atol=1e-6)
    assert not found.coil_maps[1, :, 3, 4].any()
    assert found.header["coil_maps_file"] == "maps.npy"


def test_rows_and_columns_lie_as_in_the_file_of_the_scan(tmp_path: Path, data: KSpaceData, scan: np.ndarray) -> None:
    np.save(tmp_path / "maps.npy", scan.swapaxes(-1, -2))
    found = with_maps(replace(data, orientation="ky-columns"), tmp_path / "maps.npy")
    np.testing.assert_allclose(found.coil_maps, unit(scan), rtol=1e-6)


@pytest.mark.parametrize(
    ("maps", "match"),
    [
        (np.ones((3, 12, 15), np.complex64), r"shape \(3, 12, 15\)"),
        (np.ones((2, 12, 16), np.complex64), r"wanted \(3, 12, 16\)"),
        (np.zeros((3, 12, 16), np.complex64), "zeros only"),
        (np.full((3, 12, 16), np.nan + 0j), "NaN"),
        (np.ones((3, 12, 16), np.int16), "int16"),
        (np.ones(5), "shape"),
    ],
)
def test_maps_that_do_not_fit_are_refused(tmp_path: Path, data: KSpaceData, maps: np.ndarray, match: str) -> None:
    np.save(tmp_path / "maps.npy", maps)
    with pytest.raises(InputError, match=match):
        with_maps(data, tmp_path / "maps.npy")


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 2, 1), (2, 1, 0)])
def test_maps_in_another_order_are_refused_with_what_turns_them(
    tmp_path: Path, data: KSpaceData, order: tuple[int, ...]
) -> None:
    maps = np.random.default_rng(0).standard_normal((3, 12, 16)).astype(np.complex64)
    for turned in (False, True):
        scan = replace(data, orientation="ky-columns" if turned else "ky-rows")
        own = maps.swapaxes(-1, -2) if turned else maps
        stored = np.transpose(own, np.argsort(order))
        np.save(tmp_path / "maps.npy", stored)
        with pytest.raises(InputError) as caught:
            with_maps(scan, tmp_path / "maps.npy")
        assert f"numpy.transpose(maps, {order})" in caught.value.cure
        np.save(tmp_path / "maps.npy", np.transpose(stored, order))
        assert with_maps(scan, tmp_path / "maps.npy").coil_maps is not None
    np.save(tmp_path / "maps.npy", np.stack([maps, 0 * maps, maps]))
    with pytest.raises(InputError, match=r"maps\[0\]"):
        with_maps(data, tmp_path / "maps.npy")


def test_an_archive_of_something_else_is_refused(tmp_path: Path, data: KSpaceData) -> None:
    np.savez(tmp_path / "maps.npz", image=np.ones((3, 12, 16)))
    with pytest.raises(InputError, match="an array named coil_maps, maps, sensitivities"):
        with_maps(data, tmp_path / "maps.npz")


def test_another_kind_of_file_is_told_what_was_wanted(tmp_path: Path, data: KSpaceData) -> None:
    path = tmp_path / "notes.npy"
    path.write_text("no array")
    with pytest.raises(InputError, match=r"neither an array nor an archive of NumPy; wanted coil maps as \.npy, \.npz"):
        with_maps(data, path)
    with pytest.raises(InputError, match=r"no array of NumPy; wanted a mask as \.npy"):
        read_mask(path, data.measured)


@pytest.mark.parametrize("dtype", [int, np.uint8, float])
def test_zeros_and_ones_of_any_type_are_a_mask(tmp_path: Path, data: KSpaceData, dtype: type) -> None:
    flags = data.measured & (np.arange(12) != 5)
    np.save(tmp_path / "mask.npy", flags.astype(dtype))
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.npy", data.measured), flags)
    np.save(tmp_path / "lines.npy", np.flatnonzero(flags))
    np.testing.assert_array_equal(read_mask(tmp_path / "lines.npy", data.measured), flags)
    for wrong in (np.repeat([0, 255], 6), np.ones(11, dtype=int), np.full(12, 0.5)):
        np.save(tmp_path / "wrong.npy", wrong)
        with pytest.raises(InputError) as refused:
            read_mask(tmp_path / "wrong.npy", data.measured)
        assert refused.value.field == "wrong.npy"


LINES = np.array([False, True, True, False, True, True, False, True])
SAMPLES = np.random.default_rng(1).random((8, 6)) < 0.4
EVERYWHERE = np.ones((8, 6), dtype=bool)


@pytest.fixture
def mask_of(tmp_path: Path) -> Callable[..., np.ndarray]:
    """Write an array, or a text, and read it as the mask of a scan of 8 lines and 6 samples, or another."""

    def read_back(
        stored: object, samples: np.ndarray = EVERYWHERE, name: str = "mask.npy", **given: bool
    ) -> np.ndarray:
        if isinstance(stored, str):
            (tmp_path / name).write_text(stored)
        else:
            np.save(tmp_path / name, stored)
        return read_mask(tmp_path / name, samples.any(axis=1), samples, **given)

    return read_back


@pytest.mark.parametrize("turned", [False, True])
def test_masks_with_exchanged_axes_are_turned_where_the_sides_show_it(mask_of: Callable, turned: bool) -> None:
    for mask, wanted in ((SAMPLES, SAMPLES), (np.outer(LINES, np.ones(6)), LINES), (LINES[:, None], LINES)):
        np.testing.assert_array_equal(mask_of(mask.T if turned else mask), wanted)
    np.testing.assert_array_equal(mask_of(np.outer(LINES, np.ones(6)), plane=True), np.outer(LINES, np.ones(6)) > 0)


def test_of_equal_sides_what_was_measured_shows_how_the_mask_lies(mask_of: Callable) -> None:
    whole, some = np.outer(LINES, np.ones(8)) > 0, np.outer(LINES | (np.arange(8) == 0), np.ones(8)) > 0
    np.testing.assert_array_equal(mask_of(whole.T, some), LINES)
    with pytest.raises(InputError) as refused:
        mask_of(whole.T, np.ones((8, 8), dtype=bool))
    assert refused.value.field == "mask.npy" and "plane" in refused.value.cure
    np.testing.assert_array_equal(mask_of(whole.T, np.ones((8, 8), dtype=bool), plane=True), whole.T)
    part = np.outer(np.ones(8), np.arange(8) < 5) > 0  # a partial echo
    np.testing.assert_array_equal(mask_of(part, np.ones((8, 8), dtype=bool)), part)


def test_flags_of_the_readout_are_told_apart_from_those_of_lines(mask_of: Callable) -> None:
    with pytest.raises(InputError) as refused:
        mask_of(np.array([1, 0, 1, 1, 0, 1]))
    assert refused.value.field == "mask.npy" and "other axis" in refused.value.cure


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
    "text",
    [
        "order,line,ky\n0,3,0\n",  # of a grid of 6 or 7 lines
        "order,sample,ky,kz\n0,4,-5,-1\n",
        "order,line\n0,8\n",
        "order,line\n0,1.5\n",
        "order,line\n0\n",
        "a,b\n1,2\n",
        "1,2\n3,4\n",
    ],
)
def test_tables_of_something_else_are_refused(mask_of: Callable, text: str) -> None:
    with pytest.raises(InputError) as refused:
        mask_of(text, name="mask.csv")
    assert refused.value.field.startswith("mask.csv")


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
def test_a_mask_of_bart_is_one_of_lines_or_of_samples(tmp_path: Path, stored: np.ndarray, wanted: np.ndarray) -> None:
    path = write_pair(tmp_path / "mask", stored)
    np.testing.assert_array_equal(read_mask(path, EVERYWHERE[:, 0], EVERYWHERE), wanted)


@pytest.mark.parametrize(
    ("stored", "match"),
    [
        (complex_numbers(6, 8), "other samples than zeros and ones.*bart pattern"),
        (np.ones((6, 8, 1, 2)), "got 2 along coil; wanted one mask for all coils"),
        (np.random.default_rng(2).random((5, 8, 6)) < 0.5, "readouts that are measured in part"),
        (np.ones((6, 7)), r"bool \(7,\); wanted bool \(8,\)"),
        (np.zeros((6, 8)), "no line"),
    ],
)
def test_what_is_no_mask_of_this_scan_is_refused(tmp_path: Path, stored: np.ndarray, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_mask(write_pair(tmp_path / "mask", stored), EVERYWHERE[:, 0], EVERYWHERE)


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART")
def test_the_pattern_that_bart_makes_is_read(tmp_path: Path) -> None:
    write_pair(tmp_path / "ksp", SAMPLES[None, ..., None] * complex_numbers(1, 8, 6, 3))
    subprocess.run(["bart", "pattern", "ksp", "mask"], cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask", EVERYWHERE[:, 0], EVERYWHERE), SAMPLES)


def test_of_several_sets_of_maps_the_first_is_taken(tmp_path: Path, data: KSpaceData, scan: np.ndarray) -> None:
    first = scan[0].transpose(2, 1, 0)[:, :, np.newaxis]  # (x, y, 1, coil)
    write_pair(tmp_path / "maps", np.stack([first, 0.1 + first], axis=-1))
    found = with_maps(data, tmp_path / "maps.cfl")
    np.testing.assert_allclose(found.coil_maps, unit(np.stack([scan[0], scan[0]])), rtol=1e-6)
    assert "first of 2" in found.header["coil_maps_file"]

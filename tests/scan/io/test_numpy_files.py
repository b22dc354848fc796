"""Files of NumPy with and without a header become k-space or images; damaged and hostile ones are refused by name."""

from __future__ import annotations

import io
import json
import pickle
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError
from mri_design.formats import ReadLimits
from mri_design.scan.io import DEFAULT_LIMITS, read, summary
from tests.refusals import refused, refuses
from tests.scan.io.reading import assert_told

GOOD = np.ones((8, 8), np.complex64)
ALONG = ["slice", "coil", "k0", "k1"]


def saved(folder: Path, array: np.ndarray, header: Any = None) -> Path:
    path = folder / "scan.npy"
    np.save(path, array)
    if header is not None:
        path.with_suffix(".json").write_text(header if isinstance(header, str) else json.dumps(header))
    return path


def archived(folder: Path, header: Any = None, save: Any = np.savez, **arrays: Any) -> Path:
    path = folder / "scan.npz"
    save(path, **arrays)
    if header is not None:
        path.with_suffix(".json").write_text(json.dumps(header))
    return path


@pytest.mark.parametrize(
    ("header", "axes", "orientation"),
    [
        ({"dims": ALONG}, (0, 1, 3, 2), "ky-columns"),
        ({"dims": ["slice", "coil", "ky", "kx"]}, (0, 1, 2, 3), "ky-rows"),
        ({"dims": ["coil", "kx", "slice", "ky"]}, (1, 3, 0, 2), "ky-columns"),
        *(({"phase_encode_axis": axis}, (0, 1, 3, 2), "ky-columns") for axis in (-1, 3)),
        ({"phase_encode_axis": "k0", "dims": ["slice", "coil", "k1", "k0"]}, (0, 1, 3, 2), "ky-columns"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_axes_in_any_order(tmp_path, scan, header, axes, orientation, order):
    more = {"licence": "CC0", "source": {"repo": "r"}, "noise_variance": 0.25}
    scan[0, :, 4] = 0
    path = saved(tmp_path, np.asarray(scan.transpose(axes), order=order), header | more)  # type: ignore[call-overload]
    got = read(path)
    np.testing.assert_array_equal(got.kspace, scan)
    assert_told(summary(path), got)
    assert (got.orientation, got.noise_variance) == (orientation, 0.25)
    assert (got.header["source.repo"], got.header["licence"]) == ("r", "CC0")


def test_lines_without_samples_are_known_to_be_not_measured(tmp_path: Path, scan: np.ndarray) -> None:
    scan[:, :, [0, 5]] = 0
    scan[:, :, 11] = 1e-15  # zero-filling that went through a Fourier transform
    scan[0, :, 7] = 0  # measured, since the other slice has samples there
    got = read(saved(tmp_path, scan))
    assert np.flatnonzero(~got.measured).tolist() == [0, 5, 11]
    assert not got.kspace[:, :, 11].any()
    declared = read(saved(tmp_path, scan, {"zero_filled_k1_columns": [0]}))
    np.testing.assert_array_equal(declared.measured, got.measured)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        *((text, "scan.json") for text in ('{"dims": ', "[1, 2]", "[" * 100_000)),
        ({"dims": "k0"}, "scan.json: dims"),
        *(
            ({"dims": dims}, "dims")  # a volume has no slices, repetitions, or choice of axes
            for dims in (
                *(["slice", "coil", "k0", "k0"], ["slice", "coil", "k0", "kz"], ["k0", "k1"]),
                *(["slice", "ky", "kz", "kx"], ["rep", "k1", "k2", "k0"]),
            )
        ),
        ({"phase_encode_axis": 0}, "phase_encode_axis"),
        ({"phase_encode_axis": 1.5}, "scan.json: phase_encode_axis"),
        ({"phase_encode_axis": "kx", "dims": ["slice", "coil", "ky", "kx"]}, "phase_encode_axis"),
        ({"zero_filled_k1_columns": [3]}, "measured lines"),  # it holds samples
        ({"zero_filled_k1_columns": [12]}, "zero_filled_k1_columns"),
        ({"zero_filled_k1_columns": [1.5]}, "scan.json: zero_filled_k1_columns"),
        *((f'{{"noise_variance": {value}}}', "scan.json: noise_variance") for value in ("0", "NaN", "true")),
        ({"noise_covariance": [[1, 2], [3, 4]]}, "scan.json: noise_covariance"),
        ({"shape": [2, 3, 12, 17]}, "array: shape"),
        ({"kind": 3}, "scan.json: kind"),
    ],
)
@pytest.mark.parametrize("reading", [read, summary])
def test_bad_headers_are_refused_by_field(tmp_path, scan, header, field, reading):
    refuses(field, reading, saved(tmp_path, scan, header))


@pytest.mark.parametrize("shape", [(9, 7), (3, 9, 7)])
@pytest.mark.parametrize("dtype", ["f4", "u1", ">i2", "f8"])
def test_real_arrays_are_images(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    got = read(saved(tmp_path, pixels))
    assert isinstance(got, ImageStack) and got.images.dtype == np.float32
    np.testing.assert_array_equal(got.images, pixels.reshape(-1, 9, 7))
    assert_told(summary(tmp_path / "scan.npy"), got)


@pytest.mark.parametrize("several", ["slice", "echo"])
def test_images_by_their_header(tmp_path: Path, several: str) -> None:
    pairs = np.arange(2 * 6 * 5 * 2).reshape(2, 6, 5, 2).astype(np.float16)
    header = {"dims": [several, "row", "col", "real/imag"], "dtype": "float16 pairs (real, imag)"}
    got = read(archived(tmp_path, {**header, "kind": "image domain, complex", "key": "image"}, image=pairs))
    np.testing.assert_array_equal(got.images, pairs[..., 0] + 1j * pairs[..., 1].astype(np.complex64))
    pixels = pairs[..., 0].astype(np.float32)
    path = saved(tmp_path, pixels, {"dims": [several, "row", "col"], "shape": [2, 6, 5]})
    got = read(path)
    np.testing.assert_array_equal(got.images, pixels)
    assert_told(summary(path), got)
    refuses("array", read, saved(tmp_path, pixels[0], {"dims": [several, "row"]}))


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"measured": np.ones(11, bool)}, "measured"),
        ({"measured": np.zeros(12, bool)}, "measured lines"),
        *(({"coil_maps": np.ones(shape, np.complex64)}, "coil_maps") for shape in ((2, 3, 12, 15), (12, 16))),
        ({"reference": np.full((2, 12, 16), np.nan, np.complex64)}, "reference"),
        *(({"noise_variance": value}, "noise_variance") for value in (np.zeros(1), np.ones(2))),
        ({"noise_covariance": np.ones(3)}, "noise_covariance"),
    ],
)
def test_companions_that_disagree_are_refused(tmp_path, scan, members, field):
    path = archived(tmp_path, kspace=scan, **members)
    refuses(f"{path}: {field}", read, path)


def one_not_finite(value: complex, dtype: type) -> np.ndarray:
    array = GOOD.astype(dtype)
    array[1, 0] = array[2, 3] = value
    return array


@pytest.mark.parametrize(
    ("array", "field"),
    [
        (0 * GOOD, "kspace"),
        *((array, "array") for array in (np.full((8, 8), 1e300 + 0j), GOOD.real > 0, np.ones((2, 2, 8, 8)))),
        *((array, "dims") for array in (GOOD.ravel(), GOOD[None, None, None])),
        *((one_not_finite(value, np.complex64), "array") for value in (np.nan, np.inf, -np.inf, 1j * np.nan)),
        (one_not_finite(np.nan, np.complex128), "array"),
    ],
)
def test_arrays_that_are_neither_are_refused(tmp_path: Path, array: np.ndarray, field: str) -> None:
    path = saved(tmp_path, array)
    refuses(f"{path}: {field}", read, path)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5, 9), (2, 3, 7, 4)])
@pytest.mark.parametrize("dtype", ["<c8", ">c8", "<c16", ">c16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_grids_precision_and_memory_order(tmp_path: Path, shape: tuple[int, ...], dtype: str, order: Any) -> None:
    rng = np.random.default_rng(1)
    array = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    got = read(saved(tmp_path, np.array(array, dtype=dtype, order=order)))
    np.testing.assert_array_equal(got.kspace, array.reshape(got.kspace.shape))
    assert got.grid_shape == shape[-2:] and got.kspace.flags.c_contiguous and got.kspace.dtype == np.complex64
    assert got.measured.all() and got.orientation == "ky-rows" and (got.name, got.noise_variance) == ("scan", None)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("empty", [0, 1])
def test_an_archive_with_everything_and_its_summary(tmp_path, scan, save, beside, empty):
    stored = scan.copy()
    stored[..., 4, :] = 0
    stored[empty] = 0
    others = {
        "coil_maps": scan / np.linalg.norm(scan, axis=1, keepdims=True),
        "reference": scan[:, 0] + 1,
        "measured": np.arange(12) != 4,
        "noise_variance": np.array(0.5),
        "remarks": np.zeros(3),
    }
    path = archived(tmp_path, save=save, kspace=stored, **(others if beside else {}))
    got = read(path)
    np.testing.assert_array_equal(got.kspace, stored)
    assert np.flatnonzero(~got.measured).tolist() == [4]
    if beside:
        np.testing.assert_array_equal(got.coil_maps, others["coil_maps"])
        np.testing.assert_array_equal(got.reference, others["reference"])
        assert got.noise_variance == 0.5 and got.provenance.left_out["members_not_read"] == ("remarks",)
    assert_told(summary(path), got)


@pytest.mark.parametrize("kept", ["array", "archive"])
def test_a_summary_of_slices_holds_two_at_most(tmp_path, scan, kept, monkeypatch):
    monkeypatch.setattr(zipfile.ZipExtFile, "MAX_SEEK_READ", 2**16)  # of 16 MiB, more than this archive has
    many = np.tile(scan, (800, 1, 1, 1))  # so that what other threads of the tests allocate is little beside it
    path = saved(tmp_path, many) if kept == "array" else archived(tmp_path, kspace=many)
    limits = replace(DEFAULT_LIMITS, max_bytes=2 * path.stat().st_size)
    summary(path, limits=limits)  # what is imported at the first call is not of the slices
    tracemalloc.start()
    summary(path, limits=limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2


SHAPE = (5, 6, 8)  # x, y, z


def transformed(image: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The centred orthonormal FFT along some axes, written out as sums."""
    for axis in axes:
        k = np.arange(image.shape[axis]) - image.shape[axis] // 2
        matrix = np.exp(-2j * np.pi * np.outer(k, k) / len(k)) / np.sqrt(len(k))
        image = np.moveaxis(np.tensordot(matrix, image, axes=(1, axis)), 0, axis)
    return image


def images(coils: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((coils, *SHAPE)) + 1j * rng.standard_normal((coils, *SHAPE))


@pytest.mark.parametrize(
    ("dims", "axes"), [(["coil", "ky", "kz", "kx"], (0, 2, 3, 1)), (["k0", "coil", "k1", "k2"], (1, 0, 2, 3))]
)
def test_every_readout_position_of_a_volume_is_a_plane(tmp_path: Path, dims: list[str], axes: tuple[int, ...]) -> None:
    volume, maps = images(2), images(2)[::-1]
    kspace = transformed(volume, (1, 2, 3)).astype(np.complex64)
    missing = np.ones((6, 8), dtype=bool)
    kspace[:, :, 2, 3] = missing[2, 3] = 0
    reference = volume[0].transpose([axis - 1 for axis in axes if axis]).astype(np.complex64)
    stored = {"kspace": kspace.transpose(axes), "coil_maps": maps.transpose(axes).astype(np.complex64)}
    got = read(archived(tmp_path, {"dims": dims, "noise_variance": 0.25}, **stored, reference=reference))
    assert got.kspace.shape == (5, 2, 6, 8) and got.volume and got.noise_variance == 0.25
    planes = transformed(volume, (2, 3)).swapaxes(0, 1) * missing
    np.testing.assert_allclose(got.kspace, planes, atol=1e-5)
    for sampling in got.samplings:
        np.testing.assert_array_equal(sampling.samples, missing)
    np.testing.assert_allclose(got.coil_maps, maps.swapaxes(0, 1), atol=1e-6)
    np.testing.assert_allclose(got.reference, volume[0], atol=1e-6)


def test_an_image_volume_is_a_stack_along_its_readout(tmp_path: Path) -> None:
    image = np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(SHAPE)
    got = read(archived(tmp_path, {"dims": ["x", "y", "z"], "kind": "image domain volume"}, image=image))
    np.testing.assert_array_equal(got.images, image)


def npy(header: str, body: bytes = b"", *, version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    text = header.encode("latin-1")
    size = len(text) if length is None else length
    packed = struct.pack("<H" if version == (1, 0) else "<I", size)
    return b"\x93NUMPY" + bytes(version) + packed + text + body


def header(shape: str, descr: str = "'<c8'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def npz(members: list[tuple[zipfile.ZipInfo | str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of duplicates, made on purpose
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def changed(content: bytes, *changes: tuple[int, bytes]) -> bytes:
    """The content with other bytes at some places; negative ones count from the archive's directory."""
    damaged = bytearray(content)
    for place, values in changes:
        at = place if place >= 0 else content.index(b"PK\x01\x02") - place
        damaged[at : at + len(values)] = values
    return bytes(damaged)


def hostile_files() -> dict[str, tuple[bytes, str]]:
    """Contents by name, and the field that is refused."""
    target = io.BytesIO()
    np.save(target, GOOD)
    good = target.getvalue()
    archive, pickled = npz([("kspace.npy", good)]), pickle.dumps([1])
    link = zipfile.ZipInfo("kspace.npy")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return {
        "empty.npy": (b"", ""),
        "magic.npy": (b"\x93NUMPY", ": header"),
        "no_length.npy": (b"\x93NUMPY\x01\x00\x10", ": header"),
        "version.npy": (npy(header("(8, 8)"), version=(9, 7)), ": header"),
        "header_4GiB.npy": (npy(header("(8, 8)"), version=(2, 0), length=2**32 - 1), ": header"),
        **{
            f"header_{number}.npy": (npy(text, bytes(512)), ": header")
            for number, text in enumerate(
                (
                    *("(" * 60_000, "[" * 9_000, "__import__('os').abort()", "{'descr': '<c8', 'shape': (8, 8)}"),
                    *(header("(" + "9" * 6000 + ", 2)"), header("(8.0, 8)"), header("(8, 8)", order="'yes'")),
                )
            )
        },
        "junk_tail.npy": (good + b"tail", ""),
        **{f"cut_{end}.npy": (good[:end], ": shape") for end in (-9, 128)},
        **{
            f"shape_{number}.npy": (npy(header(shape), bytes(512)), ": shape")
            for number, shape in enumerate(
                (
                    *("(1000000, 1000000)", f"({2**62}, 4, 4)", f"({2**62}, {2**62}, 0)", "(-8, -8)", "(True, 64)"),
                    "(" + "1, " * 70 + ")",
                )
            )
        },
        "object.npy": (npy(header("(1,)", "'|O'"), pickled), ": dtype"),
        **{
            f"dtype_{number}.npy": (npy(header("(4, 4)", dtype), bytes(512)), ": dtype")
            for number, dtype in enumerate(("[('a', '<f4'), ('b', '<f4')]", "'<U1'", "'<f16'", "'<c32'"))
        },
        "empty.npz": (npz([]), ": members"),
        "truncated.npz": (archive[:-30], ""),
        "zip_tail.npz": (archive[:100], ""),
        "checksum.npz": (changed(archive, (200, bytes([archive[200] ^ 4]))), ""),
        "lying_size.npz": (changed(archive, (-24, struct.pack("<I", 0xFFFFFFF0))), ": kspace"),
        "encrypted.npz": (changed(archive, (6, b"\1"), (-8, b"\1")), ": member 'kspace.npy'"),
        "many.npz": (npz([(f"a{n}.npy", b"") for n in range(2000)]), ""),
        "twice.npz": (npz([("kspace.npy", good), ("kspace.npy", good)]), ": member 'kspace.npy'"),
        **{
            f"path_{number}.npz": (npz([(name, good), ("kspace.npy", good)]), f": member {name!r}")
            for number, name in enumerate(("../kspace.npy", "/etc/kspace.npy", "..\\kspace.npy", "../../evil.npy"))
        },
        "symlink.npz": (npz([(link, b"/etc/passwd")]), ": member 'kspace.npy'"),
        "foreign.npz": (npz([("kspace.npy", good), ("run.sh", b"true")]), ": member 'run.sh'"),
        "object.npz": (npz([("kspace.npy", npy(header("(1,)", "'|O'"), pickled))]), ": kspace: dtype"),
        "member_tail.npz": (npz([("kspace.npy", good + b"x")], zipfile.ZIP_DEFLATED), ": kspace"),
        "no_kspace.npz": (npz([("weights.npy", good)]), ": members"),
    }


@pytest.mark.slow
def test_hostile_arrays_are_refused_by_name(tmp_path: Path, read_in_child: Callable[..., list]) -> None:
    fields = {}
    for name, (content, field) in hostile_files().items():
        (tmp_path / name).write_bytes(content)
        fields[tmp_path / name] = f"{tmp_path / name}{field}"
    bomb = tmp_path / "bomb.npz"  # 256 MiB of zeros, in 260 kB
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("kspace.npy", "w") as member:
        member.write(npy(header("(8192, 4096)")))
        for _ in range(16):
            member.write(bytes(2**24))
    # The interpreter and its libraries take half of this address space: no hostile array would fit.
    for outcome in read_in_child([*fields, bomb], limit=2**29):
        assert outcome.kind == "InputError", outcome
        assert outcome.field == fields.get(outcome.path, f"{bomb}: kspace"), outcome


@pytest.mark.parametrize("reading", [read, summary])
def test_what_is_wrong_with_slices_is_found_when_all_are_read_and_by_a_summary(tmp_path, scan, reading):
    path = archived(tmp_path, kspace=scan)
    content = path.read_bytes()
    at = content.index(scan[-1].tobytes()) + 5
    path.write_bytes(changed(content, (at, bytes([content[at] ^ 1]))))  # only the checksum can tell
    refuses(str(path), reading, path)
    path = saved(tmp_path, scan)
    path.write_bytes(path.read_bytes()[:-8])
    refuses("shape", reading, path)
    scan[1, 0, 0, 0] = np.nan
    with pytest.raises(InputError):
        reading(saved(tmp_path, scan))


@pytest.mark.parametrize("stored", ["npy", "npz"])
@pytest.mark.parametrize(
    ("bound", "field"),
    [
        ({"max_bytes": 4607}, "shape"),  # 1152 samples in half precision, 9 KiB as complex64
        ({"max_slices": 1}, "slice"),
        ({"max_coils": 2}, "coil"),
        ({"max_side": 11}, "ky"),
    ],
)
def test_bounds_are_settings(tmp_path: Path, scan: np.ndarray, stored: str, bound: dict[str, int], field: str) -> None:
    path = saved(tmp_path, scan) if stored == "npy" else archived(tmp_path, kspace=scan)
    read(path, limits=ReadLimits(max_bytes=scan.nbytes, max_slices=2, max_coils=3, max_side=16))
    refuses(field, read, path, limits=ReadLimits(**bound))


@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_a_bound_that_is_no_positive_number_is_refused(number: object) -> None:
    with refused("ReadLimits.max_bytes"):
        ReadLimits(max_bytes=number)  # type: ignore[arg-type]

"""npy and npz files with and without a header become the same k-space or images."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError, KSpaceData, read
from mri_design.scan.io.formats import summary
from mri_design.scan.io.safe import DEFAULT_LIMITS
from tests.scan.io.reading import assert_told


def saved(folder: Path, array: np.ndarray, header: Any = None) -> Path:
    path = folder / "scan.npy"
    np.save(path, array)
    if header is not None:
        path.with_suffix(".json").write_text(header if isinstance(header, str) else json.dumps(header))
    return path


def read_scan(path: Path) -> KSpaceData:
    scan = read(path)
    assert isinstance(scan, KSpaceData)
    return scan


@pytest.mark.parametrize("n_axes", [2, 3, 4])
def test_complex_arrays_without_a_header(tmp_path: Path, scan: np.ndarray, n_axes: int) -> None:
    array = scan[(0,) * (4 - n_axes)]
    got = read_scan(saved(tmp_path, array))
    np.testing.assert_array_equal(got.kspace, array.reshape((1,) * (4 - n_axes) + array.shape))
    assert got.kspace.dtype == np.complex64
    assert got.measured.all()
    assert got.orientation == "ky-rows"
    assert got.name == "scan"
    assert got.noise_variance is None


@pytest.mark.parametrize(
    ("dims", "axes"),
    [
        (["slice", "coil", "k0", "k1"], (0, 1, 3, 2)),
        (["slice", "coil", "ky", "kx"], (0, 1, 2, 3)),
        (["coil", "kx", "slice", "ky"], (1, 3, 0, 2)),
    ],
)
def test_named_axes_in_any_order(tmp_path: Path, scan: np.ndarray, dims: list[str], axes: tuple[int, ...]) -> None:
    header = {"dims": dims, "licence": "CC0", "source": {"repo": "r"}, "noise_variance": 0.25}
    got = read_scan(saved(tmp_path, scan.transpose(axes), header))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.orientation == ("ky-rows" if dims[-1] == "kx" else "ky-columns")
    assert got.noise_variance == 0.25
    assert got.header["source.repo"] == "r"
    assert got.header["licence"] == "CC0"


def test_the_first_repetition_is_read_and_the_rest_is_said(tmp_path: Path, scan: np.ndarray) -> None:
    both = np.stack([scan, -scan]).swapaxes(-1, -2)
    got = read_scan(saved(tmp_path, both, {"dims": ["rep", "slice", "coil", "k0", "k1"]}))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.header["repetition"].startswith("first of 2")


@pytest.mark.parametrize(("axis", "dims"), [(-1, None), (3, None), ("k0", ["slice", "coil", "k1", "k0"])])
def test_the_phase_encode_axis_can_be_named(tmp_path: Path, scan: np.ndarray, axis: Any, dims: Any) -> None:
    header = {"phase_encode_axis": axis, "dims": dims}
    got = read_scan(saved(tmp_path, scan.swapaxes(-1, -2), header))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.orientation == "ky-columns"


def test_lines_without_samples_are_known_to_be_not_measured(tmp_path: Path, scan: np.ndarray) -> None:
    scan[:, :, [0, 5]] = 0
    scan[:, :, 11] = 1e-15  # zero-filling that went through a Fourier transform
    scan[0, :, 7] = 0  # measured, since the other slice has samples there
    got = read_scan(saved(tmp_path, scan))
    assert np.flatnonzero(~got.measured).tolist() == [0, 5, 11]
    assert not got.kspace[:, :, 11].any()
    declared = read_scan(saved(tmp_path, scan, {"zero_filled_k1_columns": [0]}))
    np.testing.assert_array_equal(declared.measured, got.measured)


def test_a_header_that_contradicts_the_samples_is_refused(tmp_path: Path, scan: np.ndarray) -> None:
    with pytest.raises(InputError, match="line 3 marked as not measured, holding samples"):
        read(saved(tmp_path, scan, {"zero_filled_k1_columns": [3]}))


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ('{"dims": ', "scan.json"),
        ("[1, 2]", "scan.json"),
        ("[" * 100_000, "scan.json"),
        ({"dims": "k0"}, "scan.json: dims"),
        ({"dims": ["slice", "coil", "k0", "k0"]}, "dims"),
        ({"dims": ["slice", "coil", "k0", "kz"]}, "dims"),
        ({"dims": ["k0", "k1"]}, "dims"),
        ({"phase_encode_axis": 0}, "phase_encode_axis"),
        ({"phase_encode_axis": 9}, "phase_encode_axis"),
        ({"phase_encode_axis": 1.5}, "scan.json: phase_encode_axis"),
        ({"phase_encode_axis": "kx", "dims": ["slice", "coil", "ky", "kx"]}, "phase_encode_axis"),
        ({"zero_filled_k1_columns": [12]}, "zero_filled_k1_columns"),
        ({"zero_filled_k1_columns": [-1]}, "zero_filled_k1_columns"),
        ({"zero_filled_k1_columns": "0"}, "scan.json: zero_filled_k1_columns"),
        ({"zero_filled_k1_columns": [1.5]}, "scan.json: zero_filled_k1_columns"),
        ({"noise_variance": 0}, "scan.json: noise_variance"),
        ({"noise_variance": -1.0}, "scan.json: noise_variance"),
        ('{"noise_variance": NaN}', "scan.json: noise_variance"),
        ('{"noise_variance": 1e999}', "scan.json: noise_variance"),
        ({"noise_variance": True}, "scan.json: noise_variance"),
        ({"shape": [2, 3, 12, 17]}, "shape"),
        ({"kind": 3}, "scan.json: kind"),
    ],
)
def test_bad_headers_are_refused_by_field(tmp_path: Path, scan: np.ndarray, header: Any, field: str) -> None:
    with pytest.raises(InputError) as caught:
        read(saved(tmp_path, scan, header))
    assert field in caught.value.field
    assert str(tmp_path) in caught.value.field


@pytest.mark.parametrize("shape", [(9, 7), (3, 9, 7)])
@pytest.mark.parametrize("dtype", ["f4", "u1", ">i2", "f8"])
def test_real_arrays_are_images(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    got = read(saved(tmp_path, pixels))
    assert isinstance(got, ImageStack)
    assert got.images.dtype == np.float32
    np.testing.assert_array_equal(got.images, pixels.reshape(-1, 9, 7))


@pytest.mark.parametrize("several", ["slice", "echo"])
def test_half_precision_pairs_are_complex_images(tmp_path: Path, several: str) -> None:
    pairs = np.arange(2 * 6 * 5 * 2).reshape(2, 6, 5, 2).astype(np.float16)
    path = tmp_path / "images.npz"
    np.savez(path, image=pairs)
    header = {"dims": [several, "row", "col", "real/imag"], "dtype": "float16 pairs (real, imag)"}
    path.with_suffix(".json").write_text(json.dumps({**header, "kind": "image domain, complex", "key": "image"}))
    got = read(path)
    assert isinstance(got, ImageStack)
    np.testing.assert_array_equal(got.images, pairs[..., 0] + 1j * pairs[..., 1].astype(np.complex64))


def test_echoes_are_images_one_after_the_other(tmp_path: Path) -> None:
    pixels = np.arange(2 * 6 * 5).reshape(2, 6, 5).astype(np.float32)
    path = saved(tmp_path, pixels, {"dims": ["echo", "row", "col"]})
    got = read(path)
    assert isinstance(got, ImageStack)
    np.testing.assert_array_equal(got.images, pixels)
    assert_told(summary(path), got)
    path = saved(tmp_path, pixels[0], {"dims": ["echo", "row"]})
    with pytest.raises(InputError, match=r"named \['echo', 'row'\]; wanted images .* or \(echo, row, col\)"):
        read(path)


def test_an_archive_with_everything(tmp_path: Path, scan: np.ndarray) -> None:
    scan[:, :, 4] = 0
    measured = np.ones(12, bool)
    measured[4] = False
    maps, reference = scan * 2, scan[:, 0] + 1
    np.savez(
        tmp_path / "all.npz", kspace=scan, measured=measured, coil_maps=maps, reference=reference, noise_variance=0.5
    )
    got = read_scan(tmp_path / "all.npz")
    np.testing.assert_array_equal(got.kspace, scan)
    np.testing.assert_array_equal(got.measured, measured)
    np.testing.assert_array_equal(got.coil_maps, maps)
    np.testing.assert_array_equal(got.reference, reference)
    assert got.noise_variance == 0.5


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"measured": np.ones(11, bool)}, "measured"),
        ({"measured": np.full(12, 2)}, "measured"),
        ({"measured": np.zeros(12, bool)}, "measured"),
        ({"coil_maps": np.ones((2, 3, 12, 15), np.complex64)}, "coil_maps"),
        ({"coil_maps": np.ones((12, 16), np.complex64)}, "coil_maps"),
        ({"reference": np.full((2, 12, 16), np.nan, np.complex64)}, "reference"),
        ({"noise_variance": np.zeros(1)}, "noise_variance"),
        ({"noise_variance": -np.ones(1)}, "noise_variance"),
        ({"noise_variance": np.ones(2)}, "noise_variance"),
    ],
)
def test_companions_that_disagree_are_refused(
    tmp_path: Path, scan: np.ndarray, members: dict[str, np.ndarray], field: str
) -> None:
    np.savez(tmp_path / "scan.npz", kspace=scan, **members)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "scan.npz")
    assert caught.value.field.startswith(f"{tmp_path / 'scan.npz'}: {field}")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1j * np.nan])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_non_finite_samples_are_counted_and_located(
    tmp_path: Path, scan: np.ndarray, value: complex, dtype: type
) -> None:
    scan[1, 0, 3, 4] = scan[1, 2, 0, 0] = value
    with pytest.raises(InputError, match=r"scan\.npy.*2 NaN or infinite values, the first at index \(1, 0, 3, 4\)"):
        read(saved(tmp_path, scan.astype(dtype)))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((8, 8), np.complex64),
        np.full((8, 8), 1e300 + 0j),
        np.ones((1, 1), np.complex64),
        np.ones((3, 9), np.complex64),
        np.ones(64, np.complex64),
        np.ones((1, 1, 1, 8, 8), np.complex64),
        np.ones((8, 8), bool),
        np.zeros((8, 8)),
        np.ones((2, 2, 8, 8)),
    ],
    ids=["zeros", "overflow", "pixel", "three-lines", "1d", "5d", "flags", "zero-image", "4d-real"],
)
def test_arrays_that_are_neither_are_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"scan\.npy"):
        read(saved(tmp_path, array))


@pytest.mark.parametrize("shape", [(4, 4), (5, 9), (2, 3, 7, 4)])
def test_small_odd_and_oblong_grids(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.complex64)
    assert read_scan(saved(tmp_path, array)).grid_shape == shape[-2:]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<c8", ">c8", "<c16", ">c16"])
def test_byte_order_precision_and_memory_order(tmp_path: Path, scan: np.ndarray, order: Any, dtype: str) -> None:
    got = read_scan(saved(tmp_path, np.array(scan, dtype=dtype, order=order)))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.kspace.flags.c_contiguous
    assert got.kspace.dtype.isnative


@pytest.mark.parametrize(
    "header",
    [
        None,
        {"dims": ["slice", "coil", "k0", "k1"], "noise_variance": 0.25, "zero_filled_k1_columns": [2]},
        {"dims": ["coil", "kx", "slice", "ky"]},
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_summary_is_what_reading_all_of_it_finds(
    tmp_path: Path, scan: np.ndarray, header: dict[str, Any] | None, order: str
) -> None:
    stored = scan.copy()
    stored[..., 2] = 0
    stored[0, :, 4] = 0
    if header is not None and header["dims"][0] == "coil":
        stored = stored.transpose(1, 3, 0, 2)
    path = saved(tmp_path, np.asarray(stored, order=order), header)  # type: ignore[call-overload]
    assert_told(summary(path), read_scan(path))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("beside", [(), ("coil_maps", "reference", "measured", "noise_variance", "remarks")])
@pytest.mark.parametrize("empty", [0, 1])
def test_a_summary_of_an_archive_is_what_reading_all_of_it_finds(
    tmp_path: Path, scan: np.ndarray, save: Any, beside: tuple[str, ...], empty: int
) -> None:
    stored = scan.copy()
    stored[..., 2, :] = 0
    stored[empty] = 0
    others = {
        "coil_maps": scan / np.linalg.norm(scan, axis=1, keepdims=True),
        "reference": scan[:, 0],
        "measured": np.arange(scan.shape[2]) != 2,
        "noise_variance": np.array(0.5),
        "remarks": np.zeros(3),
    }
    save(tmp_path / "scan.npz", kspace=stored, **{name: others[name] for name in beside})
    assert_told(summary(tmp_path / "scan.npz"), read(tmp_path / "scan.npz"))


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.complex64])
def test_a_summary_of_images_has_their_range(tmp_path: Path, dtype: Any) -> None:
    images = np.arange(-10, 110).reshape(4, 5, 6).astype(dtype)
    images[1] = 0
    np.savez(tmp_path / "image.npz", image=images)
    assert_told(summary(tmp_path / "image.npz"), read(tmp_path / "image.npz"))
    path = saved(tmp_path, images, {"kind": "image domain, magnitudes", "shape": [4, 5, 6]})
    assert_told(summary(path), read(path))


def test_an_archive_with_a_wrong_checksum_is_refused_as_a_whole(tmp_path: Path, scan: np.ndarray) -> None:
    path = tmp_path / "scan.npz"
    np.savez(path, kspace=scan)
    content = bytearray(path.read_bytes())
    content[content.index(scan[-1].tobytes()) + 5] ^= 1
    path.write_bytes(content)
    for reading in (read, summary):
        with pytest.raises(InputError, match="damaged archive"):
            reading(path)


@pytest.mark.parametrize("kept", ["array", "archive", "images"])
def test_a_summary_of_slices_holds_two_at_most(
    tmp_path: Path, scan: np.ndarray, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile.ZipExtFile, "MAX_SEEK_READ", 2**16)  # of 16 MiB, more than this archive has
    many = np.tile(scan, (800, 1, 1, 1))  # so that what other threads of the tests allocate is little beside it
    path = saved(tmp_path, many if kept == "array" else np.abs(many[:, 0]).astype(np.float64))
    if kept == "archive":
        path = tmp_path / "many.npz"
        np.savez(path, kspace=many)
    limits = replace(DEFAULT_LIMITS, max_bytes=2 * path.stat().st_size)
    summary(path, limits=limits)  # what is imported at the first call is not of the slices
    tracemalloc.start()
    summary(path, limits=limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2


def test_a_summary_refuses_what_reading_refuses(tmp_path: Path, scan: np.ndarray) -> None:
    broken = scan.copy()
    broken[1, 0, 0, 0] = np.nan
    with pytest.raises(InputError, match="1 NaN or infinite values"):
        summary(saved(tmp_path, broken))
    path = saved(tmp_path, scan)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="shape"):
        summary(path)
    for header, field in (({"zero_filled_k1_columns": [99]}, "zero_filled"), ({"shape": [1, 2]}, "shape")):
        with pytest.raises(InputError, match=field):
            summary(saved(tmp_path, scan, header))


SHAPE = (5, 6, 8)  # x, y, z


def transformed(image: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The centred orthonormal FFT along some axes, written out as sums."""
    for axis in axes:
        k = np.arange(image.shape[axis]) - image.shape[axis] // 2
        matrix = np.exp(-2j * np.pi * np.outer(k, k) / len(k)) / np.sqrt(len(k))
        image = np.moveaxis(np.tensordot(matrix, image, axes=(1, axis)), 0, axis)
    return image


def saved_volume(folder: Path, header: dict[str, Any], **arrays: np.ndarray) -> Path:
    path = folder / "volume.npz"
    np.savez(path, **arrays)
    path.with_suffix(".json").write_text(json.dumps(header))
    return path


def images(coils: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((coils, *SHAPE)) + 1j * rng.standard_normal((coils, *SHAPE))


@pytest.mark.parametrize(
    ("dims", "axes"), [(["coil", "ky", "kz", "kx"], (0, 2, 3, 1)), (["k0", "coil", "k1", "k2"], (1, 0, 2, 3))]
)
def test_every_readout_position_is_a_plane(tmp_path: Path, dims: list[str], axes: tuple[int, ...]) -> None:
    volume, maps = images(2), images(2)[::-1]
    kspace = transformed(volume, (1, 2, 3))
    header = {"dims": dims, "noise_variance": 0.25}
    path = saved_volume(
        tmp_path,
        header,
        kspace=kspace.transpose(axes).astype(np.complex64),
        coil_maps=maps.transpose(axes).astype(np.complex64),
        reference=volume[0].transpose([{1: 0, 2: 1, 3: 2}[axis] for axis in axes if axis]).astype(np.complex64),
    )
    got = read(path)
    assert isinstance(got, KSpaceData) and got.kspace.shape == (5, 2, 6, 8)
    planes = transformed(volume, (2, 3)).swapaxes(0, 1)
    np.testing.assert_allclose(got.kspace, planes, atol=1e-5)
    assert got.coil_maps is not None and got.reference is not None
    np.testing.assert_allclose(got.coil_maps, maps.swapaxes(0, 1), atol=1e-6)
    np.testing.assert_allclose(got.reference, volume[0], atol=1e-6)
    assert got.noise_variance == 0.25 and "5 readout positions" in got.header["volume"]


def test_samples_that_were_not_measured_are_missing_at_every_position(tmp_path: Path) -> None:
    kspace = transformed(images(1), (1, 2, 3)).transpose(0, 2, 3, 1)[0].astype(np.complex64)
    kspace[2, 3] = 0
    got = read(saved_volume(tmp_path, {"dims": ["ky", "kz", "kx"]}, kspace=kspace))
    assert isinstance(got, KSpaceData)
    expected = np.ones((6, 8), dtype=bool)
    expected[2, 3] = False
    for sampling in got.samplings:
        np.testing.assert_array_equal(sampling.samples, expected)


def test_an_image_volume_is_a_stack_along_its_readout(tmp_path: Path) -> None:
    image = np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(SHAPE)
    got = read(saved_volume(tmp_path, {"dims": ["x", "y", "z"], "kind": "image domain volume"}, image=image))
    assert isinstance(got, ImageStack)
    np.testing.assert_array_equal(got.images, image)


@pytest.mark.parametrize(
    "header",
    [
        {"dims": ["slice", "ky", "kz", "kx"]},
        {"dims": ["rep", "k1", "k2", "k0"]},
        {"dims": ["coil", "ky", "kz", "kx"], "phase_encode_axis": 1},
    ],
)
def test_a_volume_has_no_slices_and_one_readout(tmp_path: Path, header: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="volume"):
        read(saved_volume(tmp_path, header, kspace=np.ones((2, 4, 4, 4), dtype=np.complex64)))

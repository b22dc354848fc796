"""BART's pairs of files: what their axes become, and every pair that is none refused before its samples are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, KSpaceData
from mri_design.exchange import to_bart
from mri_design.formats import ReadLimits
from mri_design.operators import radial_spokes
from mri_design.scan.io import ReadOptions, opened, read, summary, with_maps
from mri_design.scan.simulation import load_phantom
from tests.refusals import refused, refuses
from tests.scan.io.reading import assert_told

RNG = np.random.default_rng(3)
GOOD = "# Dimensions\n6 8 1 2 1 1 1 1 1 1 1 1 1 1 1 1\n# Creator\nBART 0.8\n"


def complex_numbers(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)


def write_pair(stem: Path, array: np.ndarray, header: dict[str, object] | None = None) -> Path:
    stem.with_suffix(".hdr").write_text(f"# Dimensions\n{' '.join(map(str, array.shape))}\n")
    stem.with_suffix(".cfl").write_bytes(array.astype("<c8").tobytes(order="F"))
    if header is not None:
        stem.with_suffix(".json").write_text(json.dumps(header))
    return stem.with_suffix(".cfl")


@pytest.mark.parametrize("suffix", ["", ".cfl", ".hdr"])
@pytest.mark.parametrize("coils", [1, 2])
def test_readouts_coils_and_slices_keep_their_places(tmp_path: Path, suffix: str, coils: int) -> None:
    stored = complex_numbers(6, 8, 1, coils, *[1] * 9, 4)
    stored[:, 5] = stored[..., 2] = 0
    write_pair(tmp_path / "ksp", stored, {"noise_variance": 0.25, "zero_filled_k1_columns": [5]})
    scan = read(tmp_path / f"ksp{suffix}")
    assert scan.orientation == "ky-columns"
    np.testing.assert_array_equal(scan.kspace, stored.reshape(6, 8, coils, 4).transpose(3, 2, 1, 0))
    assert np.flatnonzero(~scan.measured).tolist() == [5]
    assert scan.noise_variance == 0.25 and scan.header["format"] == "BART cfl"
    assert_told(summary(tmp_path / f"ksp{suffix}"), scan)
    path = write_pair(tmp_path / "vol", stored[..., :1])
    assert_told(summary(path), read(path))


@pytest.mark.parametrize(("shape", "shown"), [((6, 8), (1, 6, 8)), ((6, 8, *[1] * 11, 2), (2, 6, 8))])
def test_images_by_their_header(tmp_path: Path, shape: tuple[int, ...], shown: tuple[int, ...]) -> None:
    stored = complex_numbers(*shape)
    path = write_pair(tmp_path / "im", stored, {"kind": "image domain"})
    stack = read(path)
    assert isinstance(stack, ImageStack) and stack.images.shape == shown
    np.testing.assert_array_equal(stack.images[-1], stored.reshape(6, 8, -1)[..., -1])
    assert_told(summary(path), stack)


@pytest.mark.parametrize("shape", [(6, 8), (1, 8), (5, 6, 8), (6, 8, *[1] * 11, 3)])
def test_a_mask_is_a_design_and_no_data(tmp_path: Path, shape: tuple[int, ...]) -> None:
    mask = (RNG.random(shape) < 0.4).astype(np.complex64)
    mask[0, 0] = 1
    path = write_pair(tmp_path / "mask", mask)
    for reading in (read, summary):
        refuses("samples", reading, path)
    assert isinstance(read(write_pair(tmp_path / "image", mask, {"kind": "image domain"})), ImageStack)


def test_a_volume_becomes_planes_along_its_readout(tmp_path: Path) -> None:
    images = complex_numbers(5, 2, 8, 6)  # x, coil, ky, kz
    spread = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(images, axes=0), axis=0, norm="ortho"), axes=0)
    scan = read(write_pair(tmp_path / "vol", np.transpose(spread, (0, 2, 3, 1))))
    np.testing.assert_allclose(scan.kspace, images, atol=1e-5)


def plane_samples(rows: int = 16, columns: int = 12, coils: int = 2) -> np.ndarray:
    """(1, ky, kz, coil) whose energy gathers around the middle, as that of any object does."""
    y, z = np.arange(rows) - rows // 2, np.arange(columns) - columns // 2
    falls = 1 / (1 + np.hypot(y[:, None], z)) ** 2
    return (complex_numbers(1, rows, columns, coils) * falls[None, ..., None]).astype(np.complex64)


@pytest.mark.parametrize("header", [None, {"encoding": "plane"}])
def test_two_phase_encodes_without_readouts_are_a_plane(tmp_path: Path, header: dict[str, object] | None) -> None:
    stored = plane_samples() if header is None else complex_numbers(1, 16, 12, 2)
    stored[0, 3, 4] = 0
    path = write_pair(tmp_path / "plane", stored, header)
    scan = read(path)
    assert scan.volume
    np.testing.assert_array_equal(scan.kspace, np.moveaxis(stored, 3, 1))
    assert np.argwhere(~scan.samplings[0].samples).tolist() == [[3, 4]]
    assert_told(summary(path), scan)


@pytest.mark.parametrize("shape", [(1, 16, 12, 2), (6, 8, 1, 2), (6, 8, 1, 2, *[1] * 9, 3)])
def test_maps_of_planes_and_of_slices_lie_on_their_scans(tmp_path: Path, shape: tuple[int, ...]) -> None:
    maps = complex_numbers(*shape)
    scan = read(write_pair(tmp_path / "scan", plane_samples() if shape[0] == 1 else complex_numbers(*shape)))
    found = with_maps(scan, write_pair(tmp_path / "maps", maps)).coil_maps
    unit = maps / np.linalg.norm(maps, axis=3, keepdims=True)
    wanted = np.moveaxis(unit, 3, 1) if shape[0] == 1 else unit.reshape(6, 8, 2, -1).transpose(3, 2, 1, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("header", [None, {"trajectory": "spokes", "matrix": [32, 28]}])
def test_samples_find_their_trajectory_beside_them(tmp_path: Path, header: dict[str, object] | None) -> None:
    spokes = radial_spokes(24, np.array([0.0, 1.0, np.pi / 2]))
    kspace = complex_numbers(1, *spokes.shape[1::-1], 4)
    write_pair(tmp_path / ("ksp_traj" if header is None else "spokes"), to_bart(spokes))
    scan = read(write_pair(tmp_path / "ksp", kspace, header))
    assert scan.grid_shape == ((24, 24) if header is None else (32, 28)) and scan.n_readouts == 3
    np.testing.assert_allclose(scan.trajectory, spokes.reshape(-1, 2), atol=1e-5)
    np.testing.assert_array_equal(scan.by_readout[0], kspace[0].transpose(2, 1, 0))


@pytest.mark.parametrize(
    ("header", "bytes_kept", "field"),
    [
        (None, None, "ksp.hdr"),
        *((GOOD, kept, "ksp.cfl") for kept in (None, 0, 384, 767, 769)),
        *(
            (GOOD.replace("6 8", lengths), 768, "ksp.hdr: Dimensions")
            for lengths in ("-6 8", "0 8", "six 8", "6.0 8", "99999999999999999999 8", " ".join(["999999999"] * 15))
        ),
        (GOOD.replace("6 8", "999999999 8"), 768, "ksp.hdr"),
        (GOOD.replace("1 1\n", "1 1 1\n"), 768, "ksp.hdr: Dimensions"),
        ("# Dimensions\n\n# Creator\n", 768, "ksp.hdr: Dimensions"),
        *((text, 768, "ksp.hdr") for text in (GOOD.replace("# Dim", "# D"), "# Dimensions", "\x93\x00\xff")),
        ("# Dimensions\n" + "1 " * 2**20, 768, "ksp.hdr"),
    ],
)
def test_a_pair_that_is_none_is_refused(tmp_path: Path, header: str | None, bytes_kept: int | None, field: str) -> None:
    samples = complex_numbers(6, 8, 1, 2).tobytes() + b"tail"
    if header is not None:
        (tmp_path / "ksp.hdr").write_bytes(header.encode("latin-1"))
    if header is None or bytes_kept is not None:
        (tmp_path / "ksp.cfl").write_bytes(samples[:bytes_kept])
    for reading in (read, summary):
        refuses(field, reading, tmp_path / "ksp.cfl")


def falling(shape: tuple[int, ...]) -> np.ndarray:
    """Shots whose energy falls along the readout alone, as of a plane it would along both axes."""
    along = 1 + np.abs(np.arange(shape[1]) - shape[1] // 2)
    return (complex_numbers(*shape) / along[:, None, None] ** 2).astype("c8")


@pytest.mark.parametrize(
    ("stored", "header", "field", "cure"),
    [
        (complex_numbers(6, 8, 1, 2, 2), None, "axis 4 (maps)", "bart slice 4 0"),
        (complex_numbers(6, 8, 1, 2, *[1] * 6, 3), None, "axis 10 (time)", "bart slice 10 0"),
        (complex_numbers(6, 8, 1, 2, *[1] * 10, 3), None, "axis 14 (avg)", "bart avg"),
        (complex_numbers(1, 8, 6, 2), None, "axis 0 (read)", '"encoding": "plane"'),
        (falling((1, 16, 12, 2)), None, "axis 0 (read)", '"encoding": "plane"'),
        (complex_numbers(1, 8, 6, 2), {"trajectory": "../ksp_traj"}, "axis 0 (read)", ""),
        (complex_numbers(6, 8, 5, 2, *[1] * 9, 3), None, "dims", ""),
        (complex_numbers(6, 8, 1, 2), {"kind": "image domain"}, "axis 3 (coil)", ""),
        (complex_numbers(6, 1), None, "kspace", ""),
    ],
)
def test_axes_that_are_not_read_are_named(tmp_path, stored, header, field, cure):
    with refused(field, cure):
        read(write_pair(tmp_path / "ksp", stored, header))


def test_bounds_hold_before_samples_are_read(tmp_path: Path) -> None:
    path = write_pair(tmp_path / "ksp", complex_numbers(6, 8))
    for limits, field in ((ReadLimits(max_side=7), "kspace: ky"), (ReadLimits(max_bytes=300), "ksp.hdr")):
        refuses(field, read, path, limits=limits)


def test_coils_and_slices_in_the_place_of_partitions_are_noticed(tmp_path: Path) -> None:
    coils = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3)).kspace[0].T
    slices = np.stack([coils, 1.1 * coils[::-1], 0.9 * coils, coils[::-1], coils], axis=2)
    for stored, field, cure in (
        (coils[:, :, None, None, None], "axis 5 (te)", "bart transpose 5 3"),
        (coils, "axis 2 (phs2)", "kx,ky,coil"),  # [kx, ky, coil], as writecfl of MATLAB takes it
        (slices, "axis 2 (phs2)", "kx,ky,slice,coil"),
    ):
        path = write_pair(tmp_path / "scan", stored)
        with refused(field, cure):
            read(path)
    dims: Any
    for stored, dims, wanted in (
        (coils, ("kx", "ky", "coil"), coils.T[None]),
        (slices, ("kx", "ky", "slice", "coil"), slices.transpose(2, 3, 1, 0)),
    ):
        named = read(write_pair(tmp_path / "scan", stored), dims=dims)
        assert isinstance(named, KSpaceData)
        np.testing.assert_allclose(named.kspace, wanted, rtol=1e-6)
    volume = np.fft.fftshift(np.fft.fft(slices, axis=2), axes=2)  # mostly alike slices: energy in the middle
    assert read(write_pair(tmp_path / "volume", volume)).n_slices == 40


def test_echoes_and_frames_are_read_where_their_axes_are_named(tmp_path: Path, scan: np.ndarray) -> None:
    echoes = np.zeros((16, 12, 1, 3, 1, 2), np.complex64)
    echoes[:, :, 0, :, 0, 0], echoes[:, :, 0, :, 0, 1] = scan[0].T, 2 * scan[0].T
    path, dims = write_pair(tmp_path / "echoes", echoes), ("kx", "ky", "coil", "echo")
    with refused("axis 5 (te)", "bart slice 5"):
        read(path)
    refuses("contrast", read, path, dims=dims, counters={"contrast": 2})
    with opened(path, ReadOptions(dims=dims)) as source, source.slice_reader() as slices:
        assert slices.series == {"contrast": (0, 1)}
    second = read(path, dims=dims, counters={"contrast": 1})
    np.testing.assert_array_equal(second.kspace, 2 * scan[:1])


def test_samples_that_are_cut_once_the_pair_is_open_are_refused(tmp_path: Path) -> None:
    path = write_pair(tmp_path / "ksp", complex_numbers(6, 8, 1, 2, *[1] * 9, 4))
    with opened(path, ReadOptions()) as source:
        path.write_bytes(path.read_bytes()[:64])
        with refused(str(path)):
            source.load()

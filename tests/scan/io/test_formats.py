"""The content decides the format; what is no scan is refused; noise, coil maps and masks have files of their own."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import h5py
import ismrmrd
import numpy as np
import pytest

import mri_design as md
from mri_design import KSpaceData
from mri_design.errors import InputError
from mri_design.formats import ReadLimits, ReadOptions
from mri_design.scan import Sampling, measured_lines
from mri_design.scan import io as files
from mri_design.scan.io import read
from mri_design.scan.writing import pair_files
from tests.command_line import called
from tests.refusals import refused, refuses
from tests.scan.io.test_bart import complex_numbers, write_pair


def test_every_format_is_recognised_under_any_name(tmp_path, scan, fastmri_file, mrd):
    np.save(tmp_path / "a.npy", scan)
    np.savez(tmp_path / "b.npz", kspace=scan)
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=1024) as file:  # bytes of a user before HDF5's own
        file["kspace"] = scan.swapaxes(-1, -2)
    (tmp_path / "link.npy").symlink_to(tmp_path / "a.npy")
    for path in (
        *(tmp_path / name for name in ("a.npy", "b.npz", "block.h5")),
        mrd().add_scan(scan).write(),
        fastmri_file,
    ):
        misnamed = shutil.copy(path, tmp_path / "scan.dat")
        np.testing.assert_array_equal(read(misnamed).kspace, scan)
    assert files.read(tmp_path / "link.npy").name == "link"


@pytest.mark.parametrize(
    ("head", "cure"),
    [
        (b"", "Copy or download"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"/annex/objects/SHA256E-s9--0.h5\n", "git annex get"),
        *((case, "") for case in (b"hello, world", b"\x89HDF")),
        (b'{"lines": 24, "samples": 20}\n', "give the array"),
        (b"# Pulseq sequence file", "mri-design info"),
        (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "scipy.io.loadmat"),
        (b"\3\0\x20\0\0\0<?xml version='1.0'?>", "ismrmrd_stream_to_hdf5"),
        (b"\1\0default.xml" + bytes(1100), "ismrmrd_stream_to_hdf5"),
        (b"##TITLE=Parameter List, ParaVision 6.0", "bruker_to_ismrmrd"),
        (b"# === DATA DESCRIPTION FILE ====", "philips_to_ismrmrd"),
        (b"\x80\4\x95", "numpy.save"),
        (b"mrtrix image\n", "mrconvert"),
        (b"\x89PNG\r\n", "NIfTI"),
    ],
)
def test_files_that_hold_no_scan_are_refused_with_the_known_way_on(tmp_path: Path, head: bytes, cure: str) -> None:
    path = tmp_path / "scan.raw"
    path.write_bytes(head + (bytes(64) if head[-1:] not in (b"\n", b"") else b""))
    with refused(str(path), cure):
        files.read(path)


@pytest.mark.parametrize("name", ["weights", "parts/real"])
def test_hdf5_of_other_arrays_is_refused_with_what_it_holds(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file[name] = file["parts/imag"] = np.ones((8, 8))
    with pytest.raises(md.InputError) as caught:
        files.read(tmp_path / "other.h5")
    assert name in caught.value.got and "numpy.savez" in caught.value.cure


def test_folders_pipes_and_missing_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none.npy", "a\0b"):
        refuses(str(path), files.read, path)


class Toy(files.SlicedSource):
    """Files of four letters, the sides of the grid, and samples."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self.shape = path, struct.unpack("<4I", path.read_bytes()[4:20])
        files.check_declared_shape("shape", self.shape, 8, options.limits, available=path.stat().st_size - 20)

    def _scan(self, first: int, count: int) -> md.KSpaceData:
        size = int(np.prod(self.shape[1:]))
        stored = np.fromfile(self.path, np.complex64, count * size, offset=20 + 8 * first * size)
        kspace = stored.reshape(count, *self.shape[1:])
        return md.KSpaceData(kspace, measured_lines("samples", kspace), name=self.path.stem)

    def load(self) -> md.KSpaceData:
        return self._scan(0, self.shape[0])

    def slice(self, index: int) -> md.KSpaceData:
        return self._scan(index, 1)

    def samplings(self) -> tuple[Sampling, ...]:
        return (Sampling(np.ones(self.shape[2:], bool)),) * self.shape[0]


def at_once(path: Path, options: ReadOptions) -> md.KSpaceData:
    return Toy(path, options).load()


@pytest.fixture(params=[Toy, at_once], ids=["slice by slice", "at once"])
def toy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file of two slices, whose reader is registered as a script does it."""
    scan = md.load_phantom("shepp-logan", shape=(32, 32), noise=1e-3, n_coils=1, rng=np.random.default_rng(0))
    path, kspace = tmp_path / "head.toy", np.concatenate([scan.kspace, scan.kspace])
    path.write_bytes(b"TOY1" + np.array(kspace.shape, "<u4").tobytes() + kspace.tobytes())
    md.formats.register_reader("toy files (.toy)", b"TOY1")(request.param)
    yield path
    files.source.REGISTERED.pop(0)


def test_a_registered_reader_serves_all_that_reads_scans(toy: Path, tmp_path: Path) -> None:
    assert files.read(toy).n_slices == files.summary(toy).n_slices == 2 and md.load(toy).data.name == "head"
    with refused("head.toy: shape"):  # the file is named for the reader
        files.read(toy, limits=ReadLimits(max_bytes=64))
    refuses("contrast", files.read, toy, counters={"contrast": 1})
    with files.opened(toy, ReadOptions()) as file, file.slice_reader() as slices:
        np.testing.assert_array_equal(slices.read(1).kspace, file.load().select_slice(1).kspace)
        assert slices.read(0).name == "head[0]"
    told = called(["info", toy])
    assert told.exit_code == 0 and " 32 " in told.output
    words = ["--slice", "1", "--lines", "10", "--strategy", "low-pass", "--no-report", "--out"]
    assert called(["design", toy, *words, tmp_path / "lines"]).exit_code == 0
    assert np.load(tmp_path / "lines" / "mask.npy").sum() == 10


def test_a_reader_that_reads_nothing_is_refused(tmp_path: Path) -> None:
    refuses("begins", md.formats.register_reader("all files", b""), lambda path, options: None)
    md.formats.register_reader("odd files", b"ODD1")(lambda path, options: 3)
    try:
        (tmp_path / "x.odd").write_bytes(b"ODD1")
        refuses("reader of odd files", files.read, tmp_path / "x.odd")
    finally:
        files.source.REGISTERED.pop(0)


COILS = 3
MIXING = 0.1 * (np.eye(COILS) + 0.3j * np.eye(COILS, k=1))
TRUTH = MIXING @ MIXING.conj().T


def noise_samples(count: int = 20000) -> np.ndarray:
    """Noise (coil, sample) of covariance `TRUTH` per real component."""
    rng = np.random.default_rng(0)
    return MIXING @ (rng.standard_normal((COILS, count)) + 1j * rng.standard_normal((COILS, count)))


def written_noise(folder: Path, form: str, noise: np.ndarray) -> Path:
    """The noise_samples in a file, with the coils where each format has them."""
    path = folder / f"noise.{form.partition(' ')[0]}"
    if form.startswith("npy"):
        np.save(path, noise.T if form == "npy turned" else noise.reshape(COILS, -1, 50) if form == "npy 3" else noise)
    elif form == "npz":
        np.savez(path, any_name=noise)
    elif form == "cfl":
        for part, content in pair_files(path.with_suffix(""), noise.T.astype(np.complex64)[:, None, None]).items():
            part.write_bytes(content)
    return path


@pytest.mark.parametrize("form", ["npy", "npy turned", "npy 3", "npz", "cfl"])
def test_arrays_of_noise_have_the_covariance_of_the_coils(tmp_path: Path, form: str) -> None:
    covariance, found = files.read_noise(written_noise(tmp_path, form, noise_samples()), COILS)
    np.testing.assert_allclose(covariance, TRUTH, atol=0.03 * TRUTH[0, 0].real)
    assert found.samples == 20000 and found.dwells == (0, 0)


def test_noise_readouts_of_raw_data_without_an_image_are_enough(mrd: type) -> None:
    raw, noise = mrd(), noise_samples(640).astype(np.complex64)
    for number in range(10):
        readout = raw.add(noise[:, 64 * number : 64 * number + 64], flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
        readout.sample_time_us = 2.5
    raw.add(1e6 * np.ones((COILS, 64)))  # no noise
    path = raw.write()
    covariance, found = files.IsolatedSource(path, files.ReadOptions(only_noise=True)).load()
    np.testing.assert_allclose(covariance, TRUTH, atol=0.2 * TRUTH[0, 0].real)
    assert found.samples == 640 and found.dwells == (2.5, 0)
    refuses(str(path), files.read_noise, path, COILS + 1)


@pytest.mark.parametrize(
    "wrong",
    [
        noise_samples(11),
        noise_samples(100).real,
        noise_samples(100)[:2],
        np.repeat(noise_samples(100)[:1], COILS, axis=0),
        np.where(np.arange(100) == 7, np.nan, noise_samples(100)),
        np.zeros((COILS, 100), complex),
        1 + 0.1 * noise_samples(100),
        noise_samples(0),
    ],
    ids=["few", "real", "two coils", "copies", "not finite", "silent", "alike", "empty"],
)
def test_what_is_no_noise_of_the_coils_is_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    path = tmp_path / "noise.npy"
    np.save(path, wrong)
    refuses("noise.npy" if wrong.size else "noise.npy: shape", files.read_noise, path, COILS)
    np.save(path, noise_samples(100))
    refuses("noise.npy", files.read_noise, path, 1)


def test_files_that_hold_no_noise_are_refused(tmp_path: Path, mrd: type, scan: np.ndarray, fastmri_file: Path) -> None:
    two, missing = tmp_path / "two.npz", tmp_path / "missing.npy"
    np.savez(two, a=noise_samples(100), b=noise_samples(100))
    for path in (two, missing, mrd().add_scan(scan).write(), fastmri_file):
        with pytest.raises(InputError):
            files.read_noise(path, COILS)


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
    found = files.with_maps(data, path)
    np.testing.assert_allclose(found.coil_maps, unit(np.stack([scan[0], scan[0]])), rtol=1e-6)
    assert found.provenance.maps.scaled is not None


@pytest.mark.parametrize("turned", [False, True])
def test_every_slice_may_have_its_own_and_empty_pixels_stay_empty(tmp_path, data, scan, turned):
    maps = unit(scan)
    maps[1, :, 3, 4] = 0
    np.save(tmp_path / "maps.npy", maps.swapaxes(-1, -2) if turned else maps)  # as the scan lies in its file
    found = files.with_maps(replace(data, orientation="ky-columns" if turned else "ky-rows"), tmp_path / "maps.npy")
    np.testing.assert_allclose(found.coil_maps, maps, atol=1e-6)
    assert not found.coil_maps[1, :, 3, 4].any()
    assert (found.provenance.maps.source, found.provenance.maps.file) == ("given", "maps.npy")


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
    refuses(path.name, files.with_maps, data, path)


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 2, 1), (2, 1, 0)])
@pytest.mark.parametrize("turned", [False, True])
def test_maps_in_another_order_are_refused_with_what_turns_them(tmp_path, data, order, turned):
    path, maps = tmp_path / "maps.npy", np.random.default_rng(0).standard_normal((3, 12, 16)).astype(np.complex64)
    scan = replace(data, orientation="ky-columns" if turned else "ky-rows")
    stored = np.transpose(maps.swapaxes(-1, -2) if turned else maps, np.argsort(order))
    np.save(path, stored)
    with refused("maps.npy", f"numpy.transpose(maps, {order})"):
        files.with_maps(scan, path)
    np.save(path, np.transpose(stored, order))
    assert files.with_maps(scan, path).coil_maps is not None
    np.save(path, np.stack([maps, 0 * maps, maps]))
    with refused("maps.npy", "maps[0]"):
        files.with_maps(data, path)


LINES = np.array([False, True, True, False, True, True, False, True])
SAMPLES = np.random.default_rng(1).random((8, 6)) < 0.4
EVERYWHERE = np.ones((8, 6), dtype=bool)
SQUARE = np.ones((8, 8), dtype=bool)


@pytest.fixture
def mask_of(tmp_path: Path) -> Callable[..., np.ndarray]:
    """Write an array, a text or a pair of BART, and read it as the mask of a scan of 8 lines of 6 samples."""

    def read_back(stored, samples=EVERYWHERE, name="mask.npy", **given):
        if isinstance(stored, str):
            (tmp_path / name).write_text(stored)
        elif name.endswith("cfl"):
            write_pair(tmp_path / name, np.asarray(stored))
        else:
            np.save(tmp_path / name, stored)
        return files.read_mask(tmp_path / name, samples.any(axis=1), samples, **given)

    return read_back


@pytest.mark.parametrize("dtype", [bool, int, np.uint8, float])
@pytest.mark.parametrize("turned", [False, True])
def test_masks_of_any_type_are_turned_where_the_sides_show_it(mask_of: Callable, turned: bool, dtype: type) -> None:
    for mask, wanted in ((SAMPLES, SAMPLES), (np.outer(LINES, np.ones(6)), LINES), (LINES[:, None], LINES)):
        stored = mask.astype(dtype)
        np.testing.assert_array_equal(mask_of(stored.T if turned else stored), wanted)
    np.testing.assert_array_equal(mask_of(np.flatnonzero(LINES)), LINES)
    np.testing.assert_array_equal(mask_of(np.argwhere(SAMPLES)), SAMPLES)  # as export writes planes
    np.testing.assert_array_equal(mask_of(np.outer(LINES, np.ones(6)), plane=True), np.outer(LINES, np.ones(6)) > 0)


def test_of_equal_sides_what_was_measured_shows_how_the_mask_lies(mask_of: Callable) -> None:
    whole, some = np.outer(LINES, np.ones(8)) > 0, np.outer(LINES | (np.arange(8) == 0), np.ones(8)) > 0
    np.testing.assert_array_equal(mask_of(whole.T, some), LINES)
    with refused("mask.npy", "plane"):
        mask_of(whole.T, SQUARE)
    np.testing.assert_array_equal(mask_of(whole.T, SQUARE, plane=True), whole.T)
    part = np.outer(np.ones(8), np.arange(8) < 5) > 0  # a partial echo
    np.testing.assert_array_equal(mask_of(part, SQUARE), part)


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
def test_a_mask_of_bart_is_one_of_lines_or_of_samples(mask_of, stored, wanted):
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

"""K-space in HDF5, of fastMRI and others; damaged and hostile files end in an error or in their own data."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import ismrmrd
import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan import only_coils, working_coils
from mri_design.scan.io import IsolatedSource, ReadOptions, read, summary
from mri_design.scan.simulation import load_phantom
from tests.refusals import refused
from tests.scan.io.reading import assert_told

HEADER = """<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
<subjectInformation><patientID>1234</patientID><patientGender>none</patientGender></subjectInformation><encoding>
<encodedSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>{extents}</encodedSpace>
<reconSpace><matrixSize><x>8</x><y>8</y><z>1</z></matrixSize>
<fieldOfView_mm><x>220</x><y>220</y><z>5</z></fieldOfView_mm></reconSpace>
</encoding></ismrmrdHeader>"""
EXTENTS = "<fieldOfView_mm><x>440</x><y>240</y><z>5</z></fieldOfView_mm>"


def write(path: Path, kspace: np.ndarray, **datasets: Any) -> Path:
    with h5py.File(path, "w") as file:
        file["kspace"] = kspace
        for name, content in datasets.items():
            file[name] = content
    return path


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("names", [None, ("r", "i"), ("real", "imag")])
def test_columns_become_lines(tmp_path: Path, scan: np.ndarray, several: bool, names: tuple[str, str] | None) -> None:
    stored = (scan if several else scan[:, 0]).swapaxes(-1, -2)
    if names is not None:
        pairs = np.empty(stored.shape, [(name, "f4") for name in names])
        pairs[names[0]], pairs[names[1]] = stored.real, stored.imag
        stored = pairs
    got = read(write(tmp_path / "v.h5", stored))
    np.testing.assert_array_equal(got.kspace, scan if several else scan[:, :1])
    assert got.orientation == "ky-columns" and got.kspace.flags.c_contiguous and got.measured.all()


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
def test_masked_and_zero_lines_are_known_to_be_not_measured(tmp_path: Path, scan: np.ndarray, dtype: type) -> None:
    scan[:, :, [2, 9]] = 0
    mask = np.ones(12, dtype)
    mask[2] = 0
    got = read(write(tmp_path / "v.h5", scan.swapaxes(-1, -2), mask=mask))
    assert np.flatnonzero(~got.measured).tolist() == [2, 9]


def test_the_header_has_sizes_and_apart_from_it_the_patient(tmp_path: Path, scan: np.ndarray) -> None:
    path = write(tmp_path / "v.h5", scan.swapaxes(-1, -2), ismrmrd_header=HEADER.format(extents=EXTENTS).encode())
    with h5py.File(path, "a") as file:
        file.attrs.update({"acquisition": "CORPD_FBK", "max": 0.5, "patient_id": "1234"})
    got = read(path)
    assert got.source is not None and not got.source.image
    assert got.header["encoded_matrix"] == "16 x 12 x 1" and got.header["reconstruction_matrix"] == "8 x 8 x 1"
    assert got.header["reconstruction_field_of_view_mm"] == "220 x 220 x 5"
    assert got.header["acquisition"] == "CORPD_FBK" and "1234" not in got.header.values()
    assert (
        got.source.identifiers == {"PatientID": "1234"}
        and "PatientSex" in got.provenance.left_out["identifiers_left_out"]
    )
    assert got.select_slice(1).source == got.source
    assert got.geometry is not None and len(got.geometry) == 2 and not got.geometry[0].placed
    assert got.geometry[0].pixel == (20.0, 27.5) and got.geometry[0].thickness == 5.0
    bare = write(tmp_path / "bare.h5", scan.swapaxes(-1, -2), ismrmrd_header=HEADER.format(extents="").encode())
    assert read(bare).geometry is None


@pytest.mark.parametrize(
    ("kspace", "mask", "field"),
    [
        (np.ones((1, 1, 1, 8, 8), np.complex64), None, "dims"),
        (np.ones((2, 8, 8), np.float32), None, "kspace"),
        (np.ones((2, 8, 3), np.complex64), None, "kspace"),
        (np.full((2, 8, 8), np.nan + 0j), None, "kspace"),
        (np.zeros((2, 8, 8), np.complex64), None, "kspace"),
        *((np.ones((2, 8, 8), np.complex64), mask, "mask") for mask in (np.ones(7), np.full(8, 0.5), np.zeros(8))),
        (np.ones((2, 8, 8), np.complex64), np.full(8, np.nan), "mask"),
    ],
)
def test_kspace_that_is_none_is_refused(tmp_path, kspace, mask, field):
    with refused(f"{tmp_path / 'v.h5'}: {field}"):
        read(write(tmp_path / "v.h5", kspace, **({} if mask is None else {"mask": mask})))


def test_a_summary_is_what_reading_all_of_it_finds(fastmri_file: Path) -> None:
    with h5py.File(fastmri_file, "r+") as file:
        file["kspace"][0, :, :, 9:] = 0
    told = summary(fastmri_file)
    assert told.index == 1 and not told.by_headers
    assert_told(told, read(fastmri_file))


def test_other_axes_beside_the_marks_of_fastmri_are_shown_by_the_samples(tmp_path: Path) -> None:
    scan = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(1)).kspace
    kspace, path = np.concatenate([scan, scan[..., ::-1, :]]), tmp_path / "v.h5"
    marks = {"ismrmrd_header": HEADER.format(extents="").encode()}
    got = read(write(path, np.moveaxis(kspace, 1, -1), **marks))
    np.testing.assert_array_equal(got.kspace, kspace)
    assert got.provenance.left_out["axes"] == (("slice", "ky", "kx", "coil"), ())
    with refused("dims"):  # (ky, kx, repetition)
        read(write(path, np.stack([kspace[0, 0]] * 3, -1), **marks))
    rows = np.arange(48) % 2 == 0
    write(path, kspace * rows[:, None], mask=rows, **marks)
    with refused("mask", "slice,coil,ky,kx"):
        read(path)
    np.testing.assert_array_equal(read(path, dims=("slice", "coil", "ky", "kx")).measured, rows)
    usual = kspace.swapaxes(-1, -2)
    for stored in (usual, np.stack([usual.real, usual.imag], -1)):
        np.testing.assert_array_equal(read(write(path, stored, **marks)).kspace, kspace)


def test_parts_in_a_structure_are_refused_with_the_line_that_joins_them(tmp_path: Path, scan: np.ndarray) -> None:
    with h5py.File(tmp_path / "parts.mat", "w") as file:
        file["kspace/imag"], file["kspace/real"] = scan.imag, scan.real
    with refused("parts.mat", "file['kspace/real'][()] + 1j * file['kspace/imag'][()]"):
        read(tmp_path / "parts.mat")


def test_coils_of_zeros_and_copies_are_left_out(tmp_path: Path, scan: np.ndarray) -> None:
    five = np.concatenate([scan, scan[:, :1], np.zeros_like(scan[:, :1])], axis=1)
    coils, dropped = working_coils(five)
    assert coils.tolist() == [0, 1, 2] and dropped == {"coils_dropped": ((4,), ((3, 0),))}
    np.testing.assert_array_equal(only_coils(five, coils), scan)
    assert only_coils(scan, coils) is scan and working_coils(scan)[1] == {}
    nearly = five[:, :4].copy()
    nearly[0, 3, 5, 5] += 1e-3
    assert working_coils(nearly)[0].size == 4
    assert working_coils(np.zeros_like(scan))[0].size == 3  # which is refused later
    got = read(write(tmp_path / "v.h5", five.swapaxes(-1, -2)))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.provenance.left_out == dropped


def test_noise_and_calibration_of_raw_data_follow_their_coils(scan: np.ndarray, mrd: type) -> None:
    raw, rng = mrd(), np.random.default_rng(0)
    raw.add(rng.standard_normal((3, 64)) + 1j, flag=ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    scan[:, 2] = 0
    raw.add_scan(scan).add_scan(scan[:, :, 4:8], flag=ismrmrd.ACQ_IS_PARALLEL_CALIBRATION)
    got = raw.read()
    assert got.noise_covariance.shape == (2, 2) and got.calibration.shape[1] == got.n_coils == 2
    assert got.provenance.left_out["coils_dropped"] == ((2,), ())


SECRET = b"the secret of another file, long enough to fill a small k-space. " * 64
SHAPE = (1, 1, 16, 16)


def other_file(secret: Path) -> str:
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["kspace"] = np.frombuffer(SECRET[:2048], np.complex64).reshape(SHAPE)
    return str(secret.with_suffix(".h5"))


def virtual_dataset(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout(SHAPE, "c8")
    layout[:] = h5py.VirtualSource(other_file(secret), "kspace", SHAPE)
    file.create_virtual_dataset("kspace", layout)


def external_raw_data(file: h5py.File, secret: Path) -> None:
    file["dataset/data"], file["dataset/xml"] = np.ones(3), h5py.ExternalLink(str(secret), "xml")


def gzip_bomb(file: h5py.File, secret: Path) -> None:
    made = file.create_dataset("kspace", (16, 8, 512, 512), "c8", chunks=(1, 1, 512, 512), compression=9)
    squeezed = zlib.compress(bytes(512 * 512 * 8), 9)
    for place in np.ndindex(16, 8):
        made.id.write_direct_chunk((*place, 0, 0), squeezed)


def foreign_filter(file: h5py.File, secret: Path) -> None:
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(SHAPE)
    creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5py.h5s.create_simple(SHAPE)
    h5py.h5d.create(file.id, b"kspace", h5py.h5t.py_create(np.dtype("c8")), space, creation)


def declared(shape: tuple[int, ...] = SHAPE, dtype: Any = "c8", **more: Any) -> Callable[[h5py.File, Path], Any]:
    """A dataset of which nothing is written."""
    return lambda file, secret: file.create_dataset("kspace", shape, dtype, **more)


def holding(make: Callable[[h5py.File, Path], Any]) -> Callable[[h5py.File, Path], Any]:
    """What is there under the name of k-space."""
    return lambda file, secret: file.__setitem__("kspace", make(file, secret))


HOSTILE: dict[str, tuple[Callable[[h5py.File, Path], Any], str]] = {
    "external_storage": (
        lambda file, secret: file.create_dataset("kspace", SHAPE, "c8", external=[(str(secret), 0, 2048)]),
        ": kspace",
    ),
    "external_link": (holding(lambda file, secret: h5py.ExternalLink(other_file(secret), "kspace")), ": kspace"),
    "virtual_dataset": (virtual_dataset, ": kspace"),
    "soft_link": (holding(lambda file, secret: h5py.SoftLink("/real")), ": kspace"),
    "link_loop": (holding(lambda file, secret: h5py.SoftLink("/kspace")), ": kspace"),
    "group_loop": (holding(lambda file, secret: file["/"]), ""),
    "external_raw_data": (external_raw_data, ": dataset/xml"),
    "huge_shape": (declared((2**20, 2**12, 2**12, 64), chunks=(1, 1, 64, 64)), ": kspace: shape"),
    "huge_chunk": (declared(chunks=(1, 1, 2**15, 2**14), maxshape=(None,) * 4), ": kspace"),
    "unwritten": (declared((64, 16, 256, 256), chunks=(1, 1, 256, 256)), ": kspace"),
    "gzip_bomb": (gzip_bomb, ": kspace"),
    "foreign_filter": (foreign_filter, ": kspace"),
    "references": (declared(dtype=h5py.ref_dtype), ": kspace"),
    "vlen_elements": (declared(dtype=h5py.vlen_dtype(np.float32)), ": kspace"),
    "empty_dataset": (holding(lambda file, secret: h5py.Empty("c8")), ": kspace"),
    "no_rows": (declared((1, 1, 0, 16)), ": kspace: shape"),
    "many_names": (lambda file, secret: [file.create_group(str(number)) for number in range(1100)], ""),
}
"""What a file holds, and the field that is refused."""


@pytest.mark.slow
def test_hostile_files_are_refused_by_name(tmp_path: Path, read_in_child: Callable[..., list]) -> None:
    secret, fields = tmp_path / "secret.bin", {}
    secret.write_bytes(SECRET)
    for name, (make, field) in HOSTILE.items():
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            make(file, secret)
        fields[path] = f"{path}{field}"
    for outcome in read_in_child([*fields], limit=2**29):
        assert outcome.kind == "InputError" and outcome.field == fields[outcome.path], outcome
        assert "secret of another" not in outcome.message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fastmri", "mrd"])
def test_cuts_and_bit_flips_never_crash_and_never_change_the_file(
    tmp_path: Path, scan: np.ndarray, fastmri_file: Path, mrd: type, kind: str, read_in_child: Callable[..., list]
) -> None:
    original = fastmri_file if kind == "fastmri" else mrd().add_scan(scan).write()
    whole, rng = original.read_bytes(), np.random.default_rng(11)
    paths, digests = [], []
    for number in range(40):
        damaged = bytearray(whole)
        if number < 10:
            damaged = damaged[: len(whole) * number // 10]
        else:
            reach = len(whole) if number % 2 else min(len(whole), 4096)  # half of them in the metadata
            damaged[rng.integers(reach)] ^= 1 << rng.integers(8)
        paths.append(tmp_path / f"flip{number}.h5")
        paths[-1].write_bytes(damaged)
        digests.append(hashlib.sha256(damaged).hexdigest())
    outcomes = read_in_child(paths)
    for outcome in outcomes:
        if outcome.kind == "crash":  # a defect of the HDF5 library, which reading in isolation contains
            with pytest.raises(InputError):
                IsolatedSource(outcome.path, ReadOptions(), "h5py").load()
    assert {outcome.kind for outcome in outcomes[:10]} == {"InputError"}
    assert {outcome.kind for outcome in outcomes} <= {"InputError", "KSpaceData", "crash"}
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] == digests

"""fastMRI volumes become (slice, coil, ky, kx), with what was measured and what was reconstructed."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from mri_design import InputError, KSpaceData, read
from mri_design.scan.simulation.phantoms import load_phantom
from tests.scan.io.reading import read_here, summary_here

HEADER = """<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><encoding>
<encodedSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize></encodedSpace>
<reconSpace><matrixSize><x>8</x><y>8</y><z>1</z></matrixSize>
<fieldOfView_mm><x>220</x><y>220</y><z>5</z></fieldOfView_mm></reconSpace>
</encoding></ismrmrdHeader>"""


def write(path: Path, kspace: np.ndarray, **datasets: object) -> Path:
    with h5py.File(path, "w") as file:
        file["kspace"] = kspace
        for name, content in datasets.items():
            file[name] = content
    return path


@pytest.mark.parametrize("coils", [True, False])
def test_columns_become_lines(tmp_path: Path, scan: np.ndarray, coils: bool) -> None:
    stored = scan.swapaxes(-1, -2) if coils else scan[:, 0].swapaxes(-1, -2)
    got = read_here(write(tmp_path / "v.h5", stored))
    np.testing.assert_array_equal(got.kspace, scan if coils else scan[:, :1])
    assert got.orientation == "ky-columns"
    assert got.kspace.flags.c_contiguous
    assert got.measured.all()


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
def test_masked_and_zero_lines_are_known_to_be_not_measured(tmp_path: Path, scan: np.ndarray, dtype: type) -> None:
    scan[:, :, [2, 9]] = 0
    mask = np.ones(12, dtype)
    mask[2] = 0
    got = read_here(write(tmp_path / "v.h5", scan.swapaxes(-1, -2), mask=mask))
    assert np.flatnonzero(~got.measured).tolist() == [2, 9]


@pytest.mark.parametrize("mask", [np.ones(11), np.full(12, 0.5), np.full(12, np.nan), np.zeros(12)])
def test_a_mask_that_does_not_fit_is_refused(tmp_path: Path, scan: np.ndarray, mask: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"v\.h5: mask"):
        read_here(write(tmp_path / "v.h5", scan.swapaxes(-1, -2), mask=mask))


def test_the_headers_holds_the_reconstruction_size_but_no_patient(tmp_path: Path, scan: np.ndarray) -> None:
    path = write(tmp_path / "v.h5", scan.swapaxes(-1, -2), ismrmrd_header=HEADER)
    with h5py.File(path, "a") as file:
        file.attrs.update({"acquisition": "CORPD_FBK", "max": 0.5, "patient_id": "1234"})
    header = read_here(path).header
    assert header["encoded_matrix"] == "16 x 12 x 1"
    assert header["reconstruction_matrix"] == "8 x 8 x 1"
    assert header["reconstruction_field_of_view_mm"] == "220 x 220 x 5"
    assert header["acquisition"] == "CORPD_FBK"
    assert "1234" not in header.values()


@pytest.mark.parametrize("isolated", [False, True])
def test_whose_scan_it_is_comes_along_apart_from_the_header(tmp_path: Path, scan: np.ndarray, isolated: bool) -> None:
    said = "<subjectInformation><patientID>1234</patientID><patientGender>none</patientGender></subjectInformation>"
    header = HEADER.replace("<encoding>", f"{said}<encoding>", 1)
    got = read(write(tmp_path / "v.h5", scan.swapaxes(-1, -2), ismrmrd_header=header.encode()), isolated=isolated)
    assert isinstance(got, KSpaceData) and got.source is not None and not got.source.image
    assert got.source.identifiers == {"PatientID": "1234"} and "1234" not in got.header.values()
    assert got.header["identifiers_left_out"].startswith("PatientSex: ")
    assert got.select_slice(1).source == got.source


@pytest.mark.parametrize("names", [("r", "i"), ("real", "imag")])
def test_complex_numbers_stored_as_pairs(tmp_path: Path, scan: np.ndarray, names: tuple[str, str]) -> None:
    pairs = np.empty(scan.shape, [(names[0], "f4"), (names[1], "f4")])
    pairs[names[0]], pairs[names[1]] = scan.real, scan.imag
    got = read_here(write(tmp_path / "v.h5", pairs.swapaxes(-1, -2)))
    np.testing.assert_array_equal(got.kspace, scan)


@pytest.mark.parametrize(
    ("kspace", "field"),
    [
        (np.ones((1, 1, 1, 8, 8), np.complex64), "dims"),
        (np.ones((2, 8, 8), np.float32), "kspace"),
        (np.ones((2, 8, 3), np.complex64), "kspace"),
        (np.full((2, 8, 8), np.nan + 0j), "kspace"),
        (np.zeros((2, 8, 8), np.complex64), "kspace"),
    ],
    ids=["5d", "real", "three-lines", "nan", "zero"],
)
def test_kspace_that_is_none_is_refused(tmp_path: Path, kspace: np.ndarray, field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_here(write(tmp_path / "v.h5", kspace))
    assert caught.value.field == f"{tmp_path / 'v.h5'}: {field}"


def test_sizes_of_pixels_follow_from_the_encoded_field_of_view(tmp_path: Path, scan: np.ndarray) -> None:
    extents = "<fieldOfView_mm><x>440</x><y>240</y><z>5</z></fieldOfView_mm>"
    header = HEADER.replace("</matrixSize></encodedSpace>", f"</matrixSize>{extents}</encodedSpace>")
    got = read_here(write(tmp_path / "v.h5", scan.swapaxes(-1, -2), ismrmrd_header=header.encode()))
    assert got.geometry is not None and len(got.geometry) == 2
    assert got.geometry[0].pixel == (20.0, 27.5) and got.geometry[0].thickness == 5.0
    assert not got.geometry[0].placed
    bare = read_here(write(tmp_path / "bare.h5", scan.swapaxes(-1, -2), ismrmrd_header=HEADER.encode()))
    assert bare.geometry is None


def test_a_summary_is_what_reading_all_of_it_finds(fastmri_file: Path) -> None:
    with h5py.File(fastmri_file, "r+") as file:
        file["kspace"][0, :, :, 9:] = 0
    told, scan = summary_here(fastmri_file), read_here(fastmri_file)
    assert told.part is not None and told.index == 1 and not told.by_headers
    np.testing.assert_array_equal(told.part.kspace[0], scan.kspace[1])
    for ours, theirs in zip(told.samplings, scan.samplings, strict=True):
        np.testing.assert_array_equal(ours.samples, theirs.samples)
    assert (told.geometry, told.header, told.name) == (scan.geometry, scan.header, scan.name)
    assert told.n_coils == scan.n_coils and told.part.orientation == scan.orientation


def test_other_axes_beside_the_marks_of_fastmri_are_shown_by_the_samples(tmp_path: Path) -> None:
    scan = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(1)).kspace
    kspace = np.concatenate([scan, scan[..., ::-1, :]])
    marks = {"ismrmrd_header": HEADER.encode()}
    got = read_here(write(tmp_path / "last.h5", np.moveaxis(kspace, 1, -1), **marks))
    np.testing.assert_array_equal(got.kspace, kspace)
    assert "ky, kx, coil" in got.header["axes"]
    with pytest.raises(InputError) as caught:  # (ky, kx, repetition)
        read(write(tmp_path / "repeated.h5", np.stack([kspace[0, 0]] * 3, -1), **marks))
    assert caught.value.field.endswith("dims")
    rows = np.arange(48) % 2 == 0
    path = write(tmp_path / "rows.h5", kspace * rows[:, None], mask=rows, **marks)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.field.endswith("mask") and "slice,coil,ky,kx" in caught.value.cure
    named = read_here(path, dims=("slice", "coil", "ky", "kx"))
    np.testing.assert_array_equal(named.measured, rows)
    usual = kspace.swapaxes(-1, -2)
    for number, stored in enumerate((usual, np.stack([usual.real, usual.imag], -1))):
        as_usual = read_here(write(tmp_path / f"usual{number}.h5", stored, **marks))
        np.testing.assert_array_equal(as_usual.kspace, kspace)


def test_parts_in_a_structure_are_refused_with_the_line_that_joins_them(tmp_path: Path, scan: np.ndarray) -> None:
    with h5py.File(tmp_path / "parts.mat", "w") as file:
        file["kspace/imag"], file["kspace/real"] = scan.imag, scan.real
    with pytest.raises(InputError) as caught:
        read(tmp_path / "parts.mat")
    assert "file['kspace/real'][()] + 1j * file['kspace/imag'][()]" in caught.value.cure

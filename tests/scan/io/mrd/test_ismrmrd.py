"""F3: MRD files are read line by line to the right place, and what does not fit is refused by acquisition."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, ReadLimits, read
from mri_design.scan.io import ismrmrd
from mri_design.scan.left_out import left_out_text


def image(kspace: np.ndarray) -> np.ndarray:
    shifted = np.fft.ifftshift(kspace, axes=(-2, -1))
    return np.fft.fftshift(np.fft.ifft2(shifted, norm="ortho"), axes=(-2, -1))


def test_all_slices_are_read_and_the_file_is_untouched(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add_scan(scan)
    path = raw.write(tmp_path / "raw.h5")
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.chmod(0o444)
    got = ismrmrd.read(path)
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.measured.all()
    assert got.orientation == "ky-rows"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize(("ny", "centre"), [(12, 4), (13, 4), (12, None)])
def test_lines_are_placed_relative_to_the_centre(
    tmp_path: Path, scan: np.ndarray, mrd: type, ny: int, centre: int | None
) -> None:
    raw = mrd(ny=ny, centre=centre)
    counters = [3, 4, 6]
    for counter in counters:
        raw.add(scan[0, :, counter], kspace_encode_step_1=counter)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    rows = [counter - (ny // 2 if centre is None else centre) + ny // 2 for counter in counters]
    assert np.flatnonzero(got.measured).tolist() == rows
    np.testing.assert_array_equal(got.kspace[0][:, rows], scan[0][:, counters])


def test_slices_may_hold_lines_of_their_own(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw, held = mrd(), ([0, 4, 6, 7], [2, 6, 9])
    for number, lines in enumerate(held):
        for line in lines:
            raw.add(scan[number, :, line], slice=number, kspace_encode_step_1=line)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 6, 7, 9]
    for number, lines in enumerate(held):
        one = got.select_slice(number)
        assert np.flatnonzero(one.measured).tolist() == lines and one.whole_lines
        np.testing.assert_array_equal(one.kspace[0][:, lines], scan[number][:, lines])


def test_readout_oversampling_is_an_exact_crop_of_the_image(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(fov=400, rx=8)
    raw.add_scan(scan)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    assert got.grid_shape == (12, 8)
    np.testing.assert_allclose(image(got.kspace), image(scan)[..., 4:12], atol=1e-6)


def test_without_a_larger_field_of_view_nothing_is_cropped(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(rx=8)  # fewer samples over the same field: lower resolution, not oversampling
    raw.add_scan(scan)
    assert ismrmrd.read(raw.write(tmp_path / "raw.h5")).grid_shape == (12, 16)


def test_reversed_readouts_discards_and_partial_echoes(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    lines = scan[0]
    raw.add(lines[:, 0, ::-1], kspace_encode_step_1=0, flag=library.ACQ_IS_REVERSE)
    padded = np.pad(lines[:, 1], ((0, 0), (0, 0)))
    raw.add(padded, kspace_encode_step_1=1)
    got = ismrmrd.read(raw.write(tmp_path / "full.h5"))
    np.testing.assert_array_equal(got.kspace[0, :, :2], lines[:, :2])

    partial = mrd()
    # Samples 5 to 15 of 16 with two to discard in front and one behind; the echo is sample 8 of the grid.
    stored = np.pad(lines[:, 2, 5:], ((0, 0), (2, 1)), constant_values=99)
    partial.add(stored, kspace_encode_step_1=2, discard_pre=2, discard_post=1, center_sample=2 + 8 - 5)
    backwards = stored[:, ::-1]
    partial.add(
        backwards,
        kspace_encode_step_1=3,
        discard_pre=1,
        discard_post=2,
        center_sample=1 + 15 - 8,
        flag=library.ACQ_IS_REVERSE,
    )
    got = ismrmrd.read(partial.write(tmp_path / "partial.h5"))
    expected = np.where(np.arange(16) < 5, 0, lines[:, 2])
    np.testing.assert_array_equal(got.kspace[0, :, 2], expected)
    np.testing.assert_array_equal(got.kspace[0, :, 3], expected)


def test_readouts_of_one_kept_length_may_be_stored_with_more_samples(
    tmp_path: Path, scan: np.ndarray, mrd: type
) -> None:
    raw = mrd()
    for line in range(12):
        extra = (3, 1) if line % 2 else (0, 0)
        stored = np.pad(scan[0, :, line], ((0, 0), extra), constant_values=99)
        raw.add(stored, kspace_encode_step_1=line, discard_pre=extra[0], discard_post=extra[1])
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    np.testing.assert_array_equal(got.kspace, scan[:1])


def test_samples_to_be_discarded_are_no_noise(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    rng = np.random.default_rng(4)
    noise = (rng.standard_normal((3, 40)) + 1j * rng.standard_normal((3, 40))).astype(np.complex64)
    found = []
    for name, extra in (("bare", (0, 0)), ("padded", (5, 2))):
        raw = mrd()
        padded = np.pad(noise, ((0, 0), extra), constant_values=1e6)
        fields = {"discard_pre": extra[0], "discard_post": extra[1]}
        raw.add(padded, flag=library.ACQ_IS_NOISE_MEASUREMENT, **fields)
        raw.add_scan(scan)
        found.append(ismrmrd.read(raw.write(tmp_path / f"{name}.h5")).noise_covariance)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("first", [True, False])
def test_readouts_of_fewer_channels_are_dropped_and_counted(
    tmp_path: Path, scan: np.ndarray, mrd: type, first: bool
) -> None:
    raw = mrd()
    few = np.full((2, 16), 99)
    if first:
        raw.add(few, kspace_encode_step_1=3)
    raw.add_scan(scan)
    raw.add(few, kspace_encode_step_1=5)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    np.testing.assert_array_equal(got.kspace, scan)
    dropped = f"{1 + first} of {25 + first} dropped: they have 2 where the others have 3"
    assert got.card["readouts_of_fewer_channels"] == dropped
    assert "readouts of fewer channels" in left_out_text(got.card)


def test_a_centre_beyond_the_matrix_or_the_samples_is_named(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(centre=300)
    raw.add_scan(scan)
    with pytest.raises(InputError, match="centre of k-space at 300, which lies beyond the matrix of 12: row -294"):
        ismrmrd.read(raw.write(tmp_path / "lines.h5"))
    raw = mrd()
    raw.add_scan(scan, center_sample=99)
    card = ismrmrd.read(raw.write(tmp_path / "whole.h5")).card
    assert card["centre_beyond_samples"].startswith("center_sample 99 of acquisition 0 lies beyond its 16 samples")
    raw = mrd()
    raw.add_scan(scan[..., 4:], center_sample=99)
    with pytest.raises(InputError, match="99 for 12 samples, which lies beyond them"):
        ismrmrd.read(raw.write(tmp_path / "partial.h5"))


def test_navigation_and_what_does_not_fit_the_scan_is_left_out(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add(np.full((5, 7), 99), flag=library.ACQ_IS_NOISE_MEASUREMENT)  # other sizes: never looked at
    for flag in (
        library.ACQ_IS_NAVIGATION_DATA,
        library.ACQ_IS_PHASECORR_DATA,
        library.ACQ_IS_PARALLEL_CALIBRATION,
        library.ACQ_IS_DUMMYSCAN_DATA,
    ):
        raw.add(np.full((3, 16), 99), kspace_encode_step_1=6, flag=flag)
    raw.add_scan(scan[:1])
    for readout in raw.readouts[-6:]:
        readout.set_flag(library.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING)
        readout.set_flag(library.ACQ_IS_PARALLEL_CALIBRATION)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    np.testing.assert_array_equal(got.kspace, scan[:1])
    assert got.card["readouts_skipped"].startswith("3 of 17")
    assert got.card["noise_readouts"] == "1, not used: other channels than the data"
    assert got.card["calibration_scan"].startswith("1 readouts")  # it repeats a row


@pytest.mark.parametrize("counter", ["contrast", "repetition", "set", "phase"])
def test_only_the_first_of_each_counter_is_read(tmp_path: Path, scan: np.ndarray, mrd: type, counter: str) -> None:
    raw = mrd()
    raw.add_scan(-scan, **{counter: 2})
    raw.add_scan(scan, **{counter: 1})
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.card[counter].startswith("1, the first of 2")


def test_slices_with_gaps_in_their_numbers(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    for number, index in ((65535, 1), (7, 0)):
        for line in range(12):
            raw.add(scan[index, :, line], slice=number, kspace_encode_step_1=line)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.card["slices"] == "present: 7, 65535"


def test_duplicates_need_a_policy(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add_scan(scan[:1])
    raw.add(3 * scan[0, :, 5], kspace_encode_step_1=5, average=1)
    path = raw.write(tmp_path / "raw.h5")
    with pytest.raises(InputError, match=r"dataset/data\[12\].*as acquisition 5.*duplicates='average'"):
        ismrmrd.read(path)
    factor = np.ones(12)
    for policy, factor[5] in (("average", 2), ("last", 3)):
        got = ismrmrd.read(path, duplicates=policy)  # type: ignore[arg-type]
        np.testing.assert_allclose(got.kspace, scan[:1] * factor[:, np.newaxis], rtol=1e-6)
        assert got.card["duplicates"].startswith(policy)
    with pytest.raises(InputError, match="duplicates"):
        ismrmrd.read(path, duplicates="first")  # type: ignore[arg-type]


def change(**fields: int) -> Callable[[Any], None]:
    def apply(raw: Any) -> None:
        for name, value in fields.items():
            head = raw.readouts[7]
            setattr(head.idx if hasattr(head.idx, name) else head, name, value)

    return apply


def resize(samples: int, channels: int) -> Callable[[Any], None]:
    def apply(raw: Any) -> None:
        raw.readouts[7].resize(samples, channels)

    return apply


def header(**fields: Any) -> Callable[[Any], None]:
    def apply(raw: Any) -> None:
        for name, value in fields.items():
            setattr(raw, name, value)

    return apply


def one_sample_nan(raw: Any) -> None:
    raw.readouts[7].data[1, 2] = np.nan


def all_nan(raw: Any) -> None:
    raw.readouts[7].data[:] = np.inf


def only_noise(raw: Any) -> None:
    for readout in raw.readouts:
        readout.set_flag(library.ACQ_IS_NOISE_MEASUREMENT)


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><ismrmrdHeader>&b;</ismrmrdHeader>'


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (change(kspace_encode_step_1=12), "data[7]: kspace_encode_step_1"),
        (change(kspace_encode_step_1=65535), "data[7]: kspace_encode_step_1"),
        (header(centre=0), "data[6]: kspace_encode_step_1"),
        (change(kspace_encode_step_1=6), "data[7]: kspace_encode_step_1"),
        (change(kspace_encode_step_2=1), "data[7]: kspace_encode_step_2"),
        (change(discard_pre=10, discard_post=6), "data[7]: number_of_samples"),
        (change(discard_pre=65535), "data[7]: number_of_samples"),
        (change(discard_pre=6, center_sample=15), "data[7]: center_sample"),
        (resize(0, 3), "data[7]: number_of_samples"),
        (resize(12, 3), "data[7]: number_of_samples"),
        (resize(16, 4), "data[7]: active_channels"),
        (header(nx=15), "data[0]: number_of_samples"),
        (header(nx=0), "encodedSpace.matrixSize.x"),
        (header(nx=-16), "encodedSpace.matrixSize.x"),
        (header(nx="1e3"), "encodedSpace.matrixSize.x"),
        (header(nx=10**9), "encodedSpace.matrixSize.x"),
        (header(ny=4), "data[4]: kspace_encode_step_1"),
        (header(nz=4), "data[12]: slice"),
        (header(nz=0), "encodedSpace.matrixSize.z"),
        (header(fov="nan"), "encodedSpace.fieldOfView_mm.x"),
        (header(fov=-1), "encodedSpace.fieldOfView_mm.x"),
        (header(rfov="wide"), "reconSpace.fieldOfView_mm.x"),
        (header(trajectory="spiral"), "trajectory"),
        (header(header=""), "dataset/xml"),
        (header(header="<ismrmrdHeader>"), "dataset/xml"),
        (header(header="not xml \x01"), "dataset/xml"),
        (header(header="<a/>"), "dataset/xml"),
        (header(header=ENTITIES), "dataset/xml"),
        (one_sample_nan, "data[7]: data"),
        (all_nan, "data[7]: data"),
        (only_noise, "dataset/data"),
    ],
)
def test_what_does_not_fit_is_refused_by_acquisition(
    tmp_path: Path, scan: np.ndarray, mrd: type, spoil: Callable[[Any], None], field: str
) -> None:
    raw = mrd()
    raw.add_scan(scan)
    spoil(raw)
    path = raw.write(tmp_path / "raw.h5")
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        ismrmrd.read(path)
    assert field in caught.value.field
    assert str(path) in caught.value.field
    assert path.read_bytes() == before


def edit_data(path: Path, **head: int) -> None:
    with h5py.File(path, "a") as file:
        rows = file["dataset/data"][:]
        for name, value in head.items():
            rows["head"][name][7] = value
        file["dataset/data"][:] = rows


@pytest.mark.parametrize("name", ["number_of_samples", "active_channels"])
def test_headers_that_lie_about_the_samples_behind_them(tmp_path: Path, scan: np.ndarray, mrd: type, name: str) -> None:
    raw = mrd(nx=60_000 if name == "number_of_samples" else 16)
    raw.add(scan[0, :, 0])
    path = raw.write(tmp_path / "raw.h5")
    with h5py.File(path, "a") as file:
        rows = file["dataset/data"][:]
        rows["head"][name] = 60_000 if name == "number_of_samples" else 1000
        file["dataset/data"][:] = rows
    if name == "number_of_samples":
        with pytest.raises(InputError, match=r"matrixSize\.x"):
            ismrmrd.read(path)
        with pytest.raises(InputError, match=r"data\[0\]: data.*96 numbers"):
            ismrmrd.read(path, limits=ReadLimits(max_side=2**16))
    else:
        with pytest.raises(InputError, match=r"data\[0\]: data.*96 numbers"):
            ismrmrd.read(path)


def test_the_grid_is_refused_before_it_is_allocated(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(nx=32768, ny=32768, centre=0)
    for line in range(12):
        raw.add(scan[0, :, line], kspace_encode_step_1=line)
    with pytest.raises(InputError, match=r"raw\.h5: encodedSpace\.matrixSize.*24\.0 GiB"):
        ismrmrd.read(raw.write(tmp_path / "raw.h5"))


@pytest.mark.parametrize("missing", ["xml", "data", "dataset", "fields", "type", "text"])
def test_missing_and_foreign_parts(tmp_path: Path, scan: np.ndarray, mrd: type, missing: str) -> None:
    raw = mrd()
    raw.add_scan(scan)
    path = raw.write(tmp_path / "raw.h5")
    with h5py.File(path, "a") as file:
        if missing == "dataset":
            del file["dataset"]
        elif missing in ("xml", "data"):
            del file[f"dataset/{missing}"]
        elif missing == "text":
            del file["dataset/xml"]
            file["dataset/xml"] = np.arange(3)
        else:
            del file["dataset/data"]
            samples = h5py.vlen_dtype(np.dtype("f4" if missing == "fields" else "f8"))
            file["dataset"].create_dataset("data", (3,), [("head", [("flags", "u8")]), ("data", samples)])
    with pytest.raises(InputError, match=r"raw\.h5: dataset"):
        ismrmrd.read(path)


def test_flag_numbers_are_those_of_the_library() -> None:
    from mri_design.scan.io import mrd_acquisitions as plan
    from mri_design.scan.io import mrd_cartesian as readouts

    assert readouts._REVERSED == library.ACQ_IS_REVERSE
    assert plan._CALIBRATION == library.ACQ_IS_PARALLEL_CALIBRATION
    assert plan._CALIBRATION_AND_IMAGING == library.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING
    assert plan._NOISE == library.ACQ_IS_NOISE_MEASUREMENT
    assert library.ACQ_IS_NAVIGATION_DATA in plan._NEITHER


SIGN = (
    "<userParameters><userParameterLong><name>fourierSign</name><value>{}</value></userParameterLong></userParameters>"
)
VENDOR = (
    "<acquisitionSystemInformation><systemVendor>{}</systemVendor><receiverChannels>3</receiverChannels>"
    "</acquisitionSystemInformation>"
)


def _turned(raw: Any) -> np.ndarray:
    """Directions of phase encoding, readout and slice, and a place for every slice, put into every readout."""
    directions, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))
    for readout in raw.readouts:
        readout.position[:] = (1.0, 2.0, 10.0 * readout.idx.slice)
        readout.phase_dir[:], readout.read_dir[:], readout.slice_dir[:] = directions
    return directions


@pytest.mark.parametrize("isolated", [True, False])
def test_sizes_places_and_directions_are_read(tmp_path: Path, scan: np.ndarray, mrd: type, isolated: bool) -> None:
    raw = mrd(fov=400, rx=8, more=SIGN.format(-1))
    raw.add_scan(scan)
    directions = _turned(raw)
    got = read(raw.write(tmp_path / "raw.h5"), isolated=isolated)
    assert got.geometry is not None and len(got.geometry) == 2
    assert got.geometry[1].pixel == (200 / 12, 400 / 16) and got.geometry[1].thickness == 5.0
    assert got.geometry[1].centre == (1.0, 2.0, 10.0)
    np.testing.assert_allclose(got.geometry[0].vectors[1:], directions, atol=1e-6)
    assert got.select_slice(1).geometry == got.geometry[1:]


@pytest.mark.parametrize("text", ["0", "0.0", "0.000000"])
def test_a_field_of_view_of_0_is_not_known(tmp_path: Path, scan: np.ndarray, mrd: type, text: str) -> None:
    raw = mrd(fovz=text)
    raw.add_scan(scan)
    got = ismrmrd.read(raw.write(tmp_path / "flat.h5"))
    assert got.geometry is not None and got.geometry[0].thickness is None
    raw = mrd(fov=text)
    raw.add_scan(scan)
    assert ismrmrd.read(raw.write(tmp_path / "unsized.h5")).geometry is None


@pytest.mark.parametrize(
    ("vendor", "sign", "turned"),
    [
        ("SIEMENS", None, True),
        ("Siemens Healthineers", None, True),
        ("SIEMENS", -1, False),
        ("GE MEDICAL SYSTEMS", 1, True),
        ("", -1, False),
    ],
)
def test_directions_are_those_of_the_image_by_maker_or_by_what_the_header_says(
    tmp_path: Path, scan: np.ndarray, mrd: type, vendor: str, sign: int | None, turned: bool
) -> None:
    raw = mrd(system=VENDOR.format(vendor) if vendor else "", more="" if sign is None else SIGN.format(sign))
    raw.add_scan(scan)
    phase, read_out, across = _turned(raw)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    along = -1 if turned else 1
    np.testing.assert_array_equal(got.kspace, scan)  # samples stay as they are stored
    np.testing.assert_allclose(got.geometry[1].vectors[1:], (along * phase, along * read_out, across), atol=1e-6)
    assert got.geometry[1].centre == (1.0, 2.0, 10.0)


@pytest.mark.parametrize(("vendor", "named"), [("", "names no maker"), ("GE MEDICAL SYSTEMS", "'GE MEDICAL SYSTEMS'")])
def test_where_the_sign_is_not_settled_there_is_no_place_but_the_reason(
    tmp_path: Path, scan: np.ndarray, mrd: type, vendor: str, named: str
) -> None:
    raw = mrd(system=VENDOR.format(vendor) if vendor else "")
    raw.add_scan(scan)
    _turned(raw)
    for isolated in (True, False):
        (place, _) = read(raw.write(tmp_path / f"raw-{isolated}.h5"), isolated=isolated).geometry
        assert not place.placed and named in place.unplaced and "fourierSign" in place.unplaced
        assert place.pixel == (200 / 12, 200 / 16)


def test_another_sign_than_1_is_refused(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(more=SIGN.format(2))
    raw.add_scan(scan)
    with pytest.raises(InputError, match="fourierSign: got 2; wanted -1 or 1"):
        ismrmrd.read(raw.write(tmp_path / "raw.h5"))


def test_files_without_directions_give_the_sizes_alone(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add_scan(scan)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    assert got.geometry is not None and not got.geometry[0].placed
    assert got.geometry[0].pixel == (200 / 12, 200 / 16)
    raw.header = (
        '<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><encoding>'
        "<encodedSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize></encodedSpace>"
        "<reconSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize></reconSpace>"
        "</encoding></ismrmrdHeader>"
    )
    assert ismrmrd.read(raw.write(tmp_path / "no-sizes.h5")).geometry is None

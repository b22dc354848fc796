"""MRD files: headers, and lines in the right place; what does not fit is refused by acquisition."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import ismrmrd as library
import numpy as np
import pytest

from mri_design.calibration.noise import REPEATS
from mri_design.formats import ReadLimits
from mri_design.scan import SliceGeometry, measure_noise, readout_positions
from mri_design.scan.io import DEFAULT_LIMITS, MrdHeader, ReadOptions, opened, parse_mrd_header, read, summary
from mri_design.scan.io import ismrmrd as acquisitions
from mri_design.scan.writing import mrd_skeleton_bytes
from tests.refusals import refused, refuses
from tests.scan.io.reading import assert_told

NOISE, CALIBRATION = library.ACQ_IS_NOISE_MEASUREMENT, library.ACQ_IS_PARALLEL_CALIBRATION
BOTH = library.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING


def image(kspace: np.ndarray) -> np.ndarray:
    shifted = np.fft.ifftshift(kspace, axes=(-2, -1))
    return np.fft.fftshift(np.fft.ifft2(shifted, norm="ortho"), axes=(-2, -1))


def test_slices_are_read_and_oversampling_is_an_exact_crop_of_the_image(scan: np.ndarray, mrd: type) -> None:
    path = mrd().add_scan(scan).write()
    before = path.read_bytes()
    path.chmod(0o444)
    got = read(path)
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.measured.all() and got.orientation == "ky-rows" and path.read_bytes() == before
    got = mrd(fov=400, rx=8).add_scan(scan).read()
    assert got.grid_shape == (12, 8)
    np.testing.assert_allclose(image(got.kspace), image(scan)[..., 4:12], atol=1e-6)
    assert mrd(rx=8).add_scan(scan).read().grid_shape == (12, 16)  # of one field of view: lower resolution


@pytest.mark.parametrize(("ny", "centre"), [(12, 4), (13, 4), (12, None)])
def test_lines_are_placed_relative_to_the_centre(scan: np.ndarray, mrd: type, ny: int, centre: int | None) -> None:
    raw = mrd(ny=ny, centre=centre)
    counters = [3, 4, 6]
    for counter in counters:
        raw.add(scan[0, :, counter], kspace_encode_step_1=counter)
    got = raw.read()
    rows = [counter - (ny // 2 if centre is None else centre) + ny // 2 for counter in counters]
    assert np.flatnonzero(got.measured).tolist() == rows
    np.testing.assert_array_equal(got.kspace[0][:, rows], scan[0][:, counters])


def test_reversed_readouts_discards_and_partial_echoes(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    lines = scan[0]
    raw.add(lines[:, 0, ::-1], kspace_encode_step_1=0, center_sample=15 - 8, flag=library.ACQ_IS_REVERSE)
    padded = np.pad(lines[:, 1], ((0, 0), (3, 1)), constant_values=99)
    raw.add(padded, kspace_encode_step_1=1, discard_pre=3, discard_post=1, center_sample=3 + 8)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace[0, :, :2], lines[:, :2])

    partial = mrd()
    # Samples 5 to 15 of 16 with two to discard in front and one behind; the echo is sample 8 of the grid.
    stored = np.pad(lines[:, 2, 5:], ((0, 0), (2, 1)), constant_values=99)
    partial.add(stored, kspace_encode_step_1=2, discard_pre=2, discard_post=1, center_sample=2 + 8 - 5)
    backwards = stored[:, ::-1]
    turned = {"center_sample": 1 + 15 - 8, "flag": library.ACQ_IS_REVERSE}
    partial.add(backwards, kspace_encode_step_1=3, discard_pre=1, discard_post=2, **turned)
    got = partial.read()
    expected = np.where(np.arange(16) < 5, 0, lines[:, 2])
    np.testing.assert_array_equal(got.kspace[0, :, 2], expected)
    np.testing.assert_array_equal(got.kspace[0, :, 3], expected)


@pytest.mark.parametrize("first", [True, False])
def test_readouts_of_fewer_channels_are_dropped_and_counted(scan: np.ndarray, mrd: type, first: bool) -> None:
    raw = mrd()
    few = np.full((2, 16), 99)
    if first:
        raw.add(few, kspace_encode_step_1=3)
    raw.add_scan(scan)
    raw.add(few, kspace_encode_step_1=5)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, scan)


def test_a_centre_beyond_the_matrix_or_the_samples_is_named(scan: np.ndarray, mrd: type) -> None:
    got = mrd(centre=300).add_scan(scan).read()
    np.testing.assert_array_equal(got.kspace, scan)
    assert 300 in got.provenance.left_out["centre_beyond_grid"][0]
    raw = mrd().add_scan(scan, center_sample=99)
    assert raw.read().provenance.read_as["centre_beyond_samples"] == (99, 0, 16)
    refuses("dataset/data[0]: center_sample", mrd().add_scan(scan[..., 4:], center_sample=99).read)


def test_navigation_and_what_does_not_fit_the_scan_is_left_out(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add(np.full((5, 7), 99), flag=NOISE)  # other sizes: never looked at
    others = library.ACQ_IS_NAVIGATION_DATA, library.ACQ_IS_PHASECORR_DATA, CALIBRATION, library.ACQ_IS_DUMMYSCAN_DATA
    for flag in others:
        raw.add(np.full((3, 16), 99), kspace_encode_step_1=6, flag=flag)
    raw.add_scan(scan[:1])
    for readout in raw.readouts[-6:]:
        readout.set_flag(library.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING)
        readout.set_flag(CALIBRATION)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, scan[:1])
    noise = got.provenance.noise.measured
    assert (noise.readouts, noise.unused) == (1, "channels")


def test_slices_with_gaps_in_their_numbers(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    for number, index in ((65535, 1), (7, 0)):
        for line in range(12):
            raw.add(scan[index, :, line], slice=number, kspace_encode_step_1=line)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, scan)


def test_duplicates_need_a_policy(scan: np.ndarray, mrd: type) -> None:
    raw = mrd().add_scan(scan[:1])
    raw.add(3 * scan[0, :, 5], kspace_encode_step_1=5, average=1)
    path = raw.write()
    with refused("dataset/data[12]: kspace_encode_step_1") as caught:
        read(path)
    assert "duplicates" in caught.value.cure
    factor = np.ones(12)
    for policy, factor[5] in (("average", 2), ("first", 1), ("last", 3)):
        got = read(path, duplicates=policy)  # type: ignore[arg-type]
        np.testing.assert_allclose(got.kspace, scan[:1] * factor[:, np.newaxis], rtol=1e-6)
    with refused("duplicates"):
        read(path, duplicates="error")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [None, 0, 1])
def test_of_several_encoding_spaces_the_one_that_is_named_is_read(scan, mrd, number):
    raw = mrd(more=SECOND.format(200)).add_scan(scan[:1])
    other = np.ascontiguousarray(2 * scan[:1, :, :6, :8])
    raw.add_scan(other, encoding_space_ref=1)
    path = raw.write()
    got = read(path, counters={} if number is None else {"encoding": number})
    np.testing.assert_array_equal(got.kspace, other if number else scan[:1])
    assert got.provenance.series["encoding"][0] == (number or 0)
    refuses("encoding", read, path, counters={"encoding": 2})


def change(where: int | None = 7, **fields: Any) -> Callable[[Any], None]:
    """Set fields of a readout, of its counters, or of the file's header where ``where`` is None."""

    def apply(raw: Any) -> None:
        for name, value in fields.items():
            head = raw if where is None else raw.readouts[where]
            setattr(head.idx if hasattr(head, "idx") and hasattr(head.idx, name) else head, name, value)

    return apply


SIGN = (
    "<userParameters><userParameterLong><name>fourierSign</name><value>{}</value></userParameterLong></userParameters>"
)
SYSTEM = "<acquisitionSystemInformation><{0}>{1}</{0}></acquisitionSystemInformation>"
VENDOR, BANDWIDTH = (partial(SYSTEM.format, name) for name in ("systemVendor", "relativeReceiverNoiseBandwidth"))
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><ismrmrdHeader>&b;</ismrmrdHeader>'


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        *((change(kspace_encode_step_1=line), "data[7]: kspace_encode_step_1") for line in (12, 65535, 6)),
        (change(kspace_encode_step_2=1), "data[7]: kspace_encode_step_2"),
        (change(discard_pre=10, discard_post=6), "data[7]: number_of_samples"),
        (change(discard_pre=65535), "data[7]: number_of_samples"),
        (change(discard_pre=6, center_sample=15), "data[7]: center_sample"),
        *((lambda raw, n=n: raw.readouts[7].resize(n, 3), "data[7]: number_of_samples") for n in (0, 12)),
        (lambda raw: raw.readouts[7].resize(16, 4), "data[7]: active_channels"),
        (change(None, nx=15), "data[0]: number_of_samples"),
        *((change(None, nx=nx), "encodedSpace.matrixSize.x") for nx in (0, -16, "1e3", 10**9)),
        (change(None, ny=4), "data[4]: kspace_encode_step_1"),
        (change(None, nx=32768, ny=32768, centre=0), "encodedSpace.matrixSize"),  # before it is allocated
        (change(None, nz=4), "data[12]: slice"),
        (change(None, nz=0), "encodedSpace.matrixSize.z"),
        *((change(None, fov=fov), "encodedSpace.fieldOfView_mm.x") for fov in ("nan", -1)),
        (change(None, rfov="wide"), "reconSpace.fieldOfView_mm.x"),
        (change(None, trajectory="spiral"), "trajectory_dimensions"),
        (change(None, trajectory="EPI"), "trajectory"),
        (change(None, more=SIGN.format(2)), "dataset/xml: fourierSign"),
        *((change(None, system=BANDWIDTH(b)), "dataset/xml: relativeReceiverNoiseBandwidth") for b in (0, 2, "nan")),
        *(
            (change(None, header=text), "dataset/xml")
            for text in ("", "<ismrmrdHeader>", "not xml \x01", "<a/>", ENTITIES)
        ),
        (lambda raw: raw.readouts[7].data.__setitem__((1, 2), np.nan), "data[7]: data"),
        (lambda raw: raw.readouts[7].data.fill(np.inf), "data[7]: data"),
        (lambda raw: [one.set_flag(NOISE) for one in raw.readouts], "dataset/data"),
    ],
)
def test_what_does_not_fit_is_refused_by_acquisition(scan, mrd, spoil, field):
    raw = mrd().add_scan(scan)
    spoil(raw)
    path = raw.write()
    before = path.read_bytes()
    with refused(field) as caught:
        read(path)
    assert caught.value.field.startswith(str(path)) and path.read_bytes() == before


@pytest.mark.parametrize(("name", "value"), [("number_of_samples", 60_000), ("active_channels", 1000)])
def test_headers_that_lie_about_the_samples_behind_them(scan: np.ndarray, mrd: type, name: str, value: int) -> None:
    path = mrd(nx=60_000 if name == "number_of_samples" else 16).add_scan(scan[:1, :, :1]).write()
    with h5py.File(path, "a") as file:
        rows = file["dataset/data"][:]
        rows["head"][name] = value
        file["dataset/data"][:] = rows
    refuses("dataset/data[0]: data", read, path, limits=ReadLimits(max_side=2**16))


@pytest.mark.parametrize(
    ("part", "content", "field"),
    [
        ("dataset/xml", None, "dataset/xml"),
        ("dataset/data", None, "dataset/data"),
        ("dataset", None, "raw.h5"),
        *(("dataset/data", h5py.vlen_dtype(np.dtype(kind)), "dataset/data") for kind in ("f4", "f8")),
        ("dataset/xml", np.arange(3), "dataset/xml"),
    ],
)
def test_missing_and_foreign_parts(scan: np.ndarray, mrd: type, part: str, content: Any, field: str) -> None:
    path = mrd().add_scan(scan).write()
    with h5py.File(path, "a") as file:
        del file[part]
        if isinstance(content, np.dtype):
            file["dataset"].create_dataset("data", (3,), [("head", [("flags", "u8")]), ("data", content)])
        elif content is not None:
            file[part] = content
    refuses(field, read, path)


def _turned(raw: Any) -> np.ndarray:
    """Directions of phase encoding, readout and slice, and a place for every slice, put into every readout."""
    directions, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))
    for readout in raw.readouts:
        readout.position[:] = (1.0, 2.0, 10.0 * readout.idx.slice)
        readout.phase_dir[:], readout.read_dir[:], readout.slice_dir[:] = directions
    return directions


@pytest.mark.parametrize(
    ("vendor", "sign", "turned"),
    [
        ("SIEMENS", None, True),
        ("Siemens Healthineers", None, True),
        ("SIEMENS", -1, False),
        ("GE MEDICAL SYSTEMS", 1, True),
        ("", -1, False),
        ("", None, None),
        ("GE MEDICAL SYSTEMS", None, None),
    ],
)
def test_directions_are_those_of_the_image_by_maker_or_by_what_the_header_says(scan, mrd, vendor, sign, turned):
    raw = mrd(system=VENDOR(vendor) if vendor else "", more="" if sign is None else SIGN.format(sign)).add_scan(scan)
    phase, read_out, across = _turned(raw)
    got = raw.read()
    if turned is None:  # whose sign is not settled
        assert not got.geometry[0].placed and got.geometry[0].unplaced and got.geometry[0].pixel == (200 / 12, 200 / 16)
        return
    along = -1 if turned else 1
    np.testing.assert_array_equal(got.kspace, scan)  # samples stay as they are stored
    np.testing.assert_allclose(got.geometry[1].vectors[1:], (along * phase, along * read_out, across), atol=1e-6)
    assert got.geometry[1].centre == (1.0, 2.0, 10.0)


def test_files_without_directions_give_the_sizes_alone(scan: np.ndarray, mrd: type) -> None:
    raw = mrd().add_scan(scan)
    got = raw.read()
    assert got.geometry is not None and not got.geometry[0].placed
    assert got.geometry[0].pixel == (200 / 12, 200 / 16)
    for zero in ("0", "0.000000"):  # not known
        assert mrd(fovz=zero).add_scan(scan).read().geometry[0].thickness is None
        assert mrd(fov=zero).add_scan(scan).read().geometry is None
    space = "<matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>"
    raw.header = f"<ismrmrdHeader xmlns='http://www.ismrm.org/ISMRMRD'><encoding><encodedSpace>{space}</encodedSpace>"
    raw.header += f"<reconSpace>{space}</reconSpace></encoding></ismrmrdHeader>"
    assert raw.read().geometry is None


@pytest.mark.parametrize("counter", ["contrast", "set"])
def test_a_series_is_chosen_by_its_number(scan: np.ndarray, mrd: type, counter: str) -> None:
    raw = mrd()
    for number in (3, 1, 2):
        raw.add_scan(number * scan, **{counter: number})
    path = raw.write()
    first = read(path)
    np.testing.assert_array_equal(first.kspace, scan)
    assert first.provenance.series[counter] == (1, (1, 2, 3))
    got = read(path, counters={counter: 2})
    np.testing.assert_array_equal(got.kspace, 2 * scan)
    with refused(f"dataset/data: {counter}") as caught:
        read(path, counters={counter: 0})
    assert counter in caught.value.cure


@pytest.mark.parametrize(("name", "number"), [("echo", 1), ("contrast", -1), ("contrast", True), ("contrast", 1.5)])
def test_other_counters_and_numbers_are_refused(name: str, number: Any) -> None:
    refuses("counters" if name == "echo" else name, ReadOptions, counters={name: number})


NY, NZ, NX, COILS = 8, 6, 12, 2
VOLUME = {"nx": NX, "ny": NY, "nz": NZ, "rx": NX, "fovz": 60}


@pytest.fixture
def volume() -> np.ndarray:
    """K-space (2 coils, 8 ky, 6 kz, 12 kx), every sample different."""
    real, imaginary = np.random.default_rng(5).standard_normal((2, COILS, NY, NZ, NX))
    return (real + 1j * imaginary).astype(np.complex64)


def test_a_volume_becomes_a_plane_for_every_readout_position(volume: np.ndarray, mrd: type) -> None:
    got = mrd(**VOLUME).add_volume(volume).read()
    np.testing.assert_allclose(got.kspace, readout_positions(volume.transpose(3, 0, 1, 2)), atol=1e-6)
    assert got.volume and got.geometry is not None and len(got.geometry) == NX
    assert got.geometry[0].pixel == (200 / NY, 60 / NZ) and got.geometry[0].thickness == 200 / NX
    for oversampled, turned in ((False, True), (True, False)):  # of one plane for a summary
        raw = mrd(**VOLUME | ({"rx": 6, "rfov": 100} if oversampled else {}), centre=4)
        for ky, kz in np.ndindex(8, 6):
            if (ky + kz) % 3:
                samples = volume[:, ky, kz, ::-1] if turned else volume[:, ky, kz]
                flags = {"flag": library.ACQ_IS_REVERSE} if turned else {}
                raw.add(samples, kspace_encode_step_1=ky, kspace_encode_step_2=kz, **flags)
        path = raw.write()
        told, whole = summary(path), read(path)
        assert_told(told, whole, 1e-6)
        assert told.index == whole.n_slices // 2


def test_partitions_are_placed_by_the_centre_of_their_counter(volume: np.ndarray, mrd: type) -> None:
    raw = mrd(**VOLUME, centre=3, centre_partition=1)
    for ky, kz in ((3, 1), (2, 0), (4, 3)):
        raw.add(volume[:, ky, kz], kspace_encode_step_1=ky, kspace_encode_step_2=kz)
    got = raw.read()
    held = np.argwhere(got.samplings[0].samples).tolist()
    assert held == [[3, 2], [4, 3], [5, 5]]
    np.testing.assert_allclose(
        got.kspace[:, :, 4, 3], readout_positions(volume.transpose(3, 0, 1, 2))[:, :, 3, 1], atol=1e-6
    )


@pytest.mark.parametrize(("vendor", "along"), [("SIEMENS", -1), ("", 1)])
def test_positions_outside_the_field_of_view_are_cut(volume: np.ndarray, mrd: type, vendor: str, along: int) -> None:
    named = {"system": VENDOR(vendor)} if vendor else {"more": SIGN.format(-1)}
    raw = mrd(**VOLUME | {"rx": 6}, fov=400, **named)
    raw.add_volume(volume)
    for readout in raw.readouts:
        readout.position[:] = (0, 0, 7)
        readout.read_dir[:], readout.phase_dir[:], readout.slice_dir[:] = np.eye(3)
    got = raw.read()
    np.testing.assert_allclose(got.kspace, readout_positions(volume.transpose(3, 0, 1, 2))[3:9], atol=1e-6)
    first, middle = got.geometry[0], got.geometry[3]
    assert middle.centre == (0, 0, 7) and first.centre == (-100 * along, 0, 7)
    assert (middle.phase, middle.read, middle.normal) == ((0, along, 0), (0, 0, along), (along, 0, 0))


def test_a_partial_echo_of_a_volume_is_said(volume: np.ndarray, mrd: type) -> None:
    got = mrd(**VOLUME).add_volume(volume[..., 4:], center_sample=2).read()
    expected = volume.copy()
    expected[..., :4] = 0
    np.testing.assert_allclose(got.kspace, readout_positions(expected.transpose(3, 0, 1, 2)), atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"kspace_encode_step_2": NZ}, "kspace_encode_step_2"),
        ({"kspace_encode_step_2": 3, "kspace_encode_step_1": 4}, "kspace_encode_step_1"),
        ({"slice": 1}, "slice"),
    ],
)
def test_what_lies_outside_the_volume_is_refused(volume, mrd, fields, place):
    raw = mrd(**VOLUME).add_volume(volume)
    raw.add(volume[:, 0, 0], **fields)
    refuses(f"dataset/data[{NY * NZ}]: {place}", raw.read)


def test_slices_of_lines_of_their_own_with_noise_and_calibration(scan: np.ndarray, mrd: type) -> None:
    raw = mrd(nx=16, rx=8, rfov=100, centre=6, parallel="")
    raw.add(np.random.default_rng(1).standard_normal((3, 64)) + 0j, flag=NOISE)
    for line in range(2, 9):
        raw.add(scan[0, :, line], slice=0, kspace_encode_step_1=line)
    for line in range(0, 12, 2):
        raw.add(scan[1, :, line, 4:], slice=1, kspace_encode_step_1=line, center_sample=4)
    path = raw.write()
    refuses("dataset/data[8]: number_of_samples", summary, path)
    raw.readouts[8:] = []
    for line in range(0, 12, 2):
        raw.add(scan[1, :, line], slice=1, kspace_encode_step_1=line)
    for line in range(4, 8):
        raw.add(scan[1, :, line] * 2, slice=1, kspace_encode_step_1=line, flag=CALIBRATION)
    path = raw.write()
    told, whole = summary(path), read(path)
    assert_told(told, whole, 1e-6)
    assert told.index == 1 and told.by_headers
    assert told.provenance.read_as["centre_in_file"] == ((1, 6),)


def test_readouts_of_zeros_are_no_measurement_in_any_slice(scan: np.ndarray, mrd: type) -> None:
    filled = np.concatenate([scan, scan])[:3].copy()
    filled[:, :, [0, 11]] = 0  # zero-filled edges, in all slices
    filled[1, :, 5] = 0  # lost in the slice that is looked at, not in the others
    path = mrd().add_scan(filled).write()
    told = summary(path)
    assert_told(told, read(path))
    assert told.index == 1
    assert [int(sampling.lines.sum()) for sampling in told.samplings] == [10, 9, 10]


def test_labels_without_samples_have_a_summary_and_no_reading(tmp_path: Path) -> None:
    path = tmp_path / "skeleton.h5"
    path.write_bytes(mrd_skeleton_bytes(((6, 3), (1,)), (12, 16), SliceGeometry((1.5, 2.0), 5.0)))
    told = summary(path)
    assert told.part is None
    assert np.flatnonzero(told.samplings[0].lines).tolist() == [1, 3, 6]
    refuses("dataset/data", read, path)


@pytest.mark.parametrize(
    ("layout", "loads"),
    [({"chunks": (1,)}, 0), ({"chunks": (7,)}, 0), ({"chunks": (7,), "shuffle": True}, 5), ({"chunks": None}, 5)],
    ids=["one by one", "by sevens", "filtered", "contiguous"],
)
def test_headers_are_those_of_the_library_whatever_the_layout(tmp_path, scan, mrd, monkeypatch, layout, loads):
    with h5py.File(mrd().add_scan(scan).write(), "r") as written, h5py.File(tmp_path / "other.h5", "w") as other:
        stored = written["dataset/data"]
        other["dataset/xml"] = written["dataset/xml"][()]
        if layout["chunks"] is None:
            layout = {}
        other.create_dataset("dataset/data", data=stored[()], dtype=stored.dtype, **layout)
        heads = stored[()]["head"]
    loaded = list[int]()
    rows = acquisitions._rows
    monkeypatch.setattr(acquisitions, "_AT_ONCE", 5)
    monkeypatch.setattr(acquisitions, "_rows", lambda data, a, b: (loaded.append(b - a), rows(data, a, b))[1])
    with h5py.File(tmp_path / "other.h5", "r") as file:
        made = acquisitions.open_acquisitions(file, "dataset/data", MrdHeader(()), DEFAULT_LIMITS)
        np.testing.assert_array_equal(made.heads, heads)
        assert max(loaded, default=0) == loads


MODE = "<parallelImaging><calibrationMode>{}</calibrationMode></parallelImaging>"
SECOND = """<encoding>
 <encodedSpace><matrixSize><x>8</x><y>6</y><z>1</z></matrixSize>
  <fieldOfView_mm><x>{0}</x><y>{0}</y><z>5</z></fieldOfView_mm></encodedSpace>
 <reconSpace><matrixSize><x>8</x><y>6</y><z>1</z></matrixSize>
  <fieldOfView_mm><x>{0}</x><y>{0}</y><z>5</z></fieldOfView_mm></reconSpace>
 <encodingLimits/><trajectory>cartesian</trajectory>
</encoding>"""


@pytest.fixture
def accelerated(scan: np.ndarray, mrd: type) -> Callable[..., object]:
    """A file with every second line as data and lines 4 to 8 flagged for calibration."""

    def build(both: bool = True, **fields: object) -> object:
        raw = mrd(**fields)
        for index, line in np.ndindex(2, 12):
            flags = {"flag": CALIBRATION if line % 2 else BOTH} if 4 <= line <= 8 and (line % 2 or both) else {}
            if line % 2 == 0 or flags:
                raw.add(scan[index, :, line], slice=index, kspace_encode_step_1=line, **flags)
        return raw

    return build


@pytest.mark.parametrize(
    ("parallel", "both"), [("", True), (MODE.format("embedded"), False), (MODE.format("other"), False)]
)
def test_calibration_lines_within_the_scan_are_data(scan, accelerated, parallel, both):
    got = accelerated(both, parallel=parallel).read()
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 5, 6, 7, 8, 10]
    np.testing.assert_array_equal(got.kspace, np.where(got.measured[:, None], scan, 0))
    assert got.calibration is None


@pytest.mark.parametrize("mode", ["separate", "external"])
def test_a_calibration_scan_of_its_own_is_no_data(scan: np.ndarray, accelerated: Callable, mode: str) -> None:
    got = accelerated(parallel=MODE.format(mode)).read()
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 6, 8, 10]
    lines = np.isin(np.arange(12), [5, 7])
    np.testing.assert_array_equal(got.calibration, np.where(lines[:, None], scan, 0))


def test_lines_that_repeat_the_image_come_from_a_scan_of_their_own(scan: np.ndarray, accelerated: Callable) -> None:
    raw = accelerated(both=False)
    for line in range(4, 9):
        for index in range(2):
            raw.add(3 * scan[index, :, line], slice=index, kspace_encode_step_1=line, flag=CALIBRATION)
    got = raw.read()
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 6, 8, 10]
    np.testing.assert_array_equal(got.calibration[0, :, 4], 3 * scan[0, :, 4])
    np.testing.assert_allclose(got.calibration[0, :, 5], 2 * scan[0, :, 5], rtol=1e-6)  # twice, averaged


def test_a_smaller_calibration_matrix_lies_in_the_middle(scan: np.ndarray, accelerated: Callable) -> None:
    raw = accelerated(both=False, more=SECOND.format(200))
    raw.readouts = [one for one in raw.readouts if not one.is_flag_set(CALIBRATION)]
    for line in range(6):
        for index in range(2):
            samples = scan[index, :, 3 + line, 4:12]
            raw.add(samples, slice=index, kspace_encode_step_1=line, flag=CALIBRATION, encoding_space_ref=1)
    got = raw.read()
    expected = np.zeros_like(scan)
    expected[:, :, 3:9, 4:12] = scan[:, :, 3:9, 4:12]
    np.testing.assert_array_equal(got.calibration, expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"more": SECOND.format(400), "encoding_space_ref": 1},  # another field of view
        {"encoding_space_ref": 7},  # no such encoding
        {"slice": 9},
        {"kspace_encode_step_1": 200},
    ],
)
def test_calibration_that_does_not_fit_is_counted_and_left_out(scan, accelerated, wrong):
    fields = {"slice": 0, "kspace_encode_step_1": 5, **{k: v for k, v in wrong.items() if k != "more"}}
    raw = accelerated(more=str(wrong.get("more", "")))
    raw.add(scan[0, :, 5], flag=CALIBRATION, **fields)
    got = raw.read()
    assert got.calibration is None


def noisy(raw, deviation, count, channels=3, dwell=0.0, seed=0):
    """Add noise readouts of correlated channels; returns their true covariance per real component."""
    rng = np.random.default_rng(seed)
    mixing = deviation * (np.eye(channels) + 0.3j * np.eye(channels, k=1))
    for _ in range(count):
        white = rng.standard_normal((channels, 64)) + 1j * rng.standard_normal((channels, 64))
        readout = raw.add((mixing @ white).astype(np.complex64), flag=NOISE)  # type: ignore[attr-defined]
        readout.sample_time_us = dwell
    return mixing @ mixing.conj().T


@pytest.mark.parametrize(
    ("dwells", "bandwidth", "averages", "factor"),
    [((0, 0), None, 1, 1.0), ((2.5, 10), 0.8, 1, 0.25 / 0.8), ((5, 5), None, 2, 0.5)],
)
def test_noise_readouts_give_the_noise_of_the_data(scan, mrd, dwells, bandwidth, averages, factor):
    raw = mrd(system=BANDWIDTH(bandwidth) if bandwidth else "")
    truth = noisy(raw, 0.1, 40, dwell=dwells[0])
    for average in range(averages):
        raw.add_scan(scan, average=average)
    for readout in raw.readouts[40:]:
        readout.sample_time_us = dwells[1]
    got = raw.read(duplicates="average")
    np.testing.assert_allclose(got.noise_covariance, factor * truth, atol=0.15 * factor * truth[0, 0].real)
    np.testing.assert_array_equal(got.kspace, scan)
    noise = got.provenance.noise
    assert (noise.source, noise.measured.readouts, noise.measured.samples) == ("readouts", 40, 2560)


@pytest.mark.parametrize(
    ("times", "policy", "average"),
    [((3,), "average", 3), ((3,), "last", 1), ((2, 3), "average", 2), ((3,), "first", 1), ((1,), "refuse", 1)],
)
def test_lines_that_came_again_and_further_repetitions_show_the_noise(mrd, times, policy, average):
    """Of averages it is that of the fewest readouts; where no line came again the next repetition tells."""
    rng, shape = np.random.default_rng(3), (2, 3, 48, 32)
    smooth = np.exp(-((np.arange(48)[:, np.newaxis] - 24) ** 2 + (np.arange(32) - 16) ** 2) / 30) * np.ones(shape)
    raw = mrd(nx=32, rx=32, ny=48)
    for repetition in range(2 if times == (1,) else 1):
        for again in range(max(times)):
            for index in range(2):
                for line in np.flatnonzero(np.resize(times, 48) > again):
                    noise = rng.standard_normal((2, 3, 32))
                    samples = 100 * smooth[index, :, line] + noise[0] + 1j * noise[1]
                    raw.add(samples, slice=index, kspace_encode_step_1=int(line), repetition=repetition, average=again)
    path = raw.write()
    whole = read(path, duplicates=policy)  # type: ignore[arg-type]
    found = measure_noise(whole)
    assert found.source.name == REPEATS
    assert found.variance == pytest.approx(1 / average, rel=0.08)
    options = ReadOptions(duplicates=policy)  # type: ignore[arg-type]
    with opened(path, options, isolated=False) as source, source.slice_reader() as slices:
        for number in range(2):  # where slices are read one by one
            np.testing.assert_array_equal(slices.read(number).repeat[0], whole.repeat[number])


def test_a_repetition_that_was_cut_short_is_no_repeat_and_noise_readouts_need_none(scan: np.ndarray, mrd: type) -> None:
    raw = mrd().add_scan(scan)
    raw.add_scan(scan[:1], repetition=1)
    assert raw.read().repeat is None
    rng = np.random.default_rng(0)
    raw.add(rng.standard_normal((3, 64)) + 1j * rng.standard_normal((3, 64)), flag=NOISE)
    raw.add_scan(scan[1:], repetition=1)
    assert raw.read().noise_covariance is not None and raw.read().repeat is None


def test_a_partial_echo_stays_empty_where_oversampling_is_removed(scan: np.ndarray, mrd: type) -> None:
    whole, partial = mrd(fov=400, rx=8), mrd(fov=400, rx=8)
    for line in range(12):
        whole.add(scan[0, :, line], kspace_encode_step_1=line)
        partial.add(scan[0, :, line, 6:], kspace_encode_step_1=line, center_sample=2)
    full = whole.read()
    got = partial.read()
    (sampling,) = got.samplings
    assert np.flatnonzero(~sampling.columns).tolist() == [0, 1, 2]
    assert full.fully_sampled


def test_groups_of_other_names_are_found(tmp_path: Path, mrd: Callable[..., Any], scan: np.ndarray) -> None:
    path = mrd().add_scan(scan).write()
    wanted = read(path)
    with h5py.File(path, "a") as file:
        file.move("dataset", "2024-05-01 10:00:00")
    found = read(path)
    np.testing.assert_array_equal(found.kspace, wanted.kspace)
    with h5py.File(path, "a") as file:
        file.copy("2024-05-01 10:00:00", "2024-05-01 11:00:00")
    refuses(str(path), read, path)


def header(before: str = "", behind: str = "", fov: tuple[float, ...] = (16, 12, 1)) -> MrdHeader:
    """A small header with more elements before and behind its encoding."""
    lengths = "".join(f"<{axis}>{length}</{axis}>" for axis, length in zip("xyz", fov, strict=True))
    space = f"<matrixSize><x>16</x><y>12</y><z>1</z></matrixSize><fieldOfView_mm>{lengths}</fieldOfView_mm>"
    encoding = f"<encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace>"
    text = f'<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">{before}<encoding>{encoding}</encoding>{behind}</ismrmrdHeader>'
    return parse_mrd_header("header", text, DEFAULT_LIMITS)


SUBJECT = "<patientName>Doe^Jo</patientName><patientID>77</patientID><patientBirthdate>1980-01-02</patientBirthdate>"
STUDY = (
    "<studyDate>2020-03-04+01:00</studyDate><studyTime>23:59:07.5Z</studyTime><studyID>5</studyID>"
    "<accessionNumber>12</accessionNumber><studyInstanceUID>1.2.3</studyInstanceUID>"
)
MEASUREMENT = (
    "<patientPosition>HFS</patientPosition><protocolName>t2_tse</protocolName>"
    "<seriesInstanceUIDRoot>1.2.840.7</seriesInstanceUIDRoot><frameOfReferenceUID>1.2.9</frameOfReferenceUID>"
)


def said(subject: str = "", study: str = "", measurement: str = "") -> str:
    """Elements about patient, study and measurement."""
    parts = {"subject": subject, "study": study, "measurement": measurement}
    return "".join(f"<{name}Information>{text}</{name}Information>" for name, text in parts.items())


def test_patient_study_and_measurement_are_told_as_dicom_has_them() -> None:
    told = header(said(SUBJECT + "<patientGender>F</patientGender>", STUDY, MEASUREMENT))
    assert told.source is not None and not told.source.image and told.left_out == {}
    assert told.source.identifiers == {
        "PatientName": "Doe^Jo",
        "PatientID": "77",
        "PatientBirthDate": "19800102",
        "PatientSex": "F",
        "StudyInstanceUID": "1.2.3",
        "StudyDate": "20200304",
        "StudyTime": "235907.5",
        "StudyID": "5",
        "AccessionNumber": "12",
        "FrameOfReferenceUID": "1.2.9",
        "ProtocolName": "t2_tse",
        "SeriesInstanceUIDRoot": "1.2.840.7",
    }
    assert header().source is None


@pytest.mark.parametrize(
    ("element", "name"),
    [
        ("<studyInstanceUID>1.2.three</studyInstanceUID>", "StudyInstanceUID"),
        (f"<studyID>{'x' * 10_000}</studyID>", "StudyID"),
        ("<studyDate>2020-13-04</studyDate>", "StudyDate"),
        ("<studyTime>25:00:00</studyTime>", "StudyTime"),
    ],
)
def test_a_wrong_identifier_is_left_out_with_a_note(element: str, name: str) -> None:
    told = header(said(SUBJECT, element))
    assert told.source is not None and set(told.source.identifiers) == {"PatientName", "PatientID", "PatientBirthDate"}
    assert told.left_out == {"identifiers_left_out": (name,)}


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("unknownSizes", "x y z", (False, False, False)),
        ("unknownSizes", "z", (True, True, False)),
        ("unknownSizes", "x and y", (True, True, True)),
        ("unknownSizes", "", (True, True, True)),
        ("comment", "x y z", (True, True, True)),
    ],
)
def test_lengths_that_the_header_marks_are_not_known(name: str, value: str, known: tuple[bool, ...]) -> None:
    parameter = f"<userParameterString><name>{name}</name><value>{value}</value></userParameterString>"
    (encoding,) = header(behind=f"<userParameters>{parameter}</userParameters>").encodings
    for space in (encoding.encoded, encoding.reconstructed):
        assert tuple(not math.isnan(length) for length in space.field_of_view) == known


@pytest.mark.parametrize(
    ("times", "contrast", "wanted"),
    [
        (("3",), 1, "3"),
        (("3", "5.5"), 0, "3"),
        (("3", "5.5"), 1, "5.5"),
        (("3", "5.5"), 2, None),
        (("3", "x"), 1, None),
    ],
)
def test_the_echo_time_is_that_of_the_contrast(times: tuple[str, ...], contrast: int, wanted: str | None) -> None:
    echoes = "".join(f"<TE>{time}</TE>" for time in times)
    got = header(behind=f"<sequenceParameters><TR>10</TR>{echoes}</sequenceParameters>").source_of(contrast)
    assert got.identifiers == {"RepetitionTime": "10"} | ({"EchoTime": wanted} if wanted else {})


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ((0.256, 0.256, 0.005), (256, 256, 5)),
        ((25.0, 20.0, 0.5), (25, 20, 0.5)),
        ((256, 256, 0.01), (256, 256, np.nan)),
        ((1e5, 256, 5), (np.nan, 256, 5)),
        ((1.0, 3.0, 5.0), (np.nan, 3, 5)),
    ],
)
def test_fields_of_view_that_cannot_be_are_metres_or_unknown(said: tuple[float, ...], taken: tuple[float, ...]) -> None:
    told = header(fov=said)
    np.testing.assert_allclose(told.encodings[0].encoded.field_of_view, taken)
    assert ("field_of_view_in_file" in told.left_out) == (said != taken)


def test_samples_to_be_discarded_are_no_noise(scan: np.ndarray, mrd: type) -> None:
    rng = np.random.default_rng(4)
    noise = (rng.standard_normal((3, 40)) + 1j * rng.standard_normal((3, 40))).astype(np.complex64)
    found = []
    for extra in ((0, 0), (5, 2)):
        raw = mrd()
        padded = np.pad(noise, ((0, 0), extra), constant_values=1e6)
        fields = {"discard_pre": extra[0], "discard_post": extra[1]}
        raw.add(padded, flag=NOISE, **fields)
        raw.add_scan(scan)
        found.append(raw.read().noise_covariance)
    np.testing.assert_array_equal(*found)

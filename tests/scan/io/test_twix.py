"""Siemens raw data are read line by line to the right place, and what does not fit is refused by readout."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError
from mri_design.formats import ReadLimits
from mri_design.scan.io import formats, read, summary
from mri_design.scan.io import twix as measurements
from tests.refusals import refuses
from tests.scan.io.twix_file import Measurement, write_twix

pytest.importorskip("twixtools")


def cropped(kspace: np.ndarray) -> np.ndarray:
    """Lines without the twofold oversampling of the readout."""
    count = kspace.shape[-1]
    lines = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(kspace, axes=-1), norm="ortho"), axes=-1)
    lines = lines[..., count // 4 : 3 * count // 4]
    return np.fft.fftshift(np.fft.fft(np.fft.ifftshift(lines, axes=-1), norm="ortho"), axes=-1)


def noise(count: int, variance: float, seed: int) -> np.ndarray:
    real, imaginary = np.sqrt(variance) * np.random.default_rng(seed).standard_normal((2, 3, count))
    return (real + 1j * imaginary).astype(np.complex64)


@pytest.mark.parametrize("software", ["syngo MR B17", "syngo MR E11", "syngo MR XA30"])
def test_slices_are_read_and_the_file_is_untouched(tmp_path: Path, scan: np.ndarray, software: str) -> None:
    vb, xa = software.endswith("B17"), "XA" in software
    raw = Measurement(software=software, dimension="2" if xa else "0x2", oversampling="2" if xa else "2.0")
    raw.add(np.ones((3, 4), np.complex64), "sync")  # no readout: the scanner's notes in between
    raw.add_scan(scan)
    path = write_twix(tmp_path / "raw.dat", raw, vb=vb)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    got = formats.read(path)
    np.testing.assert_allclose(got.kspace, cropped(scan), atol=1e-6)
    assert got.measured.all() and got.noise_covariance is None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_the_field_of_view_and_the_place_of_a_slice_are_read(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(more="sKSpace.dPhaseOversampling = 0.5")
    half = np.sqrt(0.5)
    raw.add_scan(scan[:1], position=(1.0, -2.0, 3.0), quaternion=(half, 0.0, 0.0, half))  # a quarter turn about z
    (place,) = read(write_twix(tmp_path / "raw.dat", raw)).geometry
    assert place.pixel == pytest.approx((1.5 * 180 / 12, 200 / 8))
    assert place.thickness == 5 and place.centre == (1, -2, 3)
    # The scanner's samples are the conjugate of those whose image grows along the directions of the readout.
    np.testing.assert_allclose([place.phase, place.read, place.normal], [(0, -1, 0), (1, 0, 0), (0, 0, 1)], atol=1e-6)


def test_lines_are_placed_by_what_readouts_call_the_centre(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16)
    for line in (0, 1, 3):
        raw.add(scan[0, :, line], centre=(8, 2, 0), Lin=line)
    got = read(write_twix(tmp_path / "raw.dat", raw))
    assert np.flatnonzero(got.measured).tolist() == [4, 5, 7]
    np.testing.assert_array_equal(got.kspace[0][:, [4, 5, 7]], scan[0][:, [0, 1, 3]])


def test_without_a_centre_in_the_readouts_the_protocol_tells_it(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16, more='<ParamLong."iNoOfFourierLines"> { 9  }')
    raw.add_scan(scan[:1, :, :9], centre=(0, 0, 0))
    got = read(write_twix(tmp_path / "raw.dat", raw))
    assert np.flatnonzero(got.measured).tolist() == list(range(3, 12))  # 3 lines of 12 left out before the centre


def test_reversed_readouts_and_partial_echoes(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16)
    lines = scan[0]
    raw.add(lines[:, 0, ::-1], "reverse", Lin=0, centre=(15 - 8, 6, 0))
    np.testing.assert_array_equal(read(write_twix(tmp_path / "reversed.dat", raw)).kspace[0, :, 0], lines[:, 0])
    partial = Measurement(oversampling="1.0", base=16)
    stored = np.pad(lines[:, 2, 5:], ((0, 0), (2, 1)), constant_values=99)
    partial.add(stored, Lin=2, cut=(2, 1), centre=(2 + 8 - 5, 6, 0))
    got = read(write_twix(tmp_path / "partial.dat", partial))
    np.testing.assert_array_equal(got.kspace[0, :, 2, 5:], lines[:, 2, 5:])
    assert not got.kspace[0, :, 2, :5].any() and not got.whole_lines
    unsaid = Measurement(oversampling="1.0", base=16)
    unsaid.add(lines[:, 2, 5:], Lin=2, centre=(0, 6, 0))
    refuses("readouts[0]: CenterCol", read, write_twix(tmp_path / "unsaid.dat", unsaid))


def test_counters_choose_a_series(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16).add_scan(scan[:1]).add_scan(5 * scan[:1], Eco=1, Rep=2)
    path = write_twix(tmp_path / "echoes.dat", raw)
    assert formats.read(path).repeat is None  # another echo is no repeat
    np.testing.assert_array_equal(formats.read(path, counters={"contrast": 1}).kspace, 5 * scan[:1])
    refuses("readouts: repetition", formats.read, path, counters={"repetition": 4})
    raw = Measurement(oversampling="1.0", base=16).add_scan(scan).add_scan(7 * scan, Rep=1)
    frames = write_twix(tmp_path / "frames.dat", raw)
    np.testing.assert_array_equal(formats.read(frames, counters={"repetition": 1}).repeat, scan)


def test_readouts_that_are_no_image_are_left_out(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16)
    raw.add(100 * scan[0, :, 0], "correction", Lin=6)
    raw.add(100 * scan[0, :, 0], "feedback", Lin=6)
    raw.add_scan(scan[:1, :, ::2], centre=(8, 3, 0))
    raw.add(scan[0, :, 7], "calibration", centre=(8, 3, 0), Lin=7)
    raw.add(scan[0, :, 8], "calibration", "both", centre=(8, 3, 0), Lin=8)
    got = read(write_twix(tmp_path / "raw.dat", raw))
    assert np.abs(got.kspace).max() < 50
    assert got.measured.sum() == 8


_ECHOES = "lContrasts = 2\nalTE[0] = 3000\nalTE[1] = 5500\nalTE[2] = 20000"


@pytest.mark.parametrize(
    ("more", "contrast", "wanted"),
    [
        ("alTR[0] = 10000\nalTE[0] = 3000\nalTE[1] = 15000\nadFlipAngleDegree[0] = 15.0", 0, ("10", "3", "15")),
        ("lContrasts\t = \t1\nalTR[0]\t = \t4620\nalTE[0]\t = \t2040", 0, ("4.62", "2.04", None)),
        ("alTR[0] = 10000\nalTR[1] = 50000\n" + _ECHOES, 0, (None, "3", None)),
        ("alTR[0] = 10000\nalTR[1] = 10000\n" + _ECHOES, 1, ("10", "5.5", None)),
        ("lContrasts = 2\nalTE[0] = 3000", 1, (None, None, None)),
        ("alTR[0] = fast\nalTE[0] = nan\nadFlipAngleDegree[0] = 1e400", 0, (None, None, None)),
    ],
)
def test_protocol_times_and_flip_angle_are_those_of_the_header(tmp_path, scan, more, contrast, wanted):
    raw = Measurement(more=more, name="t1 gre").add_scan(scan[:1])
    raw.add_scan(scan[:1], Eco=1)
    got = read(write_twix(tmp_path / "raw.dat", raw), counters={"contrast": contrast}).source
    assert got is not None and not got.image and not got.names_somebody
    names = ("RepetitionTime", "EchoTime", "FlipAngle")
    said = {name: text for name, text in zip(names, wanted, strict=True) if text}
    assert got.identifiers == {"ProtocolName": "t1 gre", **said}


@pytest.mark.parametrize("own", [True, False])
def test_noise_readouts_give_the_noise_of_the_data(tmp_path: Path, scan: np.ndarray, own: bool) -> None:
    image, adjustment = Measurement(dwell=10000), Measurement(name="AdjCoilSens", dwell=5000)
    (image if own else adjustment).add(noise(4096, 4.0, 1), "noise")
    adjustment.add(np.ones((3, 16), np.complex64))
    image.add_scan(scan)
    got = read(write_twix(tmp_path / "raw.dat", adjustment, image))
    dwell = 1e6 / (130 * 4096) if own else 5.0  # against 10 us of the data
    np.testing.assert_allclose(np.diag(got.noise_covariance).real, 4 * dwell / 10 / 0.793, rtol=0.1)
    np.testing.assert_allclose(got.kspace, cropped(scan), atol=1e-6)
    assert got.provenance.noise.measured.samples == 4096


def test_a_volume_becomes_planes(tmp_path: Path, scan: np.ndarray) -> None:
    raw = Measurement(oversampling="1.0", base=16, partitions=4, dimension="0x4")
    for partition, lines in enumerate([*scan, *scan]):
        for line in range(12):
            raw.add(lines[:, line], Lin=line, Par=partition)
    got = read(write_twix(tmp_path / "raw.dat", raw))
    assert got.kspace.shape == (16, 3, 12, 4)
    energy = 2 * np.sum(np.abs(scan) ** 2)
    assert np.sum(np.abs(got.kspace) ** 2) == pytest.approx(energy, rel=1e-5)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"more": "sFastImaging.lEPIFactor = 32"}, "sFastImaging.lEPIFactor"),
        ({"more": "sSliceAcceleration.lMultiBandFactor = 4"}, "sSliceAcceleration.lMultiBandFactor"),
        ({"more": "sKSpace.dPhaseOversampling = nan"}, "sKSpace.dPhaseOversampling"),
        ({"more": '<ParamDouble."flReadoutOSFactor"> { 1e9 }'}, "flReadoutOSFactor"),
        ({"oversampling": "0.2"}, "flReadoutOSFactor"),
        *((case, "sKSpace.lBaseResolution") for case in ({"base": 0}, {"base": 10**7})),
        ({"lines": ""}, "sKSpace.lPhaseEncodingLines"),
        ({}, "sKSpace.ucTrajectory"),
    ],
)
def test_what_a_protocol_says_is_refused_by_name(tmp_path, scan, fields, field):
    raw = Measurement().add_scan(scan)
    for name, value in fields.items():
        setattr(raw, name, value)
    path = write_twix(tmp_path / "raw.dat", raw)
    if not fields:
        path.write_bytes(path.read_bytes().replace(b"ucTrajectory = 0x1", b"ucTrajectory = 0x4"))
    refuses(f"measurement 1: {field}", read, path)


@pytest.mark.parametrize("vb", [False, True])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, scan: np.ndarray, vb: bool) -> None:
    path = write_twix(tmp_path / "raw.dat", Measurement().add_scan(scan[:1, :, :2]), vb=vb)
    whole = path.read_bytes()
    for length in (4, 100, 9000, 10_000, len(whole) - 700, len(whole) - 352, len(whole) - 340):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            formats.read(path)
        assert str(path) in str(caught.value)
    endless = Measurement(ends=False).add_scan(scan[:1, :, :2])
    refuses("measurement 1: readouts[2]", formats.read, write_twix(path, endless, vb=vb))


@pytest.mark.parametrize("vb", [False, True])
def test_empty_readouts_and_too_many_are_refused(tmp_path: Path, scan: np.ndarray, vb: bool) -> None:
    path = write_twix(tmp_path / "raw.dat", Measurement().add_scan(scan), vb=vb)
    refuses("measurement 1: readouts[4]", formats.read, path, limits=ReadLimits(max_readouts=4))
    refuses("measurement 1: header", formats.read, path, limits=ReadLimits(max_text_bytes=4096))
    content = bytearray(path.read_bytes())
    (measurement,) = measurements.find_measurements(path, path.open("rb"), ReadLimits())
    place = measurement.data + (28 if vb else 48)
    content[place : place + 2] = b"\0\0"  # the first readout says that it has no samples
    path.write_bytes(content)
    refuses("measurement 1: readouts[0]", formats.read, path)


@pytest.mark.parametrize("dimension", ["0x2", "0x4"])
def test_samples_whose_sums_single_precision_does_not_hold_are_refused(tmp_path, scan, dimension):
    raw = Measurement(dimension=dimension).add_scan(scan * np.float32(3e38 / np.abs(scan).max()))
    path = write_twix(tmp_path / "raw.dat", raw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for look in (read, summary):
            refuses("readouts", look, path)


def test_damaged_files_are_read_or_refused_without_a_warning(tmp_path: Path, scan: np.ndarray) -> None:
    path, rng = write_twix(tmp_path / "raw.dat", Measurement().add_scan(scan)), np.random.default_rng(0)
    whole, outcomes = path.read_bytes(), {"read": 0, "refused": 0}
    with path.open("rb") as stream:
        (found,) = measurements.find_measurements(path, stream, ReadLimits())
        places, _ = measurements.find_readouts(stream, found)
    for case in range(60):
        damaged, start = bytearray(whole), int(rng.choice(places))
        if case % 4 == 0:
            damaged = damaged[: int(rng.integers(len(whole)))]
        else:  # anywhere; in the header of a readout; in the exponent of a sample
            at = int(rng.integers(len(whole))), start + int(rng.integers(224)), start + 227 + 4 * int(rng.integers(8))
            damaged[at[case % 4 - 1]] ^= 1 << int(rng.integers(8)) if case % 8 < 4 else 0x7F
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for look in (read, summary):
                try:
                    held = look(path)
                    assert look is summary or np.isfinite(held.kspace).all()
                    outcomes["read"] += 1
                except InputError as error:
                    assert str(path) in error.field, error
                    outcomes["refused"] += 1
    assert min(outcomes.values()) > 6

"""What raw data hold beside the image: calibration lines and noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, read
from mri_design.scan.io import ismrmrd
from mri_design.scan.io.mrd_acquisitions import noise_covariance, noise_scale
from tests.slow_cases import slow_case

CALIBRATION, BOTH = library.ACQ_IS_PARALLEL_CALIBRATION, library.ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING
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
        for index in range(2):
            for line in range(12):
                if line % 2 == 0:
                    flags = {"flag": BOTH} if both and 4 <= line <= 8 else {}
                    raw.add(scan[index, :, line], slice=index, kspace_encode_step_1=line, **flags)
                elif 4 <= line <= 8:
                    raw.add(scan[index, :, line], slice=index, kspace_encode_step_1=line, flag=CALIBRATION)
        return raw

    return build


@pytest.mark.parametrize("parallel", ["", MODE.format("embedded"), MODE.format("interleaved"), MODE.format("other")])
@pytest.mark.parametrize("both", [True, False])
def test_calibration_lines_within_the_scan_are_data(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable, parallel: str, both: bool
) -> None:
    got = ismrmrd.read(accelerated(both, parallel=parallel).write(tmp_path / "raw.h5"))
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 5, 6, 7, 8, 10]
    np.testing.assert_array_equal(got.kspace, np.where(got.measured[:, None], scan, 0))
    assert got.calibration is None
    assert got.card["calibration_lines"].startswith("4 readouts within the scan")


@pytest.mark.parametrize("mode", ["separate", "external"])
def test_a_calibration_scan_of_its_own_is_no_data(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable, mode: str
) -> None:
    got = ismrmrd.read(accelerated(parallel=MODE.format(mode)).write(tmp_path / "raw.h5"))
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 6, 8, 10]
    assert got.calibration is not None
    lines = np.isin(np.arange(12), [5, 7])
    np.testing.assert_array_equal(got.calibration, np.where(lines[:, None], scan, 0))
    assert got.card["calibration_scan"].startswith("4 readouts")


def test_lines_that_repeat_the_image_come_from_a_scan_of_their_own(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable
) -> None:
    raw = accelerated(both=False)
    for line in range(4, 9):
        for index in range(2):
            raw.add(3 * scan[index, :, line], slice=index, kspace_encode_step_1=line, flag=CALIBRATION)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    assert np.flatnonzero(got.measured).tolist() == [0, 2, 4, 6, 8, 10]
    assert got.calibration is not None
    np.testing.assert_array_equal(got.calibration[0, :, 4], 3 * scan[0, :, 4])
    np.testing.assert_allclose(got.calibration[0, :, 5], 2 * scan[0, :, 5], rtol=1e-6)  # twice, averaged


def test_repeated_calibration_lines_within_the_scan_need_a_policy(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable
) -> None:
    raw = accelerated(parallel=MODE.format("embedded"))
    for index in range(2):
        raw.add(3 * scan[index, :, 5], slice=index, kspace_encode_step_1=5, average=1, flag=CALIBRATION)
    path = raw.write(tmp_path / "raw.h5")
    with pytest.raises(InputError, match="duplicates='average'"):
        ismrmrd.read(path)
    got = ismrmrd.read(path, duplicates="average")
    np.testing.assert_allclose(got.kspace[0, :, 5], 2 * scan[0, :, 5], rtol=1e-6)


def test_a_smaller_calibration_matrix_lies_in_the_middle(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable
) -> None:
    raw = accelerated(both=False, more=SECOND.format(200))
    raw.readouts = [one for one in raw.readouts if not one.is_flag_set(CALIBRATION)]
    for line in range(6):
        for index in range(2):
            samples = scan[index, :, 3 + line, 4:12]
            raw.add(samples, slice=index, kspace_encode_step_1=line, flag=CALIBRATION, encoding_space_ref=1)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    expected = np.zeros_like(scan)
    expected[:, :, 3:9, 4:12] = scan[:, :, 3:9, 4:12]
    assert got.calibration is not None
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
def test_calibration_that_does_not_fit_is_counted_and_left_out(
    tmp_path: Path, scan: np.ndarray, accelerated: Callable, wrong: dict[str, object]
) -> None:
    fields = {"slice": 0, "kspace_encode_step_1": 5, **{k: v for k, v in wrong.items() if k != "more"}}
    raw = accelerated(more=str(wrong.get("more", "")))
    raw.add(scan[0, :, 5], flag=CALIBRATION, **fields)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"))
    assert got.card["calibration_skipped"].startswith("1 readouts")
    assert got.calibration is None


def noisy(
    raw: object, deviation: float, count: int, channels: int = 3, dwell: float = 0.0, seed: int = 0
) -> np.ndarray:
    """Add noise readouts of correlated channels; returns their true covariance per real component."""
    rng = np.random.default_rng(seed)
    mixing = deviation * (np.eye(channels) + 0.3j * np.eye(channels, k=1))
    for _ in range(count):
        white = rng.standard_normal((channels, 64)) + 1j * rng.standard_normal((channels, 64))
        readout = raw.add((mixing @ white).astype(np.complex64), flag=library.ACQ_IS_NOISE_MEASUREMENT)  # type: ignore[attr-defined]
        readout.sample_time_us = dwell
    return mixing @ mixing.conj().T


@pytest.mark.parametrize(
    ("dwells", "bandwidth", "averages", "factor"),
    [
        ((0, 0), None, 1, 1.0),
        slow_case((2.5, 10), None, 1, 0.25),
        ((2.5, 10), 0.8, 1, 0.25 / 0.8),
        slow_case((0, 10), 0.5, 1, 2.0),
        ((5, 5), None, 2, 0.5),
    ],
)
def test_noise_readouts_give_the_noise_of_the_data(
    tmp_path: Path,
    scan: np.ndarray,
    mrd: type,
    dwells: tuple[float, float],
    bandwidth: float | None,
    averages: int,
    factor: float,
) -> None:
    system = f"<relativeReceiverNoiseBandwidth>{bandwidth}</relativeReceiverNoiseBandwidth>" if bandwidth else ""
    raw = mrd(system=f"<acquisitionSystemInformation>{system}</acquisitionSystemInformation>")
    truth = noisy(raw, 0.1, 40, dwell=dwells[0])
    for average in range(averages):
        raw.add_scan(scan, average=average)
    for readout in raw.readouts[40:]:
        readout.sample_time_us = dwells[1]
    path = raw.write(tmp_path / "raw.h5")
    got = read(path, duplicates="average")  # in its own process: arrays travel
    assert got.noise_covariance is not None
    np.testing.assert_allclose(got.noise_covariance, factor * truth, atol=0.15 * factor * truth[0, 0].real)
    np.testing.assert_array_equal(got.kspace, scan)
    assert got.card["noise_readouts"].startswith("40, 2560 samples a channel")


def test_too_few_or_foreign_noise_readouts_are_said_not_to_be_used(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    for name, channels, width, reason in (("few", 3, 4, "too few samples"), ("foreign", 2, 64, "other channels")):
        raw = mrd()
        raw.add(np.ones((channels, width)), flag=library.ACQ_IS_NOISE_MEASUREMENT)
        raw.add_scan(scan)
        got = ismrmrd.read(raw.write(tmp_path / f"{name}.h5"))
        assert got.noise_covariance is None
        assert f"not used: {reason}" in got.card["noise_readouts"]


@pytest.mark.parametrize("text", ["0", "-1", "2", "x", "nan"])
def test_an_impossible_noise_bandwidth_is_refused(tmp_path: Path, scan: np.ndarray, mrd: type, text: str) -> None:
    inner = f"<relativeReceiverNoiseBandwidth>{text}</relativeReceiverNoiseBandwidth>"
    raw = mrd(system=f"<acquisitionSystemInformation>{inner}</acquisitionSystemInformation>")
    raw.add_scan(scan)
    with pytest.raises(InputError, match="relativeReceiverNoiseBandwidth"):
        ismrmrd.read(raw.write(tmp_path / "raw.h5"))


def test_a_partial_echo_stays_empty_where_oversampling_is_removed(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    whole, partial = mrd(fov=400, rx=8), mrd(fov=400, rx=8)
    for line in range(12):
        whole.add(scan[0, :, line], kspace_encode_step_1=line)
        partial.add(scan[0, :, line, 6:], kspace_encode_step_1=line, center_sample=2)
    full = ismrmrd.read(whole.write(tmp_path / "whole.h5"))
    got = ismrmrd.read(partial.write(tmp_path / "partial.h5"))
    (sampling,) = got.samplings
    assert np.flatnonzero(~sampling.columns).tolist() == [0, 1, 2]
    assert "partial echo" in got.missing
    assert full.fully_sampled


def test_noise_covariance_needs_independent_channels() -> None:
    rng = np.random.default_rng(0)
    white = (rng.standard_normal((2, 50)) + 1j * rng.standard_normal((2, 50))).astype(np.complex64)
    covariance, samples = noise_covariance([white[:, :20], white[:, 20:]])
    assert samples == 50
    np.testing.assert_allclose(covariance, white @ white.conj().T / 100, rtol=1e-5)
    assert noise_covariance([white[[0, 0]]])[0] is None  # one channel twice
    assert noise_covariance([]) == (None, 0)


def test_noise_scale_says_what_it_took() -> None:
    scale, reason = noise_scale(np.array([2.0]), np.array([8.0]), 0.5)
    assert scale == 0.5
    assert reason == "dwell time 2 against 8 us, relative receiver noise bandwidth 0.5"
    assert "taken as equal" in noise_scale(np.array([0.0]), np.array([8.0]), None)[1]

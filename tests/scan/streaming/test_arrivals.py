import numpy as np
import pytest

from mri_design import InputError, ReadLimits
from mri_design.scan.source_image import SourceImage
from mri_design.scan.streaming.messages import LineReadout, NoiseReadout, ScanHeader
from mri_design.scan.streaming.scanner import Arrivals


def begun(kspace: np.ndarray, **settings: object) -> Arrivals:
    arrivals = Arrivals(**settings)  # type: ignore[arg-type]
    arrivals.take(ScanHeader(kspace.shape[1:]))
    return arrivals


def test_whose_scan_it_is_stays_with_the_data(kspace: np.ndarray) -> None:
    source = SourceImage({"PatientID": "77"}, image=False)
    arrivals = Arrivals()
    arrivals.take(ScanHeader(kspace.shape[1:], source=source))
    arrivals.take(LineReadout(6, kspace[:, 6]))
    assert arrivals.data("scan").source == source


def test_lines_in_any_order_fill_the_grid(kspace: np.ndarray) -> None:
    arrivals = begun(kspace)
    for line in (6, 2, 9):
        assert arrivals.take(LineReadout(line, kspace[:, line])) == ""
    data = arrivals.data("scan")
    assert np.flatnonzero(data.measured).tolist() == [2, 6, 9] == sorted(arrivals.changed)
    np.testing.assert_array_equal(data.kspace[0][:, [2, 6, 9]], kspace[:, [2, 6, 9]])
    some = arrivals.data("scan", [6, 2])
    assert np.flatnonzero(some.measured).tolist() == [2, 6]
    assert not some.kspace[0][:, 9].any()
    np.testing.assert_array_equal(arrivals.lines([9, 6]), kspace[:, [9, 6]])


@pytest.mark.parametrize(("policy", "strength"), [("first", 1), ("last", 2)])
def test_one_readout_of_a_repeated_line_counts(kspace: np.ndarray, policy: str, strength: int) -> None:
    arrivals = begun(kspace, repeated=policy)
    for factor in (1, 2):
        arrivals.take(LineReadout(6, factor * kspace[:, 6]))
    np.testing.assert_array_equal(arrivals.lines([6])[:, 0], strength * kspace[:, 6])
    assert arrivals.counts["repeated"] == 1


def test_coils_are_those_of_the_lines_else_of_the_noise_else_of_the_header(kspace: np.ndarray) -> None:
    arrivals = Arrivals()
    assert arrivals.coils is None
    arrivals.take(ScanHeader((12, 16), coils=5))
    assert arrivals.coils == 5
    arrivals.take(NoiseReadout(kspace[:1, 0]))
    assert arrivals.coils == 1
    arrivals.take(LineReadout(6, kspace[:, 6]))
    assert arrivals.coils == 2
    assert "3 coils" in arrivals.take(LineReadout(7, np.zeros((3, 16), np.complex64)))
    assert not arrivals.arrived[7] and arrivals.counts["left out"] == 1


def test_noise_readouts_give_the_covariance_scaled_to_the_dwell_time(kspace: np.ndarray) -> None:
    arrivals, rng = begun(kspace), np.random.default_rng(0)
    noise = (rng.standard_normal((2, 40_000)) + 1j * rng.standard_normal((2, 40_000))).astype(np.complex64)
    arrivals.take(NoiseReadout(np.array([[2.0], [3.0]], np.float32) * noise, 5.0))
    arrivals.take(LineReadout(6, kspace[:, 6], 10.0))
    covariance = arrivals.data("scan").noise_covariance
    assert covariance is not None
    np.testing.assert_allclose(covariance, np.diag([4.0, 9.0]) * 5 / 10, atol=0.1)


def test_what_is_not_finite_or_too_large_is_left_out(kspace: np.ndarray) -> None:
    arrivals = begun(kspace, limits=ReadLimits(max_bytes=1000))
    assert "NaN" in arrivals.take(LineReadout(6, kspace[:, 6] * np.nan))
    assert "at most" in arrivals.take(LineReadout(6, kspace[:, 6]))
    assert not arrivals.arrived.any()
    with pytest.raises(InputError, match="no readout"):
        arrivals.data("scan")


def test_noise_does_not_fill_the_memory(kspace: np.ndarray) -> None:
    arrivals = begun(kspace)
    large = np.zeros((1, 4 * 2**20), np.complex64)
    said = [arrivals.take(NoiseReadout(large)) for _ in range(3)]
    assert said[:2] == ["", ""] and "more of them" in said[2]


def test_a_readout_of_zeros_is_no_measurement(kspace: np.ndarray) -> None:
    arrivals = Arrivals()
    arrivals.take(ScanHeader((12, 16)))
    assert "zeros alone" in arrivals.take(LineReadout(4, np.zeros_like(kspace[:, 4])))
    assert not arrivals.arrived.any() and arrivals.counts["left out"] == 1
    holed = kspace[:, 4].copy()
    holed[:, 3] = 0  # a single zero is a sample
    assert not arrivals.take(LineReadout(4, holed))
    assert arrivals.arrived[4] and arrivals.counts["repeated"] == 0


def test_round_off_of_zeros_is_no_measurement_once_the_signal_is_known(kspace: np.ndarray) -> None:
    arrivals = Arrivals()
    arrivals.take(ScanHeader((12, 16)))
    arrivals.take(LineReadout(0, np.float32(1e-14) * kspace[:, 0]))
    arrivals.take(LineReadout(6, kspace[:, 6]))
    assert "zeros alone" in arrivals.take(LineReadout(11, np.float32(1e-14) * kspace[:, 11]))
    assert np.flatnonzero(arrivals.arrived).tolist() == [6] and arrivals.counts["left out"] == 2
    assert not arrivals.data("scan").kspace[0, :, 0].any()
    assert not arrivals.take(LineReadout(0, kspace[:, 0])) and arrivals.arrived[0]

"""What `info` tells of a scan: sizes, place, lines and noise, without making coil maps."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, load_input
from mri_design.experiment import calibration
from mri_design.experiment.description import describe_scan, measured_how
from mri_design.scan.data import ScanSummary
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.sampling import Sampling


def scan(measured: int = 24) -> KSpaceData:
    rng = np.random.default_rng(0)
    kspace = (rng.standard_normal((3, 2, 32, 32)) + 1j * rng.standard_normal((3, 2, 32, 32))).astype(np.complex64)
    lines = np.abs(np.arange(32) - 16) <= measured // 2
    kspace[:, :, ~lines] = 0
    kspace[1] *= 5
    return KSpaceData(kspace, lines, noise_variance=1.0)


def told(measured: int = 24) -> ScanSummary:
    return ScanSummary.of(scan(measured))


def test_no_maps_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("maps were estimated")

    monkeypatch.setattr(calibration, "estimate_coil_maps", refused)
    rows = describe_scan(told(), Recipe())
    assert rows["coil maps"].startswith("estimated by ESPIRiT from 24 gapless centre lines; coils held back")
    few = describe_scan(told(14), Recipe().replacing("coils", maps="espirit"))
    assert few["coil maps"].startswith("estimated by ESPIRiT from 15 gapless centre lines; coils held back")
    peak = float(np.abs(scan().kspace[1]).max())
    assert rows["noise"].endswith(f"largest sample {peak:.4g} in slice 1")


def test_too_small_a_centre_is_said_all_the_same() -> None:
    espirit = Recipe().replacing("coils", maps="espirit")
    assert "at least 8 for coil calibration" in describe_scan(told(4), espirit)["calibration"]


def test_maps_of_few_lines_are_tried_and_their_check_told() -> None:
    rows = describe_scan(told(6), Recipe())
    assert "(NLINV) from the 7 measured lines of the central 32; coils held back" in rows["coil maps"]


def test_size_place_and_acceleration_are_told() -> None:
    oblique = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 0.8, 0.6), (1.0, 0.0, 0.0), (0.0, -0.6, 0.8))
    rows = describe_scan(ScanSummary.of(replace(scan(14), geometry=(oblique,) * 3)), Recipe())
    assert rows["field of view"] == "64 x 48 mm, pixels of 2 x 1.5 mm, 5 mm thick"
    assert rows["orientation"] == "oblique, nearest to transverse, phase encoding front to back"
    assert rows["measured lines"] == "15 of 32, without lines 0-8, 24-31; acceleration 2.13"
    straight = SliceGeometry((2.0, 1.5), None, (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    assert straight.orientation == "sagittal, phase encoding foot to head"
    c, d = np.cos(np.radians(20)), np.sin(np.radians(20))
    in_plane = SliceGeometry((2.0, 1.5), None, (0.0, 0.0, 0.0), (-d, c, 0.0), (c, d, 0.0), (0.0, 0.0, 1.0))
    along = ("left to right", "front to back")[int(np.argmax(np.abs(in_plane.phase)))]
    assert in_plane.orientation == f"transverse, phase encoding nearest to {along}, turned by 20 degrees in the plane"
    assert "orientation" not in describe_scan(
        ScanSummary.of(replace(scan(), geometry=(SliceGeometry((2.0, 1.5), None),) * 3)), Recipe()
    )
    assert describe_scan(told(), Recipe())["field of view"] == "not in the file"
    turned = replace(oblique, read=(0.0, 0.8, 0.6), phase=(1.0, 0.0, 0.0), normal=(0.0, 0.6, -0.8))
    rows = describe_scan(ScanSummary.of(replace(scan(), geometry=(straight, straight, turned))), Recipe())
    other = "oblique, nearest to transverse, phase encoding left to right"
    assert rows["orientation"] == f"sagittal, phase encoding foot to head; other slices {other}"


def test_samples_of_a_plane_are_counted_one_by_one() -> None:
    plane = np.zeros((1, 1, 32, 32), np.complex64)
    held = np.random.default_rng(1).random((32, 32)) < 0.2
    held[12:20, 12:20] = True  # the calibration square counts like the others
    plane[0, 0, held] = scan(32).kspace[0, 0][held]
    rows = describe_scan(ScanSummary.of(KSpaceData(plane, held.any(axis=1), noise_variance=1.0)), Recipe())
    count = int(held.sum())
    assert rows["samples"].startswith(
        f"{count} of 1024, {count / 1024:.1%} of the grid: acceleration {1024 / count:.3g};"
    )
    assert "acceleration" not in rows["measured lines"]


def test_centre_and_lines_around_it_are_told() -> None:
    rows = describe_scan(told(), Recipe())
    start = "assumed: line 16, sample 16, counted from 0"
    gapless = "25 lines without a gap around it (4-28), of which the innermost 25 can serve for coil maps"
    assert rows["centre"] == f"{start}; {gapless}"
    one = scan()
    kspace = one.kspace[:, :1].copy()
    kspace[:, :, 16] = 0
    rows = describe_scan(ScanSummary.of(replace(one, kspace=kspace)), Recipe())
    assert rows["centre"] == f"{start}; that line was not measured"


def test_noise_of_coils_is_told_as_it_is_in_the_file() -> None:
    rng = np.random.default_rng(1)
    noise = (rng.standard_normal((1, 2, 64, 64)) + 1j * rng.standard_normal((1, 2, 64, 64))).astype(np.complex64)
    covariance = np.array([[4.0, 3.0], [3.0, 9.0]], dtype=np.complex128)
    data = KSpaceData(1e3 * noise, np.ones(64, dtype=bool), noise_covariance=covariance)
    rows = describe_scan(ScanSummary.of(data), Recipe())
    spread = "sd 2 to 3 per real component before whitening, median 2.5; correlation of two coils up to 0.50"
    assert rows["noise of coils"] == spread and rows["noise"].startswith("sd 1 per real component, from the noise")
    given = replace(data, noise_covariance=None, noise_variance=0.5)
    assert "noise of coils" not in describe_scan(ScanSummary.of(given), Recipe())


def test_edges_that_are_empty_alike_are_named_beside_fully_sampled() -> None:
    rows = describe_scan(told(14), Recipe())
    assert rows["fully sampled"] == "yes, from line 9 to 23; lines 0-8, 24-31 at the edges of k-space are empty"


def test_one_line_that_is_empty_is_named_as_one() -> None:
    rows = describe_scan(ScanSummary.of(load_input("phantom:lf-gre")), Recipe())
    assert rows["measured lines"] == "195 of 196, without line 0; acceleration 1.01"
    assert rows["fully sampled"] == "yes, from line 1 to 195; line 0 at the edge of k-space is empty"


def test_of_other_slices_the_headers_tell() -> None:
    whole = told(28)
    short = Sampling(whole.samplings[0].samples & (np.abs(np.arange(32) - 16) < 3)[:, np.newaxis])
    some = replace(whole, samplings=(short, *whole.samplings[1:]), by_headers=True)
    rows = describe_scan(some, Recipe())
    assert rows["told by"].startswith("the samples of slice 1, and the headers")
    assert "slices differ" in rows and "(NLINV)" in rows["coil maps"]
    rows = describe_scan(some, Recipe().replacing("coils", maps="espirit"))
    assert "got 5 gapless lines" in rows["calibration"]
    assert "told by" not in describe_scan(whole, Recipe())


def test_how_it_was_measured_is_told_where_the_header_says() -> None:
    said = {"ProtocolName": "t2_tse", "EchoTime": "12.5", "RepetitionTime": "3000", "StudyDate": "20200304"}
    source = SourceImage(said, image=False)
    rows = describe_scan(ScanSummary.of(replace(scan(), source=source)), Recipe())
    assert rows["sequence"] == "t2_tse, TE 12.5 ms, TR 3000 ms" and rows["date"] == "2020-03-04"
    assert not {"sequence", "date"} & set(describe_scan(told(), Recipe()))
    assert measured_how(SourceImage({"FlipAngle": "15"}, image=False)) == {"sequence": "flip 15 degrees"}

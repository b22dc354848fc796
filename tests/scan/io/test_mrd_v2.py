"""Streams of MRD, version 2, are read as the same scan in version 1 is; damaged ones are refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import InputError
from mri_design.formats import ReadLimits
from mri_design.scan.io import formats, read
from tests.refusals import refuses
from tests.scan.io.conftest import MrdFile

mrd = pytest.importorskip("mrd")


def space(x: int, y: int, width: float, height: float) -> Any:
    size, field = mrd.MatrixSizeType(x=x, y=y, z=1), mrd.FieldOfViewMm(x=width, y=height, z=5.0)
    return mrd.EncodingSpaceType(matrix_size=size, field_of_view_mm=field)


def written(path: Path, readouts: list[Any], trajectory: str = "CARTESIAN", **about: Any) -> Path:
    """A stream of acquisitions of 16 samples on 12 lines."""
    limit = mrd.LimitType(minimum=0, maximum=11, center=6)
    encoding = mrd.EncodingType(
        encoded_space=space(16, 12, 400.0, 180.0),
        recon_space=space(16, 12, 400.0, 180.0),
        encoding_limits=mrd.EncodingLimitsType(kspace_encoding_step_1=limit),
        trajectory=mrd.Trajectory[trajectory],
    )
    with mrd.BinaryMrdWriter(str(path)) as stream:
        stream.write_header(mrd.Header(encoding=[encoding], **about))
        stream.write_data(mrd.StreamItem.Acquisition(one) for one in readouts)
    return path


def readout(samples: np.ndarray, flags: str = "", **fields: Any) -> Any:
    counters = {name: fields.pop(name) for name in ("kspace_encode_step_1", "slice", "contrast") if name in fields}
    turned = fields.pop("trajectory", np.zeros((0, 0), np.float32))
    head = mrd.AcquisitionHeader(idx=mrd.EncodingCounters(**counters), sample_time_us=10.0, **fields)
    head.flags = mrd.AcquisitionFlags[flags] if flags else mrd.AcquisitionFlags(0)
    return mrd.Acquisition(head=head, data=samples.astype(np.complex64), trajectory=turned)


def lines_of(scan: np.ndarray, **fields: Any) -> list[Any]:
    return [
        readout(lines[:, line], slice=number, kspace_encode_step_1=line, **fields)
        for number, lines in enumerate(scan)
        for line in range(scan.shape[2])
    ]


def test_a_scan_is_read_as_in_version_1(tmp_path: Path, scan: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    noise = (rng.standard_normal((2, scan.shape[1], 4096)) * [[[1.0]], [[1j]]]).sum(axis=0)
    system = mrd.AcquisitionSystemInformationType(system_vendor="SIEMENS", system_field_strength_t=3.0)
    sequence = mrd.SequenceParametersType(t_r=[10.0], t_e=[3.0], flip_angle_deg=[15.0])
    readouts = [readout(noise, "IS_NOISE_MEASUREMENT"), *lines_of(scan), *lines_of(5 * scan, contrast=1)]
    path = written(tmp_path / "raw.mrd", readouts, acquisition_system_information=system, sequence_parameters=sequence)
    old = MrdFile(tmp_path, nx=16, ny=12, rx=16).add_scan(scan).read()
    got = formats.read(path)
    np.testing.assert_allclose(got.kspace, old.kspace, atol=1e-6)
    np.testing.assert_allclose(np.diag(got.noise_covariance).real, 1.0, rtol=0.1)
    assert got.geometry[0].pixel == pytest.approx((15.0, 25.0))
    assert got.source.identifiers == {"RepetitionTime": "10", "EchoTime": "3", "FlipAngle": "15"}
    np.testing.assert_allclose(formats.read(path, counters={"contrast": 1}).kspace, 5 * got.kspace, rtol=1e-5)


def test_the_phantom_of_its_own_package_is_read(tmp_path: Path) -> None:
    phantom = pytest.importorskip("mrd.tools.phantom")
    phantom.generate(str(tmp_path / "phantom.mrd"), 32, 3, 2, 1, 0.05)
    got = formats.read(tmp_path / "phantom.mrd")
    assert got.kspace.shape == (1, 3, 32, 32) and got.measured.all()
    np.testing.assert_allclose(np.diag(got.noise_covariance).real, 0.05**2, rtol=0.1)


def test_samples_along_a_trajectory_keep_their_coordinates(tmp_path: Path) -> None:
    angles = np.linspace(0, np.pi, 6, endpoint=False)
    k = np.arange(-8, 8) / 2
    spokes = [np.stack([k * np.cos(a), k * np.sin(a)]).astype(np.float32) for a in angles]  # kx, ky by sample
    samples = np.random.default_rng(0).standard_normal((6, 2, 16))
    made = [readout(s, kspace_encode_step_1=n, trajectory=spokes[n]) for n, s in enumerate(samples)]
    got = read(written(tmp_path / "spokes.mrd", made, "RADIAL"))
    np.testing.assert_allclose(got.trajectory.reshape(6, 16, 2), [spoke[::-1].T for spoke in spokes], atol=1e-6)
    np.testing.assert_allclose(got.kspace[0].reshape(2, 6, 16), samples.swapaxes(0, 1), atol=1e-6)


def test_what_is_no_whole_scan_is_refused(tmp_path: Path, scan: np.ndarray) -> None:
    path = written(tmp_path / "raw.mrd", lines_of(scan))
    refuses("raw.mrd: acquisitions", read, path, limits=ReadLimits(max_readouts=4))
    refuses("raw.mrd", read, path, limits=ReadLimits(max_bytes=1000))
    refuses("raw.mrd: acquisitions", read, written(path, []))
    refuses("raw.mrd: header: trajectory", read, written(path, lines_of(scan), "EPI"))


def test_damaged_streams_are_read_or_refused_without_a_warning(tmp_path: Path, scan: np.ndarray) -> None:
    path, rng = written(tmp_path / "raw.mrd", lines_of(scan)), np.random.default_rng(0)
    whole, refused = path.read_bytes(), 0
    for case in range(40):
        damaged = bytearray(whole)
        if case % 2:
            damaged = damaged[: int(rng.integers(5, len(whole)))]
        else:
            damaged[int(rng.integers(5, len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                assert np.isfinite(read(path).kspace).all()
            except InputError as error:
                assert str(path) in error.field
                refused += 1
    assert refused >= 20

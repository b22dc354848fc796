"""MRD files with a second phase encode: planes (ky, kz) for every readout position."""

from __future__ import annotations

from pathlib import Path

import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, KSpaceData, read
from mri_design.scan.io import ismrmrd
from mri_design.scan.io.samples import readout_positions

NY, NZ, NX, COILS = 8, 6, 12, 2


@pytest.fixture
def volume() -> np.ndarray:
    """K-space (2 coils, 8 ky, 6 kz, 12 kx), every sample different."""
    real, imaginary = np.random.default_rng(5).standard_normal((2, COILS, NY, NZ, NX))
    return (real + 1j * imaginary).astype(np.complex64)


def planes(volume: np.ndarray) -> np.ndarray:
    return readout_positions(volume.transpose(3, 0, 1, 2))


def add_volume(raw: object, volume: np.ndarray, **fields: int) -> None:
    for ky, kz in np.ndindex(volume.shape[1:3]):
        raw.add(volume[:, ky, kz], kspace_encode_step_1=ky, kspace_encode_step_2=kz, **fields)  # type: ignore[attr-defined]


def builder(mrd: type, **settings: object) -> object:
    return mrd(nx=NX, ny=NY, nz=NZ, rx=settings.pop("rx", NX), fovz=60, **settings)


def test_a_volume_becomes_a_plane_for_every_readout_position(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    add_volume(raw, volume)
    got = read(raw.write(tmp_path / "volume.h5"))
    assert isinstance(got, KSpaceData)
    np.testing.assert_allclose(got.kspace, planes(volume), atol=1e-6)
    assert got.card["volume"] == "12 readout positions, each a plane (ky, kz) of (8, 6)"
    assert got.geometry is not None and len(got.geometry) == NX
    assert got.geometry[0].pixel == (200 / NY, 60 / NZ) and got.geometry[0].thickness == 200 / NX


def test_the_same_volume_from_an_array_and_from_raw_data(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    np.savez(tmp_path / "array.npz", kspace=volume)
    (tmp_path / "array.json").write_text('{"dims": ["coil", "ky", "kz", "kx"]}')
    raw = builder(mrd)
    add_volume(raw, volume)
    got, stored = ismrmrd.read(raw.write(tmp_path / "volume.h5")), read(tmp_path / "array.npz")
    assert isinstance(got, KSpaceData) and isinstance(stored, KSpaceData)
    np.testing.assert_array_equal(got.kspace, stored.kspace)
    assert got.card["volume"] == stored.card["volume"]


def test_partitions_are_placed_by_the_centre_of_their_counter(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    raw = builder(mrd, centre=3, centre_partition=1)
    for ky, kz in ((3, 1), (2, 0), (4, 3)):
        raw.add(volume[:, ky, kz], kspace_encode_step_1=ky, kspace_encode_step_2=kz)
    got = ismrmrd.read(raw.write(tmp_path / "volume.h5"))
    assert isinstance(got, KSpaceData)
    held = np.argwhere(got.samplings[0].samples).tolist()
    assert held == [[3, 2], [4, 3], [5, 5]]
    np.testing.assert_allclose(got.kspace[:, :, 4, 3], planes(volume)[:, :, 3, 1], atol=1e-6)


@pytest.mark.parametrize(("vendor", "along"), [("SIEMENS", -1), ("", 1)])
def test_positions_outside_the_field_of_view_are_cut(
    tmp_path: Path, volume: np.ndarray, mrd: type, vendor: str, along: int
) -> None:
    system = f"<acquisitionSystemInformation><systemVendor>{vendor}</systemVendor></acquisitionSystemInformation>"
    sign = "<userParameterLong><name>fourierSign</name><value>-1</value></userParameterLong>"
    raw = builder(
        mrd,
        fov=400,
        rx=6,
        system=system if vendor else "",
        more="" if vendor else f"<userParameters>{sign}</userParameters>",
    )
    add_volume(raw, volume)
    for readout in raw.readouts:
        readout.position[:] = (0, 0, 7)
        readout.read_dir[:], readout.phase_dir[:], readout.slice_dir[:] = np.eye(3)
    got = ismrmrd.read(raw.write(tmp_path / "volume.h5"))
    assert isinstance(got, KSpaceData)
    np.testing.assert_allclose(got.kspace, planes(volume)[3:9], atol=1e-6)
    assert got.geometry is not None
    first, middle = got.geometry[0], got.geometry[3]
    assert middle.centre == (0, 0, 7) and first.centre == (-100 * along, 0, 7)
    assert (middle.phase, middle.read, middle.normal) == ((0, along, 0), (0, 0, along), (along, 0, 0))


def test_a_partial_echo_of_a_volume_is_said(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    add_volume(raw, volume[..., 4:], center_sample=2)
    got = ismrmrd.read(raw.write(tmp_path / "volume.h5"))
    assert isinstance(got, KSpaceData)
    expected = volume.copy()
    expected[..., :4] = 0
    np.testing.assert_allclose(got.kspace, planes(expected), atol=1e-6)
    assert got.card["partial_echo"].startswith("columns 0-3 of the readouts count as zeros")


def test_averages_noise_and_calibration_of_volumes(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((COILS, 256)) + 1j * rng.standard_normal((COILS, 256))
    raw.add(0.1 * noise, flag=library.ACQ_IS_NOISE_MEASUREMENT)
    for factor in (1, 3):
        add_volume(raw, factor * volume)
    add_volume(raw, volume[:, 2:5, 2:5], flag=library.ACQ_IS_PARALLEL_CALIBRATION)
    path = raw.write(tmp_path / "volume.h5")
    with pytest.raises(InputError, match="duplicates='average'"):
        ismrmrd.read(path)
    got = ismrmrd.read(path, duplicates="average")
    assert isinstance(got, KSpaceData)
    np.testing.assert_allclose(got.kspace, 2 * planes(volume), atol=1e-5)
    assert got.noise_covariance is not None and got.calibration is not None
    assert got.noise_covariance[0, 0].real == pytest.approx(0.005, rel=0.2)
    assert np.argwhere(got.calibration[0].any(axis=0)).max(axis=0).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"kspace_encode_step_2": NZ}, "kspace_encode_step_2"),
        ({"kspace_encode_step_2": 3, "kspace_encode_step_1": 4}, "kspace_encode_step_1"),
        ({"slice": 1}, "slice"),
    ],
)
def test_what_lies_outside_the_volume_is_refused(
    tmp_path: Path, volume: np.ndarray, mrd: type, fields: dict[str, int], place: str
) -> None:
    raw = builder(mrd)
    add_volume(raw, volume)
    raw.add(volume[:, 0, 0], **fields)
    with pytest.raises(InputError) as caught:
        ismrmrd.read(raw.write(tmp_path / "volume.h5"))
    assert caught.value.field.endswith(f"data[{NY * NZ}]: {place}")


def test_echo_planar_scans_are_refused_by_name(tmp_path: Path, volume: np.ndarray, mrd: type) -> None:
    raw = builder(mrd, trajectory="EPI")
    add_volume(raw, volume)
    with pytest.raises(InputError, match=r"trajectory: got epi.*phase correction.*cartesian lines"):
        ismrmrd.read(raw.write(tmp_path / "volume.h5"))

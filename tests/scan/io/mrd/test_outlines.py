"""Outlines of raw data say what reading all of it finds, from the headers and the samples of one slice."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from mri_design import InputError, KSpaceData, read
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io import ismrmrd
from mri_design.scan.io import mrd_acquisitions as acquisitions
from mri_design.scan.io.formats import outline
from mri_design.scan.io.safe import DEFAULT_LIMITS
from mri_design.scan.outline import ScanOutline
from mri_design.scan.writing.mrd import mrd_skeleton_bytes

NOISE, CALIBRATION = 19, 20


def told_and_read(path: Path, **settings: object) -> tuple[ScanOutline, KSpaceData]:
    told, scan = ismrmrd.outline(path, **settings), ismrmrd.read(path, **settings)  # type: ignore[arg-type]
    assert isinstance(told, ScanOutline) and isinstance(scan, KSpaceData)
    return told, scan


def require_alike(told: ScanOutline, scan: KSpaceData) -> None:
    """The same sizes, sampling and places, and for the one slice the same data."""
    part = scan.select_slice(told.index)
    assert told.part is not None
    np.testing.assert_allclose(told.part.kspace, part.kspace, atol=1e-6)
    for name in ("measured", "noise_covariance", "calibration"):
        np.testing.assert_array_equal(getattr(told.part, name), getattr(part, name))
    assert told.part.geometry == part.geometry and told.geometry == scan.geometry
    assert (told.n_slices, told.n_coils, told.grid_shape) == (scan.n_slices, scan.n_coils, scan.grid_shape)
    for ours, theirs in zip(told.samplings, scan.samplings, strict=True):
        np.testing.assert_array_equal(ours.samples, theirs.samples)
    assert dict(told.card) == dict(scan.card) and told.name == scan.name


@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_slices_of_lines_of_their_own_with_noise_and_calibration(
    tmp_path: Path, scan: np.ndarray, mrd: type, isolated: bool
) -> None:
    raw = mrd(nx=16, rx=8, rfov=100, centre=6, parallel="")
    raw.add(np.random.default_rng(1).standard_normal((3, 64)) + 0j, flag=NOISE)
    for line in range(2, 9):
        raw.add(scan[0, :, line], slice=0, kspace_encode_step_1=line)
    for line in range(0, 12, 2):
        raw.add(scan[1, :, line, 4:], slice=1, kspace_encode_step_1=line, center_sample=4)
    path = raw.write(tmp_path / "raw.h5")
    with pytest.raises(InputError, match="number_of_samples"):
        ismrmrd.outline(path)
    raw.readouts[8:] = []
    for line in range(0, 12, 2):
        raw.add(scan[1, :, line], slice=1, kspace_encode_step_1=line)
    for line in range(4, 8):
        raw.add(scan[1, :, line] * 2, slice=1, kspace_encode_step_1=line, flag=CALIBRATION)
    path = raw.write(tmp_path / "other.h5")
    told, whole = outline(path, isolated=isolated), read(path, isolated=False)
    assert isinstance(told, ScanOutline) and isinstance(whole, KSpaceData)
    require_alike(told, whole)
    assert told.index == 1 and told.by_headers
    assert told.card["centre_in_file"] == "kspace_encode_step_1 = 6"
    assert told.card["oversampling_removed"] == "readouts of 16 samples over 200 mm were cut to the 8 of 100 mm"


def test_a_partial_echo_of_several_slices_is_known_from_headers(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd(rx=8, rfov=100)
    for index, line in np.ndindex(2, 12):
        raw.add(scan[index, :, line, 4:], slice=index, kspace_encode_step_1=line, center_sample=4)
    told, whole = told_and_read(raw.write(tmp_path / "raw.h5"))
    require_alike(told, whole)
    assert not told.samplings[0].whole_lines


def test_averages_are_counted_over_all_slices(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add_scan(scan)
    raw.add_scan(scan[:1])
    path = raw.write(tmp_path / "raw.h5")
    require_alike(*told_and_read(path, duplicates="average"))
    assert "up to 2 readouts a line, at least 1" in told_and_read(path, duplicates="last")[0].card["duplicates"]
    with pytest.raises(InputError, match="each line once"):
        ismrmrd.outline(path)


@pytest.mark.parametrize("oversampled", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_of_a_volume_one_plane_is_made(tmp_path: Path, mrd: type, oversampled: bool, turned: bool) -> None:
    real, imaginary = np.random.default_rng(5).standard_normal((2, 2, 8, 6, 12))
    volume = (real + 1j * imaginary).astype(np.complex64)
    raw = mrd(nx=12, ny=8, nz=6, rx=6 if oversampled else 12, rfov=100 if oversampled else 200, fovz=60, centre=4)
    for ky, kz in np.ndindex(8, 6):
        if (ky + kz) % 3:
            samples = volume[:, ky, kz, ::-1] if turned else volume[:, ky, kz]
            raw.add(samples, kspace_encode_step_1=ky, kspace_encode_step_2=kz, **({"flag": 22} if turned else {}))
    told, whole = told_and_read(raw.write(tmp_path / "raw.h5"))
    require_alike(told, whole)
    assert told.index == whole.n_slices // 2


@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_readouts_of_zeros_are_no_measurement_in_any_slice(
    tmp_path: Path, scan: np.ndarray, mrd: type, isolated: bool
) -> None:
    filled = np.concatenate([scan, scan])[:3].copy()
    filled[:, :, [0, 11]] = 0  # zero-filled edges, in all slices
    filled[1, :, 5] = 0  # lost in the slice that is looked at, not in the others
    raw = mrd()
    raw.add_scan(filled)
    path = raw.write(tmp_path / "raw.h5")
    require_alike(*told_and_read(path))
    told = outline(path, isolated=isolated)
    assert isinstance(told, ScanOutline) and told.index == 1
    assert [int(sampling.lines.sum()) for sampling in told.samplings] == [10, 9, 10]


def test_labels_without_samples_have_an_outline_and_no_reading(tmp_path: Path) -> None:
    path = tmp_path / "skeleton.h5"
    path.write_bytes(mrd_skeleton_bytes(((6, 3), (1,)), (12, 16), SliceGeometry((1.5, 2.0), 5.0)))
    told = ismrmrd.outline(path)
    assert isinstance(told, ScanOutline) and told.part is None
    assert np.flatnonzero(told.samplings[0].lines).tolist() == [1, 3, 6]
    with pytest.raises(InputError, match=r"zeros in all 3 readouts.*mri-design info"):
        ismrmrd.read(path)


def test_headers_are_loaded_a_few_at_a_time(
    tmp_path: Path, scan: np.ndarray, mrd: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = mrd()
    raw.add_scan(scan)
    loaded, rows = list[int](), acquisitions._rows

    def counted(dataset: object, start: int, stop: int) -> np.ndarray:
        loaded.append(stop - start)
        return rows(dataset, start, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(acquisitions, "_rows", counted)
    monkeypatch.setattr(acquisitions, "_AT_ONCE", 5)
    told, _ = told_and_read(raw.write(tmp_path / "raw.h5"))
    assert max(loaded) == 5 and told.samplings[0].full


@pytest.mark.parametrize(
    ("layout", "loads"),
    [({"chunks": (1,)}, 0), ({"chunks": (7,)}, 0), ({"chunks": (7,), "shuffle": True}, 5), ({"chunks": None}, 5)],
    ids=["one by one", "by sevens", "filtered", "contiguous"],
)
def test_headers_are_those_of_the_library_whatever_the_layout(
    tmp_path: Path, scan: np.ndarray, mrd: type, monkeypatch: pytest.MonkeyPatch, layout: dict[str, object], loads: int
) -> None:
    raw = mrd()
    raw.add_scan(scan)
    with h5py.File(raw.write(tmp_path / "raw.h5"), "r") as written, h5py.File(tmp_path / "other.h5", "w") as other:
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
        made = acquisitions.open_acquisitions(file, "dataset/data", DEFAULT_LIMITS)
        np.testing.assert_array_equal(made.heads, heads)
        assert max(loaded, default=0) == loads

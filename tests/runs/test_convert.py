"""What is converted comes back, and what a format cannot hold is said or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import ImageStack, KSpaceData, Recipe, UsageError, load_phantom
from mri_design.experiment import SliceChoice
from mri_design.operators import equispaced_angles, radial_spokes, to_kspace
from mri_design.runs.export import convert_file, export_run
from mri_design.runs.stored_run import StoredRun, write_made_files
from mri_design.scan.io import read, read_pair, with_maps, write_json, write_npy, write_npz

nibabel = pytest.importorskip("nibabel")
pydicom = pytest.importorskip("pydicom")

SHAPE = (12, 10)
Convert = Callable[..., Path]


def _scan(coils: int = 3) -> KSpaceData:
    scan = load_phantom("brain", shape=SHAPE, n_coils=coils, rng=np.random.default_rng(0))
    measured = np.ones(SHAPE[0], dtype=bool)
    measured[[1, 4, 11]] = False
    return replace(scan, kspace=np.where(measured[:, np.newaxis], scan.kspace, 0), measured=measured)


@pytest.fixture
def scan_file(tmp_path: Path) -> Path:
    """Three coils, some lines missing, noise, maps and truth known."""
    scan = _scan()
    known = {"coil_maps": scan.coil_maps, "reference": scan.reference, "noise_variance": scan.noise_variance}
    write_npz(tmp_path / "scan.npz", {"kspace": scan.kspace, "measured": scan.measured, **known})
    return tmp_path / "scan.npz"


@pytest.fixture
def spokes_file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    kspace = rng.standard_normal((2, 2, 3, 5, 16))
    maps = rng.standard_normal((2, 3, 8, 8)) + 1j
    arrays = {
        "kspace": (kspace[0] + 1j * kspace[1]).astype(np.complex64),
        "trajectory": radial_spokes(8, equispaced_angles(5), oversampling=2),
        "matrix": np.array([8, 8]),
        "coil_maps": (maps / np.linalg.norm(maps, axis=1, keepdims=True)).astype(np.complex64),
        "noise_variance": np.float64(0.25),
    }
    write_npz(tmp_path / "spokes.npz", arrays)
    return tmp_path / "spokes.npz"


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Convert into a folder of its own and write the files: the path of the file."""

    def call(source: Path | str, name: str, **given: tuple[float, float]) -> Path:
        (tmp_path / "out").mkdir(exist_ok=True)
        write_made_files(convert_file(str(source), tmp_path / "out" / name, Recipe(), **given))
        return tmp_path / "out" / name

    return call


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.mrd", "a.cfl"])
def test_lines_come_back_from_every_format(convert: Convert, scan_file: Path, tmp_path: Path, name: str) -> None:
    before, after = read(scan_file), read(convert(scan_file, name), isolated=False)
    np.testing.assert_array_equal(after.kspace, before.kspace)
    np.testing.assert_array_equal(after.measured, before.measured)
    kept = {part for part in ("coil_maps", "noise_variance", "reference") if getattr(after, part) is not None}
    assert kept == {"a.npz": {"coil_maps", "noise_variance", "reference"}, "a.mrd": set()}.get(name, {"noise_variance"})
    for part in kept:
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    sentences = convert_file(str(scan_file), tmp_path / name, Recipe()).sentences
    assert len(sentences) > (kept != {"coil_maps", "noise_variance", "reference"})
    if name == "a.cfl":
        beside = with_maps(after, tmp_path / "out" / "a_maps.cfl")
        np.testing.assert_allclose(beside.coil_maps, before.coil_maps, atol=1e-6)


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.h5", "a.cfl"])
def test_the_covariance_of_the_noise_comes_along(convert: Convert, tmp_path: Path, name: str) -> None:
    mixing = np.eye(3) + 0.4j * np.eye(3, k=1)
    covariance = 0.01 * mixing @ mixing.conj().T
    write_npz(tmp_path / "noisy.npz", {"kspace": _scan().kspace, "noise_covariance": covariance})
    after = read(convert(tmp_path / "noisy.npz", name), isolated=False)
    np.testing.assert_allclose(after.noise_covariance, covariance, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(after.kspace, _scan().kspace)


def test_several_slices_keep_their_order(convert: Convert, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    parts = rng.standard_normal((2, 3, 2, *SHAPE))
    kspace = (parts[0] + 1j * parts[1]).astype(np.complex64)
    write_npy(tmp_path / "slices.npy", kspace)
    for name in ("a.cfl", "a.h5"):
        after = read(convert(tmp_path / "slices.npy", name), isolated=False)
        np.testing.assert_array_equal(after.kspace, kspace)


def test_sizes_come_from_the_input_or_are_given(convert: Convert, scan_file: Path) -> None:
    file = convert(scan_file, "sized.h5", field_of_view=(0.24, 0.2))
    sized, again = (read(one, isolated=False) for one in (file, convert(file, "again.h5")))
    assert sized.geometry[0].pixel == pytest.approx((20.0, 20.0))
    assert again.geometry == sized.geometry


@pytest.mark.parametrize("name", ["a.npz", "a.cfl"])
def test_samples_along_a_trajectory_come_back(convert: Convert, spokes_file: Path, tmp_path: Path, name: str) -> None:
    before, after = read(spokes_file), read(convert(spokes_file, name))
    np.testing.assert_array_equal(after.kspace, before.kspace)
    np.testing.assert_allclose(after.trajectory, before.trajectory, atol=1e-6)
    assert (after.n_readouts, after.grid_shape, after.noise_variance) == (5, (8, 8), 0.25)
    assert (tmp_path / "out" / "a_maps.cfl").exists() == (name == "a.cfl")
    with np.load(spokes_file) as stored:
        arrays = {key: stored[key] for key in stored.files if key != "noise_variance"}
    covariance = np.array([[2, 1j, 0], [-1j, 3, 0.5], [0, 0.5, 1]])
    write_npz(spokes_file.with_name("noisy.npz"), {**arrays, "noise_covariance": covariance})
    noisy = read(convert(spokes_file.with_name("noisy.npz"), f"b{name[1:]}"))
    np.testing.assert_array_equal(noisy.noise_covariance, covariance)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.nii", "a.nii.gz"])
@pytest.mark.parametrize("phase", [0, 1j])
def test_images_keep_their_values(convert: Convert, tmp_path: Path, name: str, phase: complex) -> None:
    images = np.random.default_rng(3).random((2, 6, 5)).astype(np.float32) - 0.2
    images = (images + phase).astype(np.complex64) if phase else images
    write_npz(tmp_path / "images.npz", {"image": images})
    if ".nii" in name:
        opened = nibabel.load(convert(tmp_path / "images.npz", name, field_of_view=(0.12, 0.2)))
        np.testing.assert_allclose(np.asarray(opened.dataobj).T, np.abs(images) if phase else images, rtol=1e-6)
        assert opened.header.get_zooms() == pytest.approx((40.0, 20.0, 1.0))
    elif name == "a.npy" and phase:  # it would be read as k-space
        with pytest.raises(UsageError):
            convert(tmp_path / "images.npz", name)
    else:
        after = read(convert(tmp_path / "images.npz", name))
        assert isinstance(after, ImageStack)
        np.testing.assert_array_equal(after.images, images)


def test_every_slice_is_a_dicom_file_of_one_series(convert: Convert, tmp_path: Path) -> None:
    images = np.random.default_rng(5).random((3, 6, 5)).astype(np.float32)
    write_npy(tmp_path / "images.npy", images)
    convert(tmp_path / "images.npy", "one.dcm", field_of_view=(0.12, 0.1))
    files = [pydicom.dcmread(tmp_path / "out" / f"one_{number:04d}.dcm") for number in (1, 2, 3)]
    assert len({file.SeriesInstanceUID for file in files}) == 1 and len({file.SOPInstanceUID for file in files}) == 3
    assert [file.InstanceNumber for file in files] == [1, 2, 3]
    assert files[0].PixelSpacing == [20.0, 20.0] and "SliceThickness" not in files[0]
    for file, image in zip(files, images, strict=True):
        np.testing.assert_allclose(file.pixel_array * float(file.RescaleSlope), image, atol=1e-5)
    write_npy(tmp_path / "single.npy", images[0])
    made = convert(tmp_path / "single.npy", "single.dcm").parent
    assert [path.name for path in made.glob("single*")] == ["single.dcm"]


def test_dicom_has_the_sizes_that_are_known_and_stays_the_patient_s(convert: Convert, tmp_path: Path) -> None:
    nibabel.save(nibabel.Nifti1Image(np.ones((5, 6, 1), np.float32), np.eye(4)), tmp_path / "image.nii")
    assert "PixelSpacing" not in pydicom.dcmread(convert(tmp_path / "image.nii", "a.dcm"))
    file = pydicom.dcmread(convert(tmp_path / "image.nii", "b.dcm", field_of_view=(0.24, 0.2)))
    assert list(file.PixelSpacing) == [40, 40]
    file.PatientID, file.StudyInstanceUID = "77", "1.2.3"
    file.save_as(tmp_path / "own.dcm")
    again = pydicom.dcmread(convert(tmp_path / "own.dcm", "second.dcm"))
    assert (again.PatientID, again.StudyInstanceUID) == ("77", "1.2.3")
    assert again.SourceImageSequence[0].ReferencedSOPInstanceUID == file.SOPInstanceUID != again.SOPInstanceUID


def test_what_a_format_cannot_hold_is_refused(convert: Convert, scan_file: Path, spokes_file: Path) -> None:
    folder = scan_file.parent
    write_npy(folder / "image.npy", np.ones((6, 5)))
    write_npy(folder / "volume.npy", np.ones((2, 6, 5, 4)) + 1j)
    write_json(folder / "volume.json", {"dims": ["coil", "ky", "kz", "kx"]})
    write_npy(folder / "slices.npy", np.ones((3, 1, 8, 6), dtype=np.complex64))
    for source, name in (
        *((scan_file, name) for name in ("a.nii", "a.tiff", ".h5")),
        *((spokes_file, "a.h5"), (folder / "image.npy", "a.cfl"), (folder / "volume.npy", "a.h5")),
        (f"{spokes_file}#0", "a.npz"),
    ):
        with pytest.raises(UsageError):
            convert(source, name)
    with pytest.raises(UsageError):
        convert(scan_file, "a.npz", field_of_view=(0.2, 0.2))
    plane = Recipe().replacing("design", encoding="plane")
    with pytest.raises(UsageError):
        convert_file(str(folder / "slices.npy"), folder / "a.cfl", plane)
    convert_file(str(folder / "slices.npy"), folder / "a.cfl", plane, slices=SliceChoice("1"))


def test_inputs_and_their_headers_stay_as_they_are(scan_file: Path, tmp_path: Path) -> None:
    write_made_files(convert_file(str(scan_file), tmp_path / "a.cfl", Recipe()))
    (tmp_path / "b.json").write_text("{}")
    for source, name in (
        ("scan.npz", "scan.npz"),
        *((source, "a.cfl") for source in ("a", "a.hdr", "a.cfl")),
        ("a.cfl", "a.npy"),  # whose header is the input's
        ("scan.npz", "b.npz"),  # beside which a header of something else stands
    ):
        with pytest.raises(UsageError):
            convert_file(str(tmp_path / source), tmp_path / name, Recipe())


INTEROPERABLE, LINES, WEIGHT = (16, 12), [1, 3, 5, 6, 7, 8, 9, 10, 13, 15], 0.05


@pytest.mark.slow
def test_sigpy_reconstructs_from_the_same_files(tmp_path: Path) -> None:
    """From scan.cfl, its maps and the mask of a run: the image that minimises |A u - y|^2 + weight |u|^2."""
    sigpy = pytest.importorskip("sigpy.mri.app")
    scan = load_phantom("brain", shape=INTEROPERABLE, n_coils=4, rng=np.random.default_rng(0))
    measured = np.zeros(INTEROPERABLE[0], dtype=bool)
    measured[LINES] = True
    scan = replace(scan, kspace=np.where(measured[:, np.newaxis], scan.kspace, 0), measured=measured)
    write_npz(tmp_path / "scan.npz", {"kspace": scan.kspace, "coil_maps": scan.coil_maps})
    write_made_files(convert_file(str(tmp_path / "scan.npz"), tmp_path / "scan.cfl", Recipe()))
    image = np.zeros(INTEROPERABLE, np.complex64)
    run = StoredRun(mask=measured, chosen=tuple(LINES), readouts="lines", image=image)
    write_made_files(export_run(run, tmp_path / "mask.cfl"))
    pixels = np.eye(INTEROPERABLE[0] * INTEROPERABLE[1]).reshape(-1, 1, *INTEROPERABLE)
    columns = to_kspace(scan.coil_maps[0] * pixels)[:, :, measured].reshape(len(pixels), -1)
    precision = columns.conj() @ columns.T + WEIGHT * np.eye(len(pixels))
    expected = np.linalg.solve(precision, columns.conj() @ scan.kspace[0][:, measured].ravel()).reshape(INTEROPERABLE)
    mask, data, maps = (read_pair(tmp_path / name).squeeze().T for name in ("mask", "scan", "scan_maps"))
    solved = sigpy.SenseRecon(data, maps, lamda=WEIGHT, weights=mask.real, max_iter=200, show_pbar=False).run()
    assert np.linalg.norm(solved - expected) < 1e-3 * np.linalg.norm(expected)


def test_a_volume_goes_to_bart_and_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    stored = (rng.standard_normal((3, 8, 6, 12)) + 1j * rng.standard_normal((3, 8, 6, 12))).astype(np.complex64)
    stored[:, 2, 3] = 0
    np.save(tmp_path / "volume.npy", stored)
    (tmp_path / "volume.json").write_text(json.dumps({"dims": ["coil", "ky", "kz", "kx"], "noise_variance": 0.5}))
    write_made_files(convert_file(str(tmp_path / "volume.npy"), tmp_path / "bart.cfl", Recipe()))
    np.testing.assert_allclose(read_pair(tmp_path / "bart").squeeze(), stored.transpose(3, 1, 2, 0), atol=1e-5)
    first, again = read(tmp_path / "volume.npy"), read(tmp_path / "bart.cfl")
    assert again.noise_variance == 0.5
    np.testing.assert_allclose(again.kspace, first.kspace, atol=1e-5)
    assert np.argwhere(~again.samplings[0].samples).tolist() == [[2, 3]]
    write_made_files(convert_file(str(tmp_path / "bart.cfl"), tmp_path / "one.cfl", Recipe(), slices=SliceChoice("4")))
    assert read_pair(tmp_path / "one").shape[:4] == (1, 8, 6, 3)
    alone = read(tmp_path / "one.cfl")  # noise alone, which does not look like a plane: the header says it
    np.testing.assert_allclose(alone.kspace, first.kspace[4:5], atol=1e-5)

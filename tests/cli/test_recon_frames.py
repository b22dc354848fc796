"""Reconstructions of every repetition, contrast, phase or set of raw data: a further axis of files and report."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.runs.export import export_run
from tests.cli.folders import Run, manifest, rows
from tests.refusals import refused
from tests.scan.io.conftest import MrdFile

nibabel = pytest.importorskip("nibabel")

SHAPE, REPETITIONS, SLICES = (24, 20), (0, 2, 5), 2
RECIPE = '[reconstruction]\nmethod = "zero-filled"\n[noise]\nvariance = 4e-4\n'


@pytest.fixture(scope="module")
def kspace() -> np.ndarray:
    """Images (repetition, slice, ky, kx) of a head, each of another brightness."""
    scan = load_phantom("brain", shape=SHAPE, noise=0.0, rng=np.random.default_rng(0)).kspace[0, 0]
    brightness = 1 + np.arange(len(REPETITIONS) * SLICES).reshape(-1, SLICES, 1, 1)
    rng, shape = np.random.default_rng(1), (len(REPETITIONS), SLICES, *SHAPE)
    noise = 0.02 * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    return (brightness * scan + noise).astype(np.complex64)


def raw(folder: Path, **more: str) -> MrdFile:
    return MrdFile(folder, nx=SHAPE[1], ny=SHAPE[0], rx=SHAPE[1], **more)


@pytest.fixture(scope="module")
def series(kspace: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of three repetitions, a recipe beside it."""
    folder = tmp_path_factory.mktemp("series")
    (folder / "plain.toml").write_text(RECIPE)
    file = raw(folder)
    for number, frame in zip(REPETITIONS, kspace, strict=True):
        file.add_scan(frame[:, None], repetition=number)
    return file.write("series.h5")


def words(series: Path, *more: object) -> tuple[object, ...]:
    return ("recon", series, "--recipe", series.parent / "plain.toml", "--jobs", 1, *more)


@pytest.fixture(scope="module")
def every(run: Run, series: Path) -> Path:
    """All repetitions."""
    run(*words(series, "--repetition", "all", "--out", series.parent / "all"), code=(0, 4))
    return series.parent / "all"


def test_every_repetition_is_a_frame_of_all_files(run: Run, series: Path, every: Path, tmp_path: Path) -> None:
    out = every
    images = np.load(out / "recon.npy")
    assert images.shape == (3, SLICES, *SHAPE) and images.dtype == np.complex64
    run(*words(series, "--repetition", 2, "--no-report", "--out", tmp_path / "one"), code=(0, 4))
    np.testing.assert_array_equal(images[1], np.load(tmp_path / "one" / "recon.npy"))
    own = [row for row in rows(out / "metrics.csv") if row["method"] == "zero-filled"]
    assert [(row["repetition"], row["slice"]) for row in own[:-1]] == [(f, s) for f in "025" for s in "01"]
    assert (own[-1]["repetition"], own[-1]["slice"]) == ("all", "all")
    settings = manifest(out)["settings"]
    assert settings["frames"] == {"axis": "repetition", "numbers": [0, 2, 5]}
    assert settings["slice_numbers"] == [0, 1] and "left_out_of_scan" not in settings


def test_nifti_has_repetitions_along_its_fourth_axis_and_dicom_is_refused(
    run: Run, every: Path, tmp_path: Path
) -> None:
    out = every
    run("export", out, "--to", "nifti", "--out", tmp_path / "all.nii.gz", code=0)
    read = nibabel.load(tmp_path / "all.nii.gz")
    assert read.shape == (SHAPE[1], SHAPE[0], SLICES, 3)
    np.testing.assert_allclose(read.header.get_zooms()[:3], (10, 200 / 24, 5), rtol=1e-6)
    np.testing.assert_array_equal(read.get_fdata(dtype=np.float32).T, np.abs(np.load(out / "recon.npy")))
    run("export", out, "--to", "dicom", "--out", tmp_path / "all.dcm", code=2)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("slice_geometries", [{"pixel_mm": [8, 10], "thickness_mm": 5}] * 5, "slice_geometries"),
        ("frames", {"axis": "echo", "numbers": [0, 2, 5]}, "frames"),
        ("frames", {"axis": "set", "numbers": [0]}, "recon.npy"),
    ],
)
def test_a_folder_whose_frames_contradict_each_other_is_refused(
    every: Path, tmp_path: Path, name: str, value: object, field: str
) -> None:
    found = shutil.copytree(every, tmp_path / "copy")
    stored = manifest(found)
    stored["settings"][name] = value
    (found / "manifest.json").write_text(json.dumps(stored))
    with refused(field):
        export_run(found, "nifti", tmp_path / "all.nii")


def test_several_coils_and_one_slice(run: Run, kspace: np.ndarray, tmp_path: Path) -> None:
    times = "<sequenceParameters><TE>10</TE><TE>25</TE></sequenceParameters>"
    file, coils = raw(tmp_path, more=times), np.array([1.0, 0.8 + 0.3j])[:, None, None]
    rng, sd = np.random.default_rng(8), 1e-3 * np.abs(kspace).max()
    for number in (1, 0):
        noise = sd * rng.standard_normal((2, 1, 2, *kspace.shape[-2:]))  # each coil has noise of its own
        samples = kspace[number, :1, None] * coils + noise[0] + 1j * noise[1]
        file.add_scan(samples.astype(np.complex64), contrast=number)
    (tmp_path / "plain.toml").write_text(f"{RECIPE}[coils]\ncalibration_lines = 12\n")
    path, out = file.write("echoes.h5"), tmp_path / "out"
    run(*words(path, "--contrast", "all", "--out", out), code=(0, 4))
    assert np.load(out / "recon.npy").shape == (2, 1, *SHAPE)
    assert np.load(out / "coil_maps.npy").shape == (2, 1, 2, *SHAPE)
    sources = manifest(out)["settings"]["source_images"]
    assert [source["identifiers"]["EchoTime"] for source in sources] == ["10", "25"]
    made = export_run(out, "nifti", tmp_path / "echoes.nii")
    assert nibabel.Nifti1Image.from_bytes(made.files[tmp_path / "echoes_maps.nii"]).shape == (20, 24, 1, 2)


def test_frames_that_do_not_fit_are_refused_by_name(run: Run, kspace: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(RECIPE)
    missing = raw(tmp_path).add_scan(kspace[0][:, None], repetition=0).add_scan(kspace[1][:1, None], repetition=3)
    other = raw(tmp_path).add_scan(kspace[0][:, None], set=0)
    other.add_scan(np.stack([kspace[1], 2j * kspace[2]], 1), set=4)
    for name, file, axis in (("missing", missing, "repetition"), ("other", other, "set")):
        run(*words(file.write(f"{name}.h5"), f"--{axis}", "all", "--out", tmp_path / "x"), code=3)
        assert not (tmp_path / "x").exists()

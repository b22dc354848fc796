"""Reconstructions of several slices and frames: each as alone, in any number of processes, kept when interrupted."""

from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design import load_phantom
from mri_design.runs import recon as recon_run
from tests.cli.folders import Run, manifest, rows
from tests.interruptions import stopping
from tests.scan.io.conftest import MrdFile

PLAIN = '[reconstruction]\nmethod = "zero-filled"\n[inference]\nsamples = 2\nloops = 1\ntolerance = 0.5\n'
PLAIN_OF_COILS = f"{PLAIN}[coils]\nmaps = 'auto:12'\n"
COUNT = 4


@pytest.fixture(scope="module")
def stack(work: Path) -> Path:
    """Four slices of one coil, all different, whose noise and truth are known."""
    scan = np.load(work / "scan.npz")
    parts = [scan["kspace"] * np.exp(0.3j * k) * (1 + k) for k in range(COUNT)]
    truths = [scan["reference"] * np.exp(0.3j * k) * (1 + k) for k in range(COUNT)]
    known = {"reference": np.concatenate(truths), "noise_variance": scan["noise_variance"]}
    np.savez(work / "four.npz", kspace=np.concatenate(parts), **known)
    return work / "four.npz"


@pytest.fixture(scope="module")
def volume_run(run: Run, stack: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All slices, in two processes."""
    out = tmp_path_factory.mktemp("volume") / "all"
    run("recon", stack, "--recipe", "quick.toml", "--jobs", 2, "--out", out, code=(0, 4))
    return out


def test_all_slices_are_reconstructed_and_each_is_the_image_that_it_is_alone(
    run: Run, stack: Path, volume_run: Path, tmp_path: Path
) -> None:
    images, stds = np.load(volume_run / "recon.npy"), np.load(volume_run / "std.npy")
    assert images.shape == (COUNT, 24, 20) and images.dtype == np.complex64
    assert stds.shape == images.shape and stds.dtype == np.float32
    table = rows(volume_run / "metrics.csv")
    assert [row["slice"] for row in table] == [*"00112233", "all", "all"]
    words = ("recon", stack, "--recipe", "quick.toml", "--no-report")
    run(*words, "--slice", "3,1", "--out", tmp_path / "two", code=(0, 4))
    np.testing.assert_array_equal(np.load(tmp_path / "two" / "recon.npy"), images[[3, 1]])
    assert manifest(tmp_path / "two")["settings"]["slice_numbers"] == [3, 1]
    for number in (0, COUNT - 1):
        alone = tmp_path / str(number)
        run(*words, "--slices", number, "--out", alone, code=(0, 4))
        np.testing.assert_array_equal(np.load(alone / "recon.npy"), images[number])
        np.testing.assert_array_equal(np.load(alone / "std.npy"), stds[number])
        own = [{name: row[name] for name in row if name != "slice"} for row in table if row["slice"] == str(number)]
        assert rows(alone / "metrics.csv") == own


def test_an_interrupted_volume_goes_on_with_the_slices_that_are_left(
    run: Run, stack: Path, volume_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("recon", stack, "--recipe", "quick.toml", "--jobs", 1, "--out", out)
    with stopping(recon_run, "slice_image", 2):
        run(*words, code=130)
    with stopping(recon_run, "slice_image") as made:
        run(*words, "--resume", code=(0, 4))
    assert [item.number for _, item in made] == [2, 3]
    for name in ("recon.npy", "std.npy", "metrics.csv", "mask.npy"):
        assert (out / name).read_bytes() == (volume_run / name).read_bytes()


def test_slices_of_noise_and_of_air_are_told_and_one_of_zeros_refused(run: Run, stack: Path, tmp_path: Path) -> None:
    scan, rng = dict(np.load(stack)), np.random.default_rng(0)
    sd, shape = float(np.sqrt(scan["noise_variance"])), scan["kspace"].shape[1:]
    scan["kspace"][1] = sd * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    scan["reference"][1] = 0
    np.savez(tmp_path / "noisy.npz", **scan)
    (tmp_path / "plain.toml").write_text(PLAIN)
    words, out = ("--recipe", tmp_path / "plain.toml", "--out"), tmp_path / "noisy"
    run("recon", tmp_path / "noisy.npz", "--method", "map", *words, out, code=(0, 4))
    assert manifest(out)["settings"]["slices_of_noise"] == [1]
    assert {row["slice"] for row in rows(out / "metrics.csv") if not row["relative_l2"]} == {"1"}
    images = np.load(out / "recon.npy")
    assert np.isfinite(images).all() and (np.abs(images).max(axis=(1, 2)) > 0).all()
    run("design", tmp_path / "noisy.npz", "--slices", 1, "--lines", 8, "--out", tmp_path / "none", code=3)
    scan["kspace"][2] = 0
    np.savez(tmp_path / "empty.npz", kspace=scan["kspace"], noise_variance=scan["noise_variance"])
    run("recon", tmp_path / "empty.npz", *words, tmp_path / "x", code=3)
    assert not (tmp_path / "x").exists() and not (tmp_path / "none").exists()


def test_slices_of_several_coils_share_noise_and_phase(run: Run, tmp_path: Path) -> None:
    scan = load_phantom("brain", shape=(32, 32), n_coils=3, noise=0.02, rng=np.random.default_rng(1))
    rng, shape = np.random.default_rng(2), scan.kspace.shape
    noise = 0.02 * (rng.standard_normal((3, *shape[1:])) + 1j * rng.standard_normal((3, *shape[1:])))
    kspace = (scan.kspace + noise).astype(np.complex64)
    np.savez(tmp_path / "coils.npz", kspace=kspace)
    (tmp_path / "coils-plain.toml").write_text(PLAIN_OF_COILS)
    words = ("--recipe", tmp_path / "coils-plain.toml")
    run("recon", tmp_path / "coils.npz", *words, "--jobs", 1, "--out", tmp_path / "all", code=0)
    maps, images = np.load(tmp_path / "all" / "coil_maps.npy"), np.load(tmp_path / "all" / "recon.npy")
    assert maps.shape == (3, 3, 32, 32)
    assert " 3 " in manifest(tmp_path / "all")["settings"]["noise_source"]
    # The same object in all slices: nothing but noise makes their phases differ.
    turned = np.sum(images[0].conj() * images[1]) / np.linalg.norm(images[0]) / np.linalg.norm(images[1])
    assert turned.real > 0.95
    # With the noise and the maps of the volume, a slice alone is the same image.
    known = tmp_path / "known.toml"
    known.write_text(f"input.noise = {8e-4**0.5}\n{PLAIN_OF_COILS}")
    for name, chosen in (("volume", ()), ("alone", ("--slices", 2))):
        given = ("--recipe", known, "--maps", tmp_path / "all" / "coil_maps.npy", "--jobs", 1, "--no-report")
        run("recon", tmp_path / "coils.npz", *given, *chosen, "--out", tmp_path / name, code=0)
    both = [np.load(tmp_path / name / "recon.npy") for name in ("volume", "alone")]
    np.testing.assert_array_equal(both[0][2], both[1])
    # Coils are combined slice by slice, and each says what it loses.
    fewer = ("-s", "coils.coil_compression=2", "--jobs", 1, "--out", tmp_path / "fewer")
    run("recon", tmp_path / "coils.npz", "--recipe", known, *fewer, code=0)
    lost = manifest(tmp_path / "fewer")["settings"]["coil_compression_lost"]
    assert len(lost) == 3 and len(set(lost)) == 3


SHAPE, REPETITIONS, SLICES = (24, 20), (0, 2, 5), 2
ZERO_FILLED = '[reconstruction]\nmethod = "zero-filled"\n[input]\nnoise = 0.02\n'


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
    (folder / "plain.toml").write_text(ZERO_FILLED)
    file = raw(folder)
    for number, frame in zip(REPETITIONS, kspace, strict=True):
        file.add_scan(frame[:, None], repetition=number)
    return file.write("series.h5")


def frames_of(series: Path, *more: object) -> tuple[object, ...]:
    return ("recon", series, "--recipe", series.parent / "plain.toml", "--jobs", 1, *more)


@pytest.fixture(scope="module")
def every(run: Run, series: Path) -> Path:
    """All repetitions."""
    run(*frames_of(series, "-s", "input.series.repetition=all", "--out", series.parent / "all"), code=(0, 4))
    return series.parent / "all"


def test_every_repetition_is_a_frame_of_all_files(run: Run, series: Path, every: Path, tmp_path: Path) -> None:
    out = every
    images = np.load(out / "recon.npy")
    assert images.shape == (3, SLICES, *SHAPE) and images.dtype == np.complex64
    read = md.load_run(out)
    assert (read.frames, read.array.shape) == ((0, 2, 5), images.shape) and read._repr_html_().count("<img") == SLICES
    run(*frames_of(series, "-s", "input.series.repetition=2", "--no-report", "--out", tmp_path / "one"), code=(0, 4))
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
    nibabel = pytest.importorskip("nibabel")
    out = every
    run("export", out, "--out", tmp_path / "all.nii.gz", code=0)
    read = nibabel.load(tmp_path / "all.nii.gz")
    assert read.shape == (SHAPE[1], SHAPE[0], SLICES, 3)
    np.testing.assert_allclose(read.header.get_zooms()[:3], (10, 200 / 24, 5), rtol=1e-6)
    np.testing.assert_array_equal(read.get_fdata(dtype=np.float32).T, np.abs(np.load(out / "recon.npy")))
    run("export", out, "--out", tmp_path / "all.dcm", code=2)


def test_frames_that_do_not_fit_are_refused_by_name(run: Run, kspace: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(ZERO_FILLED)
    missing = raw(tmp_path).add_scan(kspace[0][:, None], repetition=0).add_scan(kspace[1][:1, None], repetition=3)
    other = raw(tmp_path).add_scan(kspace[0][:, None], set=0)
    other.add_scan(np.stack([kspace[1], 2j * kspace[2]], 1), set=4)
    for name, file, axis in (("missing", missing, "repetition"), ("other", other, "set")):
        run(*frames_of(file.write(f"{name}.h5"), "-s", f"input.series.{axis}=all", "--out", tmp_path / "x"), code=3)
        assert not (tmp_path / "x").exists()

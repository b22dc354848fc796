"""`measure --fit`: a map of what echoes show as NIfTI, means of its regions, in Python alike, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.evaluation import read_csv
from mri_design.runs.maps import fit_run
from mri_design.runs.stored_run import StoredRun, read_run
from mri_design.scan.geometry import SliceGeometry
from tests.cli.folders import Run
from tests.refusals import refused
from tests.stored_runs import left

nibabel = pytest.importorskip("nibabel")
SHAPE, ECHOES = (24, 20), np.array([10.0, 20, 30, 40, 60])
T2 = np.where(np.arange(20) < 10, 40.0, 80.0) * np.ones(SHAPE)
TIMES = "10,20,30,40,60"


@pytest.fixture(scope="module")
def echoes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run of five echoes of one slice, and regions."""
    folder, rng = tmp_path_factory.mktemp("echoes"), np.random.default_rng(0)
    clean = np.exp(1j) * np.exp(-ECHOES[:, None, None] / T2)
    clean[:, :3] = 0

    def noise(*shape: int) -> np.ndarray:
        return np.asarray(0.02 * (rng.normal(size=shape) + 1j * rng.normal(size=shape)))

    image = (clean + noise(5, *SHAPE)).astype(np.complex64)[:, None]
    run = StoredRun(
        readouts="lines",
        name="run",
        mask=np.arange(24) > 3,
        chosen=tuple(range(4, 24)),
        acceleration=1.2,
        image=image,
        std=np.full(image.shape, 0.02 * np.sqrt(2), np.float32),
        draws=(image[:, :, None] + noise(5, 1, 8, *SHAPE)).astype(np.complex64),
        numbers=(0,),
        frames=(0, 1, 2, 3, 4),
        axis="contrast",
        places=(SliceGeometry((2.0, 1.0), 4.0),) * 5,
    )
    left(folder / "run", run)
    one = replace(run, image=image[0], std=run.std[0], draws=run.draws[0], frames=(), axis="", places=())
    left(folder / "one", one)
    left(folder / "plain", replace(run, draws=None))
    left(folder / "few", replace(run, draws=run.draws[:, :, :3]))
    labels = np.zeros(SHAPE, np.int16)
    labels[6:12, 2:8], labels[6:12, 12:18] = 1, 2
    np.save(folder / "labels.npy", labels)
    np.save(folder / "air.npy", np.arange(24)[:, None] + np.zeros(20) < 2)
    return folder


def test_a_map_and_its_regions_stand_in_the_run_and_in_python_alike(run: Run, echoes: Path, tmp_path: Path) -> None:
    words = ("--fit", "T2", "--echo-times", TIMES, "--region", echoes / "labels.npy", "--out", tmp_path)
    said = run("measure", echoes / "run", *words, drawn=True, code=0).stdout
    rows = read_csv(tmp_path / "measures.csv")
    assert [row["region"] for row in rows] == ["labels 1", "labels 2", "labels 1 - labels 2"]
    for row, true in zip(rows, (40, 80, -40), strict=True):
        assert row["from 95 %"] < true < row["to 95 %"] and row["sd"] < 3
    image = nibabel.load(tmp_path / "map.nii.gz")
    made = md.load_run(echoes / "run")
    assert isinstance(made, StoredRun) and "labels 1 - labels 2" in said
    assert image.header.get_zooms()[:3] == (1.0, 2.0, 4.0)
    values, flags = (
        np.asarray(nibabel.load(tmp_path / f"map{mark}.nii.gz").dataobj)[..., 0].T for mark in ("", "_identified")
    )
    np.testing.assert_array_equal(np.isfinite(values), flags == 1)
    assert flags[:3].mean() < 0.2 and flags[4:, :10].mean() > 0.95
    assert np.nanmedian(values[4:, :10]) == pytest.approx(40, rel=0.03)
    assert (tmp_path / "figures" / "map.svg").is_file() and (tmp_path / "figures" / "regions.svg").is_file()


def test_all_that_is_identified_is_measured_where_no_region_is_given(run: Run, echoes: Path, tmp_path: Path) -> None:
    words = ("--fit", "t2", "--echo-times", "0.01s,0.02s,0.03s,0.04s,0.06s", "--complex", "--no-report")
    run("measure", echoes / "run", *words, "--out", tmp_path, code=0)
    (row,) = read_csv(tmp_path / "measures.csv")
    assert row["mean"] == pytest.approx(60, rel=0.06) and not (tmp_path / "figures").exists()


def test_what_does_not_fit_is_refused(run: Run, echoes: Path, tmp_path: Path) -> None:
    fit, out = ("--fit", "T2", "--echo-times"), ("--out", tmp_path / "out", "--no-report")
    for folder, words in (
        ("run", (*fit, "10,20,30,40")),
        ("run", (*fit, "10,20,30,60,40")),
        ("run", ("--fit", "T9", "--echo-times", TIMES)),
        ("run", ("--fit", "T2")),
        ("run", (*fit, TIMES, "--frame", "1")),
        ("run", (*fit, TIMES, "--against", echoes / "labels.npy")),
        ("run", ("--fit", "ADC", "--echo-times", TIMES)),
        ("run", ("--fit", "T2", "--inversion-times", TIMES)),
        ("run", ("--region", echoes / "labels.npy", "--echo-times", TIMES)),
        ("run", ()),
        ("one", (*fit, TIMES)),
        ("plain", (*fit, TIMES)),
    ):
        run("measure", echoes / folder, *words, *out, code=2)
    run("measure", echoes / "few", *fit, TIMES, *out, code=3)
    run("measure", echoes / "run", *fit, TIMES, "--region", echoes / "air.npy", *out, code=3)
    with refused("air"):
        fit_run(read_run(echoes / "run"), "T2", ECHOES).measure(echoes / "air.npy")
    assert not (tmp_path / "out").exists()


def test_the_pull_of_the_prior_is_taken_off(echoes: Path) -> None:
    stored = read_run(echoes / "run")
    pulled = replace(stored, pull=np.full(stored.image.shape, 0.04, np.float32))
    assert np.nanmean(fit_run(pulled, "T2", ECHOES).value) > 1.05 * np.nanmean(fit_run(stored, "T2", ECHOES).value)


def test_a_series_is_the_same_in_python_and_its_frames_have_the_same_lines(
    run: Run, work: Path, echoes: Path, tmp_path: Path
) -> None:
    clean, axes = np.zeros((2, 24, 20)), (-2, -1)
    clean[:, 5:17, 4:14] = np.reshape([40.0, 25.0], (2, 1, 1))
    noise = np.random.default_rng(0).normal(size=(2, 2, 24, 20))
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(clean, axes), norm="ortho"), axes) + noise[0] + 1j * noise[1]
    kspace[1, 3] = 0
    np.save(tmp_path / "echoes.npy", kspace.astype(np.complex64))
    read = ("-s", "input.dims=contrast,ky,kx", "-s", "input.series.contrast=all", "--noise", 1)
    words = ("--recipe", "quick-local.toml", "--no-report", "--draws", 4, "--out", tmp_path / "out")
    run("recon", tmp_path / "echoes.npy", *read, *words, code=(0, 4))
    read_again = md.load_run(tmp_path / "out")
    scan = md.load(tmp_path / "echoes.npy", dims="contrast,ky,kx", noise=1, recipe=work / "quick-local.toml")
    image = scan.reconstruct(series="contrast", draws=4)
    for part in ("image", "std", "draws"):
        np.testing.assert_array_equal(getattr(image, part), getattr(read_again, part))
    assert image.reference is None and read_again.reference is None  # the first frame alone has one
    region = echoes / "labels.npy"
    for made in (image, read_again):
        first, second = (made.measure(region, frame=frame)[0].value for frame in (0, 1))
        assert first != second and first == pytest.approx(np.abs(image.image[0, 0, 6:12, 2:8]).mean())
        with refused("lines"):
            made.fit("T2", ECHOES[:2])
    maps = [replace(made, same_lines=True).fit("T2", ECHOES[:2]) for made in (image, read_again)]
    np.testing.assert_array_equal(maps[0].value, maps[1].value)
    with refused("series"):
        md.load(kspace, dims="contrast,ky,kx", noise=1).reconstruct(series="contrast")

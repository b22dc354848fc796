"""`--with slices` and `--with frames`: neighbours within one file are other images of the object for each other."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from ismrmrd.serialization import ProtocolSerializer
from ismrmrd.xsd import CreateFromDocument

import mri_design as md
from mri_design.experiment import Around, load_recipe
from mri_design.readouts import LineReadouts
from mri_design.runs.design.companions import other_frames
from mri_design.runs.recon import run as recon_run
from tests.cli.folders import Run, rows, settings
from tests.interruptions import stopping
from tests.quick_recipes import quickened
from tests.refusals import refused
from tests.scan.io.conftest import MrdFile
from tests.two_contrasts import FIRST, head, scanned, some_lines

GRID = 40
QUICK = quickened(
    "local", '[inference]\nsamples = 2\nloops = 2\n[noise]\nvariance = 5e-5\n[phase]\nmodel = "modulus"\n'
)


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three slices that hardly differ, the first of noise; and a mask."""
    folder, truth = tmp_path_factory.mktemp("exam"), head(FIRST)[12:-12, 12:-12]
    parts = [scanned(level * truth, 0.007, seed) for seed, level in enumerate((0.0, 1.0, 0.7))]
    np.save(folder / "three.npy", np.stack(parts)[:, None])
    np.save(folder / "truth.npy", truth)
    np.save(folder / "mask.npy", np.isin(np.arange(GRID), some_lines(18, GRID)))
    (folder / "quick.toml").write_text(QUICK)
    return folder


def asked(exam: Path, *more: object) -> tuple[object, ...]:
    shared = ("--mask", exam / "mask.npy", "--recipe", exam / "quick.toml", "--jobs", 1)
    return ("recon", exam / "three.npy", *shared, "--with", "slices", *more)


def test_slices_know_their_neighbours_and_an_interrupted_run_goes_on(run: Run, exam: Path, tmp_path: Path) -> None:
    out, quiet = tmp_path / "all", ("--no-report", "--resume")
    with stopping(recon_run, "neighbour_image", 1) as first, stopping(recon_run, "slice_image") as made:
        run(*asked(exam, "--out", out, *quiet), code=130)
    assert (len(first), len(made)) == (1, 0)
    with stopping(recon_run, "neighbour_image") as others, stopping(recon_run, "slice_image", 1) as made:
        run(*asked(exam, "--out", out, *quiet), code=130)
    assert (len(others), len(made)) == (2, 1)
    with stopping(recon_run, "neighbour_image") as others, stopping(recon_run, "slice_image") as made:
        run(*asked(exam, "--out", out, *quiet), code=(0, 4))
    assert (len(others), len(made)) == (0, 2)
    assert not list(out.glob("neighbours-*"))
    own = [
        row["other images"] for row in rows(out / "metrics.csv") if row["method"] == "mean" and row["slice"] != "all"
    ]
    assert own[1:] == ["mean of slices 0 and 2", "slice 1"]  # the first one is of noise, and nothing of it
    images, truth = np.load(out / "recon.npy"), np.load(exam / "truth.npy")
    scan, mask = md.load(exam / "three.npy", recipe=str(exam / "quick.toml")), np.load(exam / "mask.npy")
    np.testing.assert_array_equal(scan.reconstruct(mask, slices=1, companions=["slices"]).array, images[1])
    plain = scan.reconstruct(mask, slices=1).array
    assert np.linalg.norm(np.abs(images[1]) - truth) < np.linalg.norm(np.abs(plain) - truth)


def test_slices_of_one_mask_know_each_other(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("--lines", 16, "--start", 8, "--strategy", "low-pass", "--recipe", exam / "quick.toml", "--jobs", 1)
    design = ("design", exam / "three.npy", *asked, "--no-report", "--trust-companion")
    run(*design, "--slices", "1,2", "--with", "slices", "--out", tmp_path / "cli")
    run(*design, "--slices", "1,2", "--out", tmp_path / "plain")
    assert not np.array_equal(*(np.load(tmp_path / name / "recon.npy") for name in ("cli", "plain")))


def test_frames_know_earlier_and_later_ones(run: Run, exam: Path, tmp_path: Path) -> None:
    file, mask = MrdFile(tmp_path, nx=GRID, ny=GRID, rx=GRID), np.load(exam / "mask.npy")
    for number, frame in zip((0, 3), np.load(exam / "three.npy")[1:, None], strict=True):
        file.add_scan(frame * mask[:, None], contrast=number)
    command = ("recon", file.write("echoes.h5"), "--recipe", exam / "quick.toml", "--mask", exam / "mask.npy")
    out = ("--jobs", 1, "--no-report", "--out", tmp_path / "out")
    run(*command, "--contrast", "all", "--with", "frames", *out, code=(0, 4))
    assert [row["other images"] for row in rows(tmp_path / "out" / "metrics.csv")[::2][:2]] == [
        "contrast 3",
        "contrast 0",
    ]
    run(*command, "--with", "frames", *out, "--overwrite", code=2)


@pytest.mark.parametrize("axis", ["contrast", "repetition"])
def test_a_design_knows_of_other_frames_what_was_measured_before(exam: Path, tmp_path: Path, axis: str) -> None:
    other, frame, later = np.load(exam / "three.npy")[[1, 2, 1], None]
    recipe, lines = load_recipe(exam / "quick.toml"), np.isin(np.arange(GRID), some_lines(18, GRID))

    def told(number: int, *frames: np.ndarray) -> dict[str, np.ndarray]:
        file = MrdFile(tmp_path, nx=GRID, ny=GRID, rx=GRID)
        for count, kspace in enumerate(frames):
            file.add_scan(kspace, **{axis: count})
        one = recipe.replacing("input", **{axis: number})
        found = other_frames(str(file.write("frames.h5")), one, None, 0, Around(frames=1), 0)
        return {each.name: each.told(lines, LineReadouts((GRID, GRID)), one, 0) for each in found}

    image = told(1, other, frame, later)
    assert list(image) == [f"{axis} {number}" for number in ((0, 2) if axis == "contrast" else (0,))]
    unseen = np.where(lines[:, None], other, 9 * later[..., ::-1])
    for name, shown in told(1, unseen, frame, np.where(lines[:, None], later, 7)).items():
        assert np.array_equal(shown, image[name]) == (axis == "contrast")
    if axis == "repetition":
        with refused("companions"):
            told(0, other, frame)


def test_the_image_of_a_design_knows_an_earlier_repetition_that_lay_elsewhere(
    run: Run, exam: Path, tmp_path: Path
) -> None:
    file = MrdFile(tmp_path, nx=GRID, ny=GRID, rx=GRID)
    for number, frame in enumerate((scanned(np.roll(np.load(exam / "truth.npy"), 2, 0), 0.007), None)):
        file.add_scan(np.load(exam / "three.npy")[1:2] if frame is None else frame[None, None], repetition=number)
    asked = ("--lines", 16, "--start", 8, "--strategy", "low-pass", "--recipe", exam / "quick.toml")
    asked = (*asked, "--trust-companion")
    design = ("design", file.write("series.h5"), *asked, "--with", "frames", "--no-report")
    run(*design, "--repetition", 1, "--out", tmp_path / "out", code=(0, 4))
    told = settings(tmp_path / "out")["companions"]
    with h5py.File(tmp_path / "series.h5") as stored, (tmp_path / "stream.bin").open("wb") as stream:
        said = ProtocolSerializer(stream)
        said.serialize(CreateFromDocument(stored["dataset/xml"][0]))
        for readout in file.readouts:
            said.serialize(readout)
    adapt = ("adapt", tmp_path / "stream.bin", *asked, "--with", "frames", "--no-report")
    run(*adapt, "--repetition", 1, "--out", tmp_path / "adapt", code=(0, 4))
    assert settings(tmp_path / "adapt")["companions"] == told
    images = [np.load(tmp_path / name / "recon.npy") for name in ("out", "adapt")]
    np.testing.assert_allclose(*images, rtol=1e-5, atol=1e-5 * np.abs(images[0]).max())

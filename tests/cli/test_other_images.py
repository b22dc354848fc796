"""`--with`: other images of the object in the prior, from files and from the slices and frames of the scan itself."""

import json
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.experiment import NeighbourCounts, load_recipe
from mri_design.readouts import LineReadouts
from mri_design.runs import recon as recon_run
from mri_design.runs import study as comparison_pieces
from mri_design.runs.companions import other_frames
from tests.cli.folders import Run, manifest, rows, settings
from tests.interruptions import stopping
from tests.quick_recipes import quickened
from tests.refusals import refused
from tests.scan.io.conftest import MrdFile
from tests.two_contrasts import FIRST, OTHER, head, scanned, some_lines


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two contrasts of one head: k-space of one, an image of the other, and a mask."""
    folder = tmp_path_factory.mktemp("exam")
    t2, t1 = head(FIRST), head(OTHER).astype(np.float32)
    np.save(folder / "t2.npy", scanned(t2, 0.007))
    np.save(folder / "two.npy", np.stack([scanned(t2, 0.007, seed)[None] for seed in (0, 1)]))
    np.save(folder / "t1.npy", t1)
    np.save(folder / "t1-two.npy", np.stack([t1, t1]))
    (folder / "local.toml").write_text(quickened("local", "[inference]\nsamples = 2\nloops = 3\n"))
    np.save(folder / "mask.npy", np.isin(np.arange(64), some_lines(32)))
    return folder


def test_the_lines_decide_and_the_run_says_so(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("recon", exam / "t2.npy", "--mask", exam / "mask.npy", "--recipe", exam / "local.toml")
    run(*asked, "--with", exam / "t1.npy", "--out", tmp_path / "with")
    run(*asked, "--no-report", "--out", tmp_path / "without")
    assert "companions" not in settings(tmp_path / "without")
    assert [file["name"] for file in manifest(tmp_path / "with")["inputs"]] == ["t2.npy", "mask.npy", "t1.npy"]
    first, second = (np.load(tmp_path / name / "recon.npy") for name in ("with", "without"))
    truth = head(FIRST)
    assert np.linalg.norm(np.abs(first) - truth) < np.linalg.norm(np.abs(second) - truth)


def test_slices_of_a_volume_have_the_companion_of_their_number(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("recon", exam / "two.npy", "--mask", exam / "mask.npy", "--recipe", exam / "local.toml", "--no-report")
    run(*asked, "--with", exam / "t1-two.npy", "--out", tmp_path / "two")
    told = settings(tmp_path / "two")["companions_of_slices"]
    assert [(one["slice"], one["used"]) for one in told] == [(0, "t1-two.npy"), (1, "t1-two.npy")]
    np.save(tmp_path / "three.npy", np.stack([np.load(exam / "t1.npy")] * 3))
    run(*asked, "--with", tmp_path / "three.npy", "--out", tmp_path / "three", code=3)


@pytest.mark.slow
def test_the_lines_of_every_mask_of_a_comparison_decide_as_in_recon(run: Run, exam: Path, tmp_path: Path) -> None:
    asked = ("--recipe", exam / "local.toml", "--noise", "0.007", "--jobs", 1)
    masks = ("--lines", 32, "--strategies", "low-pass,regular", "--seeds", 1)
    command = ("compare", exam / "t2.npy", *masks, *asked)
    out, t1 = tmp_path / "with", exam / "t1.npy"
    run(*command, "--with", t1, "--out", out)
    low, drawn = rows(out / "metrics.csv")
    assert (low["companions"], low["held_back"]) == ("none", "0")
    mask = np.isin(np.arange(64), json.loads((out / "masks.json").read_text())[1]["order"])
    np.save(tmp_path / "mask.npy", mask)
    alone = ("recon", exam / "t2.npy", "--mask", tmp_path / "mask.npy", *asked, "--with", t1, "--no-report")
    run(*alone, "--out", tmp_path / "recon")
    assert drawn["companions"] == "t1.npy"
    assert drawn["relative_l2"] == rows(tmp_path / "recon" / "metrics.csv")[0]["relative_l2"]
    assert [row["used"] for row in settings(out)["companions_of_masks"]] == [0, 1]
    assert ["t2.npy#middle" in one and "t1.npy" in one for one in settings(out)["sources"]] == [True]
    run("compare", exam / "t2.npy", exam / "two.npy", *command[2:], "--with", t1, "--out", out, code=2)


@pytest.mark.slow
def test_a_protocol_is_judged_by_images_that_know_them(run: Run, exam: Path, tmp_path: Path) -> None:
    scans = ("protocol", exam / "two.npy", "--test", exam / "t2.npy", "--lines", 17, "--start", 16)
    asked = (*scans, "--against", "low-pass", "--recipe", exam / "local.toml", "--jobs", 1)
    given = ("--with", f"t2.npy={exam / 't1.npy'}", "-s", "companion.trust=true")
    with stopping(comparison_pieces, "reconstruct_by_recipe", 1):  # of the test's two images
        run(*asked, *given, "--out", tmp_path / "with", code=130)
    first = np.load(exam / "t1.npy")
    for name, image in (("t1.npy", first[::-1]), ("other.npy", first)):  # another image, another name
        np.save(tmp_path / name, image)
        others = ("--with", f"t2.npy={tmp_path / name}", *given[2:], "--resume", "--out", tmp_path / "with")
        run(*asked, *others, code=2)
    run(*asked, *given, "--resume", "--out", tmp_path / "with")
    assert all(row["companions"] == "t1.npy" for row in rows(tmp_path / "with" / "metrics.csv"))
    assert [file["name"] for file in manifest(tmp_path / "with")["inputs"]] == ["two.npy", "t2.npy", "t1.npy"]


GRID = 40
QUICK = quickened("local", '[inference]\nsamples = 2\nloops = 2\n[input]\nnoise = 0.007\n[phase]\nmodel = "modulus"\n')


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three slices that hardly differ, the first of noise; and a mask."""
    folder, truth = tmp_path_factory.mktemp("three"), head(FIRST)[12:-12, 12:-12]
    parts = [scanned(level * truth, 0.007, seed) for seed, level in enumerate((0.0, 1.0, 0.7))]
    np.save(folder / "three.npy", np.stack(parts)[:, None])
    np.save(folder / "truth.npy", truth)
    np.save(folder / "mask.npy", np.isin(np.arange(GRID), some_lines(18, GRID)))
    (folder / "quick.toml").write_text(QUICK)
    return folder


def with_slices(three: Path, *more: object) -> tuple[object, ...]:
    shared = ("--mask", three / "mask.npy", "--recipe", three / "quick.toml", "--jobs", 1)
    return ("recon", three / "three.npy", *shared, "--with", "slices", *more)


def test_slices_know_their_neighbours_and_an_interrupted_run_goes_on(run: Run, three: Path, tmp_path: Path) -> None:
    out, quiet = tmp_path / "all", ("--no-report", "--resume")
    with stopping(recon_run, "neighbour_image", 1) as first, stopping(recon_run, "slice_image") as made:
        run(*with_slices(three, "--out", out, *quiet), code=130)
    assert (len(first), len(made)) == (1, 0)
    with stopping(recon_run, "neighbour_image") as others, stopping(recon_run, "slice_image", 1) as made:
        run(*with_slices(three, "--out", out, *quiet), code=130)
    assert (len(others), len(made)) == (2, 1)
    with stopping(recon_run, "neighbour_image") as others, stopping(recon_run, "slice_image") as made:
        run(*with_slices(three, "--out", out, *quiet), code=(0, 4))
    assert (len(others), len(made)) == (0, 2)
    assert not list(out.glob("neighbours-*"))
    own = [
        row["other images"] for row in rows(out / "metrics.csv") if row["method"] == "mean" and row["slice"] != "all"
    ]
    assert ["".join(filter(str.isdigit, one)) for one in own[1:]] == ["02", "1"]  # the first one is of noise
    images, truth = np.load(out / "recon.npy"), np.load(three / "truth.npy")
    scan, mask = md.load(three / "three.npy", recipe=str(three / "quick.toml")), np.load(three / "mask.npy")
    np.testing.assert_array_equal(scan.reconstruct(mask, slices=1, companions=["slices"]).array, images[1])
    plain = scan.reconstruct(mask, slices=1).array
    assert np.linalg.norm(np.abs(images[1]) - truth) < np.linalg.norm(np.abs(plain) - truth)


def test_frames_know_earlier_and_later_ones(run: Run, three: Path, tmp_path: Path) -> None:
    file, mask = MrdFile(tmp_path, nx=GRID, ny=GRID, rx=GRID), np.load(three / "mask.npy")
    for number, frame in zip((0, 3), np.load(three / "three.npy")[1:, None], strict=True):
        file.add_scan(frame * mask[:, None], contrast=number)
    command = ("recon", file.write("echoes.h5"), "--recipe", three / "quick.toml", "--mask", three / "mask.npy")
    out = ("--jobs", 1, "--no-report", "--out", tmp_path / "out")
    run(*command, "-s", "input.series.contrast=all", "--with", "frames", *out, code=(0, 4))
    assert [row["other images"] for row in rows(tmp_path / "out" / "metrics.csv")[::2][:2]] == [
        "contrast 3",
        "contrast 0",
    ]
    run(*command, "--with", "frames", *out, "--overwrite", code=2)


def test_frames_share_the_sites_of_their_prior(run: Run, three: Path, tmp_path: Path) -> None:
    kspace = np.load(three / "three.npy")[1:2, 0]
    rng, shape = np.random.default_rng(3), (2, *kspace.shape[1:])
    noise = np.std(kspace) / 20 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    np.save(tmp_path / "echoes.npy", (kspace * np.array([1, 0.6])[:, None, None] + noise).astype(np.complex64))
    read = ("-s", "input.dims=contrast,ky,kx", "-s", "input.series.contrast=all", "--recipe", three / "quick.toml")
    command, images = ("recon", tmp_path / "echoes.npy", "--mask", three / "mask.npy", *read, "--no-report"), []
    for words in ((), ("--with", "joint"), ("--with", "joint:1")):
        run(*command, *words, "--out", tmp_path / "out", "--jobs", 1, "--overwrite", code=(0, 4))
        images.append(np.load(tmp_path / "out" / "recon.npy"))
    assert settings(tmp_path / "out")["frames"]["joint"]
    truth = np.load(three / "truth.npy")
    alone, joint = (np.linalg.norm(np.abs(one[0, 0]) - truth) for one in images[:2])
    assert joint < alone
    np.testing.assert_array_equal(images[1], images[2])
    for refused_words in (("--method", "map"), ("-s", "input.series.contrast=0")):
        run(*command, "--with", "joint", *refused_words, "--out", tmp_path / "no", code=2)
    run("design", tmp_path / "echoes.npy", "--with", "joint", *read, "--out", tmp_path / "no", code=2)


@pytest.mark.parametrize("axis", ["contrast", "repetition"])
def test_a_design_knows_of_other_frames_what_was_measured_before(three: Path, tmp_path: Path, axis: str) -> None:
    other, frame, later = np.load(three / "three.npy")[[1, 2, 1], None]
    recipe, lines = load_recipe(three / "quick.toml"), np.isin(np.arange(GRID), some_lines(18, GRID))

    def told(number: int, *frames: np.ndarray) -> dict[str, np.ndarray]:
        file = MrdFile(tmp_path, nx=GRID, ny=GRID, rx=GRID)
        for count, kspace in enumerate(frames):
            file.add_scan(kspace, **{axis: count})
        one = recipe.replacing("input", series={axis: number})
        found = other_frames(str(file.write("frames.h5")), one, None, 0, NeighbourCounts(frames=1), 0)
        return {each.name: each.modulus(lines, LineReadouts((GRID, GRID)), one, 0) for each in found}

    image = told(1, other, frame, later)
    assert list(image) == [f"{axis} {number}" for number in ((0, 2) if axis == "contrast" else (0,))]
    unseen = np.where(lines[:, None], other, 9 * later[..., ::-1])
    for name, shown in told(1, unseen, frame, np.where(lines[:, None], later, 7)).items():
        assert np.array_equal(shown, image[name]) == (axis == "contrast")
    if axis == "repetition":
        with refused("companions"):
            told(0, other, frame)

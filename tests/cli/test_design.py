"""`design`: what it leaves, how it ends, goes on, and is extended; constraints; one mask for several slices."""

import hashlib
from pathlib import Path
from shutil import copytree
from unittest.mock import Mock

import numpy as np
import pytest

import mri_design as md
from mri_design import load_phantom
from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.experiment import reconstruction, shipped_recipes
from mri_design.operators import CentredFFT
from mri_design.runs import design as design_run
from mri_design.runs import design_report
from tests.cli.folders import Designed, Run, Spawn, manifest, order, rows, settings
from tests.interruptions import interrupted, stopping
from tests.refusals import refused

OPTIONS = ("--lines", 12, "--start", 6, "--recipe", "quick.toml")


def test_the_folder_holds_what_is_promised_and_nothing_else(designed: Designed) -> None:
    out, _ = designed
    names = {path.name for path in out.iterdir()}
    arrays, tables = (
        "mask.npy recon.npy std.npy state.npz result.npz frames.npz",
        "lines metrics prediction-lines prediction scores steps",
    )
    written = {*arrays.split(), *(f"{name}.csv" for name in tables.split()), "manifest.json", "report.html"}
    assert names == written | {"figures", ".mri-design.json"} and written <= OUTPUTS.keys()
    first, second = rows(out / "metrics.csv")
    assert (first["method"], second["method"]) == ("mean", "zero-filled")
    assert (first["lines"], first["acceleration"], first["converged"]) == ("12", "2", "yes")


def test_the_manifest_tells_the_run_without_places(designed: Designed, work: Path) -> None:
    out, _ = designed
    text, told = (out / "manifest.json").read_text(), manifest(out)
    assert " ".join(sorted(told)) == "command inputs lines seed settings status versions wall_seconds"
    assert told["inputs"] == [
        {"name": "scan.npz", "sha256": hashlib.sha256((work / "scan.npz").read_bytes()).hexdigest()}
    ]
    assert told["lines"] == order(out)
    assert (told["seed"], told["status"]) == (0, "converged")
    assert told["settings"]["inference"]["samples"] == 6
    assert (told["settings"]["start"], told["settings"]["slice"]) == (6, 0)
    assert told["settings"]["noise_sd_per_real_component"] == pytest.approx(0.007)
    assert str(work) not in text and str(work.parent) not in text


def test_another_process_gives_the_same_bytes(designed: Designed, spawn: Spawn, work: Path) -> None:
    """With two threads."""
    out, _ = designed
    process = spawn("design", "scan.npz", *OPTIONS, "--out", "fresh", threads=2)
    process.communicate(timeout=120)
    assert process.returncode == 0
    tables = ("lines.csv", "metrics.csv", "steps.csv", "scores.csv", "prediction.csv", "prediction-lines.csv")
    for name in ("mask.npy", "recon.npy", "std.npy", *tables):
        assert (work / "fresh" / name).read_bytes() == (out / name).read_bytes(), name


def test_a_design_that_did_not_converge_says_so_everywhere(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "hasty.toml"
    recipe.write_text((work / "quick.toml").read_text().replace("loops = 8", "loops = 1").replace("0.1", "1e-9"))
    run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x", code=4)
    assert manifest(tmp_path / "x")["status"] != "converged"
    assert rows(tmp_path / "x" / "metrics.csv")[0]["converged"] == "no"


@pytest.fixture(scope="module")
def cut(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A design that was interrupted after nine lines."""
    out = tmp_path_factory.mktemp("cut") / "stopped"
    with pytest.MonkeyPatch.context() as patch, interrupted("calibrated", 3):
        patch.setattr("sys.argv", ["mri-design", "design", "scan.npz", "--lines", "12", "--out", "a b", "--overwrite"])
        result = run("design", "scan.npz", *OPTIONS, "--out", out)
    assert result.exit_code == 130
    assert result.stderr.endswith("mri-design design scan.npz --lines 12 --out 'a b' --resume\n")
    assert sorted(path.name for path in out.iterdir()) == [
        ".mri-design.json",
        ".progress.json",
        "checkpoint.npz",
        "frames.npz",
    ]
    return out


def test_an_interrupted_design_is_resumed_to_the_same_lines(
    run: Run, cut: Path, designed: Designed, tmp_path: Path
) -> None:
    stopped = copytree(cut, tmp_path / "stopped")
    run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume", code=0)
    for name in ("lines.csv", "mask.npy", "recon.npy", "prediction.csv", "frames.npz", "figures/course.svg"):
        assert (stopped / name).read_bytes() == (designed[0] / name).read_bytes()
    assert not (stopped / "checkpoint.npz").exists()


def test_a_design_that_is_killed_while_it_reports_keeps_the_same_images_along_the_way(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=scan.kspace, noise_variance=scan.noise_variance)  # maps are those of lines
    words = ("design", tmp_path / "coils.npz", "--lines", 14, "--recipe", "quick.toml", "--no-report", "--out")
    run(*words, tmp_path / "whole", code=0)
    with monkeypatch.context() as patch:
        patch.setattr(design_report, "account_of", Mock(side_effect=KeyboardInterrupt))
        assert run(*words, tmp_path / "killed").exit_code == 130
    run(*words, tmp_path / "killed", "--resume", code=0)
    for name in ("frames.npz", "lines.csv", "recon.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes(), name


def test_neither_the_same_nor_another_design_goes_on_from_it_by_accident(run: Run, cut: Path) -> None:
    before = (cut / "checkpoint.npz").read_bytes()
    for scan, *change in (("scan.npz", "--seed", 1), ("scan.npz", "--start", 5), ("head.npz", "--start", 6)):
        run("design", scan, *OPTIONS, *change, "--out", cut, "--resume", code=2)
    assert (cut / "checkpoint.npz").read_bytes() == before


def test_a_finished_design_is_left_as_it_is(run: Run, designed: Designed) -> None:
    out, _ = designed
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    for resume in (["--resume"], []):
        run("design", "scan.npz", *OPTIONS, "--out", out, *resume, code=0)
    for other in (["--seed", 1], ["--lines", 13], ["--resume", "--start", 5], ["--resume", "--lines", 8]):
        run("design", "scan.npz", *OPTIONS, *other, "--out", out, code=2)
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_overwriting_begins_anew_and_leaves_nothing_of_the_run_before(
    run: Run, designed: Designed, tmp_path: Path
) -> None:
    out = copytree(designed[0], tmp_path / "done")
    run("design", "scan.npz", *OPTIONS, "--lines", 99, "--out", out, "--overwrite", code=2)
    assert (out / "scores.csv").exists()  # refused before anything is removed
    (out / "notes.txt").write_text("mine")
    low = ("--strategy", "low-pass", "--recipe", "fast.toml", "--overwrite")
    run("design", "scan.npz", *OPTIONS, *low, "--out", out, code=0)
    assert not {path.name for path in out.iterdir()} & {"scores.csv", "std.npy"}  # neither scores nor a posterior
    assert (out / "notes.txt").read_text() == "mine" and len(order(out)) == 12


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_design_with_a_shipped_recipe_converges(tmp_path: Path, run: Run, name: str) -> None:
    data = load_phantom("brain", shape=(29, 24), rng=np.random.default_rng(0))
    np.save(tmp_path / "odd.npy", data.kspace)
    words = ("--lines", 13, "--start", 10, "--recipe", name, "--no-report", "--out", tmp_path / "o")
    run("design", tmp_path / "odd.npy", *words, code=0)
    assert (
        manifest(tmp_path / "o")["status"] == "converged" and np.isfinite(np.load(tmp_path / "o" / "recon.npy")).all()
    )


LOCAL = ("--recipe", "quick-local.toml", "--no-report")
SAME = ("lines.csv", "mask.npy", "recon.npy", "std.npy", "prediction.csv", "scores.csv", "metrics.csv")


@pytest.fixture(scope="module")
def coils(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices of two coils, whose maps are estimated."""
    scan = md.load_phantom("brain", shape=(24, 20), n_coils=2, rng=np.random.default_rng(0))
    path = tmp_path_factory.mktemp("coils") / "coils.npz"
    np.savez(
        path, kspace=np.concatenate([scan.kspace, 1j * scan.kspace[..., ::-1]]), noise_variance=scan.noise_variance
    )
    return path


@pytest.mark.parametrize(
    ("source", "counts", "options"),
    [
        ("scan.npz", (9, 11, 13), ("--start", 6)),
        ("scan.npz", (12, 13, 17), ("--start", 6, "--block", 4)),  # the last blocks of the shorter ones are cut off
        ("coils", (9, 12), ("--start", 4)),
        ("phantom:brain", (6, 8), ("-s", "input.matrix=24", "-s", "simulation.coils=4")),  # another mask of more lines
        ("coils", (9, 12), ("--start", 4, "--slices", "all", "--jobs", 2)),
        ("scan.npz", (9, 12), ("--start", 6, "--until-error", 1e-4)),
        ("scan.npz", (60, 90), ("--encoding", "plane", "--block", 20, "--strategy", "information-gain")),
    ],
    ids=["lines", "blocks", "coils", "mask", "slices", "rule", "plane"],
)
def test_a_finished_design_is_extended_to_that_of_more_lines(
    run: Run, coils: Path, tmp_path: Path, source: str, counts: tuple[int, ...], options: tuple[object, ...]
) -> None:
    scan = coils if source == "coils" else source
    for count in counts:
        words = ("design", scan, *LOCAL, *options, "--lines", count, "--resume", "--out", tmp_path / "a")
        run(*words, code=(0, 4))
        assert (tmp_path / "a" / "state.npz").exists() and not (tmp_path / "a" / "checkpoint.npz").exists()
    run("design", scan, *LOCAL, *options, "--lines", counts[-1], "--out", tmp_path / "b", code=(0, 4))
    for name in SAME if "plane" not in options else SAME[1:5]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    found = [manifest(tmp_path / name) for name in "ab"]
    assert found[0]["settings"] == found[1]["settings"] and found[0]["lines"] == found[1]["lines"]


QUICK = ("--recipe", "quick.toml")


@pytest.fixture(scope="module")
def ended_early(run: Run, work: Path) -> Designed:
    """A design that ended at a generous predicted error."""
    out = work / "stopped-early"
    return out, run("design", "scan.npz", *QUICK, "--start", 4, "--until-error", 0.065, "--out", out)


def test_a_small_predicted_error_ends_the_design(ended_early: Designed) -> None:
    out, result = ended_early
    assert result.exit_code == 0, result.output
    assert 4 < len(order(out)) < 24 and settings(out)["ended"] and manifest(out)["status"] == "converged"
    assert settings(out)["error"]["predicted"] <= 0.065


def test_the_image_that_ended_a_design_is_the_result_after_a_resume_too(
    run: Run, ended_early: Designed, tmp_path: Path
) -> None:
    out, asked = tmp_path / "x", ("design", "scan.npz", *QUICK, "--start", 4, "--until-error", "6.5%")
    with stopping(reconstruction, "reconstruct_prepared") as again:
        with stopping(design_run, "concluded", 0):
            run(*asked, "--out", out, code=130)
        assert not (out / "recon.npy").exists()
        run(*asked, "--out", out, "--resume", code=0)
    assert not again
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_array_equal(np.load(out / name), np.load(ended_early[0] / name))


def test_an_error_below_the_noise_ends_the_design_and_says_so(run: Run, tmp_path: Path) -> None:
    wanted = ("--start", 4, "--until-error", 0.005, "--lines", 24)
    run("design", "scan.npz", *QUICK, *wanted, "--out", tmp_path / "x", code=4)
    assert len(manifest(tmp_path / "x")["lines"]) == 8 and settings(tmp_path / "x")["ended"]


def test_spokes_end_by_the_error_of_their_image(run: Run, tmp_path: Path) -> None:
    """Which their own predictions, of spokes that overlap, do not know; shots.csv has every look at it."""
    out = tmp_path / "spokes"
    words = ("--encoding", "radial", "--shots", 20, "--until-error", 0.12, "--no-report", "--out", out)
    run("design", "scan.npz", *QUICK, *words, code=(0, 4))
    looked = [float(row["image_error"]) for row in rows(out / "shots.csv") if row["image_error"]]
    assert looked and all(error > 0.12 for error in looked) and settings(out)["error"]["predicted"] <= 0.12


REGION = np.zeros((24, 20), dtype=int)
REGION[9:13, 8:12] = 1


@pytest.mark.parametrize("slices", [1, 2])
def test_a_design_ends_when_a_region_is_known_and_after_a_resume_too(
    run: Run, work: Path, tmp_path: Path, slices: int
) -> None:
    """intervals.csv has every look; the region measured in the image of the run is the last of them.

    In two slices it goes through both, and the image is that of the second.
    """
    scans = [np.load(work / f"{name}.npz") for name in ("scan", "head")]
    both = {name: np.concatenate([scan[name] for scan in scans]) for name in ("kspace", "reference")}
    np.savez(tmp_path / "both.npz", **both, noise_variance=scans[0]["noise_variance"])
    np.save(tmp_path / "lesion.npy", REGION if slices == 1 else [REGION, np.roll(REGION, 1, axis=0)])
    wanted = ("--region", tmp_path / "lesion.npy", "--until-interval", "3%", "--level", "80%")
    source = ("scan.npz",) if slices == 1 else (tmp_path / "both.npz", "--slices", "all")
    asked, out, again = ("design", *source, *QUICK, "--start", 4, *wanted), tmp_path / "x", tmp_path / "y"
    run(*asked, "--out", out)
    looks = rows(out / "intervals.csv")
    assert float(looks[-1]["relative"]) <= 0.03 < float(looks[0]["relative"])
    assert int(looks[-1]["lines"]) == len(manifest(out)["lines"]) < 24 and {row["region"] for row in looks} == {
        "lesion"
    }
    regions = np.load(tmp_path / "lesion.npy").reshape(-1, 24, 20) == 1
    true = np.abs(both["reference"][:slices][regions]).mean()
    assert [float(row["true"]) for row in looks] == pytest.approx([true] * len(looks), rel=1e-4)
    assert np.load(out / "draws.npy").shape[0] == 32
    with stopping(design_run, "concluded", 0):
        run(*asked, "--out", again, code=130)
    run(*asked, "--out", again, "--resume")
    for name in ("recon.npy", "draws.npy"):
        np.testing.assert_array_equal(np.load(out / name), np.load(again / name))
    assert rows(again / "intervals.csv") == looks


def test_intervals_count_spokes_under_their_own_name(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "lesion.npy", REGION)
    wanted = ("--region", tmp_path / "lesion.npy", "--until-interval", "20%", "--encoding", "radial", "--shots", 12)
    run("design", "scan.npz", *QUICK, *wanted, "--no-report", "--out", tmp_path / "x")
    looks = [int(row["shots"]) for row in rows(tmp_path / "x" / "intervals.csv")]
    assert looks == sorted(looks) and looks[-1] == len(manifest(tmp_path / "x")["lines"])


ECHO_TIMES, T2 = np.array([10.0, 25.0, 60.0]), 40.0


@pytest.fixture(scope="module")
def echoes(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with echoes.npy (contrast, ky, kx) of the scan whose T2 is 40 ms, and a region."""
    folder, rng = tmp_path_factory.mktemp("echoes"), np.random.default_rng(0)
    clean = CentredFFT((24, 20))(np.load(work / "scan.npz")["reference"][0].astype(complex))
    echoes = clean * np.exp(-ECHO_TIMES[:, None, None] / T2)
    noise = 0.004 * (rng.normal(size=echoes.shape) + 1j * rng.normal(size=echoes.shape))
    np.save(folder / "echoes.npy", (echoes + noise).astype(np.complex64))
    np.save(folder / "lesion.npy", REGION)
    return folder


MAP = ("-s", "input.dims=contrast,ky,kx", "--noise", 0.004, "--fit", "T2", "--echo-times", "10,25,60")


def test_a_design_of_echoes_ends_when_t2_of_a_region_is_known_and_after_a_resume_too(
    run: Run, echoes: Path, tmp_path: Path
) -> None:
    """In Python, too; the echoes share the lines."""
    wanted = ("--region", echoes / "lesion.npy", "--until-interval", "6%", "--level", "80%", "--start", 6)
    asked, out, again = ("design", echoes / "echoes.npy", *QUICK, *MAP, *wanted), tmp_path / "x", tmp_path / "y"
    run(*asked, "--out", out)
    last = rows(out / "intervals.csv")[-1]
    assert float(last["relative"]) <= 0.06 and last["unit"] == "ms"
    assert float(last["middle"]) == pytest.approx(T2, rel=0.12) and int(last["lines"]) == len(order(out)) < 24
    with stopping(design_run, "concluded", 0):
        run(*asked, "--out", again, code=130)
    run(*asked, "--out", again, "--resume")
    assert rows(again / "intervals.csv") == rows(out / "intervals.csv")
    recipe = {"inference": {"samples": 6, "loops": 8, "tolerance": 0.1}, "input": {"matrix": 16}}
    scan = md.load(echoes / "echoes.npy", dims="contrast,ky,kx", noise=0.004, recipe=recipe)
    made = scan.design(fit="T2", times=ECHO_TIMES, region=REGION, until_interval="6%", level=80, start=6)
    assert list(made.lines) == order(out)
    with refused("fit"):
        md.load(np.load(echoes / "echoes.npy")[0]).design(fit="T2", times=ECHO_TIMES, region=REGION, until_interval=0.1)


@pytest.mark.parametrize(
    "words",
    [
        ("--fit", "T2"),
        ("--echo-times", "10,25,60"),
        ("--fit", "T2", "--echo-times", "10,25"),
        ("--fit", "T2", "--echo-times", "25,10,60"),
        ("--fit", "T2", "--inversion-times", "10,25,60"),
        (*MAP[-4:], "--with", "slices"),
        (*MAP[-4:], "-s", "input.series.set=all"),
        (*MAP[-4:], "--until-interval", "0.01%"),
        (*MAP[-4:], "--until-interval", "2 s"),
        (*MAP[-4:], "--slices", "0-1"),
    ],
)
def test_echoes_that_cannot_be_fitted_are_refused_before_anything_is_chosen(
    run: Run, echoes: Path, tmp_path: Path, words: tuple[object, ...]
) -> None:
    known = ("--region", echoes / "lesion.npy", *(() if "--until-interval" in words else ("--until-interval", "6%")))
    run("design", echoes / "echoes.npy", *QUICK, *MAP[:4], *known, *words, "--out", tmp_path / "x", code=2)
    assert not (tmp_path / "x" / "recon.npy").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--region", "lesion.npy"),
        ("--until-interval", "3%"),
        ("--region", "lesion.npy", "--until-interval", "3%", "-s", "reconstruction.method=map"),
        ("--region", "lesion.npy", "--until-interval", "3%", "--strategy", "vd-polynomial"),
        ("--region", "lesion.npy", "--until-interval", "0.01%"),
        ("--region", "lesion.npy", "--until-interval", "3"),
        ("--region", "none.npy", "--until-interval", "3%"),
        ("--difference", "lesion.npy", "air.npy", "--until-interval", "3%"),
    ],
)
def test_regions_that_cannot_be_known_are_refused_before_anything_is_chosen(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    np.save(tmp_path / "lesion.npy", REGION)
    np.save(tmp_path / "air.npy", np.roll(REGION, (12, 10), axis=(0, 1)))
    paths = [tmp_path / word if word.endswith(".npy") else word for word in words]
    run("design", "scan.npz", *QUICK, *paths, "--out", tmp_path / "x", code=(2, 3))
    assert not (tmp_path / "x" / "recon.npy").exists()

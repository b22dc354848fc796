"""Verbs that judge masks on scans whose truth is known: compare and the demo that ends with it, protocol."""

import html
import json
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design import load_recipe
from mri_design.design import engine as keeping
from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.evaluation.tables import percent
from mri_design.experiment import load_trained
from mri_design.runs import demo as demo_run
from mri_design.runs import protocol as protocol_run
from mri_design.runs import study
from tests.cli.folders import Run, cited, manifest, rows
from tests.interruptions import stopping

COMPARE = (
    *("compare", "scan.npz", "--lines", "12,10", "--strategies", "information-gain,vd-polynomial,low-pass"),
    *("--train", "head.npz", "--seeds", 2, "--method", "zero-filled", "--recipe", "quick.toml", "--jobs", 1),
)


@pytest.fixture(scope="module")
def compared(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "study"
    run(*COMPARE, "--out", out, code=0)
    return out


def test_the_study_is_complete_and_its_manifest_names_inputs_and_choices_without_places(compared: Path) -> None:
    """Its tables are those of the golden runs."""
    out = compared
    assert {path.name for path in out.iterdir() if path.is_file()} <= OUTPUTS.keys() | {".mri-design.json"}
    told = manifest(out)
    assert [entry["name"] for entry in told["inputs"]] == ["scan.npz", "head.npz"]
    assert (told["settings"]["sources"], told["settings"]["lines"]) == (["scan.npz#middle"], [10, 12])
    assert told["settings"]["reconstruction"]["method"] == "zero-filled"
    assert str(out.parent) not in (out / "manifest.json").read_text()


def test_the_same_command_again_does_nothing_twice(run: Run, compared: Path) -> None:
    out = compared
    before = {name: (out / name).read_bytes() for name in ("metrics.csv", "summary.csv", "paired.csv", "masks.json")}
    with stopping(study, "reconstruct_by_recipe", 0), stopping(study, "run_design", 0):
        run(*COMPARE, "--out", out, code=0)
    assert before == {name: (out / name).read_bytes() for name in before}


def test_the_demo_ends_with_one_report_of_both_runs(
    run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real demo on a small grid; what it shows and says is the same."""
    recipe = load_recipe(work / "quick-local.toml").with_settings(["simulation.coils=4", "coils.coil_compression=3"])
    monkeypatch.setattr(demo_run, "load_recipe", lambda _: recipe)
    small = {"SCAN": "phantom:brain", "COILS": 4, "LINES": 10, "START": 4, "MATRIX": 16, "WANTED": 0.5, "JOBS": 1}
    for name, value in small.items():
        monkeypatch.setattr(demo_run, name, value)
    out = tmp_path / "demo"
    result = run("demo", "--out", out, code=(0, 4))
    assert all((out / folder / "report.html").exists() for folder in (".", "compare", "design"))
    summary = rows(out / "compare" / "summary.csv")
    assert {row["strategy"] for row in summary} == demo_run.MASKS.keys()
    assert {(row["lines"], row["centre"]) for row in summary} == {("10", "4")}
    combined = json.loads((out / "design" / "manifest.json").read_text())["settings"]["coil_compression"]
    assert combined and combined in html.unescape((out / "report.html").read_text())
    again = run("demo", "--out", out)
    assert again.exit_code == result.exit_code, again.output
    (out / "manifest.json").write_text("{}")
    run("demo", "--out", out, code=2)


PROTOCOL = (
    *("protocol", "scan.npz", "head.npz", "--lines", 10, "--start", 5, "--method", "zero-filled"),
    *("--recipe", "fast.toml", "--seeds", 2),
)
SWAPPED = (*PROTOCOL, "--strategy", "calibrated", "--swaps", 3, "--test", "other.npz", "--jobs", 1)


@pytest.fixture(scope="module")
def done(run: Run, work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol that is tried on a third scan."""
    with np.load(work / "scan.npz") as scan:
        arrays = dict(scan)
    arrays["reference"] = arrays["reference"][:, :, ::-1]
    arrays["kspace"] = np.roll(arrays["kspace"][..., ::-1], 1, axis=-1)
    np.savez(work / "other.npz", **arrays)
    out = tmp_path_factory.mktemp("protocol") / "run"
    ended = run(*SWAPPED, "--out", out, code=0)
    assert not {"checkpoint.npz", "exchanges.json", "test-progress.json"} & {path.name for path in out.iterdir()}
    assert md.load_run(out).trace.lines == tuple(manifest(out)["lines"])
    (error,) = (float(row["relative_l2"]) for row in rows(out / "summary.csv") if row["strategy"] == "protocol")
    assert percent(error, 3).replace("\xa0", " ") in ended.stdout
    assert cited(out) > {"seeger2008", "seeger2010"}
    return out


@pytest.mark.parametrize(
    ("module", "piece", "calls"),
    [
        (keeping.SliceInference, "update", 5),
        (protocol_run, "trial_outcome", 20),
        (study, "reconstruct_by_recipe", 30),
    ],
)
def test_an_interrupted_protocol_goes_on(
    done: Path, run: Run, tmp_path: Path, module: object, piece: str, calls: int
) -> None:
    with stopping(module, piece, calls):
        run(*SWAPPED, "--out", tmp_path / "run", code=130)
    run(*SWAPPED, "--out", tmp_path / "run", code=2)
    run(*SWAPPED, "--seed", 1, "--resume", "--out", tmp_path / "run", code=2)
    run(*SWAPPED, "--resume", "--out", tmp_path / "run", code=0)
    for name in ("lines.csv", "exchanges.csv", "metrics.csv"):
        assert (tmp_path / "run" / name).read_text() == (done / name).read_text()
    run(*SWAPPED, "--resume", "--out", tmp_path / "run", code=0)


def test_a_protocol_ends_when_a_region_is_known_in_every_training_image_and_after_a_resume_too(
    run: Run, tmp_path: Path
) -> None:
    region = np.zeros((24, 20), dtype=int)
    region[9:13, 8:12] = 1
    np.save(tmp_path / "lesion.npy", region)
    wanted = ("--region", tmp_path / "lesion.npy", "--until-interval", "8%", "--level", "80%")
    asked = ("protocol", "scan.npz", "head.npz", "--start", 5, "--recipe", "quick-local.toml", "--jobs", 1, *wanted)
    out, again = tmp_path / "x", tmp_path / "y"
    run(*asked, "--out", out, code=0)
    looks, lines = rows(out / "intervals.csv"), len(manifest(out)["lines"])
    assert [row["region"] for row in looks[-2:]] == ["lesion of scan[0]", "lesion of head[0]"]
    counts = sorted({int(row["lines"]) for row in looks})
    of_look = [[float(row["relative"]) for row in looks if row["lines"] == str(count)] for count in counts]
    assert max(of_look[-1]) <= 0.08 < max(of_look[-2]) and counts[-1] == lines < 24
    with stopping(keeping.SliceInference, "update", 2 * (lines - 5) - 1):
        run(*asked, "--out", again, code=130)
    run(*asked, "--out", again, "--resume", code=0)
    assert rows(again / "intervals.csv") == looks
    for words in (("--swaps", 2), ("--rule", "residual-greedy", "--lines", 9), ("--strategy", "vd-polynomial")):
        run(*asked, *words, "--out", tmp_path / "z", code=2)


TRAIN = ("--lines", 9, "--method", "zero-filled", "--recipe", "quick-local.toml", "--jobs", 1)


@pytest.fixture(scope="module")
def learnt(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("train") / "order.npz"
    run("protocol", "--rule", "residual-greedy", "scan.npz", "head.npz", *TRAIN, "--out", out, code=0)
    return out


def test_one_file_says_what_it_was_learnt_from(learnt: Path, work: Path) -> None:
    assert [path.name for path in learnt.parent.iterdir()] == ["order.npz"]
    design = load_trained(learnt)
    assert (design.grid, len(design.lines), design.n_start, design.rule) == ((24, 20), 9, 4, "residual-greedy")
    assert design.training == ("scan[0]", "head[0]")
    assert set(design.settings["inputs"]) == {"scan.npz", "head.npz"}  # type: ignore[call-overload]
    assert str(work) not in json.dumps(dict(design.settings))


def test_the_order_is_what_a_design_measures(learnt: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("design", "scan.npz", "--strategy", f"trained:{learnt}", *TRAIN[:2], *TRAIN[4:6], "--out", out, code=0)
    told = manifest(out)
    assert tuple(told["lines"]) == load_trained(learnt).lines
    assert told["settings"]["design"]["strategy"] == "trained:order.npz"
    assert [entry["name"] for entry in told["inputs"]] == ["scan.npz", "order.npz"]
    text = (out / "manifest.json").read_text() + (out / "report.html").read_text()
    assert str(learnt.parent) not in text


def test_an_order_stays_until_there_is_another(learnt: Path, run: Run) -> None:
    """The same command does nothing; another is refused; one that would overwrite fails before it destroys."""
    out, before = learnt, learnt.read_bytes()
    run("protocol", "--rule", "residual-greedy", "scan.npz", "head.npz", *TRAIN, "--out", out, code=0)
    run("protocol", "--rule", "residual-greedy", "scan.npz", *TRAIN, "--out", out, code=2)
    run(
        "protocol", "--rule", "residual-greedy", "scan.npz", "phantom:t2w", *TRAIN, "--out", out, "--overwrite", code=3
    )  # another grid
    assert out.read_bytes() == before


def test_processes_and_interruptions_change_nothing(run: Run, tmp_path: Path) -> None:
    command = ("protocol", "scan.npz", "head.npz", *TRAIN, "--rule", "stochastic-lbcs:3:1")
    run(*command, "--out", tmp_path / "a.npz", code=0)
    whole = (tmp_path / "a.npz").read_bytes()
    run(*command, "--jobs", 2, "--out", tmp_path / "b.npz", code=0)
    assert (tmp_path / "b.npz").read_bytes() == whole
    with stopping(protocol_run, "trial_outcome", 17):
        run(*command, "--out", tmp_path / "c.npz", code=130)
    assert not (tmp_path / "c.npz").exists() and (tmp_path / "c.npz.unfinished").exists()
    run(*command, "--seed", 1, "--resume", "--out", tmp_path / "c.npz", code=2)
    run(*command, "--out", tmp_path / "c.npz", "--resume", "--overwrite", code=2)
    run(*command, "--out", tmp_path / "c.npz", "--resume", code=0)
    assert (tmp_path / "c.npz").read_bytes() == whole
    assert not (tmp_path / "c.npz.unfinished").exists()

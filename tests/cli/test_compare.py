"""Verbs that hold masks against each other: `compare`, and the demo that ends with it."""

import json
from pathlib import Path

import pytest

from mri_design import load_recipe
from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.runs import demo as demo_run
from mri_design.runs import study
from tests.cli.folders import Designed, Run, rows
from tests.interruptions import stopping

COMMAND = (
    *("compare", "scan.npz", "--lines", "12,10", "--strategies", "information-gain,vd-polynomial,low-pass"),
    *("--train", "head.npz", "--seeds", 2, "--method", "zero-filled", "--recipe", "quick.toml", "--jobs", 1),
)


@pytest.fixture(scope="module")
def compared(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Designed:
    out = tmp_path_factory.mktemp("compare") / "study"
    return out, run(*COMMAND, "--out", out)


def test_the_study_is_complete_and_its_manifest_names_inputs_and_choices_without_places(compared: Designed) -> None:
    """Its tables are those of the golden runs."""
    out, result = compared
    assert result.exit_code == 0, result.output
    figures = {path.stem for path in (out / "figures").iterdir()}
    assert {"error-curves", "masks", "reconstructions", "errors"} <= figures
    assert {path.name for path in out.iterdir() if path.is_file()} <= OUTPUTS.keys() | {".mri-design.json"}
    text = (out / "manifest.json").read_text()
    manifest = json.loads(text)
    assert [entry["name"] for entry in manifest["inputs"]] == ["scan.npz", "head.npz"]
    assert manifest["settings"]["sources"] == ["scan.npz#middle"]
    assert manifest["settings"]["lines"] == [10, 12]
    assert manifest["settings"]["reconstruction"]["method"] == "zero-filled"
    assert str(out.parent) not in text


def test_the_same_command_again_does_nothing_twice(run: Run, compared: Designed) -> None:
    out, _ = compared
    before = {name: (out / name).read_bytes() for name in ("metrics.csv", "summary.csv", "paired.csv", "masks.json")}
    with stopping(study, "reconstruct_by_recipe", 0), stopping(study, "run_design", 0):
        run(*COMMAND, "--out", out, code=0)
    assert before == {name: (out / name).read_bytes() for name in before}


def test_one_that_did_not_converge_ends_with_4(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hasty.toml").write_text("[inference]\nloops = 1\ntolerance = 1e-9\n[simulation]\nmatrix = 16\n")
    command = ("compare", "phantom:brain", "--lines", 8, "--strategies", "low-pass", "--jobs", 1)
    run(*command, "--recipe", tmp_path / "hasty.toml", "--out", tmp_path / "x", code=4)
    assert json.loads((tmp_path / "x" / "manifest.json").read_text())["status"] != "converged"


def test_the_demo_ends_with_one_report_of_both_runs(
    run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real demo on a small grid; what it shows and says is the same."""
    monkeypatch.setattr(demo_run, "load_recipe", lambda _: load_recipe(work / "quick-local.toml"))
    small = {"SCAN": "phantom:brain", "LINES": 10, "MATRIX": 16, "COUNTS": (8, 10), "JOBS": 1}
    for name, value in small.items():
        monkeypatch.setattr(demo_run, name, value)
    out = tmp_path / "demo"
    result = run("demo", "--out", out, code=(0, 4))
    assert all((out / folder / "report.html").exists() for folder in (".", "compare", "exam", "design"))
    assert {row["lines"] for row in rows(out / "compare" / "summary.csv")} == {"8", "10"}
    again = run("demo", "--out", out)
    assert again.exit_code == result.exit_code, again.output
    (out / "manifest.json").write_text("{}")
    run("demo", "--out", out, code=2)

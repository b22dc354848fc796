import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mri_design.evaluation.run_folder import OUTPUTS

Run = Callable[..., Result]
COMMAND = (
    "compare",
    "scan.npz",
    "--lines",
    "12,10",
    "--strategies",
    "information-gain,vd-polynomial,low-pass",
    "--train",
    "head.npz",
    "--seeds",
    2,
    "--method",
    "zero-filled",
    "--recipe",
    "quick.toml",
    "--jobs",
    1,
)


@pytest.fixture(scope="module")
def compared(run: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("compare") / "study"
    return out, run(*COMMAND, "--out", out)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_study_is_complete(compared: tuple[Path, Result]) -> None:
    out, result = compared
    assert result.exit_code == 0, result.output
    assert result.stdout == f"converged: {out / 'report.html'}\n"
    names = {path.name for path in out.iterdir()}
    assert {"winners.csv", "winners.md", "summary.csv", "summary.md", "paired.csv", "paired.md", "tuned.csv"} <= names
    assert {"metrics.csv", "masks.json", "manifest.json", "report.html", "progress.json"} <= names
    figures = {path.stem for path in (out / "figures").iterdir()}
    assert {"error-curves", "masks", "reconstructions", "errors"} <= figures


def test_every_strategy_is_in_the_tables_at_every_count(compared: tuple[Path, Result]) -> None:
    out, _ = compared
    names = ["information-gain", "information-gain@train", "vd-polynomial@tuned", "low-pass"]
    summary = rows(out / "summary.csv")
    assert [(row["lines"], row["strategy"]) for row in summary] == [(n, s) for n in ("10", "12") for s in names]
    metrics = rows(out / "metrics.csv")
    assert len(metrics) == 2 * (1 + 1 + 2 + 1)
    for row in summary:
        mine = [m for m in metrics if (m["lines"], m["strategy"]) == (row["lines"], row["strategy"])]
        mean = sum(float(m["relative_l2"]) for m in mine) / len(mine)
        assert float(row["relative_l2"]) == pytest.approx(mean, abs=1e-4)
    assert {row["strategy"] for row in rows(out / "paired.csv")} == {"information-gain", "information-gain@train"}
    assert {row["against"] for row in rows(out / "paired.csv")} <= {"vd-polynomial@tuned", "low-pass"}
    assert [row["family"] for row in rows(out / "tuned.csv")] == ["vd-polynomial", "vd-polynomial"]


def test_masks_are_listed_in_acquisition_order(compared: tuple[Path, Result]) -> None:
    out, _ = compared
    masks = json.loads((out / "masks.json").read_text())
    assert len(masks) == 10
    for mask in masks:
        assert len(set(mask["order"])) == mask["lines"]
    low_pass = next(m for m in masks if m["strategy"] == "low-pass" and m["lines"] == 10)
    assert low_pass["order"] == [12, 11, 13, 10, 14, 9, 15, 8, 16, 7]


def test_the_manifest_names_inputs_and_choices_without_places(compared: tuple[Path, Result]) -> None:
    out, _ = compared
    assert {path.name for path in out.iterdir() if path.is_file()} <= OUTPUTS.keys() | {".mri-design.json"}
    text = (out / "manifest.json").read_text()
    manifest = json.loads(text)
    assert [entry["name"] for entry in manifest["inputs"]] == ["scan.npz", "head.npz"]
    assert manifest["settings"]["sources"] == ["scan.npz#middle"]
    assert manifest["settings"]["lines"] == [10, 12]
    assert manifest["settings"]["reconstruction"]["method"] == "zero-filled"
    assert str(out.parent) not in text
    assert '"/' not in text


def test_the_same_command_again_does_nothing_twice(
    run: Run, compared: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mri_design.runs import study as comparison_pieces

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this was finished")

    out, _ = compared
    before = {name: (out / name).read_bytes() for name in ("metrics.csv", "summary.csv", "paired.csv", "masks.json")}
    for work in ("reconstruct_by_recipe", "run_design"):
        monkeypatch.setattr(comparison_pieces, work, refuse)
    assert run(*COMMAND, "--out", out).exit_code == 0
    assert before == {name: (out / name).read_bytes() for name in before}


def test_another_comparison_in_the_folder_is_refused(run: Run, compared: tuple[Path, Result]) -> None:
    result = run(*COMMAND, "--seed", 1, "--out", compared[0])
    assert result.exit_code == 2
    assert "holds a finished run; give another --out" in result.stderr


def test_another_comparison_than_the_unfinished_one_is_refused(
    run: Run, compared: tuple[Path, Result], tmp_path: Path
) -> None:
    (tmp_path / "progress.json").write_bytes((compared[0] / "progress.json").read_bytes())
    result = run(*COMMAND, "--seed", 1, "--out", tmp_path)
    assert result.exit_code == 2
    assert "the progress of another comparison" in result.stderr


def test_one_that_did_not_converge_ends_with_4(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hasty.toml").write_text("[inference]\nloops = 1\ntolerance = 1e-9\n[simulation]\nmatrix = 16\n")
    command = ("compare", "phantom:brain", "--lines", 8, "--strategies", "low-pass", "--jobs", 1)
    result = run(*command, "--recipe", tmp_path / "hasty.toml", "--out", tmp_path / "x")
    assert result.exit_code == 4
    assert "1 of 1 reconstructions not converged" in result.stdout
    assert "1 of 1 reconstructions not converged." in (tmp_path / "x" / "report.html").read_text()


def test_designs_that_did_not_converge_end_with_4_even_where_every_image_did(
    run: Run, work: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "blunt.toml"
    quick = (work / "quick.toml").read_text()
    recipe.write_text(quick.replace("[inference]", "[inference]\ninner_iterations = 1\ninner_tolerance = 1e-12"))
    command = ("compare", "scan.npz", "--lines", "10,12", "--strategies", "information-gain,low-pass", "--jobs", 1)
    result = run(*command, "--method", "zero-filled", "--recipe", recipe, "--out", tmp_path / "x")
    assert result.exit_code == 4
    assert "2 of 4 masks not converged" in result.stdout
    found = {(row["strategy"], row["converged"]) for row in rows(tmp_path / "x" / "metrics.csv")}
    assert found == {("information-gain", "no"), ("low-pass", "yes")}
    progress = json.loads((tmp_path / "x" / "progress.json").read_text())
    assert sorted(progress["masks_converged"].values()) == [False, False, True, True]


def test_simulated_scans_are_called_simulated(run: Run, tmp_path: Path) -> None:
    command = ("compare", "phantom:t2w", "--lines", 8, "--strategies", "low-pass", "--jobs", 1)
    result = run(*command, "--method", "zero-filled", "--recipe", "quick.toml", "--out", tmp_path / "x")
    assert result.stdout.splitlines()[0] == "simulated k-space from images"
    assert "<td>simulated from images</td>" in (tmp_path / "x" / "report.html").read_text()


def test_scans_of_different_sizes_are_refused_by_name(run: Run, work: Path, tmp_path: Path) -> None:
    command = ("compare", "scan.npz", "phantom:t2w", "--lines", 8, "--recipe", "quick.toml", "--jobs", 1)
    result = run(*command, "--out", tmp_path / "x")
    assert result.exit_code == 3
    assert "scan[0] with 24 and" in result.stderr and "one comparison per matrix size" in result.stderr


def test_doubled_names_and_counts_count_once(run: Run, tmp_path: Path) -> None:
    command = ("compare", "scan.npz", "--lines", "8,8", "--strategies", "low-pass, low-pass", "--jobs", 1)
    assert run(*command, "--method", "zero-filled", "--out", tmp_path / "x").exit_code == 0
    assert len(rows(tmp_path / "x" / "metrics.csv")) == 1


def test_training_scans_from_which_no_strategy_learns_are_refused(run: Run, work: Path, tmp_path: Path) -> None:
    words = ("compare", "scan.npz", "--lines", 10, "--train", "head.npz", "--out", tmp_path / "refused")
    for names in ("low-pass", "low-pass,vd-polynomial:3", "oracle-hole"):
        refused = run(*words, "--strategies", names)
        assert refused.exit_code == 2 and "Leave out --train" in " ".join(refused.output.split()), refused.output

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mri_design import experiment
from mri_design.evaluation import comparison_run
from mri_design.experiment import load_recipe


def test_the_demo_ends_with_one_report_of_both_runs(
    run: Callable[..., Result], work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real demo on a small grid; what it shows and says is the same."""
    monkeypatch.setattr(experiment, "load_recipe", lambda _: load_recipe(work / "quick.toml"))
    monkeypatch.setattr(comparison_run, "compare_into", _in_this_process(comparison_run.compare_into))
    module = sys.modules["mri_design.cli.demo"]
    for name, value in {"SCAN": "phantom:brain", "LINES": 10, "MATRIX": 16, "COUNTS": (8, 10)}.items():
        monkeypatch.setattr(module, name, value)
    out = tmp_path / "demo"
    result = run("demo", "--out", out)
    assert result.exit_code in (0, 4), result.output
    assert result.stdout == f"Open {out / 'report.html'}\n"
    page = (out / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(module.DESIGN_FIGURES) + len(module.COMPARISON_FIGURES)
    assert (out / "design" / "manifest.json").exists() and (out / "compare" / "summary.csv").exists()
    assert page.index(module.COMPARISON_TABLES["winners.csv"].split("first one")[0]) > 0
    assert "Designed masks against the best of the others" in page
    with (out / "compare" / "winners.csv").open(newline="") as stream:
        winners = list(csv.DictReader(stream))
    assert [row["lines"] for row in winners] == ["8", "10"]
    for row in winners:
        assert f"<td>{row['lines']}</td><td>{row['best']}</td><td>{row['relative_l2']}</td>" in page
    again = run("demo", "--out", out)
    assert again.exit_code == result.exit_code, again.output
    assert (out / "report.html").exists()
    (out / "manifest.json").write_text("{}")
    refused = run("demo", "--out", out)
    assert refused.exit_code == 2
    assert "a file manifest.json that no run of this program wrote" in refused.stderr


def _in_this_process(compare_into: Callable[..., str]) -> Callable[..., str]:
    return lambda *arguments, **options: compare_into(*arguments, **options | {"jobs": 1})

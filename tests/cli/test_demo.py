from pathlib import Path

import pytest

from mri_design import load_recipe
from mri_design.runs import demo as demo_run
from tests.cli.folders import Run, rows


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

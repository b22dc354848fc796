import csv
from pathlib import Path

import pytest

from mri_design import load_recipe
from mri_design.runs import demo as demo_run
from mri_design.runs.verdicts import RelativeError
from tests.cli.folders import Run, settings


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
    where, pair = result.stdout.splitlines()
    assert where == f"Open {out / 'report.html'}"
    assert pair.endswith(RelativeError.from_settings(settings(out / "design")).words)
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 9
    verdict = page.index('<p class="verdict">')
    assert verdict < page.index('<div class="row">') < page.index("<details") < page.index("<svg")
    assert "drawn from a density that was tuned on another scan" in page[verdict : page.index("</p>", verdict)]
    assert f"Error: {demo_run.DESIGNED}" in page and f"Error: {demo_run.RIVAL}" in page
    for run_folder in ("compare", "exam", "design"):
        assert f'<a href="{run_folder}/report.html">' in page
    with (out / "compare" / "summary.csv").open(newline="") as stream:
        summary = list(csv.DictReader(stream))
    assert {row["lines"] for row in summary} == {"8", "10"}
    for row in summary:
        assert (
            f'>{row["strategy"]}</abbr></td><td class="number">{row["relative_l2"]}</td>' in page
        )  # means over all draws
    again = run("demo", "--out", out)
    assert again.exit_code == result.exit_code, again.output
    assert (out / "report.html").exists()
    (out / "manifest.json").write_text("{}")
    refused = run("demo", "--out", out, code=2)
    assert "a file manifest.json that no run of this program wrote" in refused.stderr

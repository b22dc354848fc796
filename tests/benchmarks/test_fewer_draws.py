"""The benchmark of rough designs: a smoke run at toy size."""

import csv
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_smoke_run_holds_rougher_designs_against_the_first(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    subprocess.run([sys.executable, str(BENCHMARKS / "fewer_draws.py"), "--quick", "--out", str(page)], check=True)
    with page.with_suffix(".csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["strategy"] for row in rows] == ["calibrated"] * 3 + ["information-gain"] * 2
    assert [(row["samples"], float(row["inner tolerance"])) for row in rows[:3]] == [
        ("8", 1e-4),
        ("4", 1e-4),
        ("4", 3e-4),
    ]
    assert float(rows[0]["mean change, %"]) == 0 and float(rows[0]["processor time"]) == 1
    assert any(float(row["mean change, %"]) for row in rows[1:])
    assert "benchmarks/fewer_draws.py DATA" in page.read_text()

"""The benchmark of designs that are to reach an error holds the rule's own ends against the actual errors."""

import sys

import pytest

from mri_design import load_recipe
from tests.benchmarks.conftest import BENCHMARKS

pytestmark = [
    pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution"),
    pytest.mark.slow,
]


def test_a_small_scan_makes_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("until_error", None)
    import until_error

    recipe = load_recipe("local").replacing("simulation", matrix=32)
    rows = list(until_error.measured(until_error.Case("phantom:t2w", "small", recipe), 0))
    *asked, end = rows
    assert [row["wanted"] for row in asked] == list(until_error.WANTED) and end["wanted"] == "none"
    ended = [row for row in asked if row["ends at"] is not None]
    assert ended and all(row["ends at"] >= row["start"] + 4 for row in ended)
    for row in ended:
        assert row["predicted"] <= row["wanted"]
        assert row["ratio"] == pytest.approx(row["predicted"] / row["actual"], rel=0.02)
        assert row["believing the start, ends at"] <= row["ends at"]
    text = until_error.text_of(rows)
    assert "lines, where the wanted error is predicted" in text and "lines, half of them measured" in text

"""The table of designs after an earlier scan: every mask and change is measured, and changes are read the right way."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.operators.base import Array
from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture
def series(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark's module on images of 20 x 20."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("series", None)
    import series

    def phantom(source: series.Source, _: Path) -> Array:
        reference = load_phantom(source.kind, shape=(20, 20), rng=np.random.default_rng(0)).reference
        assert reference is not None
        return np.asarray(reference[0])

    monkeypatch.setattr(series.Source, "image", phantom)
    sources = (series.Source("brain", 0), series.Source("shepp-logan", 1))
    recipe = series.RECIPE.replacing("inference", samples=2, loops=2)
    small = {"SOURCES": sources, "MATRIX": 20, "COUNTS": (9, 10), "DRAWS": 1, "POWERS": (3.0,), "RECIPE": recipe}
    for name, value in small.items():
        monkeypatch.setattr(series, name, value)
    return series


def test_every_mask_is_measured_on_every_change(series: ModuleType) -> None:
    rows = series.errors_of(Path(), series.SOURCES[0])
    assert all(0 < row["error"] < 2 for row in rows)
    against_plain = series.table(rows, "calibrated")
    assert [row["scan now"] for row in against_plain if "earlier" in row["mask"]] == [
        *series.MOVEMENTS,
        "another object",
    ]
    assert {row["mask"] for row in series.table(rows, "best density by hindsight")} == {
        *("calibrated", "calibrated, earlier scan seen", "oracle-residual")
    }


def test_changes_are_per_cent_of_the_errors_they_are_compared_with(series: ModuleType) -> None:
    errors = {
        ("a", "plain"): (2.0, 4.0),
        ("a", "seen"): (1.0, 3.0),
        ("b", "plain"): (1.0, 1.0),
        ("b", "seen"): (1.1, 1.2),
    }
    rows = [
        {"scan": scan, "change": "none", "mask": mask, "lines": count, "error": error}
        for (scan, mask), both in errors.items()
        for count, error in zip((9, 10), both, strict=True)
    ]
    (row,) = series.table(rows, "plain")
    assert (row["9 lines"], row["10 lines"]) == ("-20.0 %", "-2.5 %")
    assert (row["worst image"], row["better"]) == ("+15.0 %", "1 of 2")

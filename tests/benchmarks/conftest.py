"""What the tests of benchmarks share: modules of the studies by name, and tables as they were written."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mri_design.evaluation.tables import read_csv_texts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def glm(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Modules of the studies on generalized linear models by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"glm.{name}")


def rows_of(path: Path) -> list[dict[str, str]]:
    """A table's rows."""
    return read_csv_texts(path)

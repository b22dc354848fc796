"""Scripts and modules of the benchmarks, run in the test's process, and tables as they were written."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mri_design.evaluation import read_csv_texts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
Tables = dict[str, list[dict[str, str]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Benchmarks are not part of the distribution."""
    if not BENCHMARKS.is_dir():
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason="no benchmarks here"))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A module of the benchmarks by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def tables_of(
    module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Tables]:
    """Tables that a script leaves, by the names of their files."""

    def run(name: str, *words: str) -> Tables:
        monkeypatch.setattr("sys.argv", [name, *words, "--out", str(tmp_path)])
        module(name).main()
        return {path.stem: read_csv_texts(path) for path in tmp_path.glob("*.csv")}

    return run

"""One command makes everything under results/encodings: it runs the commands that its pages name."""

import importlib
from pathlib import Path

import pytest

from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")
RESULTS = BENCHMARKS.parent / "results" / "encodings"


def test_the_commands_are_those_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    encodings = importlib.import_module("encodings_results")
    pages = "".join((RESULTS / page).read_text() for page in ("README.md", "shots.md"))
    for script, *words in encodings.commands("DATA", Path("results/encodings"), quick=False):
        assert Path(script).is_file()
        named = [line for line in pages.splitlines() if f"python benchmarks/{Path(script).name} " in line]
        said = next((word for word in words if word in ("--positions", "--default-recipe", "--steps")), "DATA")
        assert any(said in line for line in named), words


def test_a_quick_run_takes_toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    encodings = importlib.import_module("encodings_results")
    ran: list[list[str]] = []
    monkeypatch.setattr(encodings.subprocess, "run", lambda words, check: ran.append(words[1:]))
    encodings.main(["--quick", "--out", "somewhere"])
    assert [Path(words[0]).stem for words in ran] == ["plane_encoding"] * 5 + ["shots"]
    assert all("somewhere" in words and ("phantom:t2w" in words or "--quick" in words) for words in ran)

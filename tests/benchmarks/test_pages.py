"""Pages of results keep their words, and the scripts that documents name are there or said to be gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.conftest import BENCHMARKS

ROOT = BENCHMARKS.parent
Module = Callable[[str], ModuleType]
PAGE = "# Page\n\nFirst words.\n\n## One\n\nWords of one.\n\n| a |\n| ---: |\n| 1 |\n\n## Two\n\nWords of two.\n"


def test_a_table_takes_the_place_of_the_one_under_its_heading(module: Module, tmp_path: Path) -> None:
    pages, page = module("parts.pages"), tmp_path / "page.md"
    page.write_text(PAGE)
    pages.put_table(page, "One", [{"a": 1}])
    assert page.read_text() == PAGE
    pages.put_table(page, "One", [{"b": 2}, {"b": 3}])
    pages.put_table(page, "Two", [{"c": 4}])
    pages.put_table(page, "Three", [])
    text = page.read_text()
    assert "Words of one.\n\n| b |\n| ---: |\n| 2 |\n| 3 |\n\n## Two\n\nWords of two.\n\n| c |" in text
    assert text.endswith("## Three\n\nNothing was measured.\n") and "| a |" not in text
    pages.put_conditions(page, "numpy")
    pages.put_conditions(page, "scipy", also="; idle")
    assert page.read_text().count("Measured with") == 1 and "numpy" not in page.read_text()


def named_scripts() -> dict[str, list[Path]]:
    """Scripts to the pages that name them."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    pages += [*(ROOT / "results").rglob("*.md"), *(ROOT / "mri_design").rglob("*.py")]
    found: dict[str, list[Path]] = {}
    for page in pages:
        for name in re.findall(r"benchmarks/[\w/]+\.py", page.read_text(encoding="utf-8")):
            found.setdefault(name, []).append(page)
    return found


@pytest.mark.parametrize("name", sorted(named_scripts()) if BENCHMARKS.is_dir() else [])
def test_a_script_that_a_page_names_is_there_or_said_to_be_gone(name: str) -> None:
    if not (ROOT / name).exists():
        silent = [page for page in named_scripts()[name] if "commit 4d7a30c" not in page.read_text(encoding="utf-8")]
        assert not silent

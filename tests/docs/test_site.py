"""What the pages are built from: notebooks with their outputs, the reference, tables of settings, and figures."""

from __future__ import annotations

import base64
import importlib
import json
import re
import runpy
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import mri_design as md
from tests.docs.pages import REPOSITORY

STORY = "01_a_story"
PRINTED = "X A⁻¹ Xᴴ is 0.25"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_a_notebook_s_page_has_what_it_printed_and_drew(build_pages: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("nbformat")
    outputs: list[dict[str, object]] = [
        {"output_type": "stream", "name": "stdout", "text": [f"{PRINTED}\n", "and a second line\n"]},
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": PIXEL}},
    ]
    told = {"id": "a", "cell_type": "markdown", "metadata": {}, "source": "# A story\n\nWhat is asked."}
    code = {
        "id": "b",
        "cell_type": "code",
        "metadata": {},
        "execution_count": 1,
        "source": "show()",
        "outputs": outputs,
    }
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [told, code]}
    (tmp_path / f"{STORY}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page, figures = build_pages.notebook_page(STORY, tmp_path)
    assert page.startswith("# A story\n") and f"    {PRINTED}\n    and a second line\n" in page
    ((name, drawn),) = figures.items()
    assert drawn == base64.b64decode(PIXEL) and f"]({name})" in page


def test_links_lead_to_the_pages_that_are_built(build_pages: ModuleType) -> None:
    def written(text: str, page: str) -> str:
        file = SimpleNamespace(file=SimpleNamespace(src_uri=page), meta={})
        return str(build_pages.on_page_markdown(text, file, None, None))

    (story, *_) = sorted(path.stem for path in (REPOSITORY / "notebooks").glob("*.py"))
    assert written(f"[a](../notebooks/{story}.py)", "index.md") == f"[a](notebooks/{story}.md)"
    made = written("[x](../../docs/theory.md) [y](c.md)", "results/a/b.md")
    assert made == "[x](../../theory.md) [y](c.md)"


def test_search_finds_guides_first_and_equations_are_drawn_by_the_browser(build_pages: ModuleType) -> None:
    def built(page: str, text: str = "") -> tuple[float, str]:
        file = SimpleNamespace(file=SimpleNamespace(src_uri=page), meta={})
        written = str(build_pages.on_page_markdown(text, file, None, None))
        return file.meta["search"]["boost"], written

    ranks = [built(page)[0] for page in ("reconstruct.md", "results.md", "api/scan.md", "results/coils/chain.md")]
    assert ranks == sorted(ranks, reverse=True) and len({*ranks}) == 4
    _, text = built("theory.md", "Of $`z_i`$:\n\n$$\nz = A^{-1} b\n$$\n")
    assert text.count("<math") == text.count("</math>") == 2 and "$" not in text and "msup" in text
    drawn = build_pages.on_page_content("<p>Of :math:<code>a &lt; b^2</code>.</p>", None, None, None)
    assert drawn.count("<math") == 1 and ":math:" not in drawn and "msup" in drawn and "&amp;" not in drawn


def test_the_reference_has_every_public_name_and_all_of_its_names_exist(build_pages: ModuleType) -> None:
    listed = {
        subject: re.findall(r"^::: (.+)$", build_pages.reference_page(subject), re.M)
        for subject in build_pages.SUBJECTS
    }
    assert {path.rpartition(".")[2] for path in listed.pop("mri_design")} | {*listed} == {*md.__all__}
    for paths in listed.values():
        for module, _, name in (path.rpartition(".") for path in paths):
            assert hasattr(importlib.import_module(module), name)


def test_the_page_of_recipes_has_every_setting(build_pages: ModuleType) -> None:
    text = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")
    settings = md.load_recipe(None).as_settings()
    named = {
        f"{section}.{name}".removeprefix("experts.")
        for section in re.findall(r"<!-- settings: (\w+) -->", text)
        for name in re.findall(r"^\| `([\w.]+)` \|", build_pages.settings_table(section), re.M)
    }
    sections = {**settings, "prior": settings["prior"][0]}
    assert named == {f"{section}.{key}" for section, values in sections.items() for key in values}


def test_the_shipped_default_is_written_from_the_settings(build_pages: ModuleType) -> None:
    """``python docs/build_pages.py`` writes it."""
    text = build_pages.recipe_text()
    assert (REPOSITORY / "mri_design/recipes/default.toml").read_text(encoding="utf-8") == text
    assert md.Recipe.of(tomllib.loads(text)) == md.Recipe()


@pytest.mark.slow
def test_every_line_of_the_forest_plot_is_made_from_the_committed_tables() -> None:
    studies = runpy.run_path(str(REPOSITORY / "docs/figures/results.py"))["STUDIES"]
    found = {study.label: study.changes() for study in studies}
    assert len(found) > 10 and all(len(changes) >= 6 for changes in found.values())
    chain = (REPOSITORY / "results/coils/chain.md").read_text(encoding="utf-8")
    mean, worst = re.findall(r"^\| whole \| (\S+) % \| \S+ \| (\S+) %", chain, re.M)[0]
    assert [float(mean), float(worst)] == pytest.approx(
        [np.mean(found[studies[0].label]), max(found[studies[0].label])], abs=0.06
    )

"""The built pages work where the README sends readers: opened as files, without a server or a network."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.docs.pages import REPOSITORY

STORY = "01_a_story"
PRINTED = "X A⁻¹ Xᴴ is 0.25"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture
def executed(tmp_path: Path) -> Path:
    """The folder of a notebook that printed twice and drew a figure."""
    pytest.importorskip("nbformat")
    outputs: list[dict[str, object]] = [
        {"output_type": "stream", "name": "stdout", "text": [f"{PRINTED}\n"]},
        {"output_type": "stream", "name": "stdout", "text": ["and a second line\n"]},
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": PIXEL}},
    ]
    cells = [
        {"id": "a", "cell_type": "markdown", "metadata": {}, "source": "# A story\n\nWhat is asked."},
        {
            "id": "b",
            "cell_type": "code",
            "metadata": {},
            "execution_count": 1,
            "source": "show()",
            "outputs": outputs,
        },
    ]
    folder = tmp_path / "executed"
    folder.mkdir()
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (folder / f"{STORY}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def test_a_notebook_s_page_has_what_it_printed_and_drew(build_pages: ModuleType, executed: Path) -> None:
    page, figures = build_pages.notebook_page(STORY, executed)
    assert page.startswith("# A story\n")
    assert f"    {PRINTED}\n    and a second line\n" in page
    (name,) = figures
    assert figures[name] == base64.b64decode(PIXEL)
    assert f"![A figure that the code above draws]({name})" in page


def test_a_notebook_that_nobody_ran_is_an_error_that_names_the_cure(build_pages: ModuleType, tmp_path: Path) -> None:
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match="make docs"):
        build_pages.notebook_page(STORY, tmp_path)


def test_every_notebook_is_in_the_contents_and_links_to_it_lead_to_its_page(build_pages: ModuleType) -> None:
    stories = [path.stem for path in sorted((REPOSITORY / "notebooks").glob("*.py"))]
    contents = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"- notebooks/(\d\w+)\.md", contents) == stories

    class Linking:
        meta: dict[str, object] = {}  # noqa: RUF012

        class file:  # noqa: N801
            src_uri = "index.md"

    written = build_pages.on_page_markdown(f"[a](../notebooks/{stories[0]}.py)", Linking, None, None)
    assert written == f"[a](notebooks/{stories[0]}.md)"


def test_files_that_pages_link_to_as_text_are_plain_ascii(build_pages: ModuleType) -> None:
    # browsers guess the letters of a text that is opened as a file, and guess wrong
    for page in sorted((REPOSITORY / "docs").glob("*.md")):
        for target in build_pages.LINK.findall(page.read_text(encoding="utf-8")):
            if target.endswith((".py", ".toml", ".csv", ".txt", ".json")) and not target.startswith("notebooks/"):
                assert (REPOSITORY / target).read_bytes().isascii(), f"{page.name}: {target}"


@pytest.fixture
def site(tmp_path: Path, build_pages: ModuleType, executed: Path) -> Path:
    """A site of two pages, built with the theme and the plugins of the real one."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    pages = tmp_path / "pages"
    shutil.copytree(REPOSITORY / "docs" / "javascripts", pages / "javascripts")
    (pages / "index.md").write_text("# Beginning\n\nOf quokkas and other animals.\n", encoding="utf-8")
    text, figures = build_pages.notebook_page(STORY, executed)
    for ending in (".py", ".ipynb"):
        (pages / f"{STORY}{ending}").write_text("", encoding="utf-8")
    (pages / f"{STORY}.md").write_text(text, encoding="utf-8")
    for name, drawn in figures.items():
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_bytes(drawn)
    built = tmp_path / "built site"
    settings = {"docs_dir": str(pages), "site_dir": str(built), "nav": ["index.md", f"{STORY}.md"], "hooks": []}
    build(load_config(str(REPOSITORY / "mkdocs.yml"), strict=True, **settings))
    return built


@pytest.mark.slow
def test_the_index_of_the_search_and_its_worker_lie_in_the_site(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ")
    assert "quokkas" in index
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        scripts = re.findall(r'<script src="([^"]+)"', text)
        assert scripts[0].endswith("javascripts/iframe-worker.js")  # before the theme's own asks for a worker
        for script in scripts:
            assert script.startswith("/") or (site / script).is_file(), f"{page.name}: {script}"
    story = (site / f"{STORY}.html").read_text(encoding="utf-8")
    assert '<meta charset="utf-8">' in story
    assert PRINTED in html.unescape(story)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_search_finds_pages_that_are_opened_as_files(site: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
    ]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    address = f"{(site / f'{STORY}.html').as_uri()}?q=quokkas"
    seen = subprocess.run([*command, address], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "1 matching document" in seen
    assert re.search(r'<a href="[^"]*index\.html[^"]*" class="md-search-result__link"', seen)


def test_a_link_that_leads_nowhere_fails_the_build_as_make_docs_calls_it(tmp_path: Path) -> None:
    """With --quiet, mkdocs does not count its warnings."""
    (words,) = re.findall(r"mkdocs (build .*)", (REPOSITORY / "Makefile").read_text(encoding="utf-8"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[Nowhere](nowhere.md)\n", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text("site_name: A site\n", encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", *words.split(), "--config-file", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "nowhere.md" in done.stderr


def test_links_of_results_lead_to_the_documents(build_pages: ModuleType) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="results/a/b.md"), meta={})
    made = build_pages.on_page_markdown("[x](../../docs/theory.md) [y](c.md)", page, None, None)
    assert made == "[x](../../theory.md) [y](c.md)"

"""Names and files that the documents speak of are those of the package, and words of the field are found in them."""

from __future__ import annotations

import re
import tomllib
from types import ModuleType

import pytest

import mri_design as md
from tests.docs.pages import REPOSITORY

PACKAGE = REPOSITORY / "mri_design"
PAPERS = ("TR-175", "NS09", "Khan14", "LP03", "Lewi07")


def _text(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


def test_every_strategy_is_on_its_page() -> None:
    text = _text("docs/choose-a-strategy.md")
    missing = [name for name in md.strategy_names() if f"`{name}`" not in text]
    assert not missing


def test_the_version_is_the_package_s_everywhere() -> None:
    version = tomllib.loads(_text("pyproject.toml"))["project"]["version"]
    assert re.findall(r"mri_design-(\S+?)-py3", _text("docs/install.md")) == [version]
    assert f"version = {{{version}}}" in _text("README.md")
    assert f"\nversion: {version}\n" in _text("CITATION.cff")


def test_functions_of_the_theory_s_table_exist() -> None:
    rows = [line.split("|") for line in _text("docs/theory.md").splitlines() if line.startswith("| ")]
    cells = [row[-2] for row in rows if row[1].split()[0] in PAPERS]
    assert len(cells) > 30
    for cell in cells:
        for name in re.findall(r"`(\w+)[^`/]*`", cell):
            assert name in md.__all__, cell
        for name, place in re.findall(r"\*(\w+)\* in `([\w/.]+)`", cell):
            path = PACKAGE / place
            files = [path] if path.is_file() else list(path.glob("*.py"))
            assert any(name in file.read_text(encoding="utf-8") for file in files), cell


def test_the_reference_has_every_public_name(build_pages: ModuleType) -> None:
    pages = "".join(build_pages.reference_page(name) for name in build_pages.GROUPS)
    listed = [line.split(".")[-1] for line in pages.splitlines() if line.startswith("::: ")]
    assert sorted(listed) == sorted({*md.__all__} - {"operators", "potentials", "variances"})
    assert all(f"api/{name}.md" in _text("mkdocs.yml") for name in build_pages.GROUPS)


def test_every_public_name_is_used_where_users_read() -> None:
    folders = [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "notebooks").iterdir()]
    folders += (REPOSITORY / "benchmarks").rglob("*.py")
    read = [REPOSITORY / "README.md", *(path for path in folders if path.suffix in (".md", ".py", ".ipynb"))]
    words = {word for path in read for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    assert not set(md.__all__) - words


def test_the_page_of_recipes_has_every_setting(build_pages: ModuleType) -> None:
    sections = set(re.findall(r"<!-- settings: (\w+) -->", _text("docs/recipes.md")))
    settings = md.load_recipe(None).as_settings()
    assert sections == {
        *(
            "prior",
            "phase",
            "noise",
            "companion",
            "inference",
            "design",
            "constraints",
            "reconstruction",
            "simulation",
            "experts",
        )
    }
    named = {
        f"{section}.{name}".removeprefix("experts.")
        for section in sections
        for name in re.findall(r"^\| `([\w.]+)` \|", build_pages.settings_table(section), re.M)
    }
    prior = settings.pop("prior")[0]
    every = {
        f"{section}.{key}" for section, values in {**settings, "prior": prior, "fft": {}}.items() for key in values
    }
    assert named == every | {"fft"}


def test_the_shipped_default_is_written_from_the_settings(build_pages: ModuleType) -> None:
    """``python docs/build_pages.py`` writes it anew."""
    text = build_pages.recipe_text()
    assert (PACKAGE / "recipes" / "default.toml").read_text(encoding="utf-8") == text
    assert md.Recipe.of(tomllib.loads(text)) == md.Recipe()


WORDS = (
    "SENSE,ACS,autocalibration,g-factor,GRAPPA,sensitivity map,parallel imaging,compressed sensing,off-resonance,"
    "prewhitening,undersampling,Poisson disk,k-t,GPU,T1w,T2w"
)


@pytest.mark.parametrize("word", WORDS.split(","))
def test_words_of_the_field_are_found(word: str) -> None:
    glossary = _text("CONTRIBUTING.md").partition("## Glossary")[2]
    assert re.search(word, glossary, re.I), "the glossary says nothing of it"
    assert any(re.search(word, page.read_text(encoding="utf-8"), re.I) for page in (REPOSITORY / "docs").glob("*.md"))

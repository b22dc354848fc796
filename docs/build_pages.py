"""Additions of `make docs` to the written pages: the reference, the table of settings, and the repository's own files.

- ``api/*.md`` list the public names of the package and of its subpackages, for mkdocstrings to fill.
- A line ``<!-- settings: NAME -->`` becomes the table of a recipe's settings, read from the recipe itself, as
  are the recipe `default` with its comments and the JSON Schema: ``python docs/build_pages.py`` writes both into the
  package.
- ``notebooks/*.md`` are the notebooks with what they printed and drew when `make notebooks` ran them.
- Equations in TeX become MathML.
- A link ``../PATH`` of a page leads to a file of the repository; the file is copied into the site (of ``results/``, all
  files are), so that the same link works in the repository and on the site.
"""

from __future__ import annotations

import json
import re
import textwrap
from ast import literal_eval
from dataclasses import MISSING
from html import unescape
from importlib import import_module
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mri_design.experiment.recipe import SHIPPED, BlockRecipe, Recipe, recipe_schema
from mri_design.experiment.settings import Setting, Settings

ROOT, PACKAGE = Path(__file__).parents[1], "mri_design"
SUBJECTS = {
    "mri_design": "From scan to image",
    "scan": "Scans",
    "formats": "Files of scans",
    "exchange": "Exchange with other programs",
    "experiment": "Parts that recipes name",
    "model": "Models",
    "operators": "Operators",
    "sites": "Sites",
    "inference": "Inference",
    "variances": "Variances",
    "estimation": "Point estimates",
    "signals": "Signals of echoes",
    "readouts": "Readouts",
    "design": "Line design",
    "glm": "Labels, queries and dense engines",
}
"""Pages of the reference: the top of the package, its subpackages of public names, and their titles."""
STORIES, EXECUTED = ROOT / "notebooks", ROOT / "build" / "notebooks"
"""The notebooks as they are written, and as `make notebooks` left them: with outputs, under the same names."""
GALLERY = """# Notebooks

Longer stories, from the first line of code to the last picture. Each of them ran when these pages were built.

<div class="grid cards" markdown>

{}
</div>
"""
"""The page that shows all notebooks; it takes their cards."""
RANKS = {"results/": 0.001, "api/": 0.005, "results.md": 0.2, "theory.md": 0.3, "notebooks/": 0.5}
"""How search weighs pages, by how their paths begin: guides come before tables, which hold every word."""
LINK = re.compile(r"\]\(\.\./([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, and the files of the repository that pages link to."""
    for name in SUBJECTS:
        files.append(File.generated(config, f"api/{name}.md", content=reference_page(name)))
    cards = []
    for story in sorted(STORIES.glob("[0-9]*.py")):
        page, figures = notebook_page(story.stem, EXECUTED)
        cards.append(gallery_card(story.stem, page))
        files.append(File.generated(config, f"notebooks/{story.stem}.md", content=page))
        files.append(File.generated(config, f"notebooks/{story.name}", abs_src_path=str(story)))
        executed = EXECUTED / f"{story.stem}.ipynb"
        files.append(File.generated(config, f"notebooks/{executed.name}", abs_src_path=str(executed)))
        for name, drawn in figures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=drawn))
    files.append(File.generated(config, "notebooks/index.md", content=GALLERY.format("\n".join(cards))))
    linked = {target for page in (ROOT / "docs").glob("*.md") for target in LINK.findall(page.read_text("utf-8"))}
    copied = {path.relative_to(ROOT).as_posix() for path in (ROOT / "results").rglob("*") if path.is_file()}
    for path in sorted(copied | {target for target in linked if (ROOT / target).is_file()}):
        if not path.startswith(("docs/", "notebooks/")):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the repository lead to its copies, and put in the tables of settings."""
    rank = next((boost for start, boost in RANKS.items() if page.file.src_uri.startswith(start)), 1)
    page.meta["search"] = {"boost": rank}
    if page.file.src_uri.startswith("results/"):
        return markdown.replace("](../../docs/", "](../../").replace("](../docs/", "](../")
    if page.file.src_uri.startswith(("api/", "notebooks/")):
        return markdown
    markdown = re.sub(r"\$\$(.+?)\$\$|\$`(.+?)`\$", equation, markdown, flags=re.S)
    markdown = re.sub(r"\]\(\.\./notebooks/(\w+)\.py", r"](notebooks/\1.md", markdown)
    markdown = re.sub(r"^<!-- settings: (\w+) -->$", lambda match: settings_table(match[1]), markdown, flags=re.M)
    return markdown.replace("](../docs/", "](").replace("](../", "](").replace("](docs/", "](")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the equations of docstrings, which are TeX as the role ``math``."""
    return re.sub(r":math:<code>(.+?)</code>", lambda written: convert(unescape(written[1])), html, flags=re.S)


def equation(written: re.Match[str]) -> str:
    """An equation in TeX, between ``$$`` or in a line between $` and `$, as MathML, which browsers draw."""
    if written[1] is None:
        return convert(written[2])
    return f'<div class="equation">{convert(" ".join(written[1].split()), display="block")}</div>'


def reference_page(subject: str) -> str:
    """The page of the public names of the package, or of one of its subpackages, for mkdocstrings to fill.

    A name that the top of the package has, too, is described there alone; the subpackage's page links to it.
    """
    paths = public_paths(subject)
    names, above = list(paths), {} if subject == PACKAGE else public_paths(PACKAGE)
    used = f"`md.{names[0]}`" if subject == PACKAGE else f"`md.{subject}.{names[0]}`"
    parts = [f"# {SUBJECTS[subject]}", f"Used as `import mri_design as md`, for example {used}."]
    if linked := [f"[{name}][{paths[name]}]" for name in names if paths[name] in above.values()]:
        parts.append(f"At the top of the package, too: {', '.join(linked)}.")
    described = [path for path in paths.values() if path not in above.values()]
    return "\n\n".join([*parts, *(f"::: {path}" for path in described)]) + "\n"


def public_paths(subject: str) -> dict[str, str]:
    """Where each public name of the package, or of one of its subpackages, is defined, in the order of its stub."""
    top = subject == PACKAGE
    module = import_module(PACKAGE if top else f"{PACKAGE}.{subject}")
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    text = stub.read_text(encoding="utf-8") if stub.is_file() else ""
    homes = {
        name: f"{module.__name__}.{home}"
        for home, name in re.findall(r"^from \.([\w.]+) import (\w+)", text, flags=re.M)
    }
    for name in () if text else module.__all__:
        if getattr(getattr(module, name), "__module__", "").startswith(PACKAGE):
            homes[name] = getattr(module, name).__module__
    listed = re.search(r"^__all__ = (\[.*?\])", text, flags=re.M | re.S)
    return {name: f"{homes[name]}.{name}" for name in (literal_eval(listed[1]) if listed else homes)}


def notebook_page(name: str, folder: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook with its outputs as Markdown, and its figures by the names that the page gives them.

    Parameters
    ----------
    name : str
        Of the notebook, without an ending.
    folder : Path
        Where it lies as it was executed.

    Raises
    ------
    PluginError
        If it has not been executed.
    """
    from nbconvert import MarkdownExporter  # here: it takes a second to import
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    executed = folder / f"{name}.ipynb"
    if not executed.is_file():
        raise PluginError(f"{executed} is not there: `make docs` runs the notebooks before it builds the pages")
    exporter = MarkdownExporter()
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)  # printed together, shown together
    text, made = exporter.from_filename(str(executed), {"unique_key": name, "output_files_dir": f"{name}_files"})
    text = re.sub(r"^!\[png\]\(", "![A figure that the code above draws](", text, flags=re.M)
    title, _, story = text.partition("\n")
    downloads = " or ".join(
        f'[{what}]({name}{ending}){{ download="{name}{ending}" }}'
        for what, ending in (("the script", ".py"), ("the notebook", ".ipynb"))
    )
    origin = (
        f"*A notebook, run at its small size when these pages were built. Download {downloads} to run it yourself.*"
    )
    return f"{title}\n\n{origin}\n{story}", dict(made["outputs"])


def gallery_card(name: str, page: str) -> str:
    """An entry of the gallery: a notebook's title, its last picture and what it says of itself first.

    Parameters
    ----------
    name : str
        Of the notebook, without an ending.
    page : str
        Its page, by `notebook_page`.
    """
    title, _, story = page.removeprefix("# ").partition("\n")
    drawn = re.findall(r"^!\[.*?\]\((.+?)\)$", story, re.M)
    picture = [f"[![{title}]({drawn[-1]}){{ width=100% }}]({name}.md)"] if drawn else []
    said = story.strip().split("\n\n")[1].replace("\n", " ")
    return "\n\n    ".join([f"-   **[{title}]({name}.md)**", *picture, said]) + "\n"


def sections() -> dict[str, type[Settings]]:
    """The classes of the tables of a recipe, by name."""
    return {"prior": BlockRecipe, **Settings.sections}


def settings_table(section: str) -> str:
    """Settings of one section of a recipe, or those of all sections that are for experts: what each takes and is."""
    rows = []
    for name, kind in sections().items():
        for key, one in kind.declared().items():
            if one.expert if section == "experts" else name == section and not one.expert:
                label = f"{name}.{key}" if section == "experts" else key
                rows.append(f"| `{label}` | {_takes(one)} | {_default(one)} | {one.help} |")
    return "\n".join(["| setting | takes | default | what it is |", "| :--- | :--- | :--- | :--- |", *rows])


def _takes(one: Setting) -> str:
    names = ", ".join(f'`"{choice}"`' for choice in one.choices)
    return names or one.wanted.replace("true or false", "`true` or `false`")


def _default(one: Setting) -> str:
    if one.default is MISSING:
        return "(must be given)"
    return one.unset or "none" if one.default is None else f"`{json.dumps(one.default)}`"


def recipe_text() -> str:
    """The recipe in force without ``--recipe`` as TOML, with a comment on every setting."""
    lines = [
        "#:schema recipe.schema.json",
        "# The recipe in force without --recipe: every setting with its default, those without in comments.",
        "# A recipe of your own names only what it changes.",
    ]
    recipe = Recipe()
    for name, kind in sections().items():
        if name == "prior":
            lines += ["", *_comment(kind.summary()), *_comment("A recipe that names any [[prior]] replaces them all.")]
            for key, one in kind.declared().items():
                lines += _comment(f"{key}: {one.help} Takes {one.wanted}.", "  ")
            for block in recipe.prior:
                changed = {k: v for k, v in block.plain().items() if v != kind.declared()[k].default}
                lines += ["", "[[prior]]", *(f"{k} = {json.dumps(v)}" for k, v in changed.items())]
            continue
        lines += ["", f"[{name}]", *_comment(kind.summary())]
        for key, one in kind.declared().items():
            lines += _setting_lines(key, one)
    return "\n".join(lines) + "\n"


def _setting_lines(key: str, one: Setting) -> list[str]:
    if one.default is None:
        return _comment(f"{key}: {one.help} Takes {one.wanted}; without it: {one.unset or 'none'}.")
    listed = ", ".join(one.choices) + (", or a number" if one.choices and "integer" in one.kinds else "")
    choices = f" One of: {listed}." if one.choices else ""
    return [*_comment(one.help + choices), f"{key} = {json.dumps(one.default)}"]


def _comment(text: str, further: str = "") -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 118, initial_indent="# ", subsequent_indent=f"# {further}")


if __name__ == "__main__":
    SHIPPED.joinpath("default.toml").write_text(recipe_text(), encoding="utf-8")
    SHIPPED.joinpath("recipe.schema.json").write_text(json.dumps(recipe_schema(), indent=1) + "\n", encoding="utf-8")

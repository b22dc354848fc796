"""What `make docs` adds to the written pages: the reference, the table of settings, and the repository's own files.

- ``api/*.md`` list every name of ``mri_design.__all__``, grouped by the room that defines it, for mkdocstrings to fill.
- A line ``<!-- settings: NAME -->`` becomes the table of a recipe's settings, read from the recipe's schema.
- ``notebooks/*.md`` are the notebooks with what they printed and drew when `make notebooks` ran them.
- A link ``../PATH`` of a page leads to a file of the repository; the file is copied into the site (of ``results/``, all
  files are), so that the same link works in the repository and on the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import mri_design
from mri_design.experiment.recipe import Recipe

ROOT = Path(__file__).parents[1]
GROUPS = {
    "scans": ("Scans and recipes", ("scan", "experiment")),
    "models": ("Models", ("model",)),
    "operators": ("Operators", ("operators",)),
    "sites": ("Sites", ("potentials",)),
    "inference": ("Inference and variances", ("inference", "variances")),
    "estimation": ("Point estimates", ("estimation",)),
    "design": ("Line design", ("design",)),
    "active-learning": ("Labels and queries", ("active_learning",)),
    "judging": ("Metrics, endings and errors", ("evaluation", "status", "errors")),
}
"""File of the reference: title, and the rooms whose public names stand there."""
STORIES, EXECUTED = ROOT / "notebooks", ROOT / "build" / "notebooks"
"""The notebooks as they are written, and as `make notebooks` left them: with outputs, under the same names."""
LINK = re.compile(r"\]\(\.\./([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, and the files of the repository that pages link to."""
    for name in GROUPS:
        files.append(File.generated(config, f"api/{name}.md", content=reference_page(name)))
    for story in sorted(STORIES.glob("[0-9]*.py")):
        page, figures = notebook_page(story.stem, EXECUTED)
        files.append(File.generated(config, f"notebooks/{story.stem}.md", content=page))
        files.append(File.generated(config, f"notebooks/{story.name}", abs_src_path=str(story)))
        executed = EXECUTED / f"{story.stem}.ipynb"
        files.append(File.generated(config, f"notebooks/{executed.name}", abs_src_path=str(executed)))
        for name, drawn in figures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=drawn))
    linked = {target for page in (ROOT / "docs").glob("*.md") for target in LINK.findall(page.read_text("utf-8"))}
    copied = {path.relative_to(ROOT).as_posix() for path in (ROOT / "results").rglob("*") if path.is_file()}
    for path in sorted(copied | {target for target in linked if (ROOT / target).is_file()}):
        if not path.startswith(("docs/", "notebooks/")):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the repository lead to its copies, and put in the tables of settings."""
    if page.file.src_uri.startswith("results/"):
        page.meta["search"] = {"boost": 0.01}  # tables of numbers hold every word: pages that explain it come first
        return markdown.replace("](../../docs/", "](../../")
    if page.file.src_uri.startswith(("api/", "notebooks/")):
        return markdown
    markdown = re.sub(r"\]\(\.\./notebooks/(\w+)\.py", r"](notebooks/\1.md", markdown)
    markdown = re.sub(r"^<!-- settings: (\w+) -->$", lambda match: settings_table(match[1]), markdown, flags=re.M)
    return markdown.replace("](../docs/", "](").replace("](../", "](").replace("](docs/", "](")


def reference_page(name: str) -> str:
    """The public names of some rooms, as mkdocstrings wants them named."""
    title, rooms = GROUPS[name]
    homes = {public: mri_design._HOMES[public] for public in mri_design.__all__}
    there = [public for public, home in homes.items() if home.split(".")[0] in rooms]
    parts = [f"# {title}", "All of it is used as `import mri_design as md`, for example " + f"`md.{there[0]}`."]
    parts += [f"::: mri_design.{homes[public]}.{public}" for public in there]
    return "\n\n".join(parts) + "\n"


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
        Where nobody has executed it.
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


def settings_table(section: str) -> str:
    """Settings of one section of a recipe: name, what it takes, default."""
    schema = Recipe.model_json_schema()
    field = schema["properties"][section]
    found = field.get("items", field)
    properties = schema["$defs"][found["$ref"].split("/")[-1]]["properties"]
    rows = [f"| `{name}` | {_takes(entry)} | {_default(entry)} |" for name, entry in properties.items()]
    return "\n".join(["| setting | takes | default |", "| :--- | :--- | :--- |", *rows])


def _takes(entry: dict[str, Any]) -> str:
    """What a setting takes, in words."""
    if "anyOf" in entry:
        return " or ".join(_takes(choice) for choice in entry["anyOf"] if choice.get("type") != "null")
    if "enum" in entry:
        return ", ".join(f'`"{choice}"`' for choice in entry["enum"])
    if entry["type"] == "array":
        return f"a list; each entry {_takes(entry['items'])}"
    words = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "`true` or `false`"}
    bounds = {
        "exclusiveMinimum": "above {:g}",
        "minimum": "at least {:g}",
        "exclusiveMaximum": "below {:g}",
        "maximum": "at most {:g}",
    }
    said = [words[entry["type"]], *(text.format(entry[key]) for key, text in bounds.items() if key in entry)]
    return ", ".join(said)


def _default(entry: dict[str, Any]) -> str:
    if "default" not in entry:
        return "(must be given)"
    value = entry["default"]
    if value is None:
        return "none"
    return f"`{value!r}`".replace("'", '"').replace("`True`", "`true`").replace("`False`", "`false`")

"""Reports: one HTML file per run, made from a template that words the facts of the run and draws its figures."""

from __future__ import annotations

import gc
import itertools
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from mri_design.evaluation import plots
from mri_design.evaluation.metrics import NO_RANKS
from mri_design.evaluation.plots.pictures import COLOURS, PALETTE, Drawing, inline, svg_text
from mri_design.evaluation.run_folder import (
    OUTPUTS,
    PERSONAL,
    RunFolder,
    command_line,
    installed_versions,
    manifest_text,
)
from mri_design.evaluation.tables import Row, alike, column_names, format_cell, is_numeric, percent, shown_texts
from mri_design.kinds import count_text
from mri_design.scan.io.atomic import write_text
from mri_design.status import Status
from mri_design.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_MANY_OBJECTS = 50_000
_ONE_LINE = 36  # letters of a cell that stay on one line


@dataclass(frozen=True)
class Page:
    """A report before it is drawn: the template that words it, and what it is about.

    Parameters
    ----------
    template : str
        Name of a file pages/NAME.html.j2, which fills the blocks of page.html.j2.
    facts : mapping of str to object
        What the template speaks of. Text from a scan may stand everywhere, it is escaped.
    """

    template: str
    facts: Mapping[str, Any]


def write_page(
    path: str | Path, page: Page, folder: RunFolder | None = None, warnings: Sequence[str] = (), **facts: object
) -> None:
    """Write a page that needs no other file and no network; only what it links to lies elsewhere.

    Parameters
    ----------
    path : str or Path
        The HTML file; `RunFolder.output_path` gives one inside a run folder.
    page : Page
        What is on it.
    folder : RunFolder, optional
        Where figures are kept; without it the page alone has them.
    warnings : sequence of str
        Shown above everything, for example that a computation did not converge.
    **facts
        Of the frame: ``command``, ``made``, ``version``, ``files``, and ``manifest``, which is folded away at the end.

    Raises
    ------
    InputError
        Where a table is empty.
    OSError
        Where it cannot be written; an older report is then still there.
    """
    numbers = itertools.count(1)

    def kept(name: str, figure: Drawing | str, caption: Any) -> str:
        """Write figures/NAME.svg, and return it for the page; a figure that is a text is written already."""
        svg = figure
        if not isinstance(figure, str):
            svg = folder.write_figure(name, figure).read_text(encoding="utf-8") if folder else svg_text(figure)
        return Markup(inline(svg, f"f{next(numbers)}-", _plain(caption)))

    frame: dict[str, object] = dict.fromkeys(("command", "made", "version", "files", "manifest"))
    context = frame | facts | dict(page.facts) | {"kept": kept, "warnings": warnings}
    with _rarely_collected():
        text = html_of(page.template, context, script="page")
    write_text(path, text)


def html_of(template: str, facts: Mapping[str, object], script: str = "") -> str:
    """A page, or a part of one, as text: pages/TEMPLATE.html.j2 with its facts.

    Parameters
    ----------
    template : str
        Name of the template.
    facts : mapping of str to object
        What it speaks of; text in them is escaped.
    script : str
        Name of its script in this package, the only one that the page's policy lets run.
    """
    code, found = "", resources.files("mri_design.evaluation")
    if script:
        code = "\n" + found.joinpath(f"{script}.js").read_text("utf-8")
    digest = b64encode(sha256(code.encode()).digest()).decode()
    return _templates().get_template(f"{template}.html.j2").render(facts, script=code, digest=digest)


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Collect garbage less often: figures consist of many thousand objects, none of which is garbage while drawing."""
    thresholds = gc.get_threshold()
    if thresholds[0]:  # 0 is never
        gc.set_threshold(max(thresholds[0], _MANY_OBJECTS), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def save_report(folder: RunFolder, page: Page, manifest: Mapping[str, Any]) -> None:
    """Write report.html with links to the run's files, and manifest.json; what did not converge stands on top.

    A folder without a report gets the manifest alone; figures and report of an earlier run there go. The manifest comes
    last: a run that has one is finished, so that a run killed before goes on and leaves the same files.
    """
    if folder.reported:
        there = {name for name in OUTPUTS if (folder.path / name).is_file()} | {"manifest.json"}
        status = manifest["status"]
        passed_on = {name: value for name, value in manifest["settings"].items() if name not in PERSONAL}
        write_page(
            folder.output_path("report.html"),
            page,
            folder,
            [] if status == Status.CONVERGED.value else [f"{status[:1].upper()}{status[1:]}."],
            **dated(manifest["command"]),
            files={name: what for name, what in OUTPUTS.items() if what and name in there},
            manifest={**manifest, "settings": passed_on},
        )
    else:
        folder.remove_report()
    folder.write_text("manifest.json", manifest_text(**manifest))


def worded(template: str, macro: str, *arguments: object, **facts: object) -> str:
    """A sentence of pages as plain text: a macro of a template, its arguments, and other facts that it uses."""
    module: Any = _templates().get_template(f"{template}.html.j2").make_module(facts)
    return _plain(_words(getattr(module, macro)(*arguments)))


def dated(command: Sequence[str]) -> dict[str, str]:
    """Now, this version, and the arguments that were typed."""
    version = f"mri_design {installed_versions(('mri-design',))['mri-design']}"
    return {"made": f"{datetime.now():%Y-%m-%d %H:%M}", "version": version, "command": command_line(command)}


@cache
def _templates() -> Environment:
    """Pages, whose text is escaped, with the functions and values that templates may use."""
    from jinja2.utils import htmlsafe_json_dumps  # here: many runs write no page

    templates = environment("mri_design.evaluation", "pages", autoescape=True)
    filters: dict[str, Callable[..., object]] = {
        "words": _words,
        "plain": _plain,
        "address": _address,
        "anchor": lambda title: "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:60] or "part",
        "json": lambda content: htmlsafe_json_dumps(_bare(content), separators=(",", ":"), allow_nan=False),
        "cells": _cells,
        "number": _key_number,
        "percent": percent,
        "as": format,
        "count": count_text,
        "without": lambda rows, *names: [{key: row[key] for key in row if key not in names} for row in rows],
        "row": lambda judged: judged.as_row(),
        "upfirst": lambda text: text[:1].upper() + text[1:],
        "manifest_text": lambda manifest: manifest_text(**manifest),
    }
    templates.filters |= filters
    templates.tests["finite"] = math.isfinite
    templates.globals |= {"plots": plots, "alike": alike, "zip": zip, "no_ranks": NO_RANKS}
    templates.globals |= {"colours": COLOURS, "accent": PALETTE[1]}
    return templates


def _words(text: object) -> str:
    """Text as HTML: escaped, with code elements for what stands between backticks, runs of white space as one space."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", re.sub(r"[ \n]+", " ", str(escape(text))).strip()))


def _plain(text: Any) -> str:
    """HTML as it is read out."""
    return str(text.striptags())


def _address(png: bytes) -> str:
    """A picture as part of a page; empty without one."""
    return f"data:image/png;base64,{b64encode(png).decode()}" if png else ""


def _cells(rows: Sequence[Row], formats: Mapping[str, str]) -> dict[str, object]:
    """Rows as text, and the name and class of every column ("number", "long" for text that wraps); empty ones are not.

    ``formats`` are those of columns of floats, for example ``{"psnr": ".1f"}``; without one a column has the decimals
    that `tables.shown_texts` finds for all its numbers.
    """
    names = [name for name in column_names(rows) if any(row.get(name) is not None for row in rows)]
    texts = shown_texts(rows, names, formats)
    longest = [max(map(len, column), default=0) for column in zip(*texts, strict=True)]
    classes = ["number" if is_numeric(rows, name) else "" for name in names]
    classes = [kind or ("long" if length > _ONE_LINE else "") for kind, length in zip(classes, longest, strict=True)]
    columns = [(name.replace("_", " "), kind) for name, kind in zip(names, classes, strict=True)]
    return {"columns": columns, "rows": texts}


def _key_number(value: object) -> str:
    """One value by itself: three significant digits, all of those before the point."""
    large = isinstance(value, (float, np.floating)) and abs(float(value)) >= 1000
    return format_cell(value, ".0f" if large else ".3g")


def _bare(value: object) -> object:
    """Reduce to values that JSON has: three significant digits, None for NaN, pictures as addresses."""
    match value:
        case float() | np.floating():
            return float(f"{value:.3g}") if np.isfinite(value) else None
        case np.integer():
            return int(value)
        case bytes():
            return _address(value)
        case dict():
            return {name: _bare(entry) for name, entry in value.items()}
        case list() | tuple() | np.ndarray():
            return [_bare(entry) for entry in value]
    return value

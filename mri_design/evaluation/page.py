"""One HTML file that tells a run: what came out first, and behind headings text, tables, figures, links, manifest."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mri_design.evaluation.manifest import PERSONAL, Manifest, command_line, installed_versions, manifest_text
from mri_design.evaluation.pictures import COLOURS, PALETTE, Drawing, inline, json_for_script, pointed_curves, svg_text
from mri_design.evaluation.plots.panels import ScaleBar
from mri_design.evaluation.run_folder import OUTPUTS, RunFolder
from mri_design.evaluation.tables import Row, alike, column_names, format_cell, is_numeric, percent, shown_texts
from mri_design.kinds import count_text
from mri_design.scan.io.atomic import write_text
from mri_design.status import Status

if TYPE_CHECKING:
    from jinja2 import Environment


_TALLEST = 20.0  # rem: the highest picture of the first row
_CRISP = 150  # pixels of a side up to which pixels are shown as squares


@dataclass(frozen=True)
class FirstPicture:
    """A picture of the first row.

    Parameters
    ----------
    title : str
        Above it: "Mask", "Image", "Error bars".
    png : bytes
        One pixel each, as `plots.pixels_png` makes them.
    shape : tuple of int
        Rows and columns of the picture.
    caption : str
        Below it; also read out where the picture cannot be seen.
    proportion : float, optional
        Height over width of one pixel.
    bar : ScaleBar, optional
        Where the size of a pixel is known.
    ramp : bytes
        PNG of the colours from the least to the largest value; empty where colours mean no number.
    top : str
        The largest value, with its unit.
    """

    title: str
    png: bytes
    shape: tuple[int, int]
    caption: str
    _: KW_ONLY
    proportion: float = 1.0
    bar: ScaleBar | None = None
    ramp: bytes = b""
    top: str = ""

    @property
    def looks(self) -> str:
        """Its size, as a style: as wide as its place, but no higher than a screen has room for."""
        ratio = self.shape[1] / (self.shape[0] * self.proportion)
        pixels = "; image-rendering: pixelated" if max(self.shape) <= _CRISP else ""
        return f"width: min(100%, {_TALLEST * ratio:.2f}rem); aspect-ratio: {ratio:.4f}{pixels}"


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees without a click.

    Parameters
    ----------
    verdict : str
        One sentence, or two: what came out, in numbers.
    pictures : sequence of FirstPicture
        In one row; one below the other on a phone.
    facts : sequence of str
        Short, for one line: slice, matrix, field of view, coils, acceleration.
    explained : mapping of str to str
        Names that stand in the verdict, and what each of them means.
    reading : sequence of str
        Paragraphs on how to read the verdict and the pictures; folded away.
    command : str
        What was typed; stands behind the facts.
    """

    verdict: str
    pictures: Sequence[FirstPicture] = ()
    facts: Sequence[str] = ()
    explained: Mapping[str, str] = field(default_factory=dict)
    reading: Sequence[str] = ()
    command: str = ""


def _address(png: bytes) -> str:
    """A picture as part of a page; empty without one."""
    return f"data:image/png;base64,{b64encode(png).decode()}" if png else ""


def saved_figure(
    folder: RunFolder, name: str, draw: Callable[[], Drawing], caption: str = "", **facts: object
) -> ReportFigure:
    """Draw and write figures/NAME.svg; return it for the report under a caption, by default the `sentence` of its name.

    In a folder without a report nothing is drawn, and the caption stands alone.
    """
    caption = caption or sentence(name, **facts)
    if not folder.reported:
        return ReportFigure("", caption)
    figure = draw()
    path = folder.write_figure(name, figure)
    return ReportFigure(path.read_text(encoding="utf-8"), caption, pointed_curves(figure))


_ONE_LINE = 36  # letters of a cell that stay on one line


@dataclass(frozen=True)
class Paragraph:
    """Plain text; markup in it is escaped."""

    text: str
    kind: str = field(default="paragraph", init=False)


@dataclass(frozen=True)
class ReportTable:
    """Rows over a caption; columns without any value are left out.

    Parameters
    ----------
    rows : sequence of mappings
        At least one; columns in order of first appearance.
    caption : str
        What is compared, with units. Names of columns are shown with spaces for underscores.
    formats : mapping of str to str
        Format specification of a column's floats, for example ``{"psnr": ".1f"}``; without one a column has the
        decimals that `tables.shown_texts` finds for all its numbers.
    explained : mapping of str to str
        Texts of cells, names of strategies for example, and what each of them means.
    """

    rows: Sequence[Row]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)
    explained: Mapping[str, str] = field(default_factory=dict)
    kind: str = field(default="table", init=False)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Name of each column as shown, and its class: "number", "long" for text that wraps, or nothing."""
        longest = [max(map(len, column), default=0) for column in zip(*self.cells, strict=True)]
        classes = ["long" if length > _ONE_LINE else "" for length in longest]
        classes = ["number" if is_numeric(self.rows, n) else c for n, c in zip(self._names, classes, strict=True)]
        return [(name.replace("_", " "), c) for name, c in zip(self._names, classes, strict=True)]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text."""
        return shown_texts(self.rows, self._names, self.formats)

    @property
    def _names(self) -> list[str]:
        names = column_names(self.rows)
        return [name for name in names if any(row.get(name) is not None for row in self.rows)]


@dataclass(frozen=True)
class ReportFigure:
    """A figure and what to look for in it.

    Parameters
    ----------
    picture : Drawing or str
        A drawn figure, or the text of its file (`pictures.svg_text`).
    caption : str
        Says what to look for; also read out where the picture cannot be seen.
    curves : str
        `pointed_curves` of the figure, whose numbers the page shows under the pointer; empty for none.
    """

    picture: Drawing | str
    caption: str
    curves: str = ""
    kind: str = field(default="figure", init=False)

    def inline(self, prefix: str) -> str:
        """The picture as part of a page, see `pictures.inline`."""
        svg = self.picture if isinstance(self.picture, str) else svg_text(self.picture)
        return inline(svg, prefix, self.caption.replace("`", ""))


@dataclass(frozen=True)
class SideBySide:
    """Figures next to each other where there is room, one below the other on a phone."""

    figures: Sequence[ReportFigure]
    kind: str = field(default="beside", init=False)


@dataclass(frozen=True)
class Links:
    """Files near the report, by relative address.

    Parameters
    ----------
    targets : mapping of str to str
        Address, for example ``lines.csv`` or ``design/report.html``, to what is found there.
    """

    targets: Mapping[str, str]
    kind: str = field(default="links", init=False)


@dataclass(frozen=True)
class KeyNumbers:
    """Numbers and words of a run, one below the other: label with unit to value."""

    values: Mapping[str, object]
    kind: str = field(default="numbers", init=False)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Labels, and values as text: three significant digits, all of those before the point."""
        return [(label, _key_number(value)) for label, value in self.values.items()]


@dataclass(frozen=True)
class Explorer:
    """A slider over the steps of a design, or through the slices of a volume.

    Parameters
    ----------
    kind : {"steps", "slices"}
        Steps are shown as a mask and scores, with images at some; slices as images.
    content : mapping of str to object
        Of steps: ``lines`` of the grid; the ``start``; ``unit`` of the scores; ``steps``, each with the ``line`` that
        was chosen and ``scores`` (ky,) of all candidates, NaN for others, or None; and ``images`` by growing ``count``
        of lines: PNG pictures ``mean``, ``deviation`` and ``difference``, empty where there is none, and ``error`` in
        words. Of slices: ``slices``, each with its ``number`` in the scan, ``text`` about it, and PNG pictures
        ``image`` and ``deviation``; their ``count`` in the volume, of which they may be a part; and ``start``, the
        place of the slice that is shown first.
    caption : str
        What to look for.
    """

    kind: Literal["steps", "slices"]
    content: Mapping[str, Any]
    caption: str = ""

    @property
    def json(self) -> str:
        """The slider's data as JSON, escaped for a script element."""
        return json_for_script(_plain(self.content))


def _plain(value: object) -> object:
    """Reduce to values that JSON has: three significant digits, None for NaN, pictures as addresses."""
    match value:
        case float() | np.floating():
            return float(f"{value:.3g}") if np.isfinite(value) else None
        case np.integer():
            return int(value)
        case bytes():
            return _address(value)
        case dict():
            return {name: _plain(entry) for name, entry in value.items()}
        case list() | tuple() | np.ndarray():
            return [_plain(entry) for entry in value]
    return value


Block = Paragraph | ReportTable | ReportFigure | SideBySide | KeyNumbers | Links | Explorer


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, in order."""

    title: str
    blocks: Sequence[Block]


def write_report(
    path: str | Path,
    title: str,
    first: FirstScreen | None,
    sections: Sequence[Section],
    *,
    warnings: Sequence[str] = (),
    manifest: Manifest | None = None,
) -> None:
    """Write a report that needs no other file and no network; only what `Links` names lies elsewhere.

    Parameters
    ----------
    path : str or Path
        The HTML file; `RunFolder.output_path` gives one inside a run folder.
    title : str
        Heading; text from a scan may stand here and everywhere else, it is escaped.
    first : FirstScreen or None
        What came out. Sections are closed below it, and stand open on a page without it.
    sections : sequence of Section
        In the order in which a reader asks.
    warnings : sequence of str
        Shown above everything, for example that a computation did not converge.
    manifest : Manifest, optional
        Folded away at the end.

    Raises
    ------
    InputError
        Where a table is empty.
    OSError
        Where it cannot be written; an older report is then still there.
    """
    page = (
        _templates()
        .get_template("page.html.j2")
        .render(
            title=title,
            first=first,
            sections=list(zip(_anchors(sections), sections, strict=True)),
            warnings=warnings,
            manifest=None if manifest is None else manifest_text(manifest),
            light={role: colour.light for role, colour in COLOURS.items()},
            dark={role: colour.dark for role, colour in COLOURS.items()},
            accent=PALETTE[1],
            script=_script(),
            digest=b64encode(sha256(_script().encode()).digest()).decode(),
        )
    )
    write_text(path, page)


def _key_number(value: object) -> str:
    """One value by itself: three significant digits, all of those before the point."""
    large = isinstance(value, (float, np.floating)) and abs(float(value)) >= 1000
    return format_cell(value, ".0f" if large else ".3g")


def _anchors(sections: Sequence[Section]) -> list[str]:
    """A name for each section's place on the page: its title in plain letters, numbered where that is taken."""
    anchors: list[str] = []
    for number, section in enumerate(sections, 1):
        words = "-".join(re.findall(r"[a-z0-9]+", section.title.lower()))[:60] or "part"
        anchors.append(f"{words}-{number}" if words in {*anchors, "reading", "manifest"} else words)
    return anchors


def _resource(name: str) -> str:
    return resources.files("mri_design.evaluation").joinpath(name).read_text("utf-8")


@cache
def _script() -> str:
    """The only script of a page; its digest in the page's policy keeps every other one from running."""
    return "\n" + _resource("page.js")


def _words(text: object) -> str:
    """Text as HTML: escaped, with code elements for what stands between backticks. All sentences go through it."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


@cache
def _templates() -> Environment:
    """The page, whose text is escaped, and the sentences, which become a part of it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # here: runs without a report make no page

    templates = Environment(
        loader=FunctionLoader(_resource),
        autoescape=lambda name: name == "page.html.j2",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"words": _words, "address": _address, "percent": percent, "as": format, "count": count_text}
    templates.filters["upfirst"] = lambda text: text[:1].upper() + text[1:]
    templates.tests["finite"] = lambda number: math.isfinite(number)
    templates.globals["alike"] = alike
    return templates


@cache
def _sentences() -> Any:
    return _templates().get_template("sentences.j2").module


def sentence(name: str, *facts: object, **named: object) -> str:
    """A sentence of reports, or a few, from sentences.j2.

    Parameters
    ----------
    name : str
        Of the macro there; that of a figure's caption is the figure's.
    facts, named : object
        Its arguments.
    """
    return re.sub("[ \\n]+", " ", getattr(_sentences(), name.replace("-", "_"))(*facts, **named)).strip()


def dated(first: FirstScreen, command: Sequence[str]) -> FirstScreen:
    """What a page begins with, with now, this version and the arguments that were typed behind its facts."""
    made = f"{datetime.now():%Y-%m-%d %H:%M}", f"mri_design {installed_versions(('mri-design',))['mri-design']}"
    return replace(first, facts=[*first.facts, *made], command=command_line(command))


def save_report(
    folder: RunFolder,
    title: str,
    first: Callable[[], FirstScreen],
    summary: Mapping[str, object],
    sections: Sequence[Section],
    manifest: Manifest,
) -> None:
    """Write manifest.json and report.html with links to the run's files; what did not converge stands on top.

    A folder without a report gets the manifest alone; figures and report of an earlier run there go. The manifest comes
    last: a run that has one is finished, so that a run killed before goes on and leaves the same files.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    title : str
        Heading.
    first : callable
        Makes what came out; date, version and command are added. Not called where nobody wants a report.
    summary : mapping of str to object
        Key numbers of how it was computed.
    sections : sequence of Section
        What comes before them.
    manifest : Manifest
        Of the run.
    """
    if folder.reported:
        there = {name for name in OUTPUTS if (folder.path / name).is_file()} | {"manifest.json"}
        files = {name: what for name, what in OUTPUTS.items() if what and name in there}
        status, converged = manifest.status, manifest.status == Status.CONVERGED.value
        passed_on = {name: value for name, value in manifest.settings.items() if name not in PERSONAL}
        write_report(
            folder.output_path("report.html"),
            title,
            dated(first(), manifest.command),
            [
                *sections,
                Section("How it was computed", [KeyNumbers(summary)]),
                Section("Files", [Links(files), Paragraph("The figures are in the folder figures.")]),
            ],
            warnings=[] if converged else [f"{status[:1].upper()}{status[1:]}."],
            manifest=replace(manifest, settings=passed_on),
        )
    else:
        folder.remove_report()
    folder.write_text("manifest.json", manifest_text(manifest))

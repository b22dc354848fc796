"""One HTML file that tells a run: key numbers, text, tables, figures, links, manifest."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mri_design.errors import InputError
from mri_design.evaluation.colours import COLOURS, PALETTE
from mri_design.evaluation.output.manifest import Manifest, manifest_text
from mri_design.evaluation.output.picture import Drawing, drawing, svg_text
from mri_design.evaluation.output.pointed_curves import pointed_curves
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.step_explorer import StepExplorer
from mri_design.evaluation.output.tables import Row, column_names, format_cell, is_numeric, shown_texts
from mri_design.evaluation.output.vector_picture import inline
from mri_design.scan.io.atomic import write_text

if TYPE_CHECKING:
    from jinja2 import Template


def saved_figure(folder: RunFolder, name: str, draw: Callable[[], Drawing], caption: str) -> ReportFigure:
    """Draw and write figures/NAME.svg; return it under a caption for the report.

    In a folder without a report nothing is drawn, and the caption stands alone.
    """
    if not folder.reported:
        return ReportFigure("", caption)
    with drawing():
        figure = draw()
        path = folder.write_figure(name, figure)
        return ReportFigure(path.read_text(encoding="utf-8"), caption, pointed_curves(figure))


_ONE_LINE = 36  # letters of a cell that stay on one line
_NEARBY = re.compile(r"(?:\.\./)*[A-Za-z0-9][A-Za-z0-9._+%-]*(?:/[A-Za-z0-9][A-Za-z0-9._+%-]*)*")


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
    """

    rows: Sequence[Row]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)
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
        A drawn figure, or an SVG file's text (`picture.svg_text`).
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
        """The picture as part of a page, see `vector_picture.inline`; refused where it is more than a picture."""
        svg = self.picture if isinstance(self.picture, str) else svg_text(self.picture)
        return inline(svg, prefix, self.caption)


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

    Raises
    ------
    InputError
        For an address that is no relative path of plain names.
    """

    targets: Mapping[str, str]
    kind: str = field(default="links", init=False)

    def __post_init__(self) -> None:
        far = [address for address in self.targets if not _NEARBY.fullmatch(address)]
        if far:
            raise InputError(field="link", got=ascii(far[0]), wanted="a relative path of letters, digits and . _ + - %")


Block = Paragraph | ReportTable | ReportFigure | SideBySide | Links | StepExplorer


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, in order."""

    title: str
    blocks: Sequence[Block]


def write_report(
    path: str | Path,
    title: str,
    summary: Mapping[str, object],
    sections: Sequence[Section],
    *,
    warnings: Sequence[str] = (),
    manifest: Manifest | Mapping[str, object] | None = None,
) -> None:
    """Write a report that needs no other file and no network; only what `Links` names lies elsewhere.

    Parameters
    ----------
    path : str or Path
        The HTML file; `RunFolder.output_path` gives one inside a run folder.
    title : str
        Heading; text from a scan may stand here and everywhere else, it is escaped.
    summary : mapping of str to object
        Key numbers for the table on top: label with unit to value.
    sections : sequence of Section
        Linked to from the top where there are several.
    warnings : sequence of str
        Shown above everything, for example that a computation did not converge.
    manifest : Manifest or mapping, optional
        Folded away at the end.

    Raises
    ------
    InputError
        Where a table is empty, a figure is more than a picture, or the manifest holds what JSON cannot.
    OSError
        Where the file cannot be written; an older report is intact.
    """
    page = _template().render(
        title=title,
        warnings=warnings,
        summary=[(label, _key_number(value)) for label, value in summary.items()],
        sections=list(zip(_anchors(sections), sections, strict=True)),
        manifest=None if manifest is None else manifest_text(manifest),
        light={role: colour.light for role, colour in COLOURS.items()},
        dark={role: colour.dark for role, colour in COLOURS.items()},
        accent=PALETTE[1],
        script=_script(),
        digest=b64encode(sha256(_script().encode()).digest()).decode(),
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
        anchors.append(f"{words}-{number}" if words in {*anchors, "top", "manifest"} else words)
    return anchors


def _resource(name: str) -> str:
    return resources.files("mri_design.evaluation.output").joinpath(name).read_text("utf-8")


@cache
def _script() -> str:
    """The only script of a page; its digest in the page's policy keeps every other one from running."""
    return "\n" + _resource("page.js")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined  # here: runs without a report make no page

    source = _resource("page.html.j2")
    surroundings = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return surroundings.from_string(source)

"""One HTML file that tells a run: key numbers, text, tables, figures, manifest."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from mri_design.errors import InputError
from mri_design.evaluation.manifest import Manifest, manifest_text
from mri_design.evaluation.picture import Drawing, png_bytes
from mri_design.evaluation.tables import Row, cell_texts, column_names, is_numeric
from mri_design.io.atomic import write_text

__all__ = ["Paragraph", "ReportFigure", "ReportTable", "Section", "write_report"]

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Paragraph:
    """Plain text; markup in it is shown, not obeyed."""

    text: str
    kind: str = field(default="paragraph", init=False)


@dataclass(frozen=True)
class ReportTable:
    """Rows under a caption.

    Parameters
    ----------
    rows : sequence of mappings
        At least one; columns in order of first appearance.
    caption : str
        What is compared, with units.
    formats : mapping of str to str
        Format specification of a column's floats, for example ``{"psnr": ".1f"}``.
    """

    rows: Sequence[Row]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)
    kind: str = field(default="table", init=False)

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Name of each column and whether it holds numbers."""
        return [(name, is_numeric(self.rows, name)) for name in column_names(self.rows)]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text."""
        return cell_texts(self.rows, column_names(self.rows), self.formats)


@dataclass(frozen=True)
class ReportFigure:
    """A figure and what to look for in it.

    Parameters
    ----------
    picture : Drawing or bytes
        A drawn figure, or a PNG file's bytes.
    caption : str
        Says what to look for; also read out where the picture cannot be seen.

    Raises
    ------
    InputError
        Where the bytes are no PNG.
    """

    picture: Drawing | bytes
    caption: str
    kind: str = field(default="figure", init=False)

    def __post_init__(self) -> None:
        if isinstance(self.picture, bytes) and not self.picture.startswith(_PNG_SIGNATURE):
            raise InputError(field="figure", got="bytes that are no PNG", wanted="a PNG file or a figure")

    @property
    def base64(self) -> str:
        """The PNG as text for a data address."""
        png = self.picture if isinstance(self.picture, bytes) else png_bytes(self.picture)
        return base64.b64encode(png).decode("ascii")


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, in order."""

    title: str
    blocks: Sequence[Paragraph | ReportTable | ReportFigure]


def write_report(
    path: str | Path,
    title: str,
    summary: Mapping[str, object],
    sections: Sequence[Section],
    *,
    warnings: Sequence[str] = (),
    manifest: Manifest | Mapping[str, object] | None = None,
) -> None:
    """Write a report that needs no other file and no network.

    Parameters
    ----------
    path : str or Path
        The HTML file; `RunFolder.output_path` gives one inside a run folder.
    title : str
        Heading; text from a scan may stand here and everywhere else, it is escaped.
    summary : mapping of str to object
        Key numbers for the table on top: label with unit to value.
    sections : sequence of Section
    warnings : sequence of str
        Shown above everything, for example that a computation did not converge.
    manifest : Manifest or mapping, optional
        Folded away at the end.

    Raises
    ------
    InputError
        Where a table is empty or the manifest holds what JSON cannot.
    OSError
        Where the file cannot be written; an older report is intact.
    """
    page = _template().render(
        title=title,
        warnings=warnings,
        summary=cell_texts([summary], list(summary))[0],
        labels=list(summary),
        sections=sections,
        manifest=None if manifest is None else manifest_text(manifest),
    )
    write_text(path, page)


@cache
def _template() -> Template:
    source = resources.files("mri_design.evaluation").joinpath("report.html.j2").read_text("utf-8")
    surroundings = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return surroundings.from_string(source)

"""Tables of the README, summary.csv and figures of the study, all from the kept rows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from parts.pages import put_conditions, put_section
from study.groups import FAMILIES, TUNED
from study.ledger import Ledger
from study.sections import CHOSEN, DEFAULT, NON_LOCAL
from study.tables import BEST_DRAW, FORMATS, HOLE, ORACLE, errors_of, summary, two_way

from mri_design.evaluation.plots.curves import error_against_lines
from mri_design.evaluation.plots.pictures import png_bytes
from mri_design.evaluation.predictions import how_often_right
from mri_design.evaluation.tables import Row, format_cell, markdown_text, write_csv
from mri_design.scan.io.atomic import write_bytes

DRAWN = (
    *(DEFAULT, TUNED, ORACLE, "low-pass", "information-gain", "expected-error", "trained residual-greedy"),
    *(
        "trained stochastic-lbcs",
        "trained lbcs",
        "hybrid",
        "fastmri-equispaced",
        "regular + 8 ACS",
        "vd-polynomial draw=half",
    ),
)
"""Curves of figures, in the order of their colours."""
LOCAL_MEAN = "mean"
"""The reconstructor that is the zero of the table of masks and reconstructions."""
RECONSTRUCTORS = {
    LOCAL_MEAN: "posterior mean, local prior",
    "map": "TV + wavelet MAP",
    NON_LOCAL: "posterior mean of the default recipe under moduli",
    CHOSEN: "posterior mean of the default recipe",
}
TWO_WAY = (DEFAULT, TUNED, "low-pass", HOLE)
"""Masks of the table that separates what the mask gains from what the reconstruction gains."""


def write_document(out: Path, ledger: Ledger, draw: str = "") -> None:
    """Put the tables of all sections into README.md, with figures of one section (or of all, without a name)."""
    page = out / "README.md"
    put_conditions(page, "mri-design", "numpy", "scipy", "numba", "scikit-image")
    for section in (*dict.fromkeys(str(row["section"]) for row in ledger.of("cells")), "trained", "prediction"):
        made = _section(out, section, ledger, draw in ("", section))
        if made:
            put_section(page, f"{section[0].upper()}{section[1:]}", "\n".join(made))
    rows = summary_rows(ledger)
    if rows:
        write_csv(out / "summary.csv", rows)


def _section(out: Path, section: str, ledger: Ledger, draw: bool) -> list[str]:
    parts: list[str] = []
    if section == "prediction":
        return _predictions(ledger)
    if section == "trained" and ledger.of("training"):
        parts.append(markdown_text(ledger.of("training"), TRAINING, {"wall seconds": ".0f"}))
    cells = ledger.of("cells", section=section)
    if not cells:
        return parts
    groups = list(dict.fromkeys(str(row["group"]) for row in cells))
    for reconstructor in dict.fromkeys(str(row["reconstructor"]) for row in cells):
        name = RECONSTRUCTORS.get(reconstructor, f"posterior mean, {reconstructor}")
        if len(groups) > 1:
            parts.append(_table(f"{name}, all groups, over all line counts", cells, reconstructor, only_all=True))
        for group in groups:
            here = [row for row in cells if row["group"] == group]
            parts.append(_table(f"{name}, {group}", here, reconstructor))
            figure = f"figures/{section}-{group}-{reconstructor}.png".replace(" ", "-").replace(",", "")
            if _figure(out / figure, here, reconstructor) if draw else (out / figure).exists():
                parts.append(f"![error against lines, {group}, {name}]({figure})\n")
    reconstructors = list(dict.fromkeys(str(row["reconstructor"]) for row in cells))
    if NON_LOCAL in reconstructors:
        rows = two_way(cells, TWO_WAY, reconstructors, base=LOCAL_MEAN)
        named = [{RECONSTRUCTORS.get(column, column): value for column, value in row.items()} for row in rows]
        base = f"`{TUNED}` with the {RECONSTRUCTORS[LOCAL_MEAN]}"
        title = f"Masks and reconstructions apart: change of every pair against {base}"
        parts.append(f"**{title}**\n\n{markdown_text(named)}" if named else "")
    tuned = [row for row in ledger.of("tuned", section=section) if row["family"] in FAMILIES]
    if tuned:
        parts.append(_tuned(tuned))
    return parts


def summary_rows(ledger: Ledger) -> list[Row]:
    """Every table of the README, by line counts, in one."""
    rows: list[Row] = []
    cells = ledger.of("cells")
    for section, group, name in dict.fromkeys((r["section"], r["group"], r["reconstructor"]) for r in cells):
        here = ledger.of("cells", section=section, group=group)
        about = {"section": section, "group": group, "reconstructor": name}
        rows += [about | dict(row) for row in summary(here, str(name), strategies_in(here, str(name)))]
    return rows


TRAINING = ["group", "strategy", "grid", "lines", "images", "reconstructions", "wall seconds", "processes"]


def strategies_in(cells: Sequence[Row], reconstructor: str) -> list[str]:
    """Rows in the order of the first cells; the best draw stands after the tuned density."""
    names = list(dict.fromkeys(str(row["strategy"]) for row in cells if row["reconstructor"] == reconstructor))
    if TUNED in names:
        names.insert(names.index(TUNED) + 1, BEST_DRAW)
    return names


def _table(title: str, cells: Sequence[Row], reconstructor: str, only_all: bool = False) -> str:
    """One row per strategy: error and change at every fraction of lines, the rest over all of them."""
    rows = summary(cells, reconstructor, strategies_in(cells, reconstructor))
    shares = list(dict.fromkeys(str(row["lines"]) for row in rows))
    found = {(str(row["strategy"]), str(row["lines"])): row for row in rows}
    table: list[Row] = []
    for name in dict.fromkeys(str(row["strategy"]) for row in rows):
        whole = found[name, shares[-1]]
        at = {} if only_all else {share: _with_change(found[name, share]) for share in shares if share != "all"}
        rest = {column: whole[column] for column in OVER_ALL if reconstructor != "map" or column != "gap closed"}
        table.append({"strategy": _marked(name), "images": whole["images"], **at, **rest})
    return f"**{title}**\n\n{markdown_text(table, None, FORMATS)}" if table else ""


OVER_ALL = ("change", "gap closed", "images won", "p", "worst change", "worst L2", "sd of draws", "PSNR", "SSIM")


def _with_change(row: Row) -> str:
    change = "" if row["change"] is None else f" ({format_cell(row['change'], '+.1%')})"
    return format_cell(row["relative L2"], ".4f") + change


def _marked(name: str) -> str:
    return f"**{name}**" if name.partition(",")[0] == DEFAULT else name


def _tuned(rows: Sequence[Row]) -> str:
    least: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("group", "reconstructor", "lines"))
        if key not in least or float(str(row["error"])) < float(str(least[key]["error"])):
            least[key] = row
    columns = ["group", "reconstructor", "lines", "family", "strategy", "start", "error"]
    table = markdown_text(list(least.values()), columns, {"error": ".4f"})
    return f"**Tuned on the training images** (the best of all tried)\n\n{table}"


def _predictions(ledger: Ledger) -> list[str]:
    rows = ledger.of("predictions")
    if not rows:
        return []
    table: list[Row] = []
    for strategy in dict.fromkeys(str(row["strategy"]) for row in rows):
        for mask in dict.fromkeys(str(row["mask"]) for row in rows):
            chosen = [row for row in rows if row["strategy"] == strategy and row["mask"] == mask]
            if chosen:
                table.append({"strategy": strategy, "mask": mask, "lines": "all", **how_often_right(chosen)})
        chosen = [row for row in rows if row["strategy"] == strategy and row["mask"] != "its own"]
        if chosen:
            for lines in [*sorted({int(str(row["lines"])) for row in chosen}), "all"]:
                there = [row for row in chosen if lines in ("all", int(str(row["lines"])))]
                table.append({"strategy": strategy, "mask": "others'", "lines": lines, **how_often_right(there)})
    return [markdown_text(table, None, {name: ".2f" for name in table[0] if name not in ("cases", "lines")})]


def _figure(path: Path, cells: Sequence[Row], reconstructor: str) -> bool:
    """Mean error against lines of the strategies that were measured on all images."""
    shares = sorted({str(row["share"]) for row in cells}, key=Fraction)
    if len(shares) < 2:
        return False
    lines = {str(row["share"]): int(str(row["lines"])) for row in cells}
    curves, shown = dict[str, np.ndarray](), []
    every = {str(row["image"]) for row in cells}
    names = strategies_in(cells, reconstructor)
    models = [name for name in names if name.startswith(("information-gain,", f"{DEFAULT},"))]
    places = {name: place for place, name in enumerate((*DRAWN, *models)) if name in names}
    for name, place in places.items():
        errors = errors_of(cells, reconstructor, name).mean
        table = [[errors.get((share, group, image), np.nan) for share in shares] for group, image in _images(cells)]
        if np.isfinite(table).all() and len(table) == len(every):
            curves[name] = np.array(table)
            shown.append(place)
    if len(curves) < 2:
        return False
    figure = error_against_lines([lines[share] for share in shares], curves, of="image", bands=False, places=shown)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, png_bytes(figure))
    return True


def _images(cells: Sequence[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((str(row["group"]), str(row["image"])) for row in cells))

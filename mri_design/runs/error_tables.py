"""Errors of a study: tables of mean and spread, winners, gains and paired differences, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.metrics import paired_sign_test
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, markdown_text

METRICS = ("relative_l2", "psnr", "ssim")

LEAST_IMAGES = 6
"""Images behind a sign test: of fewer, even those that all agree leave p above 5 %."""

FORMATS = {
    **dict.fromkeys(("relative_l2", "sd_images", "sd_draws", "worst", "ssim", "usual_error", "few_error"), ".4f"),
    **dict.fromkeys(("change", "lead", "worst_change", "by_maps", "by_lines", "together"), "+.1%"),
    **dict.fromkeys(("maps_error", "worst_maps_error"), ".0%"),
    **{"psnr": ".2f", "p": ".3f", "sd_lead": ".1%", "left_unpredicted": "+.0%"},
}
"""How these tables' columns are printed."""
NAMES = ("strategy", "against", "best", "second", "usual_mask", "few_mask")
"""Columns that hold names of strategies."""


def errors_by_image(rows: Sequence[Row], strategy: str, lines: int, metric: str = "relative_l2") -> NDArray[np.float64]:
    """One strategy at one line count, shape (draw, image)."""
    chosen = [row for row in rows if (row["strategy"], row["lines"]) == (strategy, lines)]
    errors = {(row["draw"], row["image"]): float(str(row[metric])) for row in chosen}
    draws, images = sorted({int(str(draw)) for draw, _ in errors}), dict.fromkeys(image for _, image in errors)
    return np.array([[errors.get((draw, image), np.nan) for image in images] for draw in draws])


def _mean(rows: Sequence[Row], strategy: str, lines: int) -> float:
    return float(errors_by_image(rows, strategy, lines).mean())


def runs_of(rows: Sequence[Row], strategy: str, counts: Sequence[int]) -> NDArray[np.float64]:
    """Errors of one strategy (run, count): a run is a draw of a random one, and an image of others."""
    tables = [errors_by_image(rows, strategy, count) for count in counts]
    return np.array([table.mean(axis=1 if len(tables[0]) > 1 else 0) for table in tables]).T


def _cells(
    rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int], having: str = "strategy"
) -> Iterator[tuple[Row, list[Row]]]:
    """Count, strategy and, where masks have it, their number of centre lines; and their rows that have a column."""
    for count in lines:
        for name in strategies:
            found = [row for row in rows if (row["strategy"], row["lines"]) == (name, count) and row.get(having)]
            if found:
                centre = {"centre": found[0]["centre"]} if "centre" in found[0] else {}
                yield {"lines": count, "strategy": name, **centre}, found


def summary_table(rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """Mean over images and draws, spread over images, spread over draws (of the mean over images), worst image.

    ``centre`` is the number of centre lines that a mask begins with, where rows have it.
    """
    table: list[Row] = []
    for cell, found in _cells(rows, strategies, lines):
        errors, *others = (errors_by_image(found, str(cell["strategy"]), int(str(cell["lines"])), m) for m in METRICS)
        table.append(
            {
                **cell,
                "relative_l2": float(errors.mean()),
                "sd_images": float(errors.mean(axis=0).std(ddof=1)) if errors.shape[1] > 1 else None,
                "sd_draws": float(errors.mean(axis=1).std(ddof=1)) if errors.shape[0] > 1 else None,
                "worst": float(errors.mean(axis=0).max()),
                **{metric: float(values.mean()) for metric, values in zip(METRICS[1:], others, strict=True)},
            }
        )
    return table


def winners_table(rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """Strategies with the least and the second mean error at each count, and their relative distance.

    The mean is over images and draws, as in `summary_table`. ``sd_lead`` is the spread of the distance over images, or
    of a single image over draws; None of one image without draws.
    """
    table: list[Row] = []
    for count in lines:
        means = {name: _mean(rows, name, count) for name in strategies}
        best, *others = sorted(means, key=lambda name: (means[name], name))
        second = others[0] if others else None
        row: dict[str, object] = {"lines": count, "best": best, "relative_l2": means[best], "second": second}
        for place, name in zip(("best_centre", "second_centre"), (best, *others), strict=False):
            ((cell, _),) = _cells(rows, [name], [count])
            row |= {place: cell["centre"]} if "centre" in cell else {}
        row |= {"lead": None, "sd_lead": None}
        if second is not None and means[second] > 0:
            row |= {"lead": means[best] / means[second] - 1, "sd_lead": _spread(rows, best, second, count)}
        table.append(row)
    return table


def _spread(rows: Sequence[Row], first: str, second: str, count: int) -> float | None:
    """Standard deviation of one strategy's error relative to another's, over images, or over draws of one image."""
    ours, theirs = (errors_by_image(rows, name, count) for name in (first, second))
    # of one image, a strategy without draws is compared with all draws of the other
    changes = ours.mean(axis=0) / theirs.mean(axis=0) if ours.shape[1] > 1 else (ours / theirs).ravel()
    return float(changes.std(ddof=1)) if len(changes) > 1 else None


def paired_table(
    rows: Sequence[Row], strategies: Sequence[str], against: Sequence[str], lines: Sequence[int]
) -> list[Row]:
    """Each strategy against the best of some competitors, image by image.

    ``change`` is the mean over images of the relative change of the error (negative is better), ``better_on`` the
    number of images where it is lower, ``p`` of a two-sided sign test, from `LEAST_IMAGES` images on. The competitor is
    the one with the least mean error at that line count on these very images, which favours the competitor.
    """
    table: list[Row] = []
    for count in lines:
        means = {name: errors_by_image(rows, name, count).mean(axis=0) for name in (*strategies, *against)}
        best = min(against, key=lambda name: float(means[name].mean()))
        for name in strategies:
            if name == best:
                continue
            change = means[name] / means[best] - 1
            row: dict[str, object] = {
                "lines": count,
                "strategy": name,
                "against": best,
                "change": float(change.mean()),
                "worst_change": float(change.max()),
                "better_on": f"{int((change < 0).sum())} of {len(change)}",
            }
            if len(change) >= LEAST_IMAGES:
                row["p"] = paired_sign_test(means[name], means[best])
            table.append(row)
    return table


def gains_table(rows: Sequence[Row], designed: Sequence[str], fixed: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """What designs gain on fixed masks: by coil maps that do with few centre lines, and by the choice of the lines.

    Coil maps are usually estimated from many centre lines. Where they are estimated from all lines of a mask, it may
    have fewer, and more of the others: so a fixed mask gains, too. ``usual`` is the best of the ``fixed`` masks with
    the most centre lines, ``few`` the best of those with fewer, by the mean over images and draws; ``by_maps`` is the
    relative change of the error from the first to the second, ``by_lines`` that from the second to the design,
    ``together`` that from the first to the design; negative is better. Empty where coil maps are not estimated from
    the lines of masks, or all masks have the same number of centre lines.
    """
    table: list[Row] = []
    for count in lines:
        cells = {str(cell["strategy"]): found for cell, found in _cells(rows, (*designed, *fixed), [count])}
        means = {name: _mean(rows, name, count) for name in cells}
        centres = {name: int(str(cells[name][0].get("centre") or 0)) for name in fixed if cells[name][0].get("maps")}
        many = [name for name in centres if centres[name] == max(centres.values())]
        others = [name for name in centres if name not in many]
        if not many or not others:
            continue
        usual, few = min(many, key=means.__getitem__), min(others, key=means.__getitem__)
        table += [
            {
                "lines": count,
                "strategy": name,
                "relative_l2": means[name],
                "usual_mask": usual,
                "usual_centre": centres[usual],
                "usual_error": means[usual],
                "few_mask": few,
                "few_centre": centres[few],
                "few_error": means[few],
                "by_maps": means[few] / means[usual] - 1,
                "by_lines": means[name] / means[few] - 1,
                "together": means[name] / means[usual] - 1,
            }
            for name in designed
        ]
    return table


LEVELS = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
"""Relative errors for which `enough_table` says how many lines are needed."""


def enough_table(rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """How many lines every strategy needs for an error, by the images of the comparison.

    Between the counts that were measured the logarithm of an image's error, mean over draws, is interpolated in that
    of the count; ``median`` and ``most`` are over images, rounded up, and ``reached`` says in how many of them the
    error was reached. Where that is not all of them there is no most, and no median where it is less than half. A
    median below the least count is left out, and all of a strategy with which every image would have done with less.
    """
    counts = sorted(lines)
    table: list[Row] = []
    for level in LEVELS if len(counts) > 1 else ():
        for name in strategies:
            curves = np.array([errors_by_image(rows, name, count).mean(axis=0) for count in counts]).T
            needed = np.array([_lines_for(level, counts, curve) for curve in curves])
            reached = int(np.isfinite(needed).sum())
            median, most = float(np.median(needed)), float(needed.max())
            if not reached or most <= counts[0]:
                continue
            table.append(
                {
                    "relative_l2": level,
                    "strategy": name,
                    "median": _whole(median) if median > counts[0] else None,
                    "most": _whole(most),
                    "reached": f"{reached} of {len(needed)}",
                }
            )
    return table


def _lines_for(level: float, counts: Sequence[int], errors: NDArray[np.float64]) -> float:
    """The first count, interpolated, at which an error has fallen to a level; infinite where it does not."""
    below = np.flatnonzero(errors <= level)
    if not len(below):
        return float("inf")
    at = int(below[0])
    if at == 0 or not errors[at] > 0:
        return float(counts[at])
    rise, log = -np.log(errors[at - 1 : at + 1]), np.log(counts[at - 1 : at + 1])
    return float(np.exp(np.interp(-np.log(level), rise, log)))


def _whole(count: float) -> int | None:
    """The next whole number, and that of a number that is whole but for rounding; None for infinity."""
    return int(np.ceil(count - 1e-6)) if np.isfinite(count) else None


MAP_COLUMNS = ("maps", "maps_lines", "maps_error", "maps_bad")
"""Columns of cells whose coil maps are estimated from the lines of the mask."""


def maps_table(rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """What the coil maps of each strategy's masks rest on, where they are estimated from the lines of these.

    ``masks`` counts images and draws; ``maps_lines`` are the fewest and the most lines that maps rest on,
    ``maps_error`` and ``worst_maps_error`` mean and largest error of the prediction of lines held back, and ``badly``
    how many maps predict badly. Empty where all maps were known.
    """
    table: list[Row] = []
    for cell, found in _cells(rows, strategies, lines, "maps"):
        errors = [float(str(row["maps_error"])) for row in found if row["maps_error"] is not None]
        table.append(
            {
                **cell,
                "masks": len(found),
                "maps": " and ".join(sorted({str(row["maps"]) for row in found})),
                "maps_lines": _from_to(found, "maps_lines"),
                "maps_error": float(np.mean(errors)) if errors else None,
                "worst_maps_error": max(errors, default=None),
                "badly": sum(bool(row["maps_bad"]) for row in found),
            }
        )
    return table


def _from_to(rows: Sequence[Row], column: str) -> str:
    """The least and the largest whole number of a column."""
    numbers = sorted(int(str(row[column])) for row in rows)
    return " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))


COMPANION_COLUMNS = ("companions", "held_back", "companion_gain")
"""Columns of cells whose scan has other images of its object (`CompanionChoice.columns`)."""


def companions_table(rows: Sequence[Row], strategies: Sequence[str], lines: Sequence[int]) -> list[Row]:
    """Which other images of the object the prior of each strategy's images knew, as the masks' own lines decided.

    ``masks`` counts images and draws, ``used`` those with another image in the prior, ``which`` names these;
    ``held_back`` are the fewest and the most lines that decided, and ``left_unpredicted`` is the geometric mean, over
    masks that used one, of how much more of their energy is left unpredicted with it than without; None where nothing
    was held back. Empty where there were no other images.
    """
    table: list[Row] = []
    for cell, found in _cells(rows, strategies, lines, "companions"):
        used = [row for row in found if row["companions"] != "none"]
        gains = [float(str(row["companion_gain"])) for row in used if row["companion_gain"] is not None]
        table.append(
            {
                **cell,
                "masks": len(found),
                "used": len(used),
                "which": "; ".join(sorted({str(row["companions"]) for row in used})),
                "held_back": _from_to(found, "held_back"),
                "left_unpredicted": float(np.exp(-np.mean(gains)) - 1) if gains else None,
            }
        )
    return table


TABLES = ("winners", "summary", "gains", "enough", "paired", "maps", "companions")
"""Names of the tables other than that of all cells."""


@dataclass(frozen=True, kw_only=True)
class StudyErrors:
    """Errors of the strategies, cell by cell and in tables; strategies' names are without the folders of files.

    Parameters
    ----------
    rows : sequence of mappings
        One for each strategy, line count, draw and test image.
    runs : mapping of str to float array, shape (run, count)
        Errors of each strategy: a run is a draw where its mask is random, and an image where it is not.
    counts : sequence of int
        Numbers of lines.
    tables : mapping of str to sequence of mappings
        The tables that there are, none of them empty, by the names of their files: `winners_table`, without oracles and
        not of masks that were there before; `summary_table`; `gains_table`; `enough_table`; `paired_table` of the
        strategies that go by a posterior, or of the masks that were there before, against the others; `maps_table`;
        and `companions_table`.
    """

    rows: Sequence[Row]
    runs: Mapping[str, NDArray[np.float64]]
    tables: Mapping[str, Sequence[Row]]
    counts: Sequence[int]
    formats: ClassVar[Mapping[str, str]] = FORMATS

    def save(self, folder: RunFolder) -> None:
        """Write metrics.csv, and the other tables as CSV and Markdown."""
        folder.write_table("metrics.csv", self.rows)
        for name, table in self.tables.items():
            folder.write_table(f"{name}.csv", table, FORMATS)
            folder.write_text(f"{name}.md", markdown_text(table, formats=FORMATS))

    def facts(self) -> dict[str, object]:
        """What is known of coil maps and other images of masks, for the manifest."""
        known = {"coil_maps_of_masks": "maps", "companions_of_masks": "companions"}
        return {fact: list(self.tables[name]) for fact, name in known.items() if name in self.tables}


def best_other(summary: Sequence[Row], name: str) -> tuple[str, float] | None:
    """The best strategy other than ``name`` in a `summary_table` of one count, and its error; None if there is none."""
    others = [row for row in summary if row["strategy"] != name and row.get("counts") != "no"]
    errors = {str(row["strategy"]): float(str(row["relative_l2"])) for row in others}
    best = min(errors, key=errors.__getitem__, default=None)
    return None if best is None else (best, errors[best])

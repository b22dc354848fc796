"""How often the error that a design predicted was right, over images, seeds and line counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mri_design.errors import InputError
from mri_design.evaluation.output.tables import Row
from mri_design.evaluation.predictions.check import PredictionCheck

WITHIN = (2.0, 1.25)
"""Factors within which a predicted error counts as right."""


def how_often_right(checks: Iterable[PredictionCheck | Row], by_lines: bool = False) -> list[dict[str, object]]:
    """How often the predicted error was right, over runs (images, seeds) and line counts.

    Parameters
    ----------
    checks : iterable of PredictionCheck or of rows
        All cases of all runs; rows as `PredictionCheck.as_row` makes them, also read back from prediction.csv. Those
        without a ratio are left out.
    by_lines : bool
        One row for each number of measured lines before the row for all cases.

    Returns
    -------
    list of dict
        ``lines``, or ``samples`` of a plane, and ``cases``; shares of them whose predicted over actual error lies
        within factors of 2 ([0.5, 2]) and of 1.25 ([0.8, 1.25]); the ratio's median, smallest and largest; medians over
        cases of `PredictionCheck.line_ratio` (``median_sample_ratio`` in a plane) and
        `PredictionCheck.rank_correlation`.

    Raises
    ------
    InputError
        For no case.
    """
    rows = [check.as_row() if isinstance(check, PredictionCheck) else check for check in checks]
    cases = [row for row in rows if not np.isnan(_number(row, "ratio"))]
    if not cases:
        raise InputError(field="checks", got="none", wanted="at least one prediction with its actual error")
    unit = "sample" if all("samples" in case for case in cases) else "line"
    counted = f"{unit}s"
    groups: list[tuple[object, list[Row]]] = [("all", cases)]
    if by_lines:
        counts = sorted({int(_number(case, counted)) for case in cases})
        groups = [(n, [case for case in cases if _number(case, counted) == n]) for n in counts] + groups
    return [{counted: name, **_shares(group, unit)} for name, group in groups]


def _shares(cases: Sequence[Row], unit: str) -> dict[str, object]:
    ratios = np.array([_number(case, "ratio") for case in cases])
    row: dict[str, object] = {"cases": len(cases)}
    for factor in WITHIN:
        row[f"within_factor_{factor:g}"] = float(np.mean((ratios >= 1 / factor) & (ratios <= factor)))
    row |= {"median_ratio": float(np.median(ratios)), "least": float(ratios.min()), "largest": float(ratios.max())}
    for name in (f"{unit}_ratio", "rank_correlation"):
        values = np.array([_number(case, name) for case in cases])
        row[f"median_{name}"] = float(np.median(values[~np.isnan(values)])) if not np.isnan(values).all() else None
    return row


def _number(row: Row, name: str) -> float:
    """A number of a row that may have been read from text; NaN where it is missing."""
    value = row.get(name)
    return float("nan") if value is None or value == "" else float(str(value))

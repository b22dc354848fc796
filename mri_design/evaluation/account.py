"""A finished design held to account: what it expected of its lines and of its image, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError
from mri_design.evaluation.predictions import PredictionCheck
from mri_design.evaluation.tables import Row


@dataclass(frozen=True)
class ExpectedInformation:
    """Information about the image that each chosen line was expected to bring.

    Parameters
    ----------
    gains : float array, shape (step,)
        `Forecast.information`, in nats; NaN where nothing was predicted, as for lines that an exchange added.
    upper_bound : bool
        Whether the gains are the most that a line can tell; False where the scores are the information themselves.
    """

    gains: NDArray[np.float64]
    upper_bound: bool

    @property
    def predicted(self) -> NDArray[np.float64]:
        """The gains that were predicted, without the gaps."""
        return self.gains[np.isfinite(self.gains)]

    @property
    def total(self) -> float:
        """Sum of what was predicted, in nats."""
        return float(self.predicted.sum())

    @property
    def lines_for_half(self) -> int:
        """Number of predicted lines, from the first one, that bring half of the total."""
        return int(np.searchsorted(np.cumsum(self.predicted), self.total / 2)) + 1


def expected_information(trace: DesignTrace) -> ExpectedInformation:
    """The information in nats that was expected of each step of a design."""
    return ExpectedInformation(np.array([step.information for step in trace.steps]), not score_is_information(trace))


def score_is_information(trace: DesignTrace) -> bool:
    """Whether the scores are log det(I + X_* A^-1 X_*^H), twice the information in nats."""
    return trace.strategy.startswith("information-gain")


WINDOW = 8
"""Lines that the running ratio looks back on."""


@dataclass(frozen=True)
class Innovations:
    """Energy of every chosen line's innovation; NaN for lines that an exchange added, which nothing predicted.

    Parameters
    ----------
    predicted : float array, shape (step,)
        As the strategy predicted it, noise included.
    measured : float array, shape (step,)
        As it was found.
    noise : float array, shape (step,)
        The noise's part of both; NaN where the strategy did not predict every line.
    running_ratio : float array, shape (step,)
        Geometric mean of predicted over measured on the last `WINDOW` lines.
    """

    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    noise: NDArray[np.float64]
    running_ratio: NDArray[np.float64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Steps whose energy was predicted and measured."""
        return np.isfinite(self.running_ratio)

    @property
    def ratio(self) -> float:
        """Predicted over measured energy, geometric mean over all known lines: below 1 is overconfident."""
        return float(np.exp(np.mean(np.log(self.predicted[self.known] / self.measured[self.known]))))


def innovations(trace: DesignTrace) -> Innovations | None:
    """Predicted and measured energy of the innovation at every step; None where a rule predicts nothing."""
    predicted, measured = (
        np.array([(step.outcome.predicted_energy, step.outcome.actual_energy) for step in trace.steps]).reshape(-1, 2).T
    )
    noise = np.array([_noise_share(trace, index) for index in range(len(trace.steps))])
    known = np.isfinite(predicted) & np.isfinite(measured) & (predicted > 0) & (measured > 0)
    if not known.any():
        return None
    logs = np.log(predicted[known] / measured[known])
    running = np.full(len(measured), np.nan)
    running[known] = np.exp([np.mean(logs[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(logs))])
    nowhere = np.where(known, 1.0, np.nan)
    return Innovations(predicted * nowhere, measured * nowhere, noise, running)


def _noise_share(trace: DesignTrace, index: int) -> float:
    """The noise's part of a step's predicted energy; NaN without a prediction for every line."""
    step = trace.steps[index]
    believed = trace.block_start(index).forecast.predicted  # a block's energies are those predicted there
    return float("nan") if believed is None else step.outcome.predicted_energy - float(believed[step.line])


WITHIN = (2.0, 1.25)
"""Factors within which a predicted error counts as right."""


def how_often_right(checks: Iterable[PredictionCheck | Row], by_lines: bool = False) -> list[dict[str, object]]:
    """Count how often the predicted error was right, over runs (images, seeds) and line counts.

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
        ``lines``, or ``samples`` of a plane, and ``cases``; fractions of them whose predicted over actual error lies
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
    return [{counted: name, **_fractions(group, unit)} for name, group in groups]


def _fractions(cases: Sequence[Row], unit: str) -> dict[str, object]:
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


@briefly
@dataclass(frozen=True)
class DesignAccount:
    """Account of a design's predictions, for its report.

    Parameters
    ----------
    trace : DesignTrace
        Every decision.
    information : ExpectedInformation
        What each line was expected to tell.
    innovations : Innovations or None
        Energy of each line's innovation, predicted and measured; None where nothing was predicted.
    predicted_errors : tuple of (int, float)
        Numbers of measured lines, and the relative error that was predicted for the image made from them.
    checks : tuple of PredictionCheck
        Predictions with the actual errors beside them; empty where these are not known.
    fractions : sequence of mappings
        `how_often_right` of the checks that have a prediction; empty without them.
    """

    trace: DesignTrace
    information: ExpectedInformation
    innovations: Innovations | None
    predicted_errors: tuple[tuple[int, float], ...]
    checks: tuple[PredictionCheck, ...] = ()
    fractions: Sequence[Row] = ()


def account_of(trace: DesignTrace, checks: Sequence[PredictionCheck] = ()) -> DesignAccount:
    """The account of a finished design.

    Parameters
    ----------
    trace : DesignTrace
        Every decision.
    checks : sequence of PredictionCheck
        Its predictions with the actual errors beside them, where those are known.
    """
    start, end = len(trace.start), trace.forecast(len(trace.lines))
    errors = [(start + i, step.predicted_error) for i, step in enumerate(trace.steps) if step.predicted_error > 0]
    errors += [(len(trace.lines), end.predicted_error)] if end is not None and end.predicted_error > 0 else []
    judged = [check for check in checks if not np.isnan(check.ratio)]
    return DesignAccount(
        trace=trace,
        information=expected_information(trace),
        innovations=innovations(trace),
        predicted_errors=tuple(errors),
        checks=tuple(checks),
        fractions=how_often_right(judged) if judged else (),
    )

"""A design in numbers, step by step: what was predicted of each line, and what was measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import DesignStep, Forecast, columns
from mri_design.design.trace import DesignTrace

__all__ = ["WINDOW", "information_gains", "innovations", "score_is_information", "score_rows", "step_rows"]

WINDOW = 8
"""Lines that the running ratio looks back on."""


def score_is_information(trace: DesignTrace) -> bool:
    """Whether the scores are log det(I + X_* A^-1 X_*^H), twice the information in nats."""
    return trace.strategy.startswith("information-gain")


def noise_share(trace: DesignTrace, index: int) -> float:
    """The noise's part of a step's predicted energy; NaN without a prediction for every line."""
    step = trace.steps[index]
    expected = trace.block_start(index).forecast.expected  # a block's energies are those expected there
    return float("nan") if expected is None else step.outcome.predicted_energy - float(expected[step.line])


def information_gains(trace: DesignTrace) -> tuple[NDArray[np.float64], bool]:
    """Information about the image that each chosen line was expected to bring, and whether it is an upper bound.

    Returns
    -------
    gains : float array, shape (step,)
        `Forecast.information`, in nats; NaN where nothing was predicted.
    bounds : bool
        False where the scores are the information themselves.
    """
    return np.array([step.information for step in trace.steps]), not score_is_information(trace)


def innovations(trace: DesignTrace) -> dict[str, NDArray[np.float64]] | None:
    """Energy of every chosen line's innovation, predicted and measured, and the running ratio of the two.

    Returns
    -------
    dict of float arrays, shape (step,), or None
        ``predicted`` as the strategy believed it, noise included; ``found``, as measured; ``noise``, the noise's share
        of both; ``running``, the geometric mean of predicted over found on the last `WINDOW` lines. NaN for lines that
        an exchange added, which nothing predicted. None where a rule predicts nothing.
    """
    found = np.array([step.outcome.actual_energy for step in trace.steps])
    noise = np.array([noise_share(trace, index) for index in range(len(trace.steps))])
    predicted = np.array([_believed(trace, index, share) for index, share in enumerate(noise)])
    known = np.isfinite(predicted) & np.isfinite(found) & (predicted > 0) & (found > 0)
    if not known.any():
        return None
    logs = np.log(predicted[known] / found[known])
    running = np.full(len(found), np.nan)
    running[known] = np.exp([np.mean(logs[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(logs))])
    nowhere = np.where(known, 1.0, np.nan)
    return {"predicted": predicted * nowhere, "found": found * nowhere, "noise": noise, "running": running}


def _believed(trace: DesignTrace, index: int, noise: float) -> float:
    step = trace.steps[index]
    corrected = trace.block_start(index).forecast.corrected
    if corrected is None or np.isnan(noise):
        return step.outcome.predicted_energy
    return float(corrected[step.line]) + noise


def step_rows(trace: DesignTrace) -> list[dict[str, object]]:
    """One row per decision, and one for the end where an error is predicted for it, for steps.csv.

    Returns
    -------
    list of dict
        ``lines`` measured before the decision; the chosen ``line`` and its ``ky``; its ``score``; ``gain_nats`` and the
        ``total_nats`` so far; ``predicted_error``, relative L2 over all lines of k-space, before the line, and where a
        stop rule asked the ``least_error`` that every line would leave; energy of the innovation
        ``predicted``, ``found`` and their ``running_ratio``; then the fields of a decision that are columns by
        themselves (`design.decision.columns`). Empty where a rule predicts nothing.
    """
    gains, bounds = information_gains(trace)
    gain, total = ("at_most_nats", "at_most_total_nats") if bounds else ("gain_nats", "total_nats")
    energies = innovations(trace)
    looked_ahead = any(np.isfinite(step.least_error) for step in trace.steps)
    rows: list[dict[str, object]] = []
    for index, step in enumerate(trace.steps):
        rows.append(
            {
                "lines": len(trace.start) + index,
                "line": step.line,
                "ky": step.line - trace.n_lines // 2,
                "score": _known(step.choice.score),
                gain: _known(gains[index]),
                total: _known(np.nansum(gains[: index + 1]) if np.isfinite(gains[index]) else np.nan),
                "predicted_error": _known(step.predicted_error),
                **({"least_error": _known(step.least_error)} if looked_ahead else {}),
                "predicted": _known(energies["predicted"][index]) if energies else None,
                "found": _known(energies["found"][index]) if energies else None,
                "running_ratio": _known(energies["running"][index]) if energies else None,
                **_recorded(step),
            }
        )
    end = trace.forecast(len(trace.lines))
    if rows and end is not None:
        last: dict[str, object] = {"lines": len(trace.lines), "predicted_error": _known(end.predicted_error)}
        rows.append(dict.fromkeys(rows[0]) | last | _recorded(end))
        if looked_ahead:
            rows[-1]["least_error"] = _known(end.least_error)
    return rows


def score_rows(trace: DesignTrace) -> list[dict[str, object]]:
    """The score of every line at every step, for scores.csv: a row per step, a column per ky; none without scores."""
    ky = [f"ky={k}" for k in np.arange(trace.n_lines) - trace.n_lines // 2]
    counted = enumerate(trace.steps, len(trace.start))
    return [_scores(count, step, ky) for count, step in counted if step.choice.scores is not None]


def _scores(count: int, step: DesignStep, names: list[str]) -> dict[str, object]:
    values = [] if step.choice.scores is None else [_known(score) for score in step.choice.scores]
    return {"lines": count, "line": step.line, **dict(zip(names, values, strict=True))}


def _recorded(record: DesignStep | Forecast) -> dict[str, object]:
    return {name: _known(value) if isinstance(value, float) else value for name, value in columns(record).items()}


def _known(value: float | np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None

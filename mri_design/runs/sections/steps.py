"""A design in numbers, step by step: what was predicted of each line, and what was measured."""

from __future__ import annotations

import numpy as np

from mri_design.design.decision import DesignStep, Forecast, columns
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.predictions.account import DesignAccount


def step_rows(account: DesignAccount) -> list[dict[str, object]]:
    """One row per decision, and one for the end where an error is predicted for it, for steps.csv.

    Returns
    -------
    list of dict
        ``lines`` measured before the decision; the chosen ``line`` and its ``ky``; its ``score``; ``gain_nats`` and the
        ``total_nats`` so far; ``predicted_error``, relative L2 over all lines of k-space, before the line, and where a
        stop rule asked the ``least_error`` that every line would leave; the ``opinion_weight`` where the
        design was informed by an earlier scan or by training scans; energy of the innovation
        ``predicted``, ``found`` and their ``running_ratio``; then the fields of a decision that are columns by
        themselves (`design.decision.columns`). Empty where a rule predicts nothing.
    """
    trace, energies, gains = account.trace, account.innovations, account.information.gains
    bounds = account.information.upper_bound
    gain, total = ("at_most_nats", "at_most_total_nats") if bounds else ("gain_nats", "total_nats")
    looked_ahead = any(np.isfinite(step.least_error) for step in trace.steps)
    informed = any(np.isfinite(step.forecast.opinion_weight) for step in trace.steps)
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
                **({"opinion_weight": _known(step.forecast.opinion_weight)} if informed else {}),
                "predicted": _known(energies.predicted[index]) if energies else None,
                "found": _known(energies.measured[index]) if energies else None,
                "running_ratio": _known(energies.running_ratio[index]) if energies else None,
                **_recorded(step),
            }
        )
    end = trace.forecast(len(trace.lines))
    if rows and end is not None:
        last: dict[str, object] = {"lines": len(trace.lines), "predicted_error": _known(end.predicted_error)}
        rows.append(dict.fromkeys(rows[0]) | last | _recorded(end))
        if informed:
            rows[-1]["opinion_weight"] = _known(end.opinion_weight)
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

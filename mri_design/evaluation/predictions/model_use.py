"""Which of several models of its slices a design went by, and which one predicted its lines best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mri_design.design.model_choice import paired_energies
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.output.tables import Row


@dataclass(frozen=True)
class ModelUse:
    """How a design chose between candidate models.

    Parameters
    ----------
    names : tuple of str
        Of the candidates, in their order.
    lines_chosen : mapping of str to int
        Lines that were chosen under each model, slices together.
    changes : int
        How often a slice's model changed.
    totals : sequence of mappings
        Rows of `model_totals`.
    """

    names: tuple[str, ...]
    lines_chosen: dict[str, int]
    changes: int
    totals: Sequence[Row]


def model_use(trace: DesignTrace, names: Sequence[str]) -> ModelUse | None:
    """How a design chose between models of these names; None where there was nothing to choose."""
    if all(step.outcome.model_energies is None for step in trace.steps):
        return None
    used = [step.forecast.models for step in trace.steps]
    numbers = [number for models in used for number in models]
    return ModelUse(
        names=tuple(names),
        lines_chosen={name: numbers.count(number) for number, name in enumerate(names)},
        changes=sum(before != after for before, after in pairwise(used) if after),
        totals=model_totals(trace, names),
    )


def model_totals(trace: DesignTrace, names: Sequence[str]) -> list[Row]:
    """One row per slice and model: lines chosen under it, paired lines, and what it gained on the first model.

    ``gain`` is the mean over paired lines of log(energy under the first model / energy under this one), with its
    standard error.
    """
    rows: list[Row] = []
    used = [step.forecast.models for step in trace.steps]
    for index in range(max(map(len, used), default=0)):
        paired = paired_energies(trace.steps, index)
        for number, name in enumerate(names):
            gains = np.log(paired[:, 0] / paired[:, number]) if number < paired.shape[1] else np.empty(0)
            many = len(gains) > 1
            rows.append(
                {
                    "slice": index,
                    "model": name,
                    "lines_chosen": sum(m[index] == number for m in used if m),
                    "paired_lines": len(gains),
                    "gain": float(gains.mean()) if many else None,
                    "gain_error": float(gains.std(ddof=1) / np.sqrt(len(gains))) if many else None,
                }
            )
    return rows

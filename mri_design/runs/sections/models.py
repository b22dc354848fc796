"""Which model of each slice a design went by, and how well the candidates predicted its lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mri_design.design.model_choice import paired_energies
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.output.page import Paragraph, ReportTable, Section
from mri_design.evaluation.output.run_folder import RunFolder

__all__ = ["model_rows", "model_sections", "model_settings", "model_totals"]

Rows = list[dict[str, object]]
_FORMATS = {"gain": "+.3f", "gain_error": ".3f"}


def model_settings(trace: DesignTrace, names: Sequence[str]) -> dict[str, object]:
    """For a manifest: how many lines were chosen under each model, slices together; nothing without a choice."""
    if not _chose(trace):
        return {}
    used = [number for step in trace.steps for number in step.forecast.models]
    return {"lines_chosen_under": {name: used.count(number) for number, name in enumerate(names)}}


def model_rows(trace: DesignTrace, names: Sequence[str]) -> Rows:
    """One row per decision and slice, for models.csv: the model in use, and the line's energy under each candidate."""
    rows: Rows = []
    for index, step in enumerate(trace.steps):
        for number, used in enumerate(step.forecast.models):
            row: dict[str, object] = {
                "lines": len(trace.start) + index,
                "line": step.line,
                "ky": step.line - trace.n_lines // 2,
                "slice": number,
                "model": names[used],
            }
            energies = step.outcome.model_energies
            known = [] if energies is None else energies[number].tolist()
            known += [np.nan] * (len(names) - len(known))
            rows.append(row | {f"found, {n}": e if np.isfinite(e) else None for n, e in zip(names, known, strict=True)})
    return rows


def model_totals(trace: DesignTrace, names: Sequence[str]) -> Rows:
    """One row per slice and model: lines chosen under it, paired lines, and what it gained on the first model.

    ``gain`` is the mean over paired lines of log(energy under the first model / energy under this one), with its
    standard error.
    """
    rows: Rows = []
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


def model_sections(folder: RunFolder, trace: DesignTrace, names: Sequence[str]) -> list[Section]:
    """Write models.csv and return the report's section about it; nothing where there was one model.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    trace : DesignTrace
        The design.
    names : sequence of str
        Of the candidates, in their order.
    """
    if not _chose(trace):
        return []
    folder.write_table("models.csv", model_rows(trace, names))
    used = [step.forecast.models for step in trace.steps]
    switches = sum(a != b for a, b in pairwise(used) if b)
    text = (
        "Every line was predicted under several models before it was measured; the design goes by the one that missed "
        f"least, and by {names[0]} until another is clearly better. It changed {switches} times. The products with A "
        "in this report are those of all models together."
    )
    caption = (
        "Lines chosen under each model; on the lines that all models predicted, the mean of log(energy missed by "
        f"{names[0]} / energy missed) and its standard error: above 0 the model predicts better."
    )
    return [
        Section(
            "Which model predicted best?", [Paragraph(text), ReportTable(model_totals(trace, names), caption, _FORMATS)]
        )
    ]


def _chose(trace: DesignTrace) -> bool:
    return any(step.outcome.model_energies is not None for step in trace.steps)

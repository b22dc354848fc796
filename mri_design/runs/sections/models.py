"""Which model of each slice a design went by, and how well the candidates predicted its lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.output.page import Paragraph, ReportTable, Section
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import Row
from mri_design.evaluation.predictions.account import DesignAccount
from mri_design.evaluation.predictions.model_use import ModelUse

_FORMATS = {"gain": "+.3f", "gain_error": ".3f"}


def model_settings(models: ModelUse | None) -> dict[str, object]:
    """For a manifest: how many lines were chosen under each model, slices together; nothing without a choice."""
    return {} if models is None else {"lines_chosen_under": models.lines_chosen}


def model_rows(trace: DesignTrace, names: Sequence[str]) -> list[Row]:
    """One row per decision and slice, for models.csv: the model in use, and the line's energy under each candidate."""
    rows: list[Row] = []
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


def model_sections(folder: RunFolder, account: DesignAccount) -> list[Section]:
    """Write models.csv and return the report's section about it; nothing where there was one model."""
    models = account.models
    if models is None:
        return []
    folder.write_table("models.csv", model_rows(account.trace, models.names))
    text = (
        "Every line was predicted under several models before it was measured; the design goes by the one that missed "
        f"least, and by {models.names[0]} until another is clearly better. It changed {models.changes} times. The "
        "products with A in this report are those of all models together."
    )
    caption = (
        "Lines chosen under each model; on the lines that all models predicted, the mean of log(energy missed by "
        f"{models.names[0]} / energy missed) and its standard error: above 0 the model predicts better."
    )
    return [Section("Which model predicted best?", [Paragraph(text), ReportTable(models.totals, caption, _FORMATS)])]

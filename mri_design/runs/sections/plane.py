"""The report of a design over a plane: how the mask grew, what was believed of its samples, and how right that was."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import DesignStep, columns
from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.output.page import Block, ReportTable, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.predictions.account import DesignAccount
from mri_design.operators.encodings import PlaneEncoding

PANELS = 6
"""Of the picture that grows."""


def save_plane_design(folder: RunFolder, account: DesignAccount, plane: PlaneEncoding) -> list[Section]:
    """Write samples.csv, mask.npy, blocks.csv, prediction.csv and figures; return the report's sections about them."""
    trace = account.trace
    folder.write_table("samples.csv", _sample_rows(trace, plane))
    folder.write_mask(trace.mask().reshape(plane.grid))
    blocks = _blocks(trace)
    shown: list[Block] = [
        saved_figure(
            folder,
            "mask-growth",
            lambda: plots.plane_growth(trace.lines, plane.grid, _moments(trace)),
            "The mask as it grew, DC in the middle: first the samples that the design began with, then what was "
            "added since the panel before, in colour. Look for how far out it reaches when, and whether it takes a "
            "sample and its opposite.",
        )
    ]
    scored = [step for step in blocks if step.choice.scores is not None]
    if scored:
        chosen = [scored[i] for i in sorted({0, len(scored) // 2, len(scored) - 1})]
        maps = {f"block {blocks.index(step) + 1}": _map(step.choice.scores, plane) for step in chosen}
        caption = "Score of every sample at the first, a middle and the last block; measured samples are blank."
        shown.append(
            saved_figure(folder, "scores", lambda: plots.plane_maps(maps, f"score of {trace.strategy}"), caption)
        )
    sections = [Section("Design", shown)]
    rows = _block_rows(trace)
    if rows:
        folder.write_table("blocks.csv", rows)
    if account.predicted_errors:
        sections.append(Section("Was the prediction right?", _judged(folder, account, rows)))
    return sections


def _sample_rows(trace: DesignTrace, plane: PlaneEncoding) -> list[dict[str, object]]:
    first, rows = len(trace.start), list[dict[str, object]]()
    block = 0
    for order, sample in enumerate(trace.lines):
        step = trace.steps[order - first] if order >= first else None
        block += step is not None and step.choice.pending == 0
        ky, kz = plane.frequencies[sample].tolist()
        rows.append({"order": order, "sample": sample, "ky": ky, "kz": kz, "block": block})
    return rows


def _blocks(trace: DesignTrace) -> list[DesignStep]:
    """The first decision of every block, which has its scores and its forecast."""
    return [step for step in trace.steps if step.choice.pending == 0]


def _block_rows(trace: DesignTrace) -> list[dict[str, object]]:
    """One row per block: samples before, samples chosen, what was predicted of them and found, what it took.

    Where the design was informed by an earlier scan, also how far it was believed (``opinion_weight``).
    """
    informed = any(np.isfinite(step.forecast.opinion_weight) for step in trace.steps)
    begins = [i for i, step in enumerate(trace.steps) if step.choice.pending == 0]
    rows: list[dict[str, object]] = []
    for begin, end in pairwise([*begins, len(trace.steps)]):
        block = trace.steps[begin:end]
        believed = block[0].forecast.believed
        found = float(np.mean([step.outcome.actual_energy for step in block]))
        predicted = float("nan")
        if believed is not None and block[0].forecast.expected is not None:
            noise = block[0].outcome.predicted_energy - float(block[0].forecast.expected[block[0].line])
            predicted = noise + float(np.mean([believed[step.line] for step in block]))
        rows.append(
            {
                "samples": len(trace.start) + begin,
                "chosen": len(block),
                "predicted_error": _known(block[0].predicted_error),
                **({"opinion_weight": _known(block[0].forecast.opinion_weight)} if informed else {}),
                "predicted": _known(predicted),
                "found": _known(found),
                **{name: _known(v) if isinstance(v, float) else v for name, v in columns(block[0]).items()},
            }
        )
    return rows


def _judged(folder: RunFolder, account: DesignAccount, rows: list[dict[str, object]]) -> list[Block]:
    known, checks = account.predicted_errors, account.checks
    counts = [count for count, _ in known]
    actual = {check.n_measured: check.compared[1] for check in checks}
    curves = {"predicted": [100 * error for _, error in known]}
    if checks:
        curves["actual"] = [100 * actual.get(count, float("nan")) for count in counts]
    blocks: list[Block] = [
        saved_figure(
            folder,
            "predicted-error",
            lambda: plots.block_course(counts, curves, "relative L2 error of the image, %"),
            "The error that the design believed its image still had at every block, and the actual one where it was "
            "looked up. They should fall together.",
        )
    ]
    drawn = [row for row in rows if row["predicted"] is not None and row["found"] is not None]
    if drawn:
        blocks.append(
            saved_figure(
                folder,
                "innovations",
                lambda: plots.block_course(
                    [int(str(row["samples"])) for row in drawn],
                    {name: [float(str(row[name])) for row in drawn] for name in ("predicted", "found")},
                    "mean energy of an innovation",
                ),
                "What the samples of each block held that the image so far did not show: as it was believed before "
                "they were measured, and as it was found. No truth is needed for this.",
            )
        )
    if checks:
        table = [check.as_row() for check in checks]
        folder.write_table("prediction.csv", table)
        blocks += [
            ReportTable(
                table,
                "Relative L2 error along the run, predicted and found (of the unmeasured samples where the truth is "
                "not known), over all samples and over the unmeasured ones alone; median over unmeasured samples "
                "within two thirds of the plane of predicted over actual energy, and the rank correlation of the two.",
            ),
        ]
    if account.shares:
        blocks.append(ReportTable(account.shares, "How often the predicted error is right."))
    return blocks


def _moments(trace: DesignTrace) -> list[int]:
    """Numbers of samples, from the start to the end of the design, at which the picture is drawn."""
    first, last = len(trace.start), len(trace.lines)
    return sorted({round(count) for count in np.linspace(first, last, PANELS) if count >= 1})


def _map(scores: NDArray[np.float64] | None, plane: PlaneEncoding) -> NDArray[np.float64]:
    assert scores is not None
    return scores.reshape(plane.grid)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

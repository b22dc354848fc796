"""The report of a design: how the mask grew, how much each line was worth, and how right the predictions were."""

from __future__ import annotations

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.mask_sentence import mask_sentence
from mri_design.evaluation.output.page import Block, Paragraph, ReportTable, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.plots.panels import LinePanel
from mri_design.evaluation.predictions.account import DesignAccount
from mri_design.evaluation.predictions.check import PredictionCheck
from mri_design.evaluation.predictions.information import score_is_information
from mri_design.evaluation.predictions.innovations import WINDOW
from mri_design.runs.sections.steps import score_rows, step_rows

Blocks = list[Block]
SCORE_UNIT = "score, log det(I + X A\u207b\u00b9 X\u1d34)"
UNIT = "noise variances"
PANELS = 3


def save_design(folder: RunFolder, account: DesignAccount, noise_variance: float) -> list[Section]:
    """Write lines.csv, mask.npy and what `design_sections` writes; return the report's sections about the design."""
    trace = account.trace
    rows: list[dict[str, object]] = [
        {"order": i, "line": line, "ky": line - trace.n_lines // 2, "score": None} for i, line in enumerate(trace.lines)
    ]
    first = len(trace.start)
    for row, step in zip(rows[first:], trace.steps, strict=True):
        row["score"] = None if step.choice.scores is None else step.choice.score
    folder.write_lines(rows)
    folder.write_mask(trace.mask())
    return design_sections(folder, account, noise_variance)


def design_sections(folder: RunFolder, account: DesignAccount, noise_variance: float) -> list[Section]:
    """Write a design's figures and its tables per step and per line; return the report's sections about it.

    Parameters
    ----------
    folder : RunFolder
        Where to: steps.csv, and where they are known scores.csv, prediction.csv and prediction-lines.csv.
    account : DesignAccount
        What the design expected, and what came.
    noise_variance : float
        Per real component; the unit of energies in figures.
    """
    trace = account.trace
    if trace.steps:
        folder.write_table("steps.csv", step_rows(account))
    sections = [Section("Design", [*_mask_figures(folder, trace), *_score_figures(folder, trace)])]
    learned = [*_information(folder, account), *_errors(folder, account)]
    if learned:
        sections.append(Section("What was learned", learned))
    judged = [*_innovations(folder, account, noise_variance), *_checked_lines(folder, account, noise_variance)]
    if judged:
        sections.append(Section("Was the prediction right?", judged))
    return sections


def _mask_figures(folder: RunFolder, trace: DesignTrace) -> Blocks:
    first = len(trace.start)
    return [
        saved_figure(
            folder,
            "mask",
            lambda: plots.mask_barcodes({trace.strategy: trace.mask()}),
            mask_sentence(trace.mask()),
        ),
        saved_figure(
            folder,
            "mask-growth",
            lambda: plots.mask_growth(trace.lines, trace.n_lines, first),
            "The mask at every step, from top to bottom; the new line is coloured. Look for when the design leaves the "
            "centre, whether it takes ky and -ky or only one of them, and which gaps it comes back to.",
        ),
        saved_figure(
            folder,
            "order",
            lambda: plots.acquisition_order(trace.lines, trace.n_lines, first),
            "Which line was chosen when. Start lines come first, from DC outwards.",
        ),
    ]


def score_unit(trace: DesignTrace) -> str:
    """What the scores of a design's rule are called."""
    return SCORE_UNIT if score_is_information(trace) else f"score of {trace.strategy}"


def _score_figures(folder: RunFolder, trace: DesignTrace) -> Blocks:
    scored = [s for s in trace.steps if s.choice.scores is not None]
    if not scored:
        return []
    folder.write_table("scores.csv", score_rows(trace))
    unit = score_unit(trace)
    scores, chosen, last = np.array([s.choice.scores for s in scored]), [s.line for s in scored], len(scored) - 1
    order = len(trace.start) + 1
    return [
        saved_figure(
            folder,
            "scores",
            lambda: plots.score_map(scores, chosen, unit, first_order=order),
            "Score of every candidate line at every step; the chosen one is marked. Lines that are measured already "
            "or not allowed are blank; where a candidate between them is dark, its neighbours tell most of it.",
        ),
        saved_figure(
            folder,
            "score-profiles",
            lambda: plots.score_profiles(
                scores, chosen, sorted({0, last // 4, last // 2, last}), unit, first_order=order
            ),
            "The same scores at the start, after a quarter, at half and at the end; measured lines are shaded. Each "
            "panel has a scale of its own that need not begin at 0: where it spans little, many lines would do.",
        ),
    ]


def _information(folder: RunFolder, account: DesignAccount) -> Blocks:
    information, gains = account.information, account.information.predicted
    if not len(gains):
        return []
    bounds, total = information.upper_bound, information.total
    bits = f"{total:.5g} nats ({total / np.log(2):.5g} bits), {total / len(gains):.4g} nats a line"
    return [
        Paragraph(
            f"The {len(gains)} chosen lines were expected to tell {'at most ' if bounds else ''}{bits}; the first "
            f"{information.lines_for_half} of them half of it, the last one {gains[-1]:.4g}."
        ),
        saved_figure(
            folder,
            "information",
            lambda: plots.information_gained(
                gains.tolist(), len(account.trace.start) + 1, "nats, at most" if bounds else "nats"
            ),
            "What each chosen line was expected to tell, and their sum, without the start lines. When the curve has "
            "flattened, further lines buy little.",
        ),
    ]


def _errors(folder: RunFolder, account: DesignAccount) -> Blocks:
    known, checks = account.predicted_errors, account.checks
    if not known:
        return []
    caption = (
        "The error that the design believed its image still had, before each line and at the end: that of the complex "
        "image, under the prior that the design infers with. The final image is made under the whole prior of the "
        "recipe, and is usually better; its error is the one in the table of errors."
    )
    part = "all lines"
    if checks:
        caption += " It should run inside the band around the actual error, and above all fall as that does."
        if not all(check.known.all() for check in checks):
            part = "unmeasured lines"
            caption += (
                " The scan's own lines stand for the truth, so the actual error, and the prediction beside it, are "
                "those of the lines not yet measured."
            )
    course = saved_figure(
        folder,
        "predicted-error",
        lambda: plots.error_course(
            [count for count, _ in known],
            [error for _, error in known],
            [check.n_measured for check in checks],
            [check.compared[0] for check in checks],
            [check.compared[1] for check in checks],
            part,
        ),
        caption,
    )
    blocks: Blocks = [course]
    if checks:
        rows = [check.as_row() for check in checks]
        folder.write_table("prediction.csv", rows)
        blocks += [
            ReportTable(
                rows,
                "Relative L2 error along the run, predicted and found: over all lines of k-space, what noise leaves on "
                "measured ones included, and over the unmeasured lines alone. Ratio of predicted to found (of the "
                "unmeasured lines where the truth is not known); median over unmeasured lines with |ky| < N/3 of "
                "predicted over actual energy, and the rank correlation of the two.",
            ),
        ]
    if account.shares:
        blocks.append(
            ReportTable(
                account.shares,
                "How often the predicted error is right: share of these line counts where predicted over actual lies "
                "in [0.5, 2] and in [0.8, 1.25]; median and range of the ratio. 1 is right, below 1 promised too much.",
            )
        )
    return blocks


def _innovations(folder: RunFolder, account: DesignAccount, noise_variance: float) -> Blocks:
    trace, energies = account.trace, account.innovations
    if energies is None or energies.known.sum() < 2:
        return []
    known = energies.known
    predicted, measured = energies.predicted[known], energies.measured[known]
    ky = np.array([s.line for s in trace.steps])[known] - trace.n_lines // 2
    noise = energies.noise[known] / noise_variance
    order = np.flatnonzero(known) + len(trace.start) + 1
    return [
        Paragraph(
            f"{'Every line' if known.all() else f'{known.sum()} of {len(known)} chosen lines (exchanges not)'} "
            "had been predicted, with error bars, before the data were looked at. Predicted over found energy of the "
            f"innovation, geometric mean over lines: {energies.ratio:.2f} (1 is calibrated, below 1 is overconfident)."
        ),
        saved_figure(
            folder,
            "innovations",
            lambda: plots.innovation_course(
                order,
                predicted / noise_variance,
                measured / noise_variance,
                energies.running_ratio[known],
                noise if np.isfinite(noise).all() else None,
                UNIT,
            ),
            "What each new line held that the image so far did not show: before it was measured, and found. No truth "
            f"is needed for this. Below, their ratio (dots) and its mean over the last {WINDOW} lines; in the shaded "
            "band it is right within a factor of 2. Look for drift, and for lines that were a surprise.",
        ),
        saved_figure(
            folder,
            "calibration",
            lambda: plots.calibration(predicted / noise_variance, measured / noise_variance, ky, UNIT),
            "Each dot is one line. On the diagonal the error bars were right; above it the line held more than "
            "expected.",
        ),
    ]


def _checked_lines(folder: RunFolder, account: DesignAccount, noise_variance: float) -> Blocks:
    trace, checks = account.trace, account.checks
    if not checks:
        return []
    ky = np.arange(trace.n_lines) - trace.n_lines // 2
    folder.write_table(
        "prediction-lines.csv",
        [
            {
                "lines": check.n_measured,
                "line": line,
                "ky": int(ky[line]),
                "measured": bool(check.acquired[line]),
                "predicted": float(check.predicted[line]),
                "actual": float(check.actual[line]) if check.known[line] else None,
            }
            for check in checks
            for line in range(trace.n_lines)
        ],
    )
    shown = sorted({0, len(checks) // 2, len(checks) - 1}) if len(checks) >= PANELS else range(len(checks))
    panels = [
        LinePanel(_panel_title(check), check.predicted / noise_variance, check.actual / noise_variance, check.acquired)
        for check in (checks[i] for i in shown)
    ]
    return [
        saved_figure(
            folder,
            "prediction-lines",
            lambda: plots.line_predictions(panels, UNIT),
            "The image's error on every line, as predicted and as it was, at the start, in the middle and at the end "
            "of the run. A design is as good as this prediction: look for whether the two rise and fall together, and "
            "where the predicted one lies below. Above each panel, for unmeasured lines with |ky| < N/3: the median of "
            "predicted over actual energy, and their rank correlation.",
        )
    ]


def _panel_title(check: PredictionCheck) -> str:
    title = f"{check.n_measured} lines"
    if np.isfinite(check.line_ratio):
        title += f": median predicted / actual {check.line_ratio:.2f}"
    if np.isfinite(check.rank_correlation):
        title += f", rank correlation {check.rank_correlation:.2f}"
    return title

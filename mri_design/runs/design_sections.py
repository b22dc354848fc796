"""What a report shows of a design: how the mask grew, what lines were worth, and how right predictions were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import DesignStep, Forecast, columns
from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.account import WINDOW, DesignAccount, ModelUse, score_is_information
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.page import (
    Block,
    ExploredImage,
    ExploredStep,
    Paragraph,
    ReportTable,
    Section,
    StepExplorer,
    saved_figure,
)
from mri_design.evaluation.plots.panels import Layout, LinePanel, scale_top
from mri_design.evaluation.predictions import PredictionCheck
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import count_text
from mri_design.operators.base import Array
from mri_design.operators.encodings import PlaneEncoding, ShotEncoding
from mri_design.runs.image_sections import curves_figure, mask_sentence, point_spread_figure
from mri_design.runs.scan_facts import KnownScan

Blocks = list[Block]
SCORE_UNIT = "score, log det(I + X A\u207b\u00b9 X\u1d34)"
UNIT = "noise variances"
CHECKED_PANELS = 3


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
    shown = sorted({0, len(checks) // 2, len(checks) - 1}) if len(checks) >= CHECKED_PANELS else range(len(checks))
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


CAPTION = (
    "The design step by step. Move the slider, or use its arrow keys: dark lines are measured, the coloured one is "
    "the newest, and the curve below is the score that each line had when it was chosen. "
    "Images are those at which predictions were checked, on one scale for all steps; error bars and actual errors have "
    "the same colours."
)


def step_explorer(
    account: DesignAccount,
    unit: str,
    reference: Array | None,
    orientation: Layout,
    image_unit: float | Array = 1.0,
) -> StepExplorer:
    """The steps of a design of lines, with the images that its predictions were checked by.

    Parameters
    ----------
    account : DesignAccount
        The design, and its checks.
    unit : str
        Name of the scores.
    reference : complex array, shape (ky, kx), or None
        The true image, for the actual errors.
    orientation : Layout
        How the source file lays the image.
    image_unit : float or float array, shape (ky, kx)
        What images are multiplied by to be shown (`PreparedScan.image_unit`).
    """
    images = _images(account.checks, reference, orientation, image_unit)
    return StepExplorer(account.trace.n_lines, account.trace.start, _steps(account.trace), unit, images, CAPTION)


def _steps(trace: DesignTrace) -> list[ExploredStep]:
    return [
        ExploredStep(
            step.line,
            None if step.choice.scores is None else np.asarray(step.choice.scores, dtype=np.float64),
            step.predicted_error if step.predicted_error > 0 else None,
        )
        for step in trace.steps
    ]


def _images(
    checks: Sequence[PredictionCheck], reference: Array | None, orientation: Layout, unit: float | Array
) -> list[ExploredImage]:
    """Pictures on one scale for all steps."""
    kept = [(check.n_measured, check.mean, check.deviation) for check in checks]
    known = [
        (count, np.abs(mean) * unit, std * unit) for count, mean, std in kept if mean is not None and std is not None
    ]
    if not known:
        return []
    truth = None if reference is None else np.abs(reference) * unit
    bright = scale_top([known[-1][1]])
    wrong = scale_top([known[0][2]])
    return [
        ExploredImage(
            count,
            plots.pixels_png(mean, bright, orientation),
            plots.pixels_png(std, wrong, orientation, error=True),
            b"" if truth is None else plots.pixels_png(np.abs(mean - truth), wrong, orientation, error=True),
            None if truth is None else relative_l2(mean, truth),
        )
        for count, mean, std in known
    ]


PLANE_PANELS = 6
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
    return sorted({round(count) for count in np.linspace(first, last, PLANE_PANELS) if count >= 1})


def _map(scores: NDArray[np.float64] | None, plane: PlaneEncoding) -> NDArray[np.float64]:
    assert scores is not None
    return scores.reshape(plane.grid)


SHOT_PANELS = 4
"""Of the trajectory that grows."""
ABOUT_SHOTS = (
    "Errors are of the magnitude; acceleration is pixels of the image over samples. The gridded image compensates for "
    "the density of the samples and knows nothing else."
)
_HONESTLY = (
    "Measured on heads, angles chosen by information make worse images than as many spread evenly over half a turn, by "
    "7 to 24 %: the design is there to be compared with these sets (strategies half-turn, one-missing, golden)."
)


def save_shot_design(folder: RunFolder, trace: DesignTrace, known: KnownScan, shots: ShotEncoding) -> list[Section]:
    """Write shots.csv, mask.npy, trajectory.npz and figures; return the report's section about the design."""
    lines, unit = list(trace.lines), shots.unit
    folder.write_table("shots.csv", _shot_rows(trace, shots))
    folder.write_mask(trace.mask())
    scale, model = known.scan.unit, known.slice_model
    arrays: dict[str, Array] = {
        "kspace": model.kspace[:, lines] * np.float32(scale),
        "trajectory": shots.shots[lines],
        "matrix": np.array(shots.grid),
        "noise_variance": np.array(model.noise_variance * scale**2),
    }
    if model.maps is not None:
        arrays["coil_maps"] = model.maps
    if known.reference is not None:
        arrays["reference"] = np.asarray(known.reference * scale, dtype=np.complex64)
    folder.write_archive("trajectory.npz", arrays)
    counts = sorted({round(count) for count in np.linspace(len(trace.start), len(lines), SHOT_PANELS) if count >= 1})
    grown = {count_text(count, unit): shots.shots[lines[:count]] for count in counts}
    blocks: list[Block] = [
        curves_figure(
            folder,
            "trajectory",
            grown,
            shots.grid,
            unit,
            f"the first {unit} of the start",
            "Panels go from the start of the design to its end. " + (_HONESTLY if trace.steps else ""),
        )
    ]
    scored = [i for i, step in enumerate(trace.steps) if step.choice.scores is not None]
    if scored and shots.angles is not None:
        first = len(trace.start)
        shown = {
            f"{count_text(first + i, unit)} measured": i for i in (scored[0], scored[len(scored) // 2], scored[-1])
        }
        scores = {title: np.asarray(trace.steps[i].choice.scores) for title, i in shown.items()}
        flags = {title: trace.mask(first + i) for title, i in shown.items()}
        blocks.append(
            saved_figure(
                folder,
                "scores",
                lambda: plots.angle_scores(np.array(shots.angles), scores, flags),
                f"Score of every angle by {trace.strategy}, twice its information in nats, at the first, a middle and "
                "the last decision. Ticks below are the angles measured before it.",
            )
        )
    points = shots.shots[lines].reshape(-1, 2)
    blocks.append(point_spread_figure(folder, count_text(len(lines), unit), points, shots.grid, f"the chosen {unit}s"))
    return [Section("Design", blocks)]


def _shot_rows(trace: DesignTrace, shots: ShotEncoding) -> list[dict[str, object]]:
    first, rows = len(trace.start), list[dict[str, object]]()
    for order, shot in enumerate(trace.lines):
        step = trace.steps[order - first] if order >= first else None
        angle = None if shots.angles is None else float(np.degrees(shots.angles[shot]))
        nats = float("nan") if step is None else step.information
        cost = {} if step is None else {"converged": step.cost.converged, "matvecs": step.cost.matvecs}
        row: dict[str, object] = {"order": order, "shot": shot, "angle_degrees": angle}
        rows.append({**row, "information_nats": nats if np.isfinite(nats) else None, **cost})
    return rows


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


ACQUISITION = "acquisition.csv"
MEASURED_ORDER = "line number in the order of measurement"


def save_acquisition(folder: RunFolder, made: Acquisition | None, recipe: Recipe) -> list[Section]:
    """Write acquisition.csv and its figure where lines are measured in another order or in trains; else nothing."""
    if made is None:
        folder.remove(ACQUISITION)
        return []
    write_csv(folder.output_path(ACQUISITION), _acquisition_rows(made))
    unit, grid = made.encoding.unit, made.encoding.grid
    if isinstance(made.encoding, PlaneEncoding):
        caption = "When every sample is measured: its train and its echo, or its place in the order; DC in the middle."
        picture = saved_figure(folder, "acquisition", lambda: plots.plane_order(_places(made), grid), caption)
    else:
        caption = f"The same {unit}s in the order in which they are to be measured, train after train."
        picture = saved_figure(
            folder,
            "acquisition",
            lambda: plots.acquisition_order(made.lines, made.encoding.size, axis=MEASURED_ORDER),
            caption,
        )
    return [Section("Acquisition order", [Paragraph(_facts(made, recipe)), picture])]


def _places(made: Acquisition) -> dict[str, dict[int, int]]:
    """Train of every sample and, where trains have several, its echo, both counted from 1."""
    train_of = {line: number for number, train in enumerate(made.trains, 1) for line in train}
    if len(made.trains) == len(made.lines):
        return {"order": train_of}
    return {"train": train_of, "echo": {line: echo for train in made.trains for echo, line in enumerate(train, 1)}}


def _acquisition_rows(made: Acquisition) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    frequencies = made.encoding.frequencies
    for number, train in enumerate(made.trains):
        for echo, line in enumerate(train):
            place = {"order": len(rows), "train": number, "echo": echo + 1}
            k = dict(zip(("ky", "kz"), frequencies[line].tolist(), strict=False))
            rows.append({**place, made.encoding.unit: line, **k})
    return rows


def _facts(made: Acquisition, recipe: Recipe) -> str:
    unit = made.encoding.unit
    facts = f"Order: {recipe.design.order}. Largest jump between consecutive {unit}s: {made.largest_jump:.4g}."
    if recipe.design.echoes > 1:
        longest, shortest = (f(len(train) for train in made.trains) for f in (max, min))
        echoes = f"{longest}" if longest == shortest else f"{shortest} to {longest}"
        facts += f" {len(made.trains)} echo trains of {echoes} {unit}s; echo {made.dc_echo} measures DC."
        if isinstance(made.encoding, PlaneEncoding):
            facts += f" The median jump within a train is {made.typical_jump:.3g}."
    return f"{facts} {ACQUISITION} lists them."

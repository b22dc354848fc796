"""Sections of a report about a design: how it grew, what was chosen when, and how right its predictions were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignStep, DesignTrace, Forecast, columns
from mri_design.evaluation import plots
from mri_design.evaluation.page import (
    Block,
    Paragraph,
    ReportTable,
    Section,
    StepExplorer,
    saved_figure,
)
from mri_design.evaluation.pictures import Drawing
from mri_design.evaluation.plots.panels import object_top, scale_top
from mri_design.evaluation.predictions import WINDOW, DesignAccount, PredictionCheck, score_is_information
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, count_text
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from mri_design.runs.image_sections import curves_figure, mask_figure, point_spread_figure
from mri_design.runs.scan_facts import KnownScan, NamedImage
from mri_design.runs.verdicts import RelativeError

T = TypeVar("T")
Blocks = list[Block]
Rows = list[dict[str, object]]
SCORE_UNIT = "score, log det(I + X A\u207b\u00b9 X\u1d34)"
UNIT = "noise variances"
ACQUISITION, _ORDER = "acquisition.csv", "line number in the order of measurement"
ABOUT_SHOTS = (
    "Errors are of the magnitude; acceleration is pixels of the image over samples. The gridded image compensates for "
    "the density of the samples and knows nothing else."
)
_HONESTLY = (
    "Measured on heads, angles chosen by information make worse images than as many spread evenly over half a turn, by "
    "7 to 24 %: the design is there to be compared with these sets (strategies half-turn, one-missing, golden)."
)
_CAPTIONS = {
    "mask-growth": "The mask at every step, from top to bottom; the new line is coloured.",
    "order": "Which line was chosen when. Start lines come first, from DC outwards.",
    "scores": "Score of every candidate at every step; the chosen one is marked, measured and forbidden ones blank.",
    "score-profiles": "The same scores at the start, after a quarter, at half and at the end, each panel on its own "
    "scale.",
    "information": "What each chosen line was expected to tell, and their sum, without the start lines.",
    "innovations": "What each new line held that the image so far did not show, predicted and found; below, their "
    f"ratio and its mean over the last {WINDOW} lines.",
    "calibration": "Each dot is one line; above the diagonal it held more than expected.",
    "prediction-lines": "The image's error on every line, as predicted and as it was, at the start, in the middle and "
    "at the end; above each panel their median ratio and rank correlation on unmeasured lines with |ky| < N/3.",
}
"""Of the figures of a design of lines."""


def _figure(folder: RunFolder, name: str, draw: Callable[[], Drawing], caption: str = "") -> Block:
    """A figure under its caption; without one under that of `_CAPTIONS`."""
    return saved_figure(folder, name, draw, caption or _CAPTIONS[name])


def save_design(folder: RunFolder, account: DesignAccount, candidates: Readouts, noise: float) -> list[Section]:
    """Write what was chosen, the mask, and a design's tables and figures; return the report's sections about it.

    Parameters
    ----------
    folder : RunFolder
        Where to: lines.csv, samples.csv or shots.csv, and mask.npy; steps.csv or blocks.csv, and where they are known
        scores.csv, prediction.csv and prediction-lines.csv.
    account : DesignAccount
        The design, with its predictions and their outcomes.
    candidates : Readouts
        Candidates that it chose from.
    noise : float
        Noise variance per real component; the unit of energies in figures.
    """
    trace = account.trace
    folder.write_table(f"{KINDS[candidates.name].counted}.csv", _chosen_rows(trace, candidates))
    folder.write_mask(trace.mask().reshape(candidates.shape))
    if isinstance(candidates, PlaneReadouts):
        return _plane_sections(folder, account, candidates)
    if isinstance(candidates, ShotReadouts):
        return [Section("Design", _shot_figures(folder, trace, candidates))]
    return _line_sections(folder, account, noise)


def _chosen_rows(trace: DesignTrace, candidates: Readouts) -> Rows:
    """Rows of lines.csv, samples.csv or shots.csv: the order of choice, places in k-space, and scores of choices."""
    rows: Rows = []
    block, looked = 0, any(np.isfinite(step.forecast.image_error) for step in trace.steps)
    steps: list[DesignStep | None] = [None] * len(trace.start)
    for order, (number, step) in enumerate(zip(trace.lines, [*steps, *trace.steps], strict=True)):
        block += step is not None and step.choice.pending == 0
        row: dict[str, object]
        if isinstance(candidates, LineReadouts | PlaneReadouts):
            score = None if step is None or step.choice.scores is None else step.choice.score
            told = {"block": block} if candidates.thinned else {"score": score}
            row = {candidates.unit: number, **_place(candidates, number), **told}
        else:
            angles = getattr(candidates, "angles", None)
            row = {"shot": number, "angle_degrees": None if angles is None else float(np.degrees(angles[number]))}
            gain = "at_most_nats" if trace.steps and not score_is_information(trace) else "information_nats"
            row[gain] = None if step is None else _known(step.forecast.information)
            if step is not None:
                row |= {"predicted": _known(step.outcome.predicted_energy), "found": _known(step.outcome.actual_energy)}
                row |= {"converged": step.cost.converged, "matvecs": step.cost.matvecs}
                row |= {"image_error": _known(step.forecast.image_error)} if looked else {}
        rows.append({"order": order, **row})
    return rows


def _place(candidates: LineReadouts | PlaneReadouts, number: int) -> dict[str, object]:
    """Where in k-space a line or a sample lies, as columns of a table."""
    return dict(zip(("ky", "kz"), candidates.frequencies[number].tolist(), strict=False))


def _line_sections(folder: RunFolder, account: DesignAccount, noise: float) -> list[Section]:
    trace, first = account.trace, len(account.trace.start)
    if trace.steps:
        folder.write_table("steps.csv", step_rows(account))
    masks: Blocks = [
        mask_figure(folder, trace.strategy, trace.mask()),
        _figure(folder, "mask-growth", lambda: plots.mask_growth(trace.lines, trace.n_lines, first)),
        _figure(folder, "order", lambda: plots.acquisition_order(trace.lines, trace.n_lines, first)),
    ]
    blocks = {
        "Design": [*masks, *_score_figures(folder, trace)],
        "What was learned": [*_information(folder, account), *_errors(folder, account)],
        "Was the prediction right?": [*_innovations(folder, account, noise), *_checked_lines(folder, account, noise)],
    }
    return [Section(title, shown) for title, shown in blocks.items() if shown]


def score_unit(trace: DesignTrace) -> str:
    """Name of the scores of a design's strategy."""
    return SCORE_UNIT if score_is_information(trace) else f"score of {trace.strategy}"


def _score_figures(folder: RunFolder, trace: DesignTrace) -> Blocks:
    scored = [s for s in trace.steps if s.choice.scores is not None]
    if not scored:
        return []
    folder.write_table("scores.csv", score_rows(trace))
    unit, order, last = score_unit(trace), len(trace.start) + 1, len(scored) - 1
    scores, chosen = np.array([s.choice.scores for s in scored]), [s.line for s in scored]
    shown = sorted({0, last // 4, last // 2, last})
    return [
        _figure(folder, "scores", lambda: plots.score_map(scores, chosen, unit, first_order=order)),
        _figure(folder, "score-profiles", lambda: plots.score_profiles(scores, chosen, shown, unit, first_order=order)),
    ]


def _information(folder: RunFolder, account: DesignAccount) -> Blocks:
    gains, order = account.gains[np.isfinite(account.gains)], len(account.trace.start) + 1
    if not len(gains):
        return []
    at_most, total = "" if score_is_information(account.trace) else "at most ", float(gains.sum())
    bits = f"{total:.5g} nats ({total / np.log(2):.5g} bits), {total / len(gains):.4g} nats a line"
    unit = "nats, at most" if at_most else "nats"
    return [
        Paragraph(
            f"The {len(gains)} chosen lines were expected to tell {at_most}{bits}; the first "
            f"{np.searchsorted(np.cumsum(gains), total / 2) + 1} of them half of it, the last one {gains[-1]:.4g}."
        ),
        _figure(folder, "information", lambda: plots.information_gained(gains.tolist(), order, unit)),
    ]


def _errors(folder: RunFolder, account: DesignAccount, unit: str = "line", moment: str = "line") -> Blocks:
    """The error that was predicted along a run, beside the actual one where it was looked up."""
    known, checks = account.predicted_errors, account.checks
    if not known:
        return []
    caption = f"Predicted error of the complex image under the design's prior, before each {moment} and at the end."
    of_all = all(check.known.all() for check in checks)
    part = f"{'all' if of_all else 'unmeasured'} {unit}s"
    if not of_all:
        caption += f" The scan's own {unit}s stand for the truth: both errors are those of the unmeasured ones."
    counts, errors = zip(*known, strict=True)
    looked = [check.n_measured for check in checks]
    predicted, actual = ([check.compared[which] for check in checks] for which in (0, 1))

    def drawn() -> Drawing:
        return plots.error_course(counts, errors, looked, predicted, actual, part, unit)

    blocks: Blocks = [_figure(folder, "predicted-error", drawn, caption)]
    if checks:
        rows = [check.as_row() for check in checks]
        folder.write_table("prediction.csv", rows)
        inner = "with |ky| < N/3" if unit == "line" else "within two thirds of the plane"
        caption = (
            f"Relative L2 error, predicted and found, over all and over the unmeasured {unit}s, and their ratio; over "
            f"unmeasured {unit}s {inner} the median of predicted over actual energy, and their rank correlation."
        )
        blocks.append(ReportTable(rows, caption))
    if account.fractions:
        caption = f"Predicted over actual error: share of {unit} counts in [0.5, 2] and [0.8, 1.25]; median, range."
        blocks.append(ReportTable(account.fractions, caption))
    return blocks


def _innovations(folder: RunFolder, account: DesignAccount, noise_variance: float) -> Blocks:
    trace, energies = account.trace, account.innovations
    if energies is None or energies.known.sum() < 2:
        return []
    known = energies.known
    predicted, measured = energies.predicted[known] / noise_variance, energies.measured[known] / noise_variance
    ky = np.array([s.line for s in trace.steps])[known] - trace.n_lines // 2
    scaled, ratio = energies.noise[known] / noise_variance, energies.running_ratio[known]
    noise = scaled if np.isfinite(scaled).all() else None
    order = np.flatnonzero(known) + len(trace.start) + 1
    return [
        Paragraph(
            f"Predicted over found energy of the innovation, geometric mean over {known.sum()} of {len(known)} lines: "
            f"{energies.ratio:.2f} (1 is calibrated, below 1 is overconfident)."
        ),
        _figure(folder, "innovations", lambda: plots.innovation_course(order, predicted, measured, ratio, noise, UNIT)),
        _figure(folder, "calibration", lambda: plots.calibration(predicted, measured, ky, UNIT)),
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
    panels = {
        _panel_title(check): (check.predicted / noise_variance, check.actual / noise_variance, check.acquired)
        for check in _first_middle_last(checks)
    }
    return [_figure(folder, "prediction-lines", lambda: plots.line_predictions(panels, UNIT))]


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
        stop rule asked the ``least_error`` that every line would leave, and the ``image_error`` that is predicted of
        the image itself; the ``side_information_weight`` where the
        design was informed by an earlier scan or by training scans; energy of the innovation
        ``predicted``, ``found`` and their ``running_ratio``; then the fields of a decision that are columns by
        themselves (`design.decision.columns`). Empty where a rule predicts nothing.
    """
    trace, energies, gains = account.trace, account.innovations, account.gains
    at_most = "" if score_is_information(trace) else "at_most_"
    gain, total = (f"{at_most}nats", f"{at_most}total_nats") if at_most else ("gain_nats", "total_nats")
    rows: Rows = [
        {
            "lines": len(trace.start) + index,
            "line": step.line,
            "ky": step.line - trace.n_lines // 2,
            "score": _known(step.choice.score),
            gain: _known(gains[index]),
            total: _known(np.nansum(gains[: index + 1]) if np.isfinite(gains[index]) else np.nan),
            **_forecast_columns(trace, step.forecast),
            "predicted": _known(energies.predicted[index]) if energies else None,
            "found": _known(energies.measured[index]) if energies else None,
            "running_ratio": _known(energies.running_ratio[index]) if energies else None,
            **_recorded(step),
        }
        for index, step in enumerate(trace.steps)
    ]
    end = trace.forecast(len(trace.lines))
    if rows and end is not None:
        last = {"lines": len(trace.lines), **_forecast_columns(trace, end), **_recorded(end)}
        rows.append(dict.fromkeys(rows[0]) | last)
    return rows


def _forecast_columns(trace: DesignTrace, forecast: Forecast) -> dict[str, object]:
    """The error that is predicted before a decision, and what the design looks at only now and then, if it does."""
    every = [step.forecast for step in trace.steps]
    end = trace.forecast(len(trace.lines))
    looked = {
        "least_error": every,
        "image_error": every if end is None else [*every, end],
        "side_information_weight": every,
    }
    found: dict[str, object] = {"predicted_error": _known(forecast.predicted_error)}
    for name, forecasts in looked.items():
        if any(np.isfinite(getattr(one, name)) for one in forecasts):
            found[name] = _known(getattr(forecast, name))
    return found


def score_rows(trace: DesignTrace) -> list[dict[str, object]]:
    """The score of every line at every step, for scores.csv: a row per step, a column per ky; none without scores."""
    names = [f"ky={k}" for k in np.arange(trace.n_lines) - trace.n_lines // 2]
    return [
        {"lines": count, "line": step.line, **dict(zip(names, map(_known, step.choice.scores), strict=True))}
        for count, step in enumerate(trace.steps, len(trace.start))
        if step.choice.scores is not None
    ]


def _recorded(record: DesignStep | Forecast) -> dict[str, object]:
    return {name: _known(value) if isinstance(value, float) else value for name, value in columns(record).items()}


def _known(value: float | np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None


_EXPLAINED = (
    "The design step by step: the slider or its arrow keys move; the newest line is coloured, the curve below has its "
    "score. Images are those at which predictions were checked and, at the end, that of the run, all on one scale."
)


def step_explorer(account: DesignAccount, unit: str, known: KnownScan, last: NamedImage) -> StepExplorer:
    """The steps of a design of lines, with the images that its predictions were checked by.

    Parameters
    ----------
    account : DesignAccount
        The design, and its checks.
    unit : str
        Name of the scores.
    known : KnownScan
        The slice, with the reference that errors are measured against.
    last : NamedImage
        Of all lines, in the input's units.
    """
    trace = account.trace
    steps = [
        {"line": step.line, "scores": None if step.choice.scores is None else np.asarray(step.choice.scores)}
        for step in trace.steps
    ]
    return StepExplorer(trace.n_lines, trace.start, steps, unit, _images(account, known, last), _EXPLAINED)


def _images(account: DesignAccount, known: KnownScan, last: NamedImage) -> Rows:
    """Pictures on one scale for all steps, each with its error as the design predicted it, and as it was found."""
    trace, unit, reference, layout = account.trace, known.image_unit, known.shown_reference, known.data.orientation
    shown: list[tuple[int, Array, NDArray[np.floating] | None, RelativeError]] = []
    for check in account.checks:
        if check.mean is None or check.deviation is None or check.n_measured == len(trace.lines):
            continue
        mean, found = np.asarray(check.mean * unit), None
        if reference is not None and check.of_one_image:
            found = known.found_error(mean, trace.lines[: check.n_measured])
        shown.append((check.n_measured, mean, check.deviation * unit, RelativeError(check.predicted_error, found)))
    made = last.reconstruction
    shown.append((len(trace.lines), made.image, made.std, last.error))
    bright = object_top([np.abs(made.image)])
    wrong = scale_top([next((std for _, _, std, _ in shown if std is not None), np.abs(made.image))])

    def coloured(pixels: NDArray[np.floating] | None) -> bytes:
        return b"" if pixels is None else plots.pixels_png(pixels, wrong, layout, error=True)

    return [
        {
            "count": count,
            "mean": plots.pixels_png(np.abs(image), bright, layout),
            "deviation": coloured(std),
            "difference": coloured(None if reference is None else np.abs(image - reference)),
            "error": str(error),
        }
        for count, image, std, error in shown
    ]


def _plane_sections(folder: RunFolder, account: DesignAccount, plane: PlaneReadouts) -> list[Section]:
    trace = account.trace
    blocks = [step for step in trace.steps if step.choice.pending == 0]  # those that have scores and a forecast
    caption = "The mask as it grew, DC in the middle; in colour what was added since the panel before."
    counts = _counts_shown(trace, 6)
    shown = [_figure(folder, "mask-growth", lambda: plots.plane_growth(trace.lines, plane.grid, counts), caption)]
    scored = [(number, step.choice.scores) for number, step in enumerate(blocks, 1) if step.choice.scores is not None]
    if scored:
        maps = {f"block {number}": scores.reshape(plane.grid) for number, scores in _first_middle_last(scored)}
        caption = "Score of every sample at the first, a middle and the last block; measured samples are blank."
        shown.append(_figure(folder, "scores", lambda: plots.plane_maps(maps, f"score of {trace.strategy}"), caption))
    rows = _block_rows(account)
    if rows:
        folder.write_table("blocks.csv", rows)
    judged: Blocks = []
    if account.predicted_errors:
        judged = _errors(folder, account, "sample", "block of samples")
        drawn = [row for row in rows if row["predicted"] is not None and row["found"] is not None]
        if drawn:
            before = [int(str(row["samples"])) for row in drawn]
            curves = {name: [float(str(row[name])) for row in drawn] for name in ("predicted", "found")}
            caption = "What the samples of each block held that the image so far did not show, predicted and found."
            mean = "mean energy of an innovation"
            judged.append(_figure(folder, "innovations", lambda: plots.block_course(before, curves, mean), caption))
    return [Section("Design", shown), *([Section("Was the prediction right?", judged)] if judged else [])]


def _block_rows(account: DesignAccount) -> Rows:
    """One row per block: samples before, samples chosen, what was predicted of them and found, what it took.

    Where the design was informed by an earlier scan, also its weight (``side_information_weight``).
    """
    trace, energies = account.trace, account.innovations
    begins = [i for i, step in enumerate(trace.steps) if step.choice.pending == 0]
    rows: Rows = []
    for begin, end in pairwise([*begins, len(trace.steps)]):
        first = trace.steps[begin]
        expected = first.forecast.expected is not None and energies is not None
        predicted = float(np.mean(energies.predicted[begin:end])) if expected and energies else float("nan")
        found = float(np.mean([step.outcome.actual_energy for step in trace.steps[begin:end]]))
        rows.append(
            {
                "samples": len(trace.start) + begin,
                "chosen": end - begin,
                **_forecast_columns(trace, first.forecast),
                "predicted": _known(predicted),
                "found": _known(found),
                **_recorded(first),
            }
        )
    return rows


def _shot_figures(folder: RunFolder, trace: DesignTrace, shots: ShotReadouts) -> Blocks:
    lines, unit, first = list(trace.lines), shots.unit, len(trace.start)
    grown = {count_text(count, unit): shots.shots[lines[:count]] for count in _counts_shown(trace, 4)}
    about = "Panels go from the start of the design to its end. " + (
        _HONESTLY if trace.steps and shots.name == "spiral" and score_is_information(trace) else ""
    )
    blocks: Blocks = [
        curves_figure(folder, "trajectory", grown, shots.grid, unit, f"the first {unit} of the start", about)
    ]
    scored = [(first + i, step.choice.scores) for i, step in enumerate(trace.steps) if step.choice.scores is not None]
    if scored and shots.angles is not None:
        unit_of_scores, meant = ("nats", ", twice its information in nats") if score_is_information(trace) else ("", "")
        shown = {f"{count_text(count, unit)} measured": (count, s) for count, s in _first_middle_last(scored)}
        scores = {title: np.asarray(s) for title, (_, s) in shown.items()}
        flags = {title: trace.mask(count) for title, (count, _) in shown.items()}
        angles = np.array(shots.angles)
        caption = f"Score of every angle by {trace.strategy}{meant}; ticks below are the angles measured before."
        blocks.append(
            _figure(folder, "scores", lambda: plots.angle_scores(angles, scores, flags, unit_of_scores), caption)
        )
    points = shots.shots[lines].reshape(-1, 2)
    blocks.append(point_spread_figure(folder, count_text(len(lines), unit), points, shots.grid, f"the chosen {unit}s"))
    return blocks


def save_trajectory(folder: RunFolder, trace: DesignTrace, known: KnownScan, shots: ShotReadouts) -> None:
    """Write trajectory.npz: the chosen shots as a scan, in the coils and units of the input.

    Coils that were combined into fewer stay white, in units of the noise.
    """
    lines, scan, model = list(trace.lines), known.scan, known.slice_model
    samples, mixing, unit = model.kspace[:, lines], scan.mixing, known.image_unit
    if mixing is None or mixing.shape[0] == mixing.shape[1]:
        arrays = {
            name: value[0] if name in ("kspace", "coil_maps") else value  # type: ignore[index]
            for name, value in scan.as_read(samples, model.maps, float(model.noise_variance)).items()
        }
    else:
        unit = scan.unit
        arrays = {"kspace": samples, "noise_variance": model.noise_variance}
        arrays |= {} if model.maps is None else {"coil_maps": model.maps}
    if known.reference is not None:
        arrays["reference"] = np.asarray(known.reference * unit, dtype=np.complex64)
    arrays |= {"trajectory": shots.shots[lines], "matrix": np.array(shots.grid)}
    folder.write_archive("trajectory.npz", arrays)


def _counts_shown(trace: DesignTrace, panels: int) -> list[int]:
    """Numbers of candidates, from the start to the end of the design, at which a picture is drawn."""
    counts = np.linspace(len(trace.start), len(trace.lines), panels)
    return sorted({round(count) for count in counts if count >= 1})


def _first_middle_last(things: Sequence[T]) -> list[T]:
    return [things[i] for i in sorted({0, len(things) // 2, len(things) - 1})]


def save_acquisition(folder: RunFolder, made: Acquisition | None, recipe: Recipe) -> list[Section]:
    """Write acquisition.csv and its figure where lines are measured in another order or in trains; else nothing."""
    if made is None:
        folder.remove(ACQUISITION)
        return []
    unit, grid, size = made.readouts.unit, made.readouts.grid, made.readouts.size
    placed = [
        (number, echo, line) for number, train in enumerate(made.trains) for echo, line in enumerate(train, start=1)
    ]
    rows: Rows = [
        {"order": order, "train": number, "echo": echo, unit: line, **_place(made.readouts, line)}
        for order, (number, echo, line) in enumerate(placed)
    ]
    folder.write_table(ACQUISITION, rows)
    if isinstance(made.readouts, PlaneReadouts):
        caption = "When every sample is measured: its train and its echo, or its place in the order; DC in the middle."
        trains = {line: number + 1 for number, _, line in placed}
        places = {"train": trains, "echo": {line: echo for _, echo, line in placed}}
        places = {"order": trains} if len(made.trains) == len(made.lines) else places
        picture = _figure(folder, "acquisition", lambda: plots.plane_order(places, grid), caption)
    else:
        caption, axis = f"The same {unit}s in the order in which they are to be measured, train after train.", _ORDER
        picture = _figure(folder, "acquisition", lambda: plots.acquisition_order(made.lines, size, axis=axis), caption)
    facts = f"Order: {recipe.design.order}. Largest jump between consecutive {unit}s: {made.largest_jump:.4g}."
    if recipe.design.echoes > 1:
        longest, shortest = (f(len(train) for train in made.trains) for f in (max, min))
        echoes = f"{longest}" if longest == shortest else f"{shortest} to {longest}"
        facts += f" {len(made.trains)} echo trains of {echoes} {unit}s; echo {made.dc_echo} measures DC."
        if isinstance(made.readouts, PlaneReadouts):
            facts += f" The median jump within a train is {made.typical_jump:.3g}."
    return [Section("Acquisition order", [Paragraph(f"{facts} {ACQUISITION} lists them."), picture])]

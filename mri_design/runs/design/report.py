"""Report of a design: what was chosen when, the image with its error bars, and how right the predictions were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignStep, DesignTrace, Forecast, columns
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import RelativeError
from mri_design.evaluation.page import (
    Block,
    Explorer,
    FirstScreen,
    Paragraph,
    ReportTable,
    Section,
    saved_figure,
    sentence,
)
from mri_design.evaluation.pictures import Drawing
from mri_design.evaluation.predictions import WINDOW, DesignAccount, score_is_information
from mri_design.evaluation.run_folder import CHECKPOINT, STATE, RunFolder
from mri_design.experiment.extent import mostly_calibration, what_was_missed
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.sources import slices_text
from mri_design.experiment.strategies import ORACLES, explained, strategy_label
from mri_design.kinds import KINDS, count_text
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from mri_design.runs import image_sections
from mri_design.runs.design.companions import contradicted, final_weight, weight_in_words
from mri_design.runs.design.run import DesignInput, DesignRequest, DesignResult, design_scan
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.provenance import simulated_from, simulation_summary
from mri_design.runs.reference_slices import ORACLE_NOTE
from mri_design.runs.store import Ending, Report, Run, carry_out
from mri_design.runs.stored_run import shown_settings
from mri_design.runs.work import Keep

T = TypeVar("T")
Blocks = list[Block]
Rows = list[dict[str, object]]
UNIT = "noise variances"
MOST_NUMBERS = 60_000
"""Scores that a page holds at most; of longer designs every second step has them, or every third, and so on."""
ACQUISITION, _ORDER = "acquisition.csv", "line number in the order of measurement"


def run_design_of(request: DesignRequest, run: Run) -> Ending:
    """Design, reconstruct and report in a run's folder; see `carry_out`."""

    def compute(keep: Keep) -> DesignResult:
        return design_scan(DesignInput.read(request, run), request, run, keep)

    return carry_out(run, request.record(run), compute, report_design, checkpoint=CHECKPOINT, resumed="design")


def report_design(
    folder: RunFolder,
    result: DesignResult,
    more: Sequence[Section] = (),
    beside: Mapping[str, object] | None = None,
    *,
    extensible: bool = True,
) -> Report:
    """Write everything about a design into the run's folder.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    result : DesignResult
        From `design_scan`, or `concluded`.
    more : sequence of Section
        Further sections of the page.
    beside : mapping of str to object, optional
        Further rows of the manifest's settings and of the page's table.
    extensible : bool
        Whether a later run may go on from it to more lines: not from what a scanner measured line by line.
    """
    recipe, trace, known = result.request.recipe, result.trace, result.known
    candidates = known.slice_model.candidates
    name, start, n_lines = recipe.design.strategy, len(trace.start), candidates.size
    about_design = save_design(folder, result.account, candidates, known.slice_model.noise_variance)
    shots = isinstance(candidates, ShotReadouts)
    if isinstance(candidates, ShotReadouts):
        save_trajectory(folder, trace, known, candidates)
    elif candidates.name == "lines" and folder.reported:
        steps = step_explorer(result.account, known, result.images[0])
        about_design[0] = replace(about_design[0], blocks=[steps, *about_design[0].blocks])
    images = image_sections.save_reconstruction(folder, known, result.images, trace.lines)
    acquisition = save_acquisition(folder, result.acquisition, recipe)
    sections = [*images[:1], *about_design[:1], *acquisition, *about_design[1:], *more, *images[1:]]
    account = result.images[0].reconstruction.account() | dict(beside or {})
    weight, unit, many = final_weight(trace), candidates.unit, len(result.numbers) > 1
    words, side_information = weight_in_words(weight, unit), dict[str, str]()
    if result.steered_by:
        side_information = {"earlier scan": f"{result.steered_by}, {contradicted(trace, unit) or words}"}
    elif np.isfinite(weight):
        side_information = {"training scans": words}
    ended = {"ended": result.ended} if result.ended else {}
    facts = {
        "start": start,
        **({"positions_without_signal": result.noise_only} if result.noise_only else {}),
        **({"slices_of_mask": sorted(result.numbers)} if many else {}),
        **{f"weight_of_{whose.replace(' ', '_')}": weight for whose in side_information},
        **ended,
        **({"reconstructed_under": result.model} if result.model else {}),
        **known.settings(),
        **result.images[0].error.settings,
        **shown_settings(result.known, result.images[0]),
        **image_sections.account_settings(account),
    }
    summary = {
        f"{unit}s": f"{len(trace.lines)} of {n_lines}",
        "acceleration": n_lines / len(trace.lines) if not shots else known.acceleration(trace.lines),
        f"start {unit}s": start,
        "calibration": mostly_calibration(known.scan.calibration_lines, len(trace.lines), candidates),
        "strategy": strategy_label(name) + (ORACLE_NOTE if name in ORACLES else ""),
        **side_information,
        "slices": sentence("slices_of_mask", slices_text(result.numbers), result.numbers[0]) if many else "",
        **ended,
        **simulation_summary([simulated_from(known.data)]),
        **({"model of the image": result.model} if result.model else {}),
        **known.summary(),
        **account,
        "multiplications with A": sum(step.cost.matvecs for step in trace.steps),
    }
    summary = {label: value for label, value in summary.items() if value != ""}
    kind = f"{candidates.unit.capitalize()} design"
    title = f"{'Oracle, not a design' if name in ORACLES else kind}: {known.data.name}"
    if extensible and result.request.strategy.needs_posterior and not shots:  # shots are drawn anew as a whole
        folder.rename(CHECKPOINT, STATE)
    return Report(
        ending=result.ending,
        title=title,
        first=lambda: _first_screen(result),
        summary=summary,
        sections=sections,
        found=facts,
        done=[CHECKPOINT],
    )


def _first_screen(result: DesignResult) -> FirstScreen:
    """What came out, where it is from, and how large it is."""
    known, trace, name, stop = result.known, result.trace, result.request.recipe.design.strategy, result.request.stop
    readouts, target = known.slice_model.candidates, ""
    if stop is not None:  # how the design stands to the rule that could end it
        reached = trace.declined is not None or (trace.closing is not None and stop(trace.closing))
        missed = not reached or what_was_missed(trace, stop, readouts.unit)
        target = "missed" if missed else "met" if trace.steps else "met at the start"
    verdict = sentence(
        "design_verdict",
        image_sections.measured_text(readouts, len(trace.lines)),
        result.images[0].error,
        target=target,
        ended=result.ended,
        unit=readouts.unit,
        oracle=name in ORACLES,
        remark=result.ended or mostly_calibration(known.scan.calibration_lines, len(trace.lines), readouts),
    )
    words = {strategy_label(name): f"{readouts.unit}s {explained(name)}"} if explained(name) else {}
    mask, acceleration = trace.mask().reshape(readouts.shape), known.acceleration(trace.lines)
    return image_sections.image_screen(known, verdict, mask, result.images[0].reconstruction, acceleration, words)


def save_design(folder: RunFolder, account: DesignAccount, candidates: Readouts, noise: float) -> list[Section]:
    """Write what was chosen, the mask, and a design's tables; return the report's sections about it, if there is one.

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
    trace, checks = account.trace, account.checks
    tables = {
        f"{KINDS[candidates.name].counted}.csv": _chosen_rows(trace, candidates),
        "prediction.csv": [check.as_row() for check in checks],
    }
    if isinstance(candidates, PlaneReadouts):
        tables["blocks.csv"] = _block_rows(account)
    elif not isinstance(candidates, ShotReadouts):
        tables |= {"steps.csv": step_rows(account), "scores.csv": score_rows(trace)}
        tables["prediction-lines.csv"] = [
            {
                "lines": check.n_measured,
                "line": line,
                "ky": line - trace.n_lines // 2,
                "measured": bool(check.acquired[line]),
                "predicted": float(check.predicted[line]),
                "actual": float(check.actual[line]) if check.known[line] else None,
            }
            for check in checks
            for line in range(trace.n_lines)
        ]
    for name, rows in tables.items():
        if rows:
            folder.write_table(name, rows)
    folder.write_mask(trace.mask().reshape(candidates.shape))
    if not folder.reported:
        return []
    if isinstance(candidates, PlaneReadouts):
        blocks = _plane_blocks(folder, account, candidates, tables["blocks.csv"])
    elif isinstance(candidates, ShotReadouts):
        blocks = {"Design": _shot_blocks(folder, trace, candidates)}
    else:
        blocks = _line_blocks(folder, account, noise)
    return [Section(title, shown) for title, shown in blocks.items() if shown]


def _chosen_rows(trace: DesignTrace, candidates: Readouts) -> Rows:
    """Rows of lines.csv, samples.csv or shots.csv: the order of choice, places in k-space, and scores of choices."""
    rows, block, looked = Rows(), 0, any(np.isfinite(step.forecast.image_error) for step in trace.steps)
    gain = "at_most_nats" if trace.steps and not score_is_information(trace) else "information_nats"
    angles = getattr(candidates, "angles", None)
    steps: list[DesignStep | None] = [None] * len(trace.start)
    for order, (number, step) in enumerate(zip(trace.lines, [*steps, *trace.steps], strict=True)):
        block += step is not None and step.choice.pending == 0
        row: dict[str, object] = {"order": order, "shot": number}
        if isinstance(candidates, LineReadouts | PlaneReadouts):
            row = {"order": order, candidates.unit: number, **_place(candidates, number)}
            score = None if step is None or step.choice.scores is None else step.choice.score
            row |= {"block": block} if candidates.thinned else {"score": score}
        else:
            row |= {"angle_degrees": None if angles is None else float(np.degrees(angles[number])), gain: None}
            if step is not None:
                energies = {"predicted": step.outcome.predicted_energy, "found": step.outcome.actual_energy}
                row |= _known({gain: step.forecast.information, **energies})
                row |= {"converged": step.cost.converged, "matvecs": step.cost.matvecs}
                row |= _known({"image_error": step.forecast.image_error}) if looked else {}
        rows.append(row)
    return rows


def _place(candidates: Readouts, number: int) -> dict[str, object]:
    """Where in k-space a line or a sample lies, as columns of a table."""
    return dict(zip(("ky", "kz"), candidates.frequencies[number].tolist(), strict=False))


def _line_blocks(folder: RunFolder, account: DesignAccount, noise: float) -> dict[str, Blocks]:
    """What the report shows of a design of lines, by the titles of its sections."""
    trace, first, energies = account.trace, len(account.trace.start), account.innovations
    lines, size, order, unit = trace.lines, trace.n_lines, first + 1, _score_unit(trace)
    grown: Blocks = [
        image_sections.mask_figure(folder, trace.strategy, trace.mask()),
        saved_figure(folder, "mask-growth", lambda: plots.mask_growth(lines, size, first), kind="lines"),
        saved_figure(folder, "order", lambda: plots.acquisition_order(lines, size, first)),
    ]
    scored = [step for step in trace.steps if step.choice.scores is not None]
    if scored:
        scores, chosen, last = np.array([s.choice.scores for s in scored]), [s.line for s in scored], len(scored) - 1
        at = sorted({0, last // 4, last // 2, last})
        grown += [
            saved_figure(folder, "scores", lambda: plots.score_map(scores, chosen, unit, order), kind="lines"),
            saved_figure(folder, "score-profiles", lambda: plots.score_profiles(scores, chosen, at, unit, order)),
        ]
    gains, learned = account.gains[np.isfinite(account.gains)].tolist(), Blocks()
    if gains:
        so_far, exact = np.cumsum(gains), score_is_information(trace)
        total = float(np.sum(gains))
        half = np.searchsorted(so_far, total / 2) + 1
        in_nats = "nats" if exact else "nats, at most"
        learned = [
            Paragraph(sentence("information_text", gains, total, total / np.log(2), half, exact)),
            saved_figure(folder, "information", lambda: plots.information_gained(gains, order, in_nats)),
        ]
    judged: Blocks = []
    if energies is not None and energies.known.sum() > 1:
        known, places = energies.known, np.flatnonzero(energies.known) + order
        predicted, measured, scaled = (
            part[known] / noise for part in (energies.predicted, energies.measured, energies.noise)
        )
        alone = scaled if np.isfinite(scaled).all() else None
        ratio, ky = energies.running_ratio[known], np.array([s.line for s in trace.steps])[known] - size // 2

        def course() -> Drawing:
            return plots.innovation_course(places, predicted, measured, ratio, alone, UNIT)

        judged = [
            Paragraph(sentence("innovations_text", known.sum(), len(known), energies.ratio)),
            saved_figure(folder, "innovations", course, kind="lines", window=WINDOW),
            saved_figure(folder, "calibration", lambda: plots.calibration(predicted, measured, ky, UNIT)),
        ]
    if account.checks:
        panels = {
            sentence("prediction_panel", one): (one.predicted / noise, one.actual / noise, one.acquired)
            for one in _first_middle_last(account.checks)
        }
        judged.append(saved_figure(folder, "prediction-lines", lambda: plots.line_predictions(panels, UNIT)))
    return {
        "Design": grown,
        "What was learned": [*learned, *_errors(folder, account, "line")],
        "Was the prediction right?": judged,
    }


def _score_unit(trace: DesignTrace) -> str:
    """Name of the scores of a design's strategy."""
    if score_is_information(trace):
        return "score, log det(I + X A\u207b\u00b9 X\u1d34)"
    return f"score of {trace.strategy}"


def _errors(folder: RunFolder, account: DesignAccount, unit: str) -> Blocks:
    """The error that was predicted along a run, beside the actual one where it was looked up."""
    known, checks = account.predicted_errors, account.checks
    if not known:
        return []
    counts, errors = zip(*known, strict=True)
    of_all, looked = all(check.known.all() for check in checks), [check.n_measured for check in checks]
    predicted, actual = ([check.compared[which] for check in checks] for which in (0, 1))
    part = f"{'all' if of_all else 'unmeasured'} {unit}s"

    def drawn() -> Drawing:
        return plots.error_course(counts, errors, looked, predicted, actual, part, unit)

    tables = {"prediction_table": [check.as_row() for check in checks], "prediction_shares": account.fractions}
    return [
        saved_figure(folder, "predicted-error", drawn, unit=unit, of_all=of_all),
        *(ReportTable(rows, sentence(name, unit)) for name, rows in tables.items() if rows),
    ]


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
        themselves (`design.trace.columns`). Empty where a rule predicts nothing.
    """
    trace, energies, gains = account.trace, account.innovations, account.gains
    gain, total = ("gain_nats", "total_nats") if score_is_information(trace) else ("at_most_nats", "at_most_total_nats")
    unknown = np.full(len(trace.steps), np.nan)
    rows = [
        {
            "lines": len(trace.start) + index,
            "line": step.line,
            "ky": step.line - trace.n_lines // 2,
            "score": step.choice.score,
            gain: gains[index],
            total: np.nansum(gains[: index + 1]) if np.isfinite(gains[index]) else np.nan,
            **_forecast_columns(trace, step.forecast),
            "predicted": (energies.predicted if energies else unknown)[index],
            "found": (energies.measured if energies else unknown)[index],
            "running_ratio": (energies.running_ratio if energies else unknown)[index],
            **columns(step),
        }
        for index, step in enumerate(trace.steps)
    ]
    end = trace.forecast(len(trace.lines))
    if rows and end is not None:
        last = {"lines": len(trace.lines), **_forecast_columns(trace, end), **columns(end)}
        rows.append(dict.fromkeys(rows[0]) | last)
    return [_known(row) for row in rows]


def _forecast_columns(trace: DesignTrace, forecast: Forecast) -> dict[str, object]:
    """The error that is predicted before a decision, and what the design looks at only now and then, if it does."""
    every, end = [step.forecast for step in trace.steps], trace.forecast(len(trace.lines))
    every += [] if end is None else [end]
    looked = ("least_error", "image_error", "side_information_weight")
    names = [name for name in looked if any(np.isfinite(getattr(one, name)) for one in every)]
    return {name: getattr(forecast, name) for name in ("predicted_error", *names)}


def score_rows(trace: DesignTrace) -> list[dict[str, object]]:
    """The score of every line at every step, for scores.csv: a row per step, a column per ky; none without scores."""
    names = [f"ky={k}" for k in np.arange(trace.n_lines) - trace.n_lines // 2]
    return [
        {"lines": count, "line": step.line, **_known(dict(zip(names, step.choice.scores, strict=True)))}
        for count, step in enumerate(trace.steps, len(trace.start))
        if step.choice.scores is not None
    ]


def _known(row: Mapping[str, object]) -> dict[str, object]:
    """The row with None for what is not a finite number."""
    numbers = {name: float(value) for name, value in row.items() if isinstance(value, float | np.floating)}
    return {**row, **{name: value if np.isfinite(value) else None for name, value in numbers.items()}}


def step_explorer(account: DesignAccount, known: KnownSlice, last: NamedImage) -> Explorer:
    """The steps of a design of lines, with the images that its predictions were checked by.

    Parameters
    ----------
    account : DesignAccount
        The design, and its checks.
    known : KnownSlice
        The slice, with the reference that errors are measured against.
    last : NamedImage
        Of all lines, in the input's units.
    """
    trace = account.trace
    every = -(-len(trace.steps) * trace.n_lines // MOST_NUMBERS) or 1
    steps = [
        {"line": step.line, "scores": step.choice.scores if number % every == 0 else None}
        for number, step in enumerate(trace.steps)
    ]
    content = {"lines": trace.n_lines, "start": trace.start, "unit": _score_unit(trace), "steps": steps}
    return Explorer("steps", {**content, "images": _images(account, known, last)}, sentence("step_explorer"))


def _images(account: DesignAccount, known: KnownSlice, last: NamedImage) -> Rows:
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
    bright = plots.object_top([np.abs(made.image)])
    wrong = plots.scale_top([next((std for _, _, std, _ in shown if std is not None), np.abs(made.image))])

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


def _plane_blocks(folder: RunFolder, account: DesignAccount, plane: PlaneReadouts, rows: Rows) -> dict[str, Blocks]:
    """What the report shows of a design of a plane, by the titles of its sections."""
    trace, counts = account.trace, _counts_shown(account.trace, 6)
    grown: Blocks = [
        saved_figure(folder, "mask-growth", lambda: plots.plane_growth(trace.lines, plane.grid, counts), kind="plane")
    ]
    blocks = [step.choice.scores for step in trace.steps if step.choice.pending == 0]  # those that have scores
    scored = [(number, scores) for number, scores in enumerate(blocks, 1) if scores is not None]
    if scored:
        maps = {f"block {number}": scores.reshape(plane.grid) for number, scores in _first_middle_last(scored)}
        unit = f"score of {trace.strategy}"
        grown.append(saved_figure(folder, "scores", lambda: plots.plane_maps(maps, unit), kind="plane"))
    judged = _errors(folder, account, "sample")
    drawn = [row for row in rows if row["predicted"] is not None and row["found"] is not None]
    if judged and drawn:
        before = [int(str(row["samples"])) for row in drawn]
        curves = {name: [float(str(row[name])) for row in drawn] for name in ("predicted", "found")}
        mean = "mean energy of an innovation"
        judged.append(
            saved_figure(folder, "innovations", lambda: plots.block_course(before, curves, mean), kind="plane")
        )
    return {"Design": grown, "Was the prediction right?": judged}


def _block_rows(account: DesignAccount) -> Rows:
    """One row per block: samples before, samples chosen, what was predicted of them and found, what it took.

    Where the design was informed by an earlier scan, also its weight (``side_information_weight``).
    """
    trace, energies = account.trace, account.innovations
    begins = [i for i, step in enumerate(trace.steps) if step.choice.pending == 0]
    rows: Rows = []
    for begin, end in pairwise([*begins, len(trace.steps)]):
        first = trace.steps[begin]
        expected = energies is not None and first.forecast.expected is not None
        row = {
            "samples": len(trace.start) + begin,
            "chosen": end - begin,
            **_forecast_columns(trace, first.forecast),
            "predicted": np.mean(energies.predicted[begin:end]) if energies and expected else None,
            "found": np.mean([step.outcome.actual_energy for step in trace.steps[begin:end]]),
            **columns(first),
        }
        rows.append(_known(row))
    return rows


def _shot_blocks(folder: RunFolder, trace: DesignTrace, shots: ShotReadouts) -> Blocks:
    """What the report shows of a design of shots."""
    lines, unit, first, informed = list(trace.lines), shots.unit, len(trace.start), score_is_information(trace)
    grown = {count_text(count, unit): shots.shots[lines[:count]] for count in _counts_shown(trace, 4)}
    thick = f"the first {unit} of the start"
    about = sentence("about_shots", shots.name, bool(trace.steps) and informed)
    curves = sentence("trajectory", unit, thick, about)
    blocks: Blocks = [
        saved_figure(folder, "trajectory", lambda: plots.trajectory_curves(grown, shots.grid, thick), curves)
    ]
    scored = [(first + i, step.choice.scores) for i, step in enumerate(trace.steps) if step.choice.scores is not None]
    if scored and shots.angles is not None:
        shown = {f"{count_text(count, unit)} measured": (count, s) for count, s in _first_middle_last(scored)}
        scores = {title: np.asarray(s) for title, (_, s) in shown.items()}
        flags = {title: trace.mask(count) for title, (count, _) in shown.items()}
        angles, nats = np.array(shots.angles), "nats" if informed else ""
        caption = sentence("angle_scores", trace.strategy, informed)
        blocks.append(saved_figure(folder, "scores", lambda: plots.angle_scores(angles, scores, flags, nats), caption))
    points = shots.shots[lines].reshape(-1, 2)
    blocks.append(
        image_sections.point_spread_figure(
            folder, count_text(len(lines), unit), points, shots.grid, f"the chosen {unit}s"
        )
    )
    return blocks


def save_trajectory(folder: RunFolder, trace: DesignTrace, known: KnownSlice, shots: ShotReadouts) -> None:
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
    if not folder.reported:
        return []
    plane = isinstance(made.readouts, PlaneReadouts)
    trains = {line: number + 1 for number, _, line in placed}
    places = {"train": trains, "echo": {line: echo for _, echo, line in placed}}
    places = {"order": trains} if len(made.trains) == len(made.lines) else places

    def drawn() -> Drawing:
        return plots.plane_order(places, grid) if plane else plots.acquisition_order(made.lines, size, axis=_ORDER)

    facts = sentence("acquisition_text", recipe.design, made, plane, ACQUISITION)
    return [
        Section("Acquisition order", [Paragraph(facts), saved_figure(folder, "acquisition", drawn, unit=unit)]),
    ]

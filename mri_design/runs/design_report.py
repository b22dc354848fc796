"""Report of a design: what was chosen when, the image with its error bars, and how right the predictions were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.design.frames import Frame, arrays_of
from mri_design.design.trace import DesignStep, DesignTrace, Forecast
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import RelativeError
from mri_design.evaluation.page import Page
from mri_design.evaluation.plots.pictures import ImagePanel, object_top, scale_top
from mri_design.evaluation.predictions import WINDOW, DesignAccount, score_is_information
from mri_design.evaluation.run_folder import AMOUNT, CHECKPOINT, FRAMES, STATE, RunFolder
from mri_design.experiment.extent import Acquisition
from mri_design.experiment.inputs import slices_text
from mri_design.experiment.strategies import ORACLES, explained, strategy_label
from mri_design.kinds import count_text
from mri_design.operators.base import Array
from mri_design.readouts import Readouts
from mri_design.runs import image_sections
from mri_design.runs.companions import LITTLE, final_weight
from mri_design.runs.design import DesignResult, design_scan
from mri_design.runs.design_request import DesignRequest, read_input
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.provenance import account_of, mostly_calibration_words, phrase, simulated_from, simulation_summary
from mri_design.runs.region_report import region_facts
from mri_design.runs.store import Report, Run, carry_out
from mri_design.runs.stored_run import Stored

Rows = list[dict[str, object]]
UNIT = "noise variances"
MOST_NUMBERS = 60_000
"""Scores that a page holds at most; of longer designs every second step has them, or every third, and so on."""
ACQUISITION = "acquisition.csv"


def design_in_folder(request: DesignRequest, run: Run) -> Stored:
    """Design, reconstruct and report in a run's folder; see `carry_out`."""
    record, data = request.record(run), read_input(request, run)  # refused before it is known whose folder it is
    compute = partial(design_scan, request, run, data=data)
    return carry_out(run, record, compute, report_design, checkpoint=CHECKPOINT, resumed="design")


def report_design(
    folder: RunFolder,
    result: DesignResult,
    template: str = "design",
    extra: Mapping[str, object] | None = None,
    *,
    extensible: bool = True,
    **more: object,
) -> Report:
    """Write everything about a design into the run's folder.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    result : DesignResult
        From `design_scan`, or `concluded`.
    template : str
        Of the page, one that extends that of designs.
    extra : mapping of str to object, optional
        Further settings of the manifest, and rows of the page's table.
    extensible : bool
        Whether a later run may go on from it to more lines: not from what a scanner measured line by line.
    **more
        Further facts for the template.
    """
    trace, known, name = result.trace, result.known, result.request.recipe.design.strategy
    readouts, image = known.slice_model.candidates, result.images[0]
    shots = readouts.trajectory(list(trace.lines))
    stages = stages_of(result.in_phase, trace, known, image)
    facts = image_sections.image_facts(folder, known, result.images)
    facts |= design_facts(folder, result.account, readouts, known.slice_model.noise_variance)
    facts |= acquisition_facts(folder, result.acquisition)
    of_all = {0: (image.reconstruction, known.shown_reference), **result.around}
    facts |= region_facts(
        folder, result.regions, result.request.recipe.design.within, trace, readouts.kind.counted, of_all
    )
    if result.frames:
        folder.write_archive(FRAMES, arrays_of(result.frames))
    if shots is not None:
        save_trajectory(folder, trace, known, shots)
    account, weight = account_of(image.reconstruction) | dict(extra or {}), final_weight(trace)
    side, side_words = dict[str, str](), partial(phrase, template="design")
    if result.steered_by:
        words = side_words("overruled" if weight < LITTLE else "weight", weight, readouts.unit)
        side = {"earlier scan": f"{result.steered_by}, {words}"}
    elif np.isfinite(weight):
        side = {"training scans": side_words("weight", weight, readouts.unit)}
    planned = result.request.strategy.plans_ahead(readouts, known.slice_model.n_coils) and not np.isfinite(weight)
    calibration = known.scan.provenance.maps.calibration_lines
    facts |= {
        "result": result,
        "design": result.request.recipe.design,
        "strategy": strategy_label(name),
        "oracle": name in ORACLES,
        "meaning": explained(name),
        "planned": planned,
        "target": result.end.target,
        "mostly_centre": mostly_calibration_words(calibration, len(trace.lines), readouts),
        "acceleration": known.acceleration(trace.lines),
        "slices": slices_text(result.numbers) if len(result.numbers) > 1 else "",
        "steps": step_content(stages, known, trace, scored=not planned)
        if readouts.kind.with_holes and folder.reported
        else None,
        "course": course(stages, readouts, known.shown_reference) if len(stages) > 1 else [],
        "side_information": side,
        "summary": known.summary() | account,
        "simulated": simulation_summary([simulated_from(known.scan)]),
        **more,
    }
    found = {
        "start": len(trace.start),
        **({"positions_without_signal": result.noise_only} if result.noise_only else {}),
        **({"slices_of_mask": sorted(result.numbers)} if len(result.numbers) > 1 else {}),
        **{f"weight_of_{whose.replace(' ', '_')}": weight for whose in side},
        **({"ended": result.ended} if result.end.how else {}),
        **({"reconstructed_under": result.model} if result.model else {}),
        **known.settings(),
        **image.error.settings,
        **image_sections.account_settings(account),
    }
    if extensible and result.request.strategy.needs_posterior and shots is None:  # shots are drawn anew as a whole
        folder.rename(CHECKPOINT, STATE)
    page = Page(template, facts)
    return Report(result=result.stored(), page=page, found=found, done=[CHECKPOINT, AMOUNT])


def design_facts(folder: RunFolder, account: DesignAccount, readouts: Readouts, noise: float) -> dict[str, Any]:
    """Write what was chosen, the mask, and a design's tables; return what designs.html.j2 shows of them.

    Parameters
    ----------
    folder : RunFolder
        Where to: lines.csv, samples.csv or shots.csv, and mask.npy; steps.csv or blocks.csv, and where they are known
        scores.csv, prediction.csv and prediction-lines.csv.
    account : DesignAccount
        The design, with its predictions and their outcomes.
    readouts : Readouts
        Candidates that it chose from.
    noise : float
        Noise variance per real component; the unit of energies in figures.
    """
    trace, checks = account.trace, account.checks
    tables = {
        f"{readouts.kind.counted}.csv": chosen_rows(trace, readouts),
        "prediction.csv": [check.as_row() for check in checks],
    }
    if readouts.thinned:
        tables["blocks.csv"] = block_rows(account)
    elif readouts.kind.on_grid:
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
    folder.write_array("mask.npy", trace.mask().reshape(readouts.shape))
    predicted = [] if readouts.overlapping else list(zip(*account.predicted_errors, strict=True))
    shown = [checks[at] for at in sorted({0, len(checks) // 2, len(checks) - 1})] if checks else []
    return {
        "account": account,
        "trace": trace,
        "readouts": readouts,
        "unit": readouts.unit,
        "energy_unit": UNIT,
        "gains": account.gains[np.isfinite(account.gains) & (not readouts.thinned)],  # neighbours tell nearly the same
        "exact": score_is_information(trace),
        "predicted_errors": predicted,
        "checked": [[check.n_measured, *check.compared] for check in checks],
        "checks_of_all": all(check.known.all() for check in checks),
        "innovations": _innovations(account, readouts, noise),
        "line_checks": [(one, (one.predicted / noise, one.actual / noise, one.acquired)) for one in shown],
    }


def _innovations(account: DesignAccount, readouts: Readouts, noise: float) -> dict[str, Any]:
    """Energies of innovations in units of the noise, of every candidate or of blocks; empty where few are known."""
    energies, start = account.innovations, len(account.trace.start)
    if energies is None or energies.known.sum() < 2 or readouts.overlapping:
        return {}
    known = energies.known
    parts = [energies.predicted / noise, energies.measured / noise, energies.running_ratio, energies.noise / noise]
    parts = [part[known] for part in parts]
    places, lines = np.arange(len(known)) + start + 1, np.array([step.line for step in account.trace.steps])
    if readouts.thinned:
        blocks = np.cumsum([step.choice.pending == 0 for step in account.trace.steps])[known]
        numbers, first = np.unique(blocks, return_index=True)
        places = places[known][first]
        parts = [np.array([np.mean(part[blocks == one]) for one in numbers]) for part in parts]
    else:
        places = places[known]
    predicted, found, ratio, alone = parts
    return {
        "places": places,
        "predicted": predicted,
        "found": found,
        "ratio": ratio,
        "noise": alone if np.isfinite(alone).all() else None,
        "of_centre": np.linalg.norm(readouts.frequencies[lines[known]], axis=1),
        "window": WINDOW,
    }


def chosen_rows(trace: DesignTrace, readouts: Readouts) -> Rows:
    """Rows of lines.csv, samples.csv or shots.csv: the order of choice, places in k-space, and scores of choices."""
    rows, block, with_image = Rows(), 0, any(np.isfinite(step.forecast.image_error) for step in trace.steps)
    gain = "at_most_nats" if trace.steps and not score_is_information(trace) else "information_nats"
    steps: list[DesignStep | None] = [None] * len(trace.start)
    for order, (number, step) in enumerate(zip(trace.lines, [*steps, *trace.steps], strict=True)):
        block += step is not None and step.choice.pending == 0
        row: dict[str, object] = {"order": order, "shot": number}
        if readouts.kind.on_grid:
            row = {"order": order, readouts.unit: number, **_place(readouts, number)}
            score = None if step is None or step.choice.scores is None else step.choice.score
            row |= {"block": block} if readouts.thinned else {"score": score}
        else:
            angles = readouts.angles
            row |= {"angle_degrees": None if angles is None else float(np.degrees(angles[number])), gain: None}
            if step is not None:
                energies = {"predicted": step.predicted_energy, "found": step.actual_energy}
                row |= _known({gain: step.forecast.information, **energies})
                row |= {"converged": step.converged, "matvecs": step.matvecs}
                row |= _known({"image_error": step.forecast.image_error}) if with_image else {}
        rows.append(row)
    return rows


def _place(readouts: Readouts, number: int) -> dict[str, object]:
    """Where in k-space a line or a sample lies, as columns of a table."""
    return dict(zip(("ky", "kz"), readouts.frequencies[number].tolist(), strict=False))


def step_rows(account: DesignAccount) -> list[dict[str, object]]:
    """One row per decision, and one for the end where an error is predicted for it, for steps.csv.

    Returns
    -------
    list of dict
        ``lines`` measured before the decision; the chosen ``line`` and its ``ky``; its ``score``; ``gain_nats`` and the
        ``total_nats`` so far; ``predicted_error``, relative L2 over all lines of k-space, before the line, and where a
        stop rule needed it the ``least_error`` predicted after all lines, and the ``image_error`` that is predicted of
        the image itself; the ``side_information_weight`` where the
        design was informed by an earlier scan or by training scans; energy of the innovation
        ``predicted``, ``found`` and their ``running_ratio``; then ``image_energy``, ``converged``
        and ``matvecs``. Empty where a rule predicts nothing.
    """
    trace, energies, gains = account.trace, account.innovations, account.gains
    gain, total = ("gain_nats", "total_nats") if score_is_information(trace) else ("at_most_nats", "at_most_total_nats")
    parts = ("predicted", "measured", "running_ratio")
    found = np.array(
        [getattr(energies, part) for part in parts] if energies else np.full((3, len(trace.steps)), np.nan)
    )
    rows = [
        {
            "lines": len(trace.start) + index,
            "line": step.line,
            "ky": step.line - trace.n_lines // 2,
            "score": step.choice.score,
            gain: gains[index],
            total: np.nansum(gains[: index + 1]) if np.isfinite(gains[index]) else np.nan,
            **_forecast_columns(trace, step.forecast),
            **dict(zip(("predicted", "found", "running_ratio"), found[:, index], strict=True)),
            **_step_columns(step),
        }
        for index, step in enumerate(trace.steps)
    ]
    end = trace.forecast(len(trace.lines))
    if rows and end is not None:
        last = {"lines": len(trace.lines), **_forecast_columns(trace, end), "image_energy": end.image_energy}
        rows.append(dict.fromkeys(rows[0]) | last)
    return [_known(row) for row in rows]


def block_rows(account: DesignAccount) -> Rows:
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
            "found": np.mean([step.actual_energy for step in trace.steps[begin:end]]),
            **_step_columns(first),
        }
        rows.append(_known(row))
    return rows


def _step_columns(step: DesignStep) -> dict[str, object]:
    return {"image_energy": step.forecast.image_energy, "converged": step.converged, "matvecs": step.matvecs}


def _forecast_columns(trace: DesignTrace, forecast: Forecast) -> dict[str, object]:
    """The error that is predicted before a decision, and what the design looks at only now and then, if it does."""
    every, end = [step.forecast for step in trace.steps], trace.forecast(len(trace.lines))
    every += [] if end is None else [end]
    columns = ("least_error", "image_error", "side_information_weight")
    names = [name for name in columns if any(np.isfinite(getattr(one, name)) for one in every)]
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


@dataclass(frozen=True)
class Stage:
    """The image of a design at some number of lines.

    Parameters
    ----------
    count : int
        Lines behind it; samples of a plane, or shots.
    image : complex array, shape (ky, kx)
        In the input's units.
    deviation : float array, shape (ky, kx), optional
        Of each complex pixel.
    error : RelativeError
        As it was predicted, and as it was found.
    whole : bool
        Whether image and error bars are made as those of the run are.
    """

    count: int
    image: Array
    deviation: NDArray[np.floating] | None
    error: RelativeError
    whole: bool = False

    @property
    def magnitude(self) -> NDArray[np.floating]:
        """Of the image."""
        return np.abs(self.image)


def stages_of(frames: Sequence[Frame], trace: DesignTrace, known: KnownSlice, made: NamedImage) -> list[Stage]:
    """The images of a design from its first decision to its end.

    Parameters
    ----------
    frames : sequence of Frame
        Of its decisions.
    trace : DesignTrace
        All decisions.
    known : KnownSlice
        The slice, with the reference that errors are measured against.
    made : NamedImage
        The run's own image.
    """
    judged, stages = known.shown_reference is not None, list[Stage]()
    for one in frames:
        if (count := len(one.lines)) < len(trace.lines):
            predicted = one.predicted_error if np.isfinite(one.predicted_error) else None
            found = known.found_error(one.image, trace.lines[:count]) if judged else None
            stages.append(Stage(count, one.image, one.deviation, RelativeError(predicted, found), one.whole))
    return [
        *stages,
        Stage(len(trace.lines), made.reconstruction.image, made.reconstruction.std, made.error, whole=True),
    ]


STRIP, ENOUGH = 5, 3
"""Stages of the picture of a design's course, and how many whole images are enough for it."""


def course(stages: Sequence[Stage], readouts: Readouts, reference: Array | None) -> list[list[ImagePanel]]:
    """Rows of panels of some stages, their lines spread evenly: images, error bars, and errors where they are known.

    Whole images alone, where there are three.
    """
    known = [one for one in stages if one.deviation is not None]
    whole = [one for one in known if one.whole]
    known = whole if len(whole) >= ENOUGH else known
    if not known:
        return []
    counts = np.array([one.count for one in known])
    evenly = np.linspace(counts[0], counts[-1], STRIP)[:, np.newaxis]
    some = [known[place] for place in dict.fromkeys(np.abs(counts - evenly).argmin(axis=1).tolist())]
    share = 100 / object_top([stages[-1].magnitude])
    bars = [share * one.deviation for one in some if one.deviation is not None]
    wrong = [] if reference is None else [share * np.abs(one.image - reference) for one in some]
    wrong = [np.minimum(each, scale_top(bars)) for each in wrong]  # both on the scale of the error bars
    images = [
        ImagePanel(one.magnitude, count_text(one.count, readouts.unit), str(one.error).replace(", ", "\n"))
        for one in some
    ]
    others = [
        [ImagePanel(one, name, error=True) for one in row] for name, row in (("error bars", bars), ("error", wrong))
    ]
    return [images, *(row for row in others if row)]


def step_content(
    stages: Sequence[Stage], known: KnownSlice, trace: DesignTrace, *, scored: bool = True
) -> dict[str, Any]:
    """The steps of a design of lines for a slider, with its images on the way.

    Parameters
    ----------
    stages : sequence of Stage
        Of the design.
    known : KnownSlice
        The slice, with the reference that errors are measured against.
    trace : DesignTrace
        Every decision.
    scored : bool
        Whether scores are shown: those of the few lines of a planned mask say next to nothing.
    """
    every = -(-len(trace.steps) * trace.n_lines // MOST_NUMBERS) or 1
    scale, unit = 1.0, f"score of {trace.strategy}"
    if score_is_information(trace):
        unit += " (twice the nats)"
    elif any(step.forecast.expected is not None for step in trace.steps):  # they are energies
        scale, unit = 1 / known.slice_model.noise_variance, f"{unit} ({UNIT})"
    steps = [
        {"line": step.line, "scores": None if not scored or scores is None or number % every else scale * scores}
        for number, step in enumerate(trace.steps)
        for scores in (step.choice.scores,)
    ]
    reference, layout = known.shown_reference, known.scan.orientation
    bright = object_top([stages[-1].magnitude])
    known_widths = [one.deviation for one in stages if one.deviation is not None]
    wrong = scale_top([(known_widths or [stages[-1].magnitude])[-1]])  # the last one is on the first screen, too

    def coloured(pixels: NDArray[np.floating] | None) -> bytes:
        return b"" if pixels is None else plots.pixels_png(pixels, wrong, layout, error=True)

    images = [
        {
            "count": one.count,
            "mean": plots.pixels_png(one.magnitude, bright, layout),
            "deviation": coloured(one.deviation),
            "difference": coloured(None if reference is None else np.abs(one.image - reference)),
            "error": str(one.error),
        }
        for one in stages
    ]
    facts = {"lines": trace.n_lines, "start": trace.start, "unit": unit}
    return facts | {"scale": wrong / bright, "steps": steps, "images": images}


def save_trajectory(folder: RunFolder, trace: DesignTrace, known: KnownSlice, shots: NDArray[np.float64]) -> None:
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
    arrays |= {"trajectory": shots, "matrix": np.array(model.candidates.grid)}
    folder.write_archive("trajectory.npz", arrays)


def acquisition_facts(folder: RunFolder, made: Acquisition | None) -> dict[str, Any]:
    """Write acquisition.csv where lines have another order or trains; return what the page shows of it."""
    if made is None:
        folder.remove(ACQUISITION)
        return {"acquisition": None}
    placed = [
        (number, echo, line) for number, train in enumerate(made.trains) for echo, line in enumerate(train, start=1)
    ]
    rows: Rows = [
        {"order": order, "train": number, "echo": echo, made.readouts.unit: line, **_place(made.readouts, line)}
        for order, (number, echo, line) in enumerate(placed)
    ]
    folder.write_table(ACQUISITION, rows)
    return {"acquisition": made, "acquisition_file": ACQUISITION}

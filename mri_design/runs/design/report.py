"""Report of a design: lines, mask, image, error bars, tables, figures, manifest and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mri_design.evaluation.page import FirstScreen, Section
from mri_design.evaluation.run_folder import CHECKPOINT, STATE
from mri_design.experiment.extent import mostly_calibration, what_was_missed
from mri_design.experiment.sources import slices_text
from mri_design.experiment.strategies import ORACLES, explained, strategy_label
from mri_design.readouts import ShotReadouts
from mri_design.runs.design.companions import contradicted, final_weight, weight_in_words
from mri_design.runs.design.run import DesignResult
from mri_design.runs.design_sections import (
    ABOUT_SHOTS,
    save_acquisition,
    save_design,
    save_trajectory,
    score_unit,
    step_explorer,
)
from mri_design.runs.image_sections import (
    account_settings,
    facts_of,
    first_row,
    frame_of,
    measured_text,
    reading_of,
    save_reconstruction,
)
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import ORACLE_NOTE, simulated_from, simulation_summary
from mri_design.runs.verdicts import Target, design_verdict
from mri_design.scan.data import part_of_scan


def report_design(
    run: Run, result: DesignResult | Ending, more: Sequence[Section] = (), beside: Mapping[str, object] | None = None
) -> Ending:
    """Write everything about a design into the run's folder; one that was finished before stays as it is.

    Parameters
    ----------
    run : Run
        Its folder.
    result : DesignResult or Ending
        From `design_scan`, or `concluded`.
    more : sequence of Section
        Further sections of the page.
    beside : mapping of str to object, optional
        Further rows of the manifest's settings and of the page's table.
    """
    if isinstance(result, Ending):
        return result
    recipe, trace, known = result.request.recipe, result.trace, result.known
    candidates = known.slice_model.candidates
    name, start, n_lines = recipe.design.strategy, len(trace.start), candidates.size
    first, *others = save_design(run.folder, result.account, candidates, known.slice_model.noise_variance)
    if isinstance(candidates, ShotReadouts):
        save_trajectory(run.folder, trace, known, candidates)
    elif candidates.name == "lines" and run.folder.reported:
        steps = step_explorer(result.account, score_unit(trace), known, result.images[0])
        first = replace(first, blocks=[steps, *first.blocks])
    about = ABOUT_SHOTS if isinstance(candidates, ShotReadouts) else None
    images, *maps = save_reconstruction(run.folder, known, result.images, trace.lines, about)
    acquisition = save_acquisition(run.folder, result.acquisition, recipe)
    sections = [images, first, *acquisition, *others, *more, *maps]
    known_beside = dict(beside or {})
    ended = {"ended": result.ended} if result.ended else {}
    account = result.images[0].reconstruction.account()
    weight, unit = final_weight(trace), candidates.unit
    words, side_information = weight_in_words(weight, unit), dict[str, str]()
    if result.steered_by:
        side_information = {"earlier scan": f"{result.steered_by}, {contradicted(trace, unit) or words}"}
    elif np.isfinite(weight):
        side_information = {"training scans": words}
    many = len(result.numbers) > 1
    shared = f"one mask for {slices_text(result.numbers)}; the image is of slice {result.numbers[0]}" if many else ""
    calibrating = mostly_calibration(known.scan.calibration_lines, len(trace.lines), candidates)
    facts = {
        "start": start,
        **({"slices_of_mask": sorted(result.numbers)} if many else {}),
        **{f"weight_of_{whose.replace(' ', '_')}": weight for whose in side_information},
        **ended,
        **({"reconstructed_under": result.model} if result.model else {}),
        **known.settings(),
        **result.images[0].error.settings,
        **account_settings(account | known_beside),
    }
    summary: dict[str, object] = {
        f"{candidates.unit}s": f"{len(trace.lines)} of {n_lines}",
        "acceleration": n_lines / len(trace.lines) if about is None else known.acceleration(trace.lines),
        f"start {candidates.unit}s": start,
        **({"calibration": calibrating} if calibrating else {}),
        "strategy": strategy_label(name) + (ORACLE_NOTE if name in ORACLES else ""),
        **side_information,
        **({"slices": shared} if shared else {}),
        **ended,
        **simulation_summary([simulated_from(known.data)]),
        **({"model of the image": result.model} if result.model else {}),
        **known.summary(),
        **account,
        **known_beside,
        "multiplications with A": sum(step.cost.matvecs for step in trace.steps),
    }
    record = replace(result.record, settings={**result.record.settings, **facts})
    kind = f"{candidates.unit.capitalize()} design"
    title = f"{'Oracle, not a design' if name in ORACLES else kind}: {known.data.name}"
    extensible = result.record.beginning and result.request.strategy.needs_posterior and about is None
    if extensible:  # not what a scanner measured line by line, or is drawn anew as a whole
        run.folder.rename(CHECKPOINT, STATE)
    ending = replace(result.ending, error=result.images[0].error)
    return run.finish(ending, record, title, lambda: _first_screen(result), summary, sections, [CHECKPOINT])


def _first_screen(result: DesignResult) -> FirstScreen:
    """What came out, where it is from, and how large it is."""
    known, image, trace, name = result.known, result.images[0], result.trace, result.request.recipe.design.strategy
    readouts, frame = known.slice_model.candidates, frame_of(known)
    stop = result.request.stop
    target: Target = ""
    if stop is not None:  # how the design stands to the rule that could end it
        reached = trace.declined is not None or (trace.closing is not None and stop(trace.closing))
        missed = not reached or what_was_missed(trace, stop, readouts.unit)
        target = "missed" if missed else "met" if trace.steps else "met at the start"
    verdict = design_verdict(
        measured_text(readouts, len(trace.lines)),
        image.error,
        target=target,
        ended=result.ended,
        unit=readouts.unit,
        oracle=name in ORACLES,
        remark=result.ended or mostly_calibration(known.scan.calibration_lines, len(trace.lines), readouts),
    )
    meaning, part = explained(name), part_of_scan(known.data.header)
    return FirstScreen(
        verdict,
        first_row(readouts, trace.mask().reshape(readouts.shape), image.reconstruction, frame),
        facts_of(readouts, frame.pixel, known.data.n_coils, known.acceleration(trace.lines), part),
        {strategy_label(name): f"{readouts.unit}s {meaning}"} if meaning else {},
        reading_of(frame.layout),
    )

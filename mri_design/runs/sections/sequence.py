"""What a design run says about the sequence: why it ended, and the order and echo trains of its lines."""

from __future__ import annotations

from collections.abc import Mapping

from mri_design.design.echo_trains import Acquisition
from mri_design.design.stopping import NamedRule
from mri_design.design.trace import DesignTrace
from mri_design.evaluation import plots
from mri_design.evaluation.output.page import Paragraph, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import write_csv
from mri_design.experiment.ending import in_acquisition_order
from mri_design.experiment.recipe import Recipe

__all__ = ["how_it_ended", "save_acquisition", "what_was_missed"]

ACQUISITION = "acquisition.csv"
MEASURED_ORDER = "line number in the order of measurement"


def how_it_ended(trace: DesignTrace, rule: NamedRule | None, most: int) -> str:
    """One sentence about a design that a rule could end; empty where there was no rule.

    Parameters
    ----------
    trace : DesignTrace
        Finished.
    rule : NamedRule or None
        What it ran with.
    most : int
        Lines it could have had.
    """
    if rule is None:
        return ""
    lines = len(trace.lines)
    if trace.declined is not None:
        return f"stopped after {lines} of at most {most} lines: {rule.reason(trace.declined)}"
    if trace.closing is None:
        return f"never asked when to stop: all {lines} lines are start lines"
    return f"not stopped early: all {lines} lines measured, {rule.reason(trace.closing)}"


def what_was_missed(trace: DesignTrace, rule: NamedRule | None) -> str:
    """Why the design did not reach what its rule wants and never will, in words; empty where it did or may."""
    end = trace.forecast(len(trace.lines))
    return "" if rule is None or end is None else rule.missed(end)


def save_acquisition(folder: RunFolder, trace: DesignTrace, recipe: Recipe) -> list[Section]:
    """Write acquisition.csv and its figure where lines are measured in another order or in trains; else nothing."""
    if recipe.design.order == "as-chosen" and recipe.design.echoes == 1:
        folder.remove(ACQUISITION)
        return []
    made = in_acquisition_order(trace.lines, trace.n_lines, recipe)
    write_csv(folder.output_path(ACQUISITION), _rows(made))
    drawn = plots.acquisition_order(made.lines, made.n_lines, axis=MEASURED_ORDER)
    caption = "The same lines in the order in which they are to be measured, train after train."
    picture = saved_figure(folder, "acquisition", drawn, caption)
    return [Section("Acquisition order", [Paragraph(_facts(made, recipe)), picture])]


def _rows(made: Acquisition) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    for number, train in enumerate(made.trains):
        for echo, line in enumerate(train):
            place = {"order": len(rows), "train": number, "echo": echo + 1}
            rows.append({**place, "line": line, "ky": line - made.n_lines // 2})
    return rows


def _facts(made: Acquisition, recipe: Recipe) -> str:
    facts = f"Order: {recipe.design.order}. Largest jump between consecutive lines: {made.largest_jump}."
    if recipe.design.echoes > 1:
        longest, shortest = (f(len(train) for train in made.trains) for f in (max, min))
        echoes = f"{longest}" if longest == shortest else f"{shortest} to {longest}"
        facts += f" {len(made.trains)} echo trains of {echoes} lines; echo {made.dc_echo} measures DC."
    return f"{facts} {ACQUISITION} lists them."

"""What a design run says about the sequence: the order and echo trains of its lines."""

from __future__ import annotations

from collections.abc import Mapping

from mri_design.design.echo_trains import Acquisition
from mri_design.evaluation import plots
from mri_design.evaluation.output.page import Paragraph, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import write_csv
from mri_design.experiment.recipe import Recipe

__all__ = ["save_acquisition"]

ACQUISITION = "acquisition.csv"
MEASURED_ORDER = "line number in the order of measurement"


def save_acquisition(folder: RunFolder, made: Acquisition | None, recipe: Recipe) -> list[Section]:
    """Write acquisition.csv and its figure where lines are measured in another order or in trains; else nothing."""
    if made is None:
        folder.remove(ACQUISITION)
        return []
    write_csv(folder.output_path(ACQUISITION), _rows(made))
    caption = "The same lines in the order in which they are to be measured, train after train."
    picture = saved_figure(
        folder,
        "acquisition",
        lambda: plots.acquisition_order(made.lines, made.n_lines, axis=MEASURED_ORDER),
        caption,
    )
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

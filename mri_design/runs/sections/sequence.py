"""What a design run says about the sequence: the order and echo trains of its lines, or samples of a plane."""

from __future__ import annotations

from collections.abc import Mapping

from mri_design.design.echo_trains import Acquisition
from mri_design.evaluation import plots
from mri_design.evaluation.output.page import Paragraph, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.operators.encodings import PlaneEncoding

ACQUISITION = "acquisition.csv"
MEASURED_ORDER = "line number in the order of measurement"


def save_acquisition(folder: RunFolder, made: Acquisition | None, recipe: Recipe) -> list[Section]:
    """Write acquisition.csv and its figure where lines are measured in another order or in trains; else nothing."""
    if made is None:
        folder.remove(ACQUISITION)
        return []
    write_csv(folder.output_path(ACQUISITION), _rows(made))
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


def _rows(made: Acquisition) -> list[Mapping[str, object]]:
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

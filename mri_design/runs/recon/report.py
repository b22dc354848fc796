"""Reports of reconstructions, of one slice or of several: arrays, tables, and what their page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.metrics import RelativeError
from mri_design.evaluation.page import Page
from mri_design.evaluation.plots.panels import ImagePanel, object_top, scale_top
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.experiment.inputs import slices_text
from mri_design.experiment.volume import opened_slices
from mri_design.runs import image_sections
from mri_design.runs.provenance import simulated_from, simulation_summary
from mri_design.runs.recon.run import ReconRequest, ReconResult, reconstruct_scan
from mri_design.runs.recon.slices import OTHER_IMAGES, REPORT
from mri_design.runs.store import Ending, Report, Run, carry_out
from mri_design.runs.stored_run import ARRAYS
from mri_design.runs.work import Keep

COVERAGE = "coverage.csv"
_MOST_BYTES = 4_000_000
"""Bytes of the pictures of slices on a page, at most; of larger volumes every second slice is there, and so on."""
_MONTAGE = 24
"""Slices of the montage at most."""


def reconstruct_in_folder(request: ReconRequest, run: Run) -> Ending:
    """Reconstruct and report in a run's folder; see `carry_out`."""

    def compute(keep: Keep) -> ReconResult:
        with opened_slices(request.source, request.recipe, run.seed, request.maps) as slices:
            return reconstruct_scan(slices, request, run, keep)

    record = request.record(run)
    ended = carry_out(run, record, compute, report_reconstruction, checkpoint=PROGRESS, resumed="reconstruction")
    run.progress.show(REPORT, 1, 1)
    return ended


def report_reconstruction(folder: RunFolder, result: ReconResult) -> Report:
    """Write the images and tables of a reconstruction into the run's folder, of one slice or of several."""
    known, account, mask, covered = result.known, result.account, result.mask, result.coverage
    facts: dict[str, Any] = {"result": result, "used": mask, "acceleration": None, "errors": {}}
    if result.several:
        facts |= _save_volume(folder, result)
    else:
        facts |= image_sections.image_facts(folder, known, result.images, result.lines)
    folder.write_array("mask.npy", mask)
    facts["coverage_rows"] = rows = list(covered.radii) if covered else []
    if rows:
        folder.write_table(COVERAGE, rows)
    else:
        folder.remove(COVERAGE)
    if known.data.on_grid:
        facts["acceleration"] = known.acceleration(np.flatnonzero(mask).tolist())
    else:  # all that `known` holds
        facts["used"] = np.ones(known.slice_model.candidates.shape, dtype=bool)
    settings = result.settings
    facts["summary"] = summary = simulation_summary([simulated_from(known.data)]) | known.summary() | account
    if result.several:
        _describe(result, summary, settings)
    ending = Ending(result.status, result.lines, result.error)
    return Report(ending=ending, page=Page("recon", facts), found=settings, done=result.kept.files)


def _save_volume(folder: RunFolder, result: ReconResult) -> dict[str, Any]:
    """Write the volume slice by slice and its table, and return what the page shows of it.

    Arrays of an earlier run do not stay beside it.
    """
    rows, numbering = [row for one in result.facts for row in one.rows], result.numbering
    frames = len(numbering.numbers)
    counts = (frames, len(result.first_frame)) if frames else (len(result.numbers),)
    for name in ARRAYS:
        if name in result.kept.arrays(result.numbers[0]):
            folder.write_stack(f"{name}.npy", result.stack(name), *counts)
        else:
            folder.remove(f"{name}.npy")
    folder.write_table("metrics.csv", [*rows, *totals(rows)])
    shown = result.kept.facts[result.shown].rows
    facts = image_sections.shown_facts(result.known, result.images, shown)
    if not folder.reported:
        return facts
    own = [row for row in rows if row["method"] == result.images[0].name]
    errors = {numbering.name(number): one.rows[0]["found_error"] for number, one in result.kept.facts.items()}
    in_frames = [number for number in result.numbers if number % result.count == result.shown]
    return facts | {
        "slice_numbers": slices_text(result.first_frame).partition(" ")[2],
        "every": [*own, *totals(own)],
        "errors": {name: float(str(error)) for name, error in errors.items() if error is not None},
        "slices": _montage(result, result.first_frame, "slice"),
        "frames": _montage(result, in_frames, numbering.axis) if numbering.axis else [],
        "slider": _slider(result, facts["frame"].layout),
        "others": _companions(result),
    }


def _montage(result: ReconResult, numbers: Sequence[int], axis: str) -> list[ImagePanel]:
    """As many images as fit, by their numbers in the scan."""
    return [
        ImagePanel(np.abs(result.kept.arrays(number)["recon"]), f"{axis} {result.numbering.place(number)[axis]}")
        for number in _spread(numbers, _MONTAGE)
    ]


def _slider(result: ReconResult, layout: plots.Layout) -> dict[str, Any]:
    """Pictures at the images' own size, of as many slices as fit."""
    top = max(object_top([np.abs(image)]) for image in result.stack("recon"))
    has_std = "std" in result.kept.arrays(result.shown)
    wrong = max(scale_top([std]) for std in result.stack("std")) if has_std else 0.0

    def explored(number: int) -> dict[str, Any]:
        arrays, facts = result.kept.arrays(number), result.kept.facts[number]
        picture = plots.pixels_png(np.abs(arrays["recon"]), top, layout)
        std = plots.pixels_png(arrays["std"], wrong, layout, error=True) if has_std else b""
        text = "noise only" if facts.noise_only else str(result.images[0].error.over(facts.rows[:1]))
        return {"number": number, "text": text, "image": picture, "deviation": std}

    shown = explored(result.shown)
    most = max(2, _MOST_BYTES // (4 * (len(shown["image"]) + len(shown["deviation"])) // 3))
    numbers = _spread(result.first_frame, most)
    nearest = min(range(len(numbers)), key=lambda at: abs(numbers[at] - result.shown))
    return {"slices": [explored(number) for number in numbers], "count": len(result.first_frame), "start": nearest}


def _spread(numbers: Sequence[int], most: int) -> list[int]:
    """At most so many numbers of a stack, from the first to the last one, evenly."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place] for place in sorted({round(place) for place in np.linspace(0, len(numbers) - 1, most)})]


def _companions(result: ReconResult) -> image_sections.CompanionPictures | None:
    """What companions made of one slice: of the nearest to the one in detail that uses some, beside its image."""

    def far(number: int) -> tuple[bool, int]:
        return result.kept.facts[number].rows[0].get(OTHER_IMAGES, "none") == "none", abs(number - result.shown)

    number = min(result.numbers, key=far)
    pictures = result.kept.pictures(number)
    if pictures is None:
        return None
    image = ImagePanel(result.kept.arrays(number)["recon"], result.numbering.name(number), "as it is")
    return replace(pictures, panels=[image, *pictures.panels])


def _describe(result: ReconResult, summary: dict[str, object], settings: Mapping[str, Any]) -> None:
    """Change what is told of the slice that is shown into what is true of all."""
    summary.pop("part of the scan", None)
    if noise_only := [number for number in result.numbers if result.kept.facts[number].noise_only]:
        summary["noise only"] = result.numbering.names(noise_only)
    if lost := settings.get("coil_compression_lost"):
        summary["coils"] = f"{summary['coils']}; all slices {min(lost):.2%} to {max(lost):.2%}"
    if "reference_scales" in settings:
        summary["reference"] = settings["reference_source"]


def totals(rows: image_sections.Rows) -> image_sections.Rows:
    """Rows over all images, one for each method: means of the errors, whether all converged, and what all cost."""
    table = image_sections.Rows()
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        named = list(own[0])
        total: dict[str, object] = dict.fromkeys(named[: named.index("method")], "all") | {"method": method}
        for name in (*RelativeError().columns, "relative_l2", "psnr", "ssim"):
            numbers = [float(str(row[name])) for row in own if row[name] is not None]
            total[name] = float(np.mean(numbers)) if numbers else None
        total["converged"] = all(row["converged"] for row in own)
        total["matvecs"] = sum(int(str(row["matvecs"])) for row in own)
        table.append(total)
    return table

"""Reports of reconstructions, of one slice or of several: images, error bars, errors, figures, manifest and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

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
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.sources import slices_text
from mri_design.experiment.volume import opened_slices
from mri_design.runs import image_sections
from mri_design.runs.provenance import simulated_from, simulation_summary, told
from mri_design.runs.recon.run import ReconRequest, ReconResult, reconstruct_scan
from mri_design.runs.recon.slices import OTHER_IMAGES, REPORT
from mri_design.runs.store import Ending, Report, Run, carry_out
from mri_design.runs.stored_run import shown_settings
from mri_design.runs.work import Keep
from mri_design.scan.data import TrajectoryData


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
    """Write everything about a reconstruction into the run's folder."""
    image, known, account, covered = result.images[0], result.known, result.account, result.coverage
    if result.several:
        sections = _save_volume(folder, result)
    else:
        sections = image_sections.save_reconstruction(folder, known, result.images, result.lines)
    sections += [*_used(folder, result), *coverage_sections(folder, covered)]
    folder.write_mask(result.mask)
    used = f"{np.count_nonzero(result.mask)} of {result.mask.size}"
    if not result.alike:
        used += " in any slice; slices differ, metrics.csv counts each"
    summary = {
        "method": image.name,
        **(_counts(result) if result.several else {}),
        f"{known.slice_model.candidates.unit}s": used,
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
        **account,
        **({} if covered is None else {"coverage": str(covered)}),
        "multiplications with A": result.matvecs,
    }
    settings = {**known.settings(), **image_sections.account_settings(account)}
    settings |= {} if covered is None else {"coverage": covered.as_settings()}
    settings |= shown_settings(known, image, result.shown if result.several else None)
    if result.several:
        _describe(result, summary, settings)
    name = known.data.name.partition("[")[0] if result.several else known.data.name
    return Report(
        ending=Ending(result.status, result.lines, result.error),
        title=f"Reconstruction: {name}",
        first=lambda: _first_screen(result),
        summary=summary,
        sections=sections,
        found={**settings, **result.error.settings},
        done=result.kept.files,
    )


def _used(folder: RunFolder, result: ReconResult) -> list[Section]:
    """The report's section about where k-space is measured; of several slices along a trajectory there is none."""
    known = result.known
    if not folder.reported or (result.several and not known.data.on_grid):
        return []
    if not isinstance(known.data, TrajectoryData):
        unit = known.slice_model.candidates.unit
        return [
            Section(f"{unit.capitalize()}s", [image_sections.mask_figure(folder, f"measured {unit}s", result.mask)])
        ]
    data, grid, units = known.data, known.data.grid_shape, f"{known.data.n_readouts} readouts"
    first, sets = sentence("first_readout", result.mask[0]), {"readouts": data.readouts.shots}

    def curves() -> Drawing:
        return plots.trajectory_curves(sets, grid, first)

    pictures = [
        saved_figure(folder, "trajectory", curves, unit="readout", first=first),
        image_sections.point_spread_figure(folder, units, data.trajectory, grid, "these readouts", data.density),
    ]
    return [Section("Trajectory", pictures)]


_MOST_BYTES = 4_000_000
"""Bytes of the pictures of slices on a page, at most; of larger volumes every second slice is there, and so on."""
_MONTAGE, _COLUMNS = 24, 6
"""Slices of the montage at most, and in a row."""
_OF_ONE = ("part_of_scan", "geometry", "source_image")
"""Settings of the slice shown that the others have for themselves."""
_FILES = {
    **{"coil_maps": image_sections.COIL_MAPS, "draws": image_sections.DRAWS, "reference": image_sections.REFERENCE},
    **{name: f"{name}.npy" for name in ("recon", "std", "noise", "g_factor")},
}
"""Arrays of slices, and the files of the volume's."""


def _save_volume(folder: RunFolder, result: ReconResult) -> list[Section]:
    """Write the volume slice by slice and its table; arrays of an earlier run do not stay beside it."""
    rows = [row for one in result.facts for row in one.rows]
    frames = len(result.numbering.numbers)
    counts = (frames, len(result.first_frame)) if frames else (len(result.numbers),)
    for name, file in _FILES.items():
        if name in result.kept.arrays(result.numbers[0]):
            folder.write_stack(file, result.stack(name), *counts)
        else:
            folder.remove(file)
    folder.write_table("metrics.csv", [*rows, *totals(rows)])
    return [*volume_sections(folder, result, rows), *_of_shown(folder, result)] if folder.reported else []


def _counts(result: ReconResult) -> dict[str, object]:
    """Frames and slices, as rows of the page's table."""
    frames, chosen = result.numbering, slices_text(result.first_frame).partition(" ")[2]
    found = {f"{frames.axis}s": f"{len(frames.numbers)}: {', '.join(map(str, frames.numbers))}"} if frames.axis else {}
    return {**found, "slices": f"{len(result.first_frame)} of {result.count}: {chosen}"}


def _describe(result: ReconResult, summary: dict[str, object], settings: dict[str, object]) -> None:
    """Change what is told of the slice that is shown into what is true of all."""
    facts, numbering = result.facts, result.numbering
    summary.pop("part of the scan", None)
    for name in _OF_ONE:
        settings.pop(name, None)
    settings |= {"slice_numbers": list(result.first_frame), "slices_of_scan": result.count}
    if numbering.axis:
        settings["frames"] = {"axis": numbering.axis, "numbers": list(numbering.numbers)}
    if places := result.places:
        settings["geometry"] = places[0].as_settings()
        settings["slice_geometries"] = [place.as_settings() for place in places]
    if sources := result.sources:
        settings["source_image"] = sources[0].as_settings()
        if any(source != sources[0] for source in sources):
            settings["source_images"] = [source.as_settings() for source in sources]
    offered = [(number, one) for number, one in zip(result.numbers, facts, strict=True) if one.about_others]
    if offered:
        settings["companions_of_slices"] = [
            {**numbering.place(number), "used": one.rows[0][OTHER_IMAGES], "companions": one.account["companions"]}
            for number, one in offered
        ]
    if noise_only := [number for number, one in zip(result.numbers, facts, strict=True) if one.noise_only]:
        summary["noise only"] = numbering.names(noise_only)
        settings["slices_of_noise"] = [numbering.place(number) if numbering.axis else number for number in noise_only]
    if lost := [one.lost for one in facts if one.lost is not None]:
        summary["coils"] = f"{summary['coils']}; all slices {min(lost):.2%} to {max(lost):.2%}"
        settings["coil_compression_lost"] = lost
    if result.known.given is not None:
        scales = [one.reference_scale for one in facts if one.reference_scale is not None]
        settings["reference_scales"] = scales
        summary["reference"] = settings["reference_source"] = told("given_reference", result.known.given.name, scales)


def totals(rows: image_sections.Rows) -> image_sections.Rows:
    """Rows over all images, one for each method: means of the errors, whether all converged, and what all cost."""
    said = image_sections.Rows()
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        named = list(own[0])
        total: dict[str, object] = dict.fromkeys(named[: named.index("method")], "all") | {"method": method}
        for name in (*RelativeError().columns, "relative_l2", "psnr", "ssim"):
            numbers = [float(str(row[name])) for row in own if row[name] is not None]
            total[name] = float(np.mean(numbers)) if numbers else None
        total["converged"] = all(row["converged"] for row in own)
        total["matvecs"] = sum(int(str(row["matvecs"])) for row in own)
        said.append(total)
    return said


def volume_sections(folder: RunFolder, result: ReconResult, rows: image_sections.Rows) -> list[Section]:
    """Montage, slider and table of the slices; of several frames a montage of each of both."""
    known = result.known
    frame = image_sections.frame_of(known)
    top = max(plots.object_top([np.abs(image)]) for image in result.stack("recon"))

    def montage(name: str, numbers: Sequence[int], axis: str) -> Block:
        chosen = [numbers[place] for place in _spread(len(numbers), _MONTAGE)]
        panels = [
            plots.ImagePanel(
                np.abs(result.kept.arrays(number)["recon"]), f"{axis} {result.numbering.place(number)[axis]}"
            )
            for number in chosen
        ]
        caption = sentence("montage", axis, len(chosen), len(numbers))
        return saved_figure(folder, name, lambda: plots.image_grid(panels, frame, _COLUMNS), caption)

    own = [row for row in rows if row["method"] == result.images[0].name]
    table = image_sections.error_table([*own, *totals(own)], sentence("every_slice"))
    blocks: list[Block] = [montage("slices", result.first_frame, "slice"), _slider(result, frame.layout, top), table]
    axis, sections = result.numbering.axis, list[Section]()
    if axis:
        frames = [number for number in result.numbers if number % result.count == result.shown]
        about = Paragraph(sentence("slice_in_frames", axis, result.shown, result.numbering.name(result.shown)))
        sections.append(Section(f"{axis.capitalize()}s", [about, montage("frames", frames, axis)]))
    return [*sections, Section("Slices", blocks)]


def _slider(result: ReconResult, layout: plots.Layout, top: float) -> Explorer:
    """Pictures at the images' own size, of as many slices as fit."""
    has_std = "std" in result.kept.arrays(result.shown)
    wrong = max(plots.scale_top([std]) for std in result.stack("std")) if has_std else 0.0

    def explored(number: int) -> dict[str, Any]:
        arrays, facts = result.kept.arrays(number), result.kept.facts[number]
        picture = plots.pixels_png(np.abs(arrays["recon"]), top, layout)
        std = plots.pixels_png(arrays["std"], wrong, layout, error=True) if has_std else b""
        text = "noise only" if facts.noise_only else str(result.images[0].error.over(facts.rows[:1]))
        return {"number": number, "text": text, "image": picture, "deviation": std}

    shown = explored(result.shown)
    most = max(2, _MOST_BYTES // (4 * (len(shown["image"]) + len(shown["deviation"])) // 3))
    numbers = result.first_frame
    places = _spread(len(numbers), most)
    pictures = [explored(numbers[place]) for place in places]
    nearest = min(range(len(places)), key=lambda at: abs(numbers[places[at]] - result.shown))
    caption = sentence("slice_explorer", has_std, len(places), len(numbers))
    return Explorer("slices", {"slices": pictures, "count": len(numbers), "start": nearest}, caption)


def _spread(count: int, most: int) -> list[int]:
    """At most so many places of a stack, from the first to the last one, evenly."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})


def _of_shown(folder: RunFolder, result: ReconResult) -> list[Section]:
    """One slice in detail."""
    known, rows = result.known, result.kept.facts[result.shown].rows
    first, *others = image_sections.image_sections(folder, known, result.images, rows, several=True)
    intro = Paragraph(sentence("slice_in_detail", result.shown))
    first = replace(first, title=f"Slice {result.shown}", blocks=[intro, *first.blocks])
    return [
        first,
        *others,
        *_companions(folder, result, image_sections.frame_of(known)),
        *image_sections.coil_map_sections(folder, known),
    ]


def _companions(folder: RunFolder, result: ReconResult, frame: plots.Frame) -> list[Section]:
    """What companions made of one slice: of the nearest to the one in detail that uses some, beside its image."""

    def far(number: int) -> tuple[bool, int]:
        return result.kept.facts[number].rows[0].get(OTHER_IMAGES, "none") == "none", abs(number - result.shown)

    number = min(result.numbers, key=far)
    pictures = result.kept.pictures(number)
    if pictures is None:
        return []
    image = plots.ImagePanel(result.kept.arrays(number)["recon"], result.numbering.name(number), "as it is")
    return [replace(pictures, panels=[image, *pictures.panels]).section(folder, frame)]


def _first_screen(result: ReconResult) -> FirstScreen:
    """What came out, pictures of the image and of what was measured, and facts; of several slices the error of all."""
    known, image, mask = result.known, result.images[0], result.mask
    readouts = known.slice_model.candidates
    measured = image_sections.measured_text(readouts, int(np.count_nonzero(mask)))
    method = "posterior mean" if image.name == "mean" else image.name
    verdict = sentence("image_verdict", measured, method, image.error)
    if result.several:
        errors = {
            result.numbering.name(number): float(str(facts.rows[0]["found_error"]))
            for number, facts in zip(result.numbers, result.facts, strict=True)
            if facts.rows[0]["found_error"] is not None
        }
        name, slices, frames = result.numbering.name(result.shown), len(result.first_frame), result.numbering
        what = sentence("slices_of", slices, len(frames.numbers), frames.axis, measured, method)
        verdict = sentence("volume_verdict", what, name, image.error, result.error, errors)
    used, acceleration = np.ones(readouts.shape, dtype=bool), None  # along a trajectory all that `known` holds
    if known.data.on_grid:
        used, acceleration = mask, known.acceleration(np.flatnonzero(mask).tolist())
    return image_sections.image_screen(known, verdict, used, image.reconstruction, acceleration)


_TABLE = "coverage.csv"
_FORMATS = {"radius": ".2f"} | dict.fromkeys(("left_out_mean", "left_out_least", "promised"), ".1f")


def coverage_sections(folder: RunFolder, coverage: Coverage | None) -> list[Section]:
    """Write coverage.csv, and return the report's section about it; without, that of an earlier run does not stay."""
    if coverage is None:
        folder.remove(_TABLE)
        return []
    rows = list(coverage.radii)
    folder.write_table(_TABLE, rows)
    if not folder.reported:
        return []
    about, caption = sentence("coverage_text", coverage), sentence("coverage_table")
    return [Section("Coverage of the error bars", [Paragraph(about), ReportTable(rows, caption, _FORMATS)])]

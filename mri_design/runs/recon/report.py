"""Reports of reconstructions, of one slice or of several: images, error bars, errors, figures, manifest and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.page import (
    MOST_SLICE_BYTES,
    Block,
    FirstScreen,
    Paragraph,
    ReportTable,
    Section,
    SliceExplorer,
    saved_figure,
)
from mri_design.evaluation.plots.panels import GREY_SCALE, Frame, ImagePanel, Layout, object_top, scale_top
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.coverage import Coverage
from mri_design.experiment.sources import slices_text
from mri_design.kinds import count_text
from mri_design.runs.given_reference import scaled_words
from mri_design.runs.image_sections import (
    COIL_MAPS,
    DRAWS,
    REFERENCE,
    Rows,
    account_settings,
    coil_map_sections,
    curves_figure,
    error_table,
    facts_of,
    first_row,
    frame_of,
    image_sections,
    mask_figure,
    measured_text,
    point_spread_figure,
    reading_of,
    save_reconstruction,
)
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.recon.slices import OTHER_IMAGES, REPORT
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import KnownScan, simulated_from, simulation_summary
from mri_design.runs.verdicts import RelativeError, image_verdict, method_words, volume_verdict
from mri_design.scan.calibration import LOST
from mri_design.scan.data import part_of_scan

_WITH_THE_SCAN = ", by the weights that came with the scan,"


def report_reconstruction(run: Run, result: ReconResult | Ending) -> Ending:
    """Write everything about a reconstruction into the run's folder; nothing of one that had ended before."""
    if isinstance(result, Ending):
        return result
    image, known, account = result.images[0], result.known, result.account
    volume = result if result.several else None
    sections = _slice_sections(run.folder, result) if volume is None else _save_volume(run.folder, volume)
    sections += coverage_sections(run.folder, result.coverage)
    covered, calibrated = coverage_facts(result.coverage)
    run.folder.write_mask(result.mask)
    used = f"{np.count_nonzero(result.mask)} of {result.mask.size}"
    if volume is not None and not volume.alike:
        used += " in any slice; slices differ, metrics.csv counts each"
    summary = {
        "method": image.name,
        **({} if volume is None else _counts(volume)),
        f"{known.slice_model.candidates.unit}s": used,
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
        **account,
        **covered,
        "multiplications with A": result.matvecs,
    }
    settings = {**result.record.settings, **known.settings(), **account_settings(account), **calibrated}
    if volume is not None:
        _describe(volume, summary, settings)
    ended = run.finish(
        replace(result.ending, error=result.error),
        replace(result.record, settings={**settings, **result.error.settings}),
        f"Reconstruction: {known.data.name if volume is None else known.data.name.partition('[')[0]}",
        lambda: _first_screen(result),
        summary,
        sections,
        checkpoints=result.kept.files,
    )
    run.progress.show(REPORT, 1, 1)
    return ended


def _slice_sections(folder: RunFolder, result: ReconResult) -> list[Section]:
    """Images of one slice, and where k-space is measured."""
    known = result.known
    if isinstance(known, KnownScan):
        return [*save_reconstruction(folder, known, result.images, result.ending.lines), _mask_section(folder, result)]
    data, grid = known.data, known.data.grid_shape
    about = (
        f"{len(data.trajectory)} samples on {data.n_readouts} readouts; the image has {grid[0] * grid[1]} pixels. The "
        "gridded image compensates for the density of the samples"
        f"{_WITH_THE_SCAN if data.density is not None else ''} and knows nothing else."
        + ("" if known.given is None else f" {known.given.caption}")
    )
    first = "the first of the scan" if result.mask[0] else "the first of those used, in the order of the scan"
    spread = f"{data.n_readouts} readouts", data.trajectory, grid, "these readouts", data.density
    pictures = [
        curves_figure(folder, "trajectory", {"readouts": data.readouts.shots}, grid, "readout", first),
        point_spread_figure(folder, *spread),
    ]
    return [*save_reconstruction(folder, known, result.images, (), about), Section("Trajectory", pictures)]


def _mask_section(folder: RunFolder, result: ReconResult) -> Section:
    unit = result.known.slice_model.candidates.unit
    return Section(f"{unit.capitalize()}s", [mask_figure(folder, f"measured {unit}s", result.mask)])


_MONTAGE, _COLUMNS = 24, 6
"""Slices of the montage at most, and in a row."""
_OF_ONE = ("part_of_scan", "geometry", "source_image")
"""Settings of the slice shown that the others have for themselves."""
_FILES = {
    **{"coil_maps": COIL_MAPS, "draws": DRAWS, "reference": REFERENCE},
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
    return [*volume_sections(folder, result, rows), *_of_shown(folder, result)]


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
    known = [place for place in result.places if place is not None]
    if len(known) == len(result.numbers):
        settings["geometry"] = known[0].as_settings()
        settings["slice_geometries"] = [place.as_settings() for place in known]
    sources = [source for source in result.sources if source is not None]
    if len(sources) == len(result.numbers):
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
        settings[LOST] = lost
    if result.known.given is not None:
        scales = [one.reference_scale for one in facts if one.reference_scale is not None]
        settings["reference_scales"] = scales
        summary["reference"] = settings["reference_source"] = f"{result.known.given.name}, {scaled_words(scales)}"


def totals(rows: Rows) -> Rows:
    """Rows over all images, one for each method: means of the errors, whether all converged, and what all cost."""
    said: Rows = []
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


def volume_sections(folder: RunFolder, result: ReconResult, rows: Rows) -> list[Section]:
    """Montage, slider and table of the slices; of several frames a montage of each of both."""
    if not folder.reported:
        return []
    known = result.known
    frame = frame_of(known)
    top = max(object_top([np.abs(image)]) for image in result.stack("recon"))

    def montage(name: str, numbers: Sequence[int], axis: str) -> Block:
        chosen = [numbers[place] for place in _spread(len(numbers), _MONTAGE)]
        panels = [
            ImagePanel(np.abs(result.kept.arrays(number)["recon"]), f"{axis} {result.numbering.place(number)[axis]}")
            for number in chosen
        ]
        some = "" if len(chosen) == len(numbers) else f"{len(chosen)} of the {len(numbers)} {axis}s. "
        caption = f"{some}{GREY_SCALE}; by the {axis}s' numbers in the scan."
        return saved_figure(folder, name, lambda: plots.image_grid(panels, frame, _COLUMNS), caption)

    own = [row for row in rows if row["method"] == result.images[0].name]
    every = "Every slice; the last row has the means. metrics.csv has the other images too."
    table = error_table([*own, *totals(own)], every)
    blocks: list[Block] = [montage("slices", result.first_frame, "slice"), _slider(result, frame.layout, top), table]
    axis, sections = result.numbering.axis, list[Section]()
    if axis:
        frames = [number for number in result.numbers if number % result.count == result.shown]
        about = Paragraph(
            f"Slice {result.shown} in every {axis}; what follows is of {result.numbering.name(result.shown)}."
        )
        sections.append(Section(f"{axis.capitalize()}s", [about, montage("frames", frames, axis)]))
    return [*sections, Section("Slices", blocks)]


def _slider(result: ReconResult, layout: Layout, top: float) -> SliceExplorer:
    """Pictures at the images' own size, of as many slices as fit."""
    has_std = "std" in result.kept.arrays(result.shown)
    wrong = max(scale_top([std]) for std in result.stack("std")) if has_std else 0.0

    def explored(number: int) -> dict[str, Any]:
        arrays, facts = result.kept.arrays(number), result.kept.facts[number]
        picture = plots.pixels_png(np.abs(arrays["recon"]), top, layout)
        std = plots.pixels_png(arrays["std"], wrong, layout, error=True) if has_std else b""
        text = "noise only" if facts.noise_only else str(result.images[0].error.over(facts.rows[:1]))
        return {"number": number, "text": text, "image": picture, "deviation": std}

    shown = explored(result.shown)
    most = max(2, MOST_SLICE_BYTES // (4 * (len(shown["image"]) + len(shown["deviation"])) // 3))
    numbers = result.first_frame
    places = _spread(len(numbers), most)
    pictures = [explored(numbers[place]) for place in places]
    nearest = min(range(len(places)), key=lambda at: abs(numbers[places[at]] - result.shown))
    caption = "All slices on one grey scale" + (", and error bars on one scale." if has_std else ".")
    if len(places) < len(numbers):
        caption += f" To keep the page small {len(places)} of the {len(numbers)} slices are here."
    return SliceExplorer(pictures, len(numbers), caption, nearest)


def _spread(count: int, most: int) -> list[int]:
    """At most so many places of a stack, from the first to the last one, evenly."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})


def _of_shown(folder: RunFolder, result: ReconResult) -> list[Section]:
    """One slice in detail, and what is used of it."""
    known, rows, about, used = result.known, result.kept.facts[result.shown].rows, None, list[Section]()
    if isinstance(known, KnownScan):
        used = [_mask_section(folder, result)]
    else:
        about = f"{len(known.data.trajectory)} samples on {known.data.n_readouts} readouts of each slice."
    first, *others = image_sections(folder, known, result.images, rows, about)
    intro = Paragraph(f"Slice {result.shown} in detail; the same files of every slice are parts of the arrays.")
    first = replace(first, title=f"Slice {result.shown}", blocks=[intro, *first.blocks])
    coils = coil_map_sections(folder, known)
    return [first, *others, *_companions(folder, result, frame_of(known)), *coils, *used]


def _companions(folder: RunFolder, result: ReconResult, frame: Frame) -> list[Section]:
    """What companions made of one slice: of the nearest to the one in detail that uses some, beside its image."""

    def far(number: int) -> tuple[bool, int]:
        return result.kept.facts[number].rows[0].get(OTHER_IMAGES, "none") == "none", abs(number - result.shown)

    number = min(result.numbers, key=far)
    pictures = result.kept.pictures(number)
    if pictures is None:
        return []
    image = ImagePanel(result.kept.arrays(number)["recon"], result.numbering.name(number), "as it is")
    return [replace(pictures, panels=[image, *pictures.panels]).section(folder, frame)]


def _first_screen(result: ReconResult) -> FirstScreen:
    """What came out, pictures of the image and of what was measured, and facts; of several slices the error of all."""
    known, image, mask = result.known, result.images[0], result.mask
    readouts, frame = known.slice_model.candidates, frame_of(known)
    measured = measured_text(readouts, int(np.count_nonzero(mask)))
    verdict = image_verdict(measured, image.name, image.error)
    if result.several:
        errors = {
            result.numbering.name(number): float(str(facts.rows[0]["found_error"]))
            for number, facts in zip(result.numbers, result.facts, strict=True)
            if facts.rows[0]["found_error"] is not None
        }
        frames = len(result.numbering.numbers)
        many = f" in {frames} {result.numbering.axis}s" if frames else ""
        what = f"{count_text(len(result.first_frame), 'slice')}{many} of {measured}, {method_words(image.name)}"
        shown = result.numbering.name(result.shown)
        verdict = volume_verdict(what, shown, image.error, result.error, errors)
    used, acceleration = np.ones(readouts.shape, dtype=bool), None  # along a trajectory all that `known` holds
    if isinstance(known, KnownScan):
        used, acceleration = mask, known.acceleration(np.flatnonzero(mask).tolist())
    return FirstScreen(
        verdict,
        first_row(readouts, used, image.reconstruction, frame),
        facts_of(readouts, frame.pixel, known.data.n_coils, acceleration, part_of_scan(known.data.header)),
        reading=reading_of(frame.layout),
    )


_TABLE = "coverage.csv"
_FORMATS = {"radius": ".2f"} | dict.fromkeys(("left_out_mean", "left_out_least", "promised"), ".1f")


def coverage_sections(folder: RunFolder, coverage: Coverage | None) -> list[Section]:
    """Write coverage.csv, and return the report's section about it; without, that of an earlier run does not stay."""
    if coverage is None:
        folder.remove(_TABLE)
        return []
    rows = [
        {
            "level": one.level,
            "radius": one.radius,
            "left_out_mean": one.left_out,
            "left_out_least": one.least,
            "promised": one.promised,
        }
        for one in coverage.radii
    ]
    folder.write_table(_TABLE, rows)
    caption = (
        "All but the radius in per cent of the pixels, air included. level: so many are within radius standard "
        "deviations, on the mean over these scans. left out: each scan in turn within the radius of the others, mean "
        "and least. promised: what a further scan has at least, on the mean over all that come as these came."
    )
    said = str(coverage)
    about = (
        f"{said[0].upper()}{said[1:]}: the middle slice of each, reconstructed from the same samples by the same "
        "recipe, and held against its own complete image. Pixels of one image are wrong together: what counts is that "
        f"there are {len(coverage.images)} scans. It holds for scans of the same kind (anatomy, contrast, coils, "
        f"noise), on the mean over them, and never for one image.{''.join(f' {why}.' for why in coverage.refused)}"
    )
    return [Section("Coverage of the error bars", [Paragraph(about), ReportTable(rows, caption, _FORMATS)])]


def coverage_facts(coverage: Coverage | None) -> tuple[dict[str, object], dict[str, object]]:
    """What a report's table of key numbers, and a manifest's settings, say of it; nothing without."""
    return ({}, {}) if coverage is None else ({"coverage": str(coverage)}, {"coverage": coverage.as_settings()})

"""Report of a reconstruction: image, error bars, mask, errors, figures, manifest and page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.evaluation.first_screen import FirstScreen
from mri_design.evaluation.page import Section
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.first_pictures import READING, Frame, facts_of, first_row, measured_text, predicted_error
from mri_design.runs.image_sections import (
    account_settings,
    curves_figure,
    image_sections,
    layout_of,
    mask_figure,
    metric_rows,
    point_spread_figure,
    save_coil_maps,
    save_images,
    save_reconstruction,
)
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.recon.stages import REPORT
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import KnownSamples, KnownScan, pixel_of, simulated_from, simulation_summary
from mri_design.runs.verdicts import Judged, image_verdict
from mri_design.scan.data import part_of_scan

_WITH_THE_SCAN = ", by the weights that came with the scan,"


def report_reconstruction(run: Run, result: ReconResult) -> Ending:
    """Write everything about a reconstruction into the run's folder."""
    image, known, mask = result.images[0], result.known, result.mask
    if isinstance(known, KnownSamples):
        sections = _along_trajectory(run.folder, known, result)
    else:
        sections = _on_grid(run.folder, known, result)
    run.folder.write_mask(mask)
    account = image.reconstruction.account()
    summary = {
        "method": image.name,
        f"{known.slice_model.candidates.unit}s": f"{np.count_nonzero(mask)} of {mask.size}",
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
        **account,
        "multiplications with A": image.reconstruction.convergence.matvecs,
    }
    facts = {**known.settings(), **account_settings(account)}
    record = replace(result.record, settings={**result.record.settings, **facts})
    title = f"Reconstruction: {known.data.name}"
    ended = run.finish(result.ending, record, title, lambda: _first_screen(result), summary, sections)
    run.progress.show(REPORT, 1, 1)
    return ended


def _first_screen(result: ReconResult) -> FirstScreen:
    """What came out, where it is from, and how large it is."""
    known, image = result.known, result.images[0]
    readouts, pixel, part = known.slice_model.candidates, pixel_of(known.data), part_of_scan(known.data.header)
    acceleration, noise = None, None
    if isinstance(known, KnownScan):
        acceleration, noise = known.acceleration(result.ending.lines), known.reference_noise
    judged = Judged(
        None if image.errors is None else image.errors.relative_l2,
        predicted_error(image.reconstruction),
        noise,
        itself=isinstance(known, KnownScan) and known.holds_reference(result.ending.lines),
    )
    layout = layout_of(readouts, known.data.orientation) if isinstance(known, KnownScan) else "no-lines"
    used = result.mask if isinstance(known, KnownScan) else np.ones(readouts.shape, dtype=bool)
    return FirstScreen(
        image_verdict(measured_text(readouts, int(np.count_nonzero(result.mask))), image.name, judged),
        first_row(readouts, used, image.reconstruction, Frame(layout, pixel)),
        facts_of(readouts, pixel, known.data.n_coils, acceleration, part),
        reading=READING,
    )


def _along_trajectory(folder: RunFolder, known: KnownSamples, result: ReconResult) -> list[Section]:
    scan, data = known.scan, known.data
    count, pixels = len(data.trajectory), data.grid_shape[0] * data.grid_shape[1]
    rows = metric_rows(result.images, {"readouts": data.n_readouts, "samples": count})
    save_images(folder, result.images[0].reconstruction, rows)
    about = (
        f"{count} samples on {data.n_readouts} readouts; the image has {pixels} pixels. The gridded image compensates "
        f"for the density of the samples{_WITH_THE_SCAN if data.density is not None else ''} and knows nothing else."
    )
    first = "the first of the scan" if result.mask[0] else "the first of those used, in the order of the scan"
    title, maps = f"{data.n_readouts} readouts", scan.maps_as_read
    pictures = [
        curves_figure(folder, "trajectory", {"readouts": data.readouts.shots}, data.grid_shape, "readout", first),
        point_spread_figure(folder, title, data.trajectory, data.grid_shape, "these readouts", data.density),
    ]
    return [
        *image_sections(folder, result.images, known.shown_reference, "no-lines", rows, about=about),
        *save_coil_maps(folder, None if maps is None else maps[0], "no-lines", scan.maps_source),
        Section("Trajectory", pictures),
    ]


def _on_grid(folder: RunFolder, known: KnownScan, result: ReconResult) -> list[Section]:
    unit = known.slice_model.candidates.unit
    return [
        *save_reconstruction(folder, known, result.images, result.ending.lines),
        Section(f"{unit.capitalize()}s", [mask_figure(folder, f"measured {unit}s", result.mask)]),
    ]

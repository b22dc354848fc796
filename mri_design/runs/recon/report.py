"""Report of a reconstruction: image, error bars, mask, errors, figures, manifest and page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.evaluation.page import Section
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.coverage_sections import coverage_facts, coverage_sections
from mri_design.runs.first_pictures import measured_text
from mri_design.runs.image_sections import (
    account_settings,
    companion_sections,
    curves_figure,
    frame_of,
    image_sections,
    mask_figure,
    point_spread_figure,
    sample_rows,
    save_coil_maps,
    save_images,
    save_reconstruction,
)
from mri_design.runs.recon.beginning import first_screen
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.recon.stages import REPORT
from mri_design.runs.recon.volume import VolumeResult
from mri_design.runs.recon.volume_report import report_volume
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import KnownSamples, KnownScan, simulated_from, simulation_summary
from mri_design.runs.verdicts import image_verdict

_WITH_THE_SCAN = ", by the weights that came with the scan,"


def report_reconstruction(run: Run, result: ReconResult | VolumeResult | Ending) -> Ending:
    """Write everything about a reconstruction into the run's folder; nothing of one that had ended before."""
    if isinstance(result, Ending):
        return result
    if isinstance(result, VolumeResult):
        return report_volume(run, result)
    image, known, mask = result.images[0], result.known, result.mask
    if isinstance(known, KnownSamples):
        sections = _along_trajectory(run.folder, known, result)
    else:
        sections = _on_grid(run.folder, known, result)
    sections += coverage_sections(run.folder, result.coverage)
    covered, calibrated = coverage_facts(result.coverage)
    run.folder.write_mask(mask)
    account = image.reconstruction.account()
    summary = {
        "method": image.name,
        f"{known.slice_model.candidates.unit}s": f"{np.count_nonzero(mask)} of {mask.size}",
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
        **account,
        **covered,
        "multiplications with A": image.reconstruction.convergence.matvecs,
    }
    facts = {**known.settings(), **image.error.settings, **account_settings(account), **calibrated}
    record = replace(result.record, settings={**result.record.settings, **facts})
    title = f"Reconstruction: {known.data.name}"
    measured = measured_text(known.slice_model.candidates, int(np.count_nonzero(mask)))
    verdict = image_verdict(measured, image.name, image.error)
    ended = run.finish(
        replace(result.ending, error=image.error),
        record,
        title,
        lambda: first_screen(verdict, known, image, mask),
        summary,
        sections,
    )
    run.progress.show(REPORT, 1, 1)
    return ended


def _along_trajectory(folder: RunFolder, known: KnownSamples, result: ReconResult) -> list[Section]:
    scan, data = known.scan, known.data
    count, pixels = len(data.trajectory), data.grid_shape[0] * data.grid_shape[1]
    rows = sample_rows(known, result.images)
    save_images(folder, result.images[0].reconstruction, rows, known.shown_reference)
    about = (
        f"{count} samples on {data.n_readouts} readouts; the image has {pixels} pixels. The gridded image compensates "
        f"for the density of the samples{_WITH_THE_SCAN if data.density is not None else ''} and knows nothing else."
        + ("" if known.given is None else f" {known.given.caption}")
    )
    first = "the first of the scan" if result.mask[0] else "the first of those used, in the order of the scan"
    title, maps = f"{data.n_readouts} readouts", scan.maps_as_read
    pictures = [
        curves_figure(folder, "trajectory", {"readouts": data.readouts.shots}, data.grid_shape, "readout", first),
        point_spread_figure(folder, title, data.trajectory, data.grid_shape, "these readouts", data.density),
    ]
    return [
        *image_sections(folder, result.images, known.shown_reference, frame_of(known), rows, about=about),
        *save_coil_maps(folder, None if maps is None else maps[0], frame_of(known), scan.maps_source),
        *companion_sections(folder, result.images[0].reconstruction, frame_of(known)),
        Section("Trajectory", pictures),
    ]


def _on_grid(folder: RunFolder, known: KnownScan, result: ReconResult) -> list[Section]:
    unit = known.slice_model.candidates.unit
    return [
        *save_reconstruction(folder, known, result.images, result.ending.lines),
        Section(f"{unit.capitalize()}s", [mask_figure(folder, f"measured {unit}s", result.mask)]),
    ]

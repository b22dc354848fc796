"""What a reconstruction leaves in its folder: image, error bars, mask, errors, figures, manifest and page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.page import Section, saved_figure
from mri_design.runs.image_sections import (
    account_settings,
    curves_figure,
    image_sections,
    mask_sentence,
    point_spread_figure,
    save_coil_maps,
    save_images,
    save_reconstruction,
)
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.recon.stages import REPORT
from mri_design.runs.recon.trajectory import FOLDED, TrajectoryResult
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import (
    left_out_settings,
    left_out_summary,
    level_settings,
    level_summary,
    simulated_from,
    simulation_summary,
    typical_unit,
)

_WITH_THE_SCAN = ", by the weights that came with the scan,"


def report_trajectory(run: Run, result: TrajectoryResult) -> Ending:
    """Write image, error bars, the mask of readouts, errors, figures, manifest and page into the run's folder."""
    scan, image = result.scan, result.images[0]
    data = scan.data
    count, pixels = len(data.trajectory), data.grid_shape[0] * data.grid_shape[1]
    rows: list[dict[str, object]] = [
        {
            "method": named.name,
            "readouts": data.readouts,
            "samples": count,
            "relative_l2": named.errors.relative_l2 if named.errors else None,
            "psnr": named.errors.psnr if named.errors else None,
            "ssim": named.errors.ssim if named.errors else None,
            "converged": named.reconstruction.convergence.converged,
            "matvecs": named.reconstruction.convergence.matvecs,
        }
        for named in result.images
    ]
    save_images(run.folder, image.reconstruction, rows)
    run.folder.write_mask(result.mask)
    unit = scan.image_unit(0)
    reference = None if data.reference is None else np.asarray(data.reference[0] * unit)
    about = (
        f"{count} samples on {data.readouts} readouts; the image has {pixels} pixels. The gridded image compensates "
        f"for the density of the samples{_WITH_THE_SCAN if data.density is not None else ''} and knows nothing else."
    )
    readouts = data.trajectory.reshape(data.readouts, -1, 2)
    first = "the first of the scan" if result.mask[0] else "the first of those used, in the order of the scan"
    pictures = [
        curves_figure(run.folder, "trajectory", {"readouts": readouts}, data.grid_shape, "readout", first),
        point_spread_figure(
            run.folder, f"{data.readouts} readouts", data.trajectory, data.grid_shape, "these readouts", data.density
        ),
    ]
    maps = scan.maps_as_read
    sections = [
        *image_sections(run.folder, result.images, reference, "no-lines", rows, about=about),
        *save_coil_maps(run.folder, None if maps is None else maps[0], "no-lines", scan.maps_source),
        Section("Trajectory", pictures),
    ]
    assert data.noise_variance is not None
    levels = (data.noise_variance, result.signal, typical_unit(unit))
    account = image.reconstruction.account()
    summary: dict[str, object] = {
        "method": image.name,
        "readouts": f"{data.readouts} of {len(result.mask)}",
        "samples": count,
        "noise": scan.noise_source,
        "coil maps": scan.maps_source,
        **level_summary(*levels),
        **left_out_summary(data),
        **({"field of view": FOLDED} if result.folded else {}),
        **account,
        "multiplications with A": image.reconstruction.convergence.matvecs,
    }
    facts = {
        "noise_source": scan.noise_source,
        "coil_maps_source": scan.maps_source,
        "readouts": data.readouts,
        "matrix": list(data.grid_shape),
        **level_settings(*levels),
        **left_out_settings(data),
        **({"field_of_view_doubt": FOLDED} if result.folded else {}),
        **account_settings(account),
    }
    record = replace(result.record, settings={**result.record.settings, **facts})
    return run.finish(result.ending, record, f"Reconstruction: {data.name}", summary, sections)


def report_reconstruction(run: Run, result: ReconResult | TrajectoryResult) -> Ending:
    """Write everything about a reconstruction into the run's folder."""
    ended = report_trajectory(run, result) if isinstance(result, TrajectoryResult) else _report_on_grid(run, result)
    run.progress.show(REPORT, 1, 1)
    return ended


def _report_on_grid(run: Run, result: ReconResult) -> Ending:
    known, mask, lines = result.known, result.mask, result.ending.lines
    image = result.images[0]
    unit = known.slice_model.candidates.unit
    if unit == "line":
        barcode = saved_figure(
            run.folder, "mask", lambda: plots.mask_barcodes({"measured lines": mask}), mask_sentence(mask)
        )
    else:
        caption = "Measured samples (ky, kz), DC in the middle."
        barcode = saved_figure(run.folder, "mask", lambda: plots.plane_masks({"measured samples": mask}), caption)
    account = image.reconstruction.account()
    sections = [
        *save_reconstruction(run.folder, known, result.images, lines),
        Section(f"{unit.capitalize()}s", [barcode]),
    ]
    run.folder.write_mask(mask)
    summary: dict[str, object] = {
        "method": image.name,
        f"{unit}s": f"{len(lines)} of {mask.size}",
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
        **account,
        "multiplications with A": image.reconstruction.convergence.matvecs,
    }
    facts = {**account_settings(account), **known.settings()}
    record = replace(result.record, settings={**result.record.settings, **facts})
    return run.finish(result.ending, record, f"Reconstruction: {known.data.name}", summary, sections)

"""What the reconstruction of samples along a trajectory leaves in its folder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.evaluation.output.page import Section
from mri_design.runs.recon.trajectory import FOLDED, TrajectoryResult
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import left_out_settings, left_out_summary, level_settings, level_summary, typical_unit
from mri_design.runs.sections.images import account_settings, image_sections, save_coil_maps, save_images
from mri_design.runs.sections.trajectories import curves_figure, point_spread_figure

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

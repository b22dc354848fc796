"""Report of a reconstruction: image, error bars, mask, errors, figures, manifest and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.evaluation.page import Section
from mri_design.runs.image_sections import (
    account_settings,
    curves_figure,
    image_sections,
    mask_figure,
    metric_rows,
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


def report_reconstruction(run: Run, result: ReconResult | TrajectoryResult) -> Ending:
    """Write everything about a reconstruction into the run's folder."""
    image = result.images[0]
    told = _told_along(run, result) if isinstance(result, TrajectoryResult) else _told_on_grid(run, result)
    run.folder.write_mask(result.mask)
    account = image.reconstruction.account()
    summary = {
        "method": image.name,
        **told.summary,
        **account,
        "multiplications with A": image.reconstruction.convergence.matvecs,
    }
    facts = {**told.facts, **account_settings(account)}
    record = replace(result.record, settings={**result.record.settings, **facts})
    ended = run.finish(result.ending, record, f"Reconstruction: {told.name}", summary, told.sections)
    run.progress.show(REPORT, 1, 1)
    return ended


@dataclass(frozen=True)
class _Told:
    """Rows for the page's table and for the manifest, and sections, of one kind of reconstruction."""

    name: str
    summary: Mapping[str, object]
    facts: Mapping[str, object]
    sections: Sequence[Section]


def _told_along(run: Run, result: TrajectoryResult) -> _Told:
    scan = result.scan
    data = scan.data
    count, pixels = len(data.trajectory), data.grid_shape[0] * data.grid_shape[1]
    rows = metric_rows(result.images, {"readouts": data.n_readouts, "samples": count})
    save_images(run.folder, result.images[0].reconstruction, rows)
    unit = scan.image_unit(0)
    reference = None if data.reference is None else np.asarray(data.reference[0] * unit)
    about = (
        f"{count} samples on {data.n_readouts} readouts; the image has {pixels} pixels. The gridded image compensates "
        f"for the density of the samples{_WITH_THE_SCAN if data.density is not None else ''} and knows nothing else."
    )
    first = "the first of the scan" if result.mask[0] else "the first of those used, in the order of the scan"
    pictures = [
        curves_figure(run.folder, "trajectory", {"readouts": data.readouts.shots}, data.grid_shape, "readout", first),
        point_spread_figure(
            run.folder, f"{data.n_readouts} readouts", data.trajectory, data.grid_shape, "these readouts", data.density
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
    summary: dict[str, object] = {
        "readouts": f"{data.n_readouts} of {len(result.mask)}",
        "samples": count,
        "noise": scan.noise_source,
        "coil maps": scan.maps_source,
        **level_summary(*levels),
        **left_out_summary(data),
        **({"field of view": FOLDED} if result.folded else {}),
    }
    facts = {
        "noise_source": scan.noise_source,
        "coil_maps_source": scan.maps_source,
        "readouts": data.n_readouts,
        "matrix": list(data.grid_shape),
        **level_settings(*levels),
        **left_out_settings(data),
        **({"field_of_view_doubt": FOLDED} if result.folded else {}),
    }
    return _Told(data.name, summary, facts, sections)


def _told_on_grid(run: Run, result: ReconResult) -> _Told:
    known, mask, lines = result.known, result.mask, result.ending.lines
    unit = known.slice_model.candidates.unit
    sections = [
        *save_reconstruction(run.folder, known, result.images, lines),
        Section(f"{unit.capitalize()}s", [mask_figure(run.folder, f"measured {unit}s", mask)]),
    ]
    summary: dict[str, object] = {
        f"{unit}s": f"{len(lines)} of {mask.size}",
        **simulation_summary([simulated_from(known.data)]),
        **known.summary(),
    }
    return _Told(known.data.name, summary, known.settings(), sections)

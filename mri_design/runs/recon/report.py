"""What a reconstruction leaves in its folder: image, error bars, mask, errors, figures, manifest and page."""

from __future__ import annotations

from dataclasses import replace

from mri_design.evaluation import plots
from mri_design.evaluation.mask_sentence import mask_sentence
from mri_design.evaluation.output.page import Section, saved_figure
from mri_design.runs.recon.run import ReconResult
from mri_design.runs.recon.stages import REPORT
from mri_design.runs.recon.trajectory import TrajectoryResult
from mri_design.runs.recon.trajectory_report import report_trajectory
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import simulated_from, simulation_summary
from mri_design.runs.sections.images import account_settings, save_reconstruction


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

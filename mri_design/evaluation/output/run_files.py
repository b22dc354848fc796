"""The last two files of a run folder: its manifest, and the report that links to all the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mri_design.evaluation.output.manifest import Manifest
from mri_design.evaluation.output.page import Links, Paragraph, Section, write_report
from mri_design.evaluation.output.run_folder import RunFolder

_HELD = {
    "recon.npy": "the image, complex64 (ky, kx)",
    "std.npy": "standard deviation of every pixel, float32 (ky, kx)",
    "coil_maps.npy": "coil sensitivity maps of the scan's own coils, complex64 (coil, ky, kx)",
    "mask.npy": "what is measured, bool: lines (ky,), samples of a plane (ky, kz), or shots (shot,)",
    "lines.csv": "lines in the order of choice",
    "samples.csv": "samples of the plane in the order of choice",
    "shots.csv": "shots in the order of choice, with their angles",
    "trajectory.npz": "the chosen shots as a scan: data, trajectory, noise, coil maps",
    "acquisition.csv": "what is measured, in the order of measurement, with its echo trains where there are any",
    "masks.json": "every mask as what it measures, in the order of choice",
    "metrics.csv": "error of every image",
    "winners.csv": "least mean error at each number of lines, samples or shots",
    "summary.csv": "mean errors and their spread",
    "paired.csv": "designed masks against the best of the others",
    "tuned.csv": "powers of the tuned densities",
    "steps.csv": "every decision of the design",
    "blocks.csv": "every block of samples of the design",
    "scores.csv": "score of every line at every decision",
    "prediction.csv": "predicted and actual error along the run",
    "prediction-lines.csv": "the same line by line",
    "models.csv": "models of the phase, decision by decision",
    "exchanges.csv": "exchanges of lines that were tried",
    "manifest.json": "command, versions, seed, settings",
}
"""Every file that runs leave for people, in the order in which they are listed."""


def files_section(folder: Path) -> Section:
    """Links to the files that lie beside the report."""
    there = {name: what for name, what in _HELD.items() if (folder / name).is_file()}
    return Section("Files", [Links(there), Paragraph("The figures are in the folder figures.")])


def save_report(
    folder: RunFolder,
    title: str,
    summary: Mapping[str, object],
    sections: Sequence[Section],
    manifest: Manifest,
) -> None:
    """Write manifest.json and report.html with links to the run's files; what did not converge stands on top.

    A folder without a report gets the manifest alone; figures and report of an earlier run there go.
    """
    folder.write_manifest(manifest)
    if not folder.reported:
        folder.remove_report()
        return
    write_report(
        folder.output_path("report.html"),
        title,
        summary,
        [*sections, files_section(folder.path)],
        warnings=manifest.warnings,
        manifest=manifest.to_show(),
    )

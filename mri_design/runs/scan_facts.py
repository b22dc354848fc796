"""What a run knew about its scan before it began: noise, signal, what was not read, and whether it was simulated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation.reference_noise import reference_noise
from mri_design.experiment.inputs import PreparedScan
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.trajectories.preparing import PreparedSamples
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.operators.encodings import ShotEncoding
from mri_design.runs.run import Progress
from mri_design.scan.data import KSpaceData
from mri_design.scan.left_out import left_out, left_out_text, part_of_scan
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = [
    "KnownScan",
    "calibration_settings",
    "calibration_summary",
    "doubts_of_all",
    "left_out_settings",
    "left_out_summary",
    "level_settings",
    "level_summary",
    "simulated_from",
    "simulation_summary",
    "tell_part",
    "warn_of_left_out",
    "warn_of_noise",
]

_LEFT_OUT = "left out of the scan"
_CALIBRATION = ("noise_readouts", "calibration_lines", "calibration_scan", "coil_maps_file", "coil_maps_explain")


def simulated_from(data: KSpaceData) -> str:
    """What k-space was simulated from ("from images"); empty where it was not simulated."""
    return str(data.card.get("simulated", "")).split(",")[0]


def simulation_summary(origins: Iterable[str]) -> dict[str, object]:
    """One row for a report's table that says which k-space was simulated; none where no scan's was.

    Parameters
    ----------
    origins : iterable of str
        `simulated_from` of every scan.
    """
    listed = list(origins)
    kinds = list(dict.fromkeys(origin for origin in listed if origin))
    if not kinds:
        return {}
    some = sum(bool(origin) for origin in listed)
    share = "" if some == len(listed) else f" ({some} of {len(listed)} images)"
    return {"k-space": f"simulated {' and '.join(kinds)}{share}"}


def tell_part(scan: KSpaceData | TrajectoryData, recipe: Recipe, progress: Progress) -> None:
    """Say what of a file the one image of a run is made of: which slice, which series, and what was not read.

    Whoever asks how far the run is (`mri-design status`) is told the slice and the series, too.
    """
    progress.about(part_of_scan(scan.card))
    warn_of_left_out(scan, recipe, progress)


def warn_of_left_out(scan: KSpaceData | TrajectoryData, recipe: Recipe, progress: Progress) -> None:
    """Say in one line what the file of a scan holds beyond what was read, but for series that somebody chose."""
    text = left_out_text(scan.card, asked=recipe.input.counters)
    if text:
        progress.warn(f"{scan.name}: {text}")


def warn_of_noise(scan: PreparedScan | PreparedSamples, progress: Progress) -> None:
    """Say in one line that the noise of a scan had to be estimated from samples that hold signal, and what cures it."""
    if scan.noise_doubt:
        progress.warn(
            f"{scan.data.name}: its noise is {scan.noise_source}; better images need the noise in the file, or as "
            "variance under [noise] in a recipe"
        )


def left_out_settings(scan: KSpaceData | TrajectoryData) -> dict[str, object]:
    """The same for a manifest, chosen series included; nothing where everything was read."""
    told = {"part_of_scan": part_of_scan(scan.card), "left_out_of_scan": left_out(scan.card)}
    return {name: entry for name, entry in told.items() if entry}


def left_out_summary(scan: KSpaceData | TrajectoryData) -> dict[str, object]:
    """The same for a report's table."""
    told = {"part of the scan": part_of_scan(scan.card), _LEFT_OUT: left_out_text(left_out(scan.card))}
    return {row: text for row, text in told.items() if text}


def doubts_of_all(images: Iterable[ReferenceSlice]) -> tuple[dict[str, object], dict[str, object]]:
    """What was left out of the files of several slices, and whose noise is doubtful: for a manifest, and a report."""
    settings: dict[str, object] = {}
    summary: dict[str, object] = {}
    listed = list(images)
    for key, row, told in (
        ("left_out_of_scans", _LEFT_OUT, {image.source: image.left_out for image in listed if image.left_out}),
        ("noise_sources", "noise", {image.source: image.doubtful_noise for image in listed if image.doubtful_noise}),
    ):
        if told:
            settings[key] = told
            summary[row] = "; ".join(f"{Path(file).name}: {text}" for file, text in told.items())
    return settings, summary


def calibration_settings(scan: PreparedScan) -> dict[str, object]:
    """Where noise and coil maps are from, and what the file says about either, for a manifest."""
    details = {name: text for name, text in scan.data.card.items() if name in _CALIBRATION}
    return {"noise_source": scan.noise_source, "coil_maps_source": scan.maps_source, **details}


def calibration_summary(scan: PreparedScan) -> dict[str, object]:
    """The same for a report's table."""
    return {"noise": scan.noise_source, "coil maps": scan.maps_source}


def level_settings(noise_variance: float, signal: float, unit: float) -> dict[str, object]:
    """Noise and signal level in force, for a manifest; ``unit`` (`PreparedScan.unit`) takes them to images' units."""
    return {"noise_sd_per_real_component": float(np.sqrt(noise_variance)) * unit, "signal_level": float(signal) * unit}


def level_summary(noise_variance: float, signal: float, unit: float) -> dict[str, object]:
    """The same for a report's table."""
    levels = level_settings(noise_variance, signal, unit)
    return dict(zip(("noise sd per real component", "signal level"), levels.values(), strict=True))


@dataclass(frozen=True)
class KnownScan:
    """One slice of a scan, and what a run knew about it before it began.

    Parameters
    ----------
    data : KSpaceData
        The slice as read.
    scan : PreparedScan
        Calibrated.
    slice_model : MRSlice
        As models take it.
    signal : float
        Signal level that the prior's scales follow.
    reference : complex array, shape (ky, kx), or None
        What errors are measured against.
    reference_noise : float or None
        What the reference's own noise makes of an error, see `reference_noise`; None for a true image.
    """

    data: KSpaceData
    scan: PreparedScan
    slice_model: MRSlice
    signal: float
    reference: Array | None
    reference_noise: float | None

    @classmethod
    def of(cls, data: KSpaceData, scan: PreparedScan, slice_model: MRSlice, signal: float) -> KnownScan:
        """The same with the reference that the scan brings, if it brings one."""
        reference = scan.reference(0)
        noise = None if reference is None else reference_noise(scan.data, reference)
        return cls(data, scan, slice_model, signal, reference, noise)

    def acceleration(self, lines: Sequence[int]) -> float:
        """Samples of the grid over samples measured on ``lines``; lines over lines where each of them is whole."""
        sampling = self.data.samplings[0]
        candidates = self.slice_model.candidates
        if isinstance(candidates, ShotEncoding):
            return sampling.samples.size / (len(lines) * candidates.shots.shape[1])
        if candidates.name != "lines" or sampling.whole_lines:
            return candidates.size / len(lines)
        return sampling.samples.size / int(sampling.samples[list(lines)].sum())

    def settings(self) -> dict[str, object]:
        """For a manifest: noise, coil maps, signal, what is missing or left out, the slice's place, whose it is."""
        noise = {} if self.reference_noise is None else {"reference_noise": self.reference_noise}
        levels = level_settings(self.slice_model.noise_variance, self.signal, self.scan.unit)
        sampling = self.data.samplings[0]
        missing = {} if sampling.whole_lines else {"missing_samples": sampling.missing_samples}
        place = self.data.geometry
        geometry = {} if place is None else {"geometry": place[0].as_settings()}
        source = {} if self.data.source is None else {"source_image": self.data.source.as_settings()}
        found = {**calibration_settings(self.scan), **noise, **levels, **missing, **left_out_settings(self.data)}
        return {**found, **geometry, **source}

    def summary(self) -> dict[str, object]:
        """The same for a report's table."""
        levels = level_summary(self.slice_model.noise_variance, self.signal, self.scan.unit)
        return {**calibration_summary(self.scan), **levels, **left_out_summary(self.data)}

"""What a scan holds and what the package would make of it, in words."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.experiment.inputs import calibration_count, source_of_maps, with_known_noise
from mri_design.experiment.recipe import Recipe
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import Sampling, index_runs
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = ["describe_scan", "noise_sentence"]


def describe_scan(data: KSpaceData, recipe: Recipe) -> dict[str, str]:
    """Size, sampling, noise, coils and provenance; what cannot be told says why instead.

    Parameters
    ----------
    data : KSpaceData
        As read.
    recipe : Recipe
        Whose noise and calibration settings would be in force.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.
    """
    ky, kx = data.grid_shape
    return {
        "name": data.name,
        "grid": f"{ky} phase-encode lines x {kx} readout samples (ky, kx)",
        "slices, coils": f"{data.n_slices}, {data.n_coils}",
        **_place(data),
        **_sampling(data),
        **_calibration(data, recipe),
        **data.card,
    }


def _place(data: KSpaceData) -> dict[str, str]:
    """Field of view, resolution and orientation of the first slice, where the file says them."""
    if data.geometry is None:
        return {}
    (ky, kx), first = data.grid_shape, data.geometry[0]
    extents = f"{ky * first.pixel[0]:.4g} x {kx * first.pixel[1]:.4g} mm"
    thickness = "" if first.thickness is None else f", {first.thickness:.3g} mm thick"
    rows = {"field of view": f"{extents}, pixels of {first.pixel[0]:.3g} x {first.pixel[1]:.3g} mm{thickness}"}
    return rows | ({"orientation": first.orientation} if first.orientation else {})


def _sampling(data: KSpaceData) -> dict[str, str]:
    empty = [not sampling.lines.any() for sampling in data.samplings]
    held = [sampling for sampling in data.samplings if sampling.lines.any()]
    different = any((sampling.samples != held[0].samples).any() for sampling in held)
    first = next((sampling for sampling in held if not sampling.full), held[0])
    rows = _sampling_of(first)
    if different:
        rows["slices differ"] = "each has lines or samples of its own; the above is of the first one that lacks some"
    if any(empty):
        rows["empty slices"] = index_runs(empty)
    return rows


def _sampling_of(sampling: Sampling) -> dict[str, str]:
    lines, columns = sampling.lines, sampling.columns
    measured = f"{int(lines.sum())} of {len(lines)}"
    if not lines.all():
        measured += f", missing {index_runs(~lines)}"
        measured += f": acceleration {len(lines) / max(int(lines.sum()), 1):.3g}"
    rows = {"measured lines": measured}
    if not sampling.whole_lines:
        within = sampling.samples[lines].mean()
        rows["samples"] = (
            f"{sampling.percentage} of the grid: along ky {lines.mean():.1%} of the lines hold some, along kx "
            f"{columns.mean():.1%} of the columns; a measured line holds {within:.1%} of its samples on average"
        )
    rows["fully sampled"] = "yes" if sampling.full else f"no: {sampling.missing}"
    return rows


def _calibration(data: KSpaceData, recipe: Recipe) -> dict[str, str]:
    """Noise and coil maps as `prepare` would have them, told by one slice: no maps are made."""
    index = _told_by(data)
    part = data if data.n_slices == 1 else data.select_slice(index)
    try:
        scan, source, unit, _ = with_known_noise(part, recipe, ordinary=True)
        maps, _ = source_of_maps(data, calibration_count(None, recipe, data.grid_shape[0]))
    except InputError as error:
        return {"calibration": f"not possible: {error}"}
    whitened = data.n_coils > 1 and scan.noise_variance == 1
    where = f" in slice {index}" if data.n_slices > 1 else ""
    return {"noise": noise_sentence(scan, unit, source, whitened) + where, "coil maps": maps}


def noise_sentence(scan: KSpaceData | TrajectoryData, unit: float, source: str, whitened: bool) -> str:
    """Noise and largest sample of a scan whose noise is known, in the units of its file."""
    deviation = unit * float(np.sqrt(scan.noise_variance or 0.0))
    after = ", after whitening" if whitened else ""
    peak = unit * float(np.abs(scan.kspace).max())
    return f"sd {deviation:.4g} per real component, {source}{after}; largest sample {peak:.4g}"


def _told_by(data: KSpaceData) -> int:
    """The slice nearest to the middle that holds lines."""
    held = [number for number, sampling in enumerate(data.samplings) if sampling.lines.any()]
    return min(held, key=lambda number: abs(number - data.n_slices // 2))

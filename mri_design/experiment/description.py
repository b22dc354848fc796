"""Description of a scan in words: size, sampling, calibration as `prepare` would do it, provenance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.centre import dense_centre
from mri_design.calibration.noise import largest_correlation
from mri_design.errors import InputError
from mri_design.experiment.calibration import (
    DEAD_COILS,
    NOISE_WITNESSES,
    calibration_count,
    maps_with_gaps,
    source_of_maps,
    source_of_sample_maps,
    takes_lines_with_gaps,
    with_checked_maps,
    with_known_noise,
)
from mri_design.experiment.recipe import Recipe
from mri_design.scan.calibration import calibration_width, gapless_square, noise_is_beside
from mri_design.scan.data import Scan, ScanSummary, TrajectoryData
from mri_design.scan.geometry import SourceImage
from mri_design.scan.kspace_centre import GIVEN_CENTRE, find_centre
from mri_design.scan.sampling import Sampling, gapless_run, index_runs, refused_samples


def describe_scan(scan: ScanSummary, recipe: Recipe) -> dict[str, str]:
    """Size, sampling, centre, noise, coils and provenance; what cannot be told says why instead.

    Parameters
    ----------
    scan : ScanSummary
        As read: `ScanSummary.of` makes one of a whole scan.
    recipe : Recipe
        Whose noise and calibration settings would be in force.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.
    """
    ky, kx = scan.grid_shape
    told = {"samples": scan.refused} if scan.refused else _sampling(scan) | _centre(scan) | _calibration(scan, recipe)
    return {
        "name": scan.name,
        "grid": f"{ky} x {kx} phase encodes (ky, kz)"
        if "volume" in scan.header
        else f"{ky} phase-encode lines x {kx} readout samples (ky, kx)",
        "slices, coils": f"{scan.n_slices}, {scan.n_coils}",
        **_place(scan),
        **told,
        **measured_how(None if scan.part is None else scan.part.source),
        **scan.header,
    }


def measured_how(source: SourceImage | None) -> dict[str, str]:
    """Protocol, times, flip angle and date, where the header of raw data or of a DICOM image says them."""
    said = {} if source is None else source.identifiers
    told = [f"{said['ProtocolName']}"] if "ProtocolName" in said else []
    for name, word, unit in (
        ("EchoTime", "TE", "ms"),
        ("RepetitionTime", "TR", "ms"),
        ("FlipAngle", "flip", "degrees"),
    ):
        if float(said.get(name, 0)) > 0:
            told.append(f"{word} {float(said[name]):.6g} {unit}")
    date = said.get("StudyDate", "")
    rows = {"sequence": ", ".join(told)} if told else {}
    return rows | ({"date": f"{date[:4]}-{date[4:6]}-{date[6:]}"} if date else {})


def _place(scan: ScanSummary) -> dict[str, str]:
    """Field of view, resolution and orientation of the first slice, where the file says them."""
    if scan.geometry is None:
        return {"field of view": "not in the file"}
    (ky, kx), first = scan.grid_shape, scan.geometry[0]
    extents = f"{ky * first.pixel[0]:.4g} x {kx * first.pixel[1]:.4g} mm"
    thickness = "" if first.thickness is None else f", {first.thickness:.3g} mm thick"
    rows = {"field of view": f"{extents}, pixels of {first.pixel[0]:.3g} x {first.pixel[1]:.3g} mm{thickness}"}
    if first.unplaced:
        rows["orientation"] = f"not taken over: {first.unplaced}"
    ways = list(dict.fromkeys(place.orientation for place in scan.geometry))
    return rows | ({"orientation": "; other slices ".join(ways)} if all(ways) else {})


def _sampling(scan: ScanSummary) -> dict[str, str]:
    empty = [not sampling.lines.any() for sampling in scan.samplings]
    held = [sampling for sampling in scan.samplings if sampling.lines.any()]
    different = any((sampling.samples != held[0].samples).any() for sampling in held)
    first = next((sampling for sampling in held if not sampling.full), held[0])
    rows = _sampling_of(first)
    if different:
        rows["slices differ"] = "each has lines or samples of its own; the above is of the first one that lacks some"
    if any(empty):
        rows["empty slices"] = index_runs(empty)
    if scan.part is None:
        rows |= {
            "measured lines": rows["measured lines"].replace(" of ", " labelled of ", 1),
            "fully sampled": "no: the readouts hold zeros",
            "data": "none: labels without samples, as of a design that mri-design export --to mrd wrote, or of a scan "
            "that failed",
        }
    elif scan.by_headers:
        rows["told by"] = f"the samples of slice {scan.index}, and the headers of the readouts of the others"
    return rows


def _sampling_of(sampling: Sampling) -> dict[str, str]:
    lines, columns = sampling.lines, sampling.columns
    measured = f"{int(lines.sum())} of {len(lines)}"
    if not lines.all():
        measured += f", {sampling.missing_in_words}"
        measured += f"; acceleration {len(lines) / max(int(lines.sum()), 1):.3g}" if sampling.whole_lines else ""
    rows = {"measured lines": measured}
    if not sampling.whole_lines:
        within = sampling.samples[lines].mean()
        count, size = int(sampling.samples.sum()), sampling.samples.size
        rows["samples"] = (
            f"{count} of {size}, {sampling.percentage} of the grid: acceleration {size / max(count, 1):.3g}; "
            f"along ky {lines.mean():.1%} of the lines hold some, along kx {columns.mean():.1%} of the columns; "
            f"a measured line holds {within:.1%} of its samples on average"
        )
    at = np.flatnonzero(lines)
    if not sampling.full:
        rows["fully sampled"] = f"no: {sampling.missing}"
    elif lines.all():
        rows["fully sampled"] = "yes"
    else:  # equal edges that were filled with zeros
        one = len(at) == len(lines) - 1
        empty = "line {} at the edge of k-space is" if one else "lines {} at the edges of k-space are"
        rows["fully sampled"] = f"yes, from line {at[0]} to {at[-1]}; {empty.format(index_runs(~lines))} empty"
    return rows


def _centre(scan: ScanSummary) -> dict[str, str]:
    """Tell the place of DC on the grid, by what it is known, and how many lines around it have no gap."""
    ky, kx = scan.grid_shape
    row, across = ky // 2, "partition" if "volume" in scan.header else "sample"
    known = "assumed"
    if GIVEN_CENTRE in scan.header:
        known = "given"
    elif scan.part is not None:
        known = find_centre(scan.part.kspace[0], scan.samplings[scan.index].samples).known_by
    held = [sampling.lines for sampling in scan.samplings if sampling.lines.any()]
    lines = np.logical_and.reduce(held)
    place = f"{known}: line {row}, {across} {kx // 2}, counted from 0"
    if not lines[row]:
        return {"centre": f"{place}; that line was not measured"}
    first, last = gapless_run(lines, row)
    text = f"{place}; {last - first + 1} lines without a gap around it ({first}-{last})"
    if scan.n_coils > 1:
        text += f", of which the innermost {gapless_square(scan.samplings)} can serve for coil maps"
    return {"centre": text}


def _calibration(scan: ScanSummary, recipe: Recipe) -> dict[str, str]:
    """Noise and coil maps as `prepare` would have them, told by one slice: only maps of lines with gaps are made."""
    if scan.part is None:
        return {}
    try:
        known, source, unit, mixing = with_known_noise(scan.part, recipe, ordinary=True)
        lines = calibration_count(None, recipe, scan.grid_shape[0])
        centre = gapless_square(scan.samplings)
        if takes_lines_with_gaps(scan.part, lines, recipe, centre):
            maps = maps_with_gaps(known, lines, recipe)[0].text
        else:
            maps, from_lines = source_of_maps(known, lines, centre)
            width = calibration_width(known, lines, centre) if from_lines else 0
            _, maps = with_checked_maps(known, known, maps, width)
    except InputError as error:
        return {"calibration": f"not possible: {error}"}
    whitened = scan.n_coils > 1 and known.noise_variance == 1
    where = f" in slice {scan.index}" if scan.n_slices > 1 else ""
    noise = noise_sentence(known, unit, source, whitened) + where
    if recipe.noise.variance is None and noise_is_beside(scan.part, scan.n_slices):
        noise += ", whose outermost samples hold signal too; recon measures the noise at the ends of the readout"
    rows = {"noise": noise}
    if whitened and mixing is not None:
        rows["noise of coils"] = _noise_of_coils(np.linalg.inv(mixing))
    told = {"noise by place": NOISE_WITNESSES, "coils": DEAD_COILS}
    rows |= {row: known.header[entry] for row, entry in told.items() if entry in known.header}
    return rows | {"coil maps": maps}


def _noise_of_coils(unmixing: NDArray[Any]) -> str:
    """Noise of the coils as they were read, by the matrix that makes them of independent noise of variance 1."""
    covariance = unmixing @ unmixing.conj().T
    deviations = np.sqrt(np.diag(covariance).real)
    largest = largest_correlation(covariance)
    shared = f"correlation of two coils up to {largest:.2f}" if largest > 1e-6 else "each coil counts as independent"
    low, middle, high = (f"{of(deviations):.4g}" for of in (np.min, np.median, np.max))
    if low == high:
        return f"sd {low} per real component before whitening, in every coil; {shared}"
    return f"sd {low} to {high} per real component before whitening, median {middle}; {shared}"


def noise_sentence(scan: Scan, unit: float, source: str, whitened: bool) -> str:
    """Noise and largest sample of a scan whose noise is known, in the units of its file."""
    deviation = unit * float(np.sqrt(scan.noise_variance or 0.0))
    after = ", after whitening" if whitened else ""
    peak = unit * float(np.abs(scan.kspace).max())
    return f"sd {deviation:.4g} per real component, {source}{after}; largest sample {peak:.4g}"


SAME_PLACE = 1e-3
"""Cycles per field of view: samples on the same point of a grid this fine were measured at the same place."""


def describe_samples(data: TrajectoryData, recipe: Recipe) -> dict[str, str]:
    """Size, trajectory, noise, coils and provenance; what cannot be told says why instead.

    Parameters
    ----------
    data : TrajectoryData
        As read.
    recipe : Recipe
        Whose noise and calibration settings would be in force.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.
    """
    ky, kx = data.grid_shape
    count, side = len(data.trajectory), dense_centre(data.trajectory, min(ky, kx))
    reach = np.abs(data.trajectory).max(axis=0)
    rows = {
        "name": data.name,
        "grid": f"{ky} x {kx} pixels (ky, kx)",
        "slices, coils": f"{data.n_slices}, {data.n_coils}",
        "trajectory": f"{data.n_readouts} readouts of {count // data.n_readouts} samples, up to {reach[0]:.4g} (ky) "
        f"and {reach[1]:.4g} (kx) cycles per field of view",
    }
    if refused := refused_samples(data.kspace):
        return {**rows, "samples": refused, **data.header}
    _, times = np.unique(np.round(data.trajectory / SAME_PLACE).astype(np.int64), axis=0, return_counts=True)
    places, shared = int(np.count_nonzero(times > 1)), int(times[times > 1].sum())
    where = "one place" if places == 1 else f"{places} places"
    repeated = f"; {shared} of them lie at {where} that others share, and each counts as a measurement of its own"
    rows |= {
        "samples": f"{count}, {count / (ky * kx):.1%} of the number of pixels{repeated if shared else ''}",
        "density weights": "computed from the trajectory" if data.density is None else "those of the file",
        "dense": f"in the {side} x {side} central samples of the grid",
    }
    try:
        scan, source, unit, _ = with_known_noise(data, recipe, ordinary=True)
        maps, *_ = source_of_sample_maps(scan, recipe)
    except InputError as error:
        return {**rows, "calibration": f"not possible: {error}", **data.header}
    rows["noise"] = noise_sentence(scan, unit, source, data.noise_covariance is not None and scan.noise_variance == 1)
    rows |= {"coils": scan.header[DEAD_COILS]} if DEAD_COILS in scan.header else {}
    return {**rows, "coil maps": maps, **data.header}

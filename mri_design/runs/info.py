"""Description in words and numbers of an input: a scan, images, a sequence or the folder of a run."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import duration_text
from mri_design.calibration.coils import back_from, dense_centre
from mri_design.calibration.noise import largest_correlation
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.run_folder import MANIFEST, RunStatus, read_manifest, run_statuses
from mri_design.experiment.calibration import expected_calibration
from mri_design.experiment.inputs import PHANTOM_PREFIX, GivenMaps, load_summary
from mri_design.experiment.recipe import Recipe
from mri_design.runs.provenance import across, centre_words, labelled, left_out, phrase, sentences, simulated_from
from mri_design.runs.stored_run import kind_of_run, listed
from mri_design.scan.calibration import find_centre, gapless_square, noise_from_readout_ends
from mri_design.scan.data import ImageStack, KSpaceData, ScanSummary, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.numpy_files import is_npy, opened_npy
from mri_design.scan.io.records import holds_record
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.scan.sampling import gapless_run, index_runs, line_pattern, refused_samples
from mri_design.scan.trajectories import largest_side_lobe, spread_of_mask


@dataclass(frozen=True)
class Description:
    """What an input is.

    Parameters
    ----------
    text : dict of str to str
        Label to text, in the order in which people ask.
    values : dict of str to object
        The same as numbers and names for programs, by the keys of ``info --json``: lengths in metres, times in seconds;
        None for what is not known.
    """

    text: dict[str, str]
    values: dict[str, Any] = field(default_factory=dict)

    def __or__(self, other: Description) -> Description:
        return Description(self.text | other.text, self.values | other.values)


_rows = partial(labelled, "info")
_SIDES = (("right", "left"), ("front", "back"), ("feet", "head"))
"""Where the axes of the patient's coordinates begin and end."""


def describe_scan(scan: ScanSummary | TrajectoryData, recipe: Recipe) -> Description:
    """Size, sampling, centre, noise, coils and provenance; what cannot be known is replaced by the reason.

    Parameters
    ----------
    scan : ScanSummary or TrajectoryData
        As read: `ScanSummary.of` makes a summary of a whole scan on a grid.
    recipe : Recipe
        Whose noise and calibration settings would be in force.

    """
    part = scan.part if isinstance(scan, ScanSummary) else scan
    refused = scan.refused if isinstance(scan, ScanSummary) else refused_samples(scan.kspace)
    along = isinstance(scan, TrajectoryData)
    size = {"matrix": list(scan.grid_shape), "slices": scan.n_slices, "coils": scan.n_coils, "volume": scan.volume}
    about = Description(_rows("scan", scan), {"kind": "trajectory" if along else "scan", "name": scan.name, **size}) | (
        _trajectory(scan) if isinstance(scan, TrajectoryData) else _place(scan)
    )
    if refused:
        about |= Description({"samples": refused})
    else:
        about |= _density(scan) if isinstance(scan, TrajectoryData) else _sampling(scan) | _centre(scan)
        about |= Description({}) if part is None else _calibration(scan, part, recipe)
    about |= measured_how(None if part is None else part.source)
    known = scan.provenance
    facts = {
        **{code: phrase(code, *about) for code, about in known.read_as.items()},
        **left_out(scan),
        "simulated": simulated_from(scan),
        "volume": "" if not scan.volume else phrase("volume", scan.n_slices, scan.grid_shape),
        "noise_readouts": "" if known.noise.measured is None else phrase("noise_samples", known.noise.measured),
        "sample_time_us": f"{known.dwell:g}" if known.dwell else "",
        "averages": str(known.averages) if known.averages > 1 else "",
        "centre_of_k-space": centre_words(scan),
    }
    return about | Description({**scan.header, **{name: text for name, text in facts.items() if text}})


def measured_how(source: SourceImage | None) -> Description:
    """Protocol, times, flip angle and date, where the header of raw data or of a DICOM image says them."""
    header = {} if source is None else source.identifiers
    numbers = {name: float(header.get(name, 0)) for name in ("EchoTime", "RepetitionTime", "FlipAngle")}
    echo, repetition, flip = (number if number > 0 else None for number in numbers.values())
    values = {
        "echo_time_s": None if echo is None else echo / 1e3,
        "repetition_time_s": None if repetition is None else repetition / 1e3,
        "flip_angle_degrees": flip,
    }
    return Description(_rows("measured_how", header, numbers), values)


def _lengths(shape: tuple[int, int], place: SliceGeometry | None) -> dict[str, Any]:
    """Field of view and thickness of a slice in metres."""
    extents = None if place is None else [n * side / 1e3 for n, side in zip(shape, place.pixel, strict=True)]
    thickness = None if place is None or place.thickness is None else place.thickness / 1e3
    return {"field_of_view_m": extents, "slice_thickness_m": thickness}


def _place(scan: ScanSummary) -> Description:
    """Field of view, resolution and orientation of the first slice, where the file says them."""
    ways = [] if scan.geometry is None else list(dict.fromkeys(phrase("orientation", place) for place in scan.geometry))
    first = None if scan.geometry is None else scan.geometry[0]
    return Description(_rows("place", scan.grid_shape, first, ways), _lengths(scan.grid_shape, first))


def _sampling(scan: ScanSummary) -> Description:
    empty = [not sampling.lines.any() for sampling in scan.samplings]
    held = [sampling for sampling in scan.samplings if sampling.lines.any()]
    first = next((sampling for sampling in held if not sampling.full), held[0])
    lines, samples = first.lines, first.samples
    at = np.flatnonzero(lines)
    facts = {
        "lines": (int(lines.sum()), len(lines)),
        "samples": (int(samples.sum()), samples.size),
        "shares": (float(lines.mean()), float(first.columns.mean()), float(samples[lines].mean())),
        "ends": (int(at[0]), int(at[-1])),
        "outside": index_runs(~lines),
        "others": phrase("other_lines", lines),
        "missing": phrase("missing", first),
        "different": any((sampling.samples != held[0].samples).any() for sampling in held),
        "empty": index_runs(empty) if any(empty) else "",
    }
    values = {
        "lines": at.tolist(),
        "samples": int(samples.sum()),
        "acceleration": samples.size / int(samples.sum()),
        "fully_sampled": scan.part is not None and first.full,
        "slices_differ": facts["different"],
        "empty_slices": np.flatnonzero(empty).tolist(),
    }
    return Description(_rows("sampling", scan, first, **facts), values)


def _centre(scan: ScanSummary) -> Description:
    """Tell the place of DC on the grid, by what it is known, and how many lines around it have no gap."""
    found, row = scan.provenance.centre, scan.grid_shape[0] // 2
    known = "given" if found is not None and found.known_by == "given" else "assumed"
    if known == "assumed" and scan.part is not None:
        known = find_centre(scan.part.kspace[0], scan.samplings[scan.index].samples).known_by
    lines = np.logical_and.reduce([sampling.lines for sampling in scan.samplings if sampling.lines.any()])
    run = gapless_run(lines, row) if lines[row] else None
    square = gapless_square(scan.samplings) if scan.n_coils > 1 else 0
    values = {
        "centre": [side // 2 for side in scan.grid_shape],
        "centre_source": known,
        "gapless_lines": None if run is None else list(run),
    }
    return Description(_rows("centre", known, scan.grid_shape, across(scan), run, square), values)


def _calibration(scan: ScanSummary | TrajectoryData, part: KSpaceData | TrajectoryData, recipe: Recipe) -> Description:
    """Noise and coil maps as `calibrate` would have them, estimated from one slice."""
    along = isinstance(part, TrajectoryData)
    try:
        known = expected_calibration(part, recipe, getattr(scan, "samplings", ()))
    except InputError as error:
        return Description({"calibration": f"not possible: {error}"}, {"noise_sd": None})
    origin = known.provenance
    white = known.noise_variance == 1 and (part.noise_covariance is not None if along else scan.n_coils > 1)
    beside = isinstance(part, KSpaceData) and noise_from_readout_ends(part, scan.n_slices)
    unmixed = None if along or not white or known.mixing is None else back_from(known.mixing)
    facts = {
        "deviation": known.unit * float(np.sqrt(known.noise_variance or 0.0)),
        "peak": known.unit * float(np.abs(known.kspace).max()),
        "white": white,
        "slice": scan.index if isinstance(scan, ScanSummary) and scan.n_slices > 1 else None,
        "beside": beside and recipe.input.noise_variance is None,
        "coils": None if unmixed is None else _noise_of_coils(unmixed),
        "places": "" if along or origin.noise.estimate is None else phrase("noise_places", origin.noise),
        "dead": phrase("coils", replace(origin, combined=None)),
        "virtual": phrase("coils", replace(origin, dead_coils=(), silent_lines=())),
    }
    values = {
        "noise_sd": facts["deviation"],
        "noise_source": origin.noise.source,
        "noise_whitened": white,
        "largest_sample": facts["peak"],
        "maps_source": origin.maps.source,
        "virtual_coils": None if origin.combined is None else origin.combined[1],
    }
    return Description(
        _rows("calibration", phrase("noise", origin.noise), phrase("maps", origin.maps), **facts), values
    )


def _noise_of_coils(unmixing: NDArray[Any]) -> tuple[float, float, float, float]:
    """Least, median and largest deviation of the coils as they were read, and the largest correlation of two.

    By the matrix that makes them of independent noise of variance 1.
    """
    covariance = unmixing @ unmixing.conj().T
    live = np.flatnonzero(np.diag(covariance))
    covariance = covariance[np.ix_(live, live)]
    found = np.sqrt(np.diag(covariance).real)
    return float(found.min()), float(np.median(found)), float(found.max()), largest_correlation(covariance)


SAME_PLACE = 1e-3
"""Cycles per field of view: samples on the same point of a grid this fine were measured at the same place."""


def _trajectory(data: TrajectoryData) -> Description:
    readouts, samples, reach = data.n_readouts, len(data.trajectory), np.abs(data.trajectory).max(axis=0).tolist()
    values = {"readouts": readouts, "samples": samples, "reach_cycles": reach}
    return Description(_rows("trajectory", readouts, samples, reach), values)


def _density(data: TrajectoryData) -> Description:
    side, pixels = dense_centre(data.trajectory, min(data.grid_shape)), math.prod(data.grid_shape)
    _, times = np.unique(np.round(data.trajectory / SAME_PLACE).astype(np.int64), axis=0, return_counts=True)
    shared = int(np.count_nonzero(times > 1)), int(times[times > 1].sum())
    text = _rows("density", len(data.trajectory), pixels, shared, data.density is not None, side)
    return Description(text, {"dense_centre": side})


def describe_images(held: ImageStack, recipe: Recipe) -> Description:
    """Number and size of the images, where they lie, their values, and what they can be used for.

    Parameters
    ----------
    held : ImageStack
        As read.
    recipe : Recipe
        Its simulation would make k-space from them.

    """
    (count, rows, columns), complex_ = held.images.shape, np.iscomplexobj(held.images)
    pixels = np.abs(held.images) if complex_ else held.images
    facts = {"count": count, "rows": rows, "columns": columns, "low": pixels.min(), "high": pixels.max()}
    read_as = {code: phrase(code, *about) for code, about in held.provenance.read_as.items()}
    further = {**held.header, **read_as, **left_out(held)}
    how, place = measured_how(held.source), held.geometry
    plane = phrase("plane", place) if place is not None and place.placed else ""
    facts |= {"settings": recipe.simulation, "matrix": recipe.input.simulated}
    values = {"kind": "images", "name": held.name, "matrix": [rows, columns], "slices": count, "complex": complex_}
    values |= {"least": None if complex_ else float(facts["low"]), "largest": float(facts["high"])}
    text = _rows("images", held, **facts, complex=complex_, plane=plane, how=how.text, way=_way) | further
    return Description(text, values | _lengths((rows, columns), place) | how.values)


def _way(direction: tuple[float, float, float]) -> str:
    axis = int(np.argmax(np.abs(direction)))
    begin, end = _SIDES[axis]
    return f"{begin} to {end}" if direction[axis] > 0 else f"{end} to {begin}"


_MOST_LINES = 24


def describe_folder(folder: Path) -> Description:
    """The verb, how it ended, its inputs and lines, the files that are there, and verbs that take them.

    Of a run that is not finished what is done, what is left, about how long that takes, and how to go on; of a folder
    with the folders of several runs that of each.

    Parameters
    ----------
    folder : Path
        Of a run, or one that holds the folders of several, as the demo's does. Nothing is written there.

    Raises
    ------
    InputError
        Where it is no folder of a run of this program, and holds none.
    """
    runs = run_statuses(folder)
    own = next((run for run in runs if run.path == folder), None)
    unfinished = own is not None and own.state != "finished"
    if (folder / MANIFEST).is_file() and not unfinished and (own is not None or not runs):
        manifest = read_manifest(folder, command=list, status=str, inputs=list, lines=list)
        inputs = [str(entry.get("name")) for entry in manifest["inputs"] if isinstance(entry, dict)]
        kind, name = kind_of_run(folder), folder.resolve().name
        rows = labelled("info", "finished", name, manifest, inputs, kind, listed(manifest["lines"], _MOST_LINES))
        uses = sentences("info", "uses", folder, kind, {path.name for path in folder.iterdir()})
        values = {"state": "finished", "status": manifest["status"], "command": manifest["command"]}
        values |= {"inputs": inputs, "chosen": manifest["lines"]}
        return Description(rows | _holds(folder, uses), {"kind": "run", "name": name, **values})
    if not runs:
        raise InputError(
            field=str(folder),
            got="a folder without a run of this program",
            wanted="a file, or the folder that design, recon or another verb left",
            cure="Name one file of it: slices of DICOM are files of their own, a BART pair is named by either file.",
        )
    rows = {"name": folder.resolve().name, **({} if own is None else {"run": _state(own)})}
    inside = [run for run in runs if run.path != folder]
    if inside:
        states = [run.state for run in inside]
        rows["runs"] = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        rows |= {str(run.path.relative_to(folder)): _state(run) for run in inside}
    uses = [f"mri-design info {inside[0].path} describes one run"] if inside else []
    within = {str(run.path.relative_to(folder)): run.state for run in inside}
    values = {"state": None if own is None else own.state, **({"runs": within} if inside else {})}
    text = rows | _holds(folder, uses, reported=not unfinished)
    return Description(text, {"kind": "run" if own is not None else "runs", "name": rows["name"], **values})


def _state(run: RunStatus) -> str:
    """How a run ended, or how far it is, who has it, and the command that goes on."""
    progress = run.progress
    command = [] if progress is None else [word for word in progress.command if word != "--overwrite"]
    if command and run.kept and command[0] != "demo" and "--resume" not in command:
        command.append("--resume")
    stages = [] if progress is None else progress.stages
    current = max(stages, key=lambda stage: (stage.updated, stage.began), default=None)
    left = [stage for stage in stages if stage.done < stage.total and stage is not current]
    text = phrase("state", run, current, left, time.time(), duration_text, bool(command), template="info")
    goes_on = command and run.state not in ("finished", "running")
    return f"{text} with: {shlex.join(['mri-design', *command])}" if goes_on else text


def _holds(folder: Path, uses: list[str], *, reported: bool = True) -> dict[str, str]:
    """The files of a folder, and commands that take them, its page first."""
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    page = folder / "report.html"
    uses = [f"open {page}", *uses] if reported and page.is_file() else uses
    return {"holds": ", ".join(names), **({"next": "; ".join(uses)} if uses else {})}


_START = b"# Pulseq sequence file"
_SIGNATURE = re.compile(rb"^\[SIGNATURE\][ \r]*$", re.MULTILINE)
_MOST = 64 * 2**20
_UNITS = {"FOV": "m", "TE": "s", "TR": "s", "TotalDuration": "s", "FlipAngle": "degrees", "SliceThickness": "m"}
_MOST_DEFINITIONS, _LONGEST = 40, 200


def is_sequence(path: Path) -> bool:
    """Whether a file begins as Pulseq files do."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_START)) == _START


def describe_sequence(path: Path) -> Description:
    """Version, definitions and number of blocks of a Pulseq file, whose signature is checked where it has one.

    Parameters
    ----------
    path : Path
        A file that `is_sequence` recognised.

    Raises
    ------
    InputError
        Where the file is longer than 64 MiB, has no list of blocks, or is not the one that its signature is of.
    """
    size = check_file(path)
    if size > _MOST:
        raise InputError(field=str(path), got=f"{size} bytes", wanted=f"a sequence of at most {_MOST} bytes")
    content = path.read_bytes()
    sections, name = dict[str, list[str]](), ""
    for line in content.decode("utf-8", errors="replace").splitlines():
        if line.startswith("["):
            name = line.strip("[] ")
        elif line.strip() and not line.startswith("#"):
            sections.setdefault(name, []).append(line.strip())
    if not sections.get("BLOCKS"):
        raise InputError(
            field=str(path), got="no list of blocks", wanted="a whole Pulseq file", cure="Copy or export it again."
        )
    version = ".".join(line.split()[-1] for line in sections.get("VERSION", [])[:3])
    definitions = (line.partition(" ")[::2] for line in sections.get("DEFINITIONS", [])[:_MOST_DEFINITIONS])
    shown = [(name, text.strip()[:_LONGEST]) for name, text in definitions]
    signature = _signature(path, content, sections.get("SIGNATURE", []))
    text = _rows("sequence", path, version, len(sections["BLOCKS"]), shown, _UNITS, signature)
    values = {"version": version, "blocks": len(sections["BLOCKS"]), "definitions": dict(shown)}
    return Description(text, {"kind": "sequence", "name": path.stem, **values})


def _signature(path: Path, content: bytes, lines: list[str]) -> str:
    """Whether the file is as it was written: the last section has the MD5 sum of all that stands before it.

    Source: specification of the Pulseq format, version 1.4 and later, section [SIGNATURE].
    """
    begins = [found.start() for found in _SIGNATURE.finditer(content)]
    if not begins or not any(line.startswith("Hash") for line in lines):
        return "none, so whether the file is damaged cannot be told; files that mri-design export writes have one"
    parts = dict(line.partition(" ")[::2] for line in lines)
    kind, wanted = parts.get("Type", "").strip().lower(), parts.get("Hash", "").strip().lower()
    if kind not in ("md5", ""):
        return f"of type {kind[:20]}, which is not checked here"
    signed = content[: begins[-1]].removesuffix(b"\n").removesuffix(b"\r")
    # A transfer as text may have changed the ends of lines, which mean nothing.
    sums = {hashlib.md5(text, usedforsecurity=False).hexdigest() for text in (signed, signed.replace(b"\r\n", b"\n"))}
    if wanted not in sums:
        raise InputError(
            field=f"{path}: signature",
            got=f"{wanted[:40] or 'none'}, which does not match: the file was changed after it was written, or cut",
            wanted=f"md5 {min(sums)}" if len(sums) == 1 else "that of the file",
            cure="Copy or export it again.",
        )
    return "matches: the file is as it was written"


_OF_RUNS = ("recon", "std", "coil_maps", "draws", "reference")
"""Arrays of a run that are described."""
_LARGEST_LOOK = 2**26


def describe_no_scan(path: Path) -> Description | None:
    """A mask, an order that training left, or an array of a run, as what it is; None for anything else.

    Parameters
    ----------
    path : Path
        A file, or what may be one.

    Raises
    ------
    InputError
        For a mask or an array of a run that is damaged.
    """
    if path.suffix not in (".npy", ".npz") or not path.is_file():
        return None
    if path.suffix == ".npy" and path.stem in _OF_RUNS and (path.parent / MANIFEST).is_file():
        with opened_npy(path, DEFAULT_LIMITS, field=path.name) as array:
            shape = array.shape
        values = {"kind": "array", "name": path.stem, "shape": list(shape)}
        return Description(_rows("array", path, shape, kind_of_run(path.parent)), values)
    if path.stat().st_size > _LARGEST_LOOK:
        return None
    if path.suffix == ".npz":
        return _order(path)
    return _mask(path) if is_npy(path) else None


def _mask(path: Path) -> Description | None:
    with opened_npy(path, DEFAULT_LIMITS, field=path.name) as array:
        mask = array.read(None) if array.dtype == np.bool_ else np.zeros(0, dtype=np.bool_)
    if mask.ndim not in (1, 2) or not mask.any():
        return None
    pattern, (low, high) = "", (0, 0)
    if mask.ndim == 1:
        pattern = line_pattern(mask) or index_runs(mask)
        low, high = gapless_run(mask, len(mask) // 2)
    lobe, _ = largest_side_lobe(spread_of_mask(mask))
    count = int(mask.sum())
    values: dict[str, Any] = {
        "kind": "mask",
        "name": path.stem,
        "shape": list(mask.shape),
        "chosen": np.flatnonzero(mask).tolist(),
    }
    values |= {"acceleration": mask.size / count, "side_lobe": float(lobe)}
    return Description(_rows("mask", path, mask.shape, count, mask.size, pattern, high - low + 1, lobe), values)


def _order(path: Path) -> Description | None:
    """What training left; None for other archives."""
    if not holds_record(path, "TrainedDesign"):
        return None
    from mri_design.experiment.stored_designs import load_trained

    order = load_trained(path)
    text = _rows("order", path, order, "samples" if order.counts else "lines", listed(order.lines, _MOST_LINES))
    values = {"matrix": list(order.grid), "chosen": list(order.lines), "start": order.n_start, "rule": order.rule}
    return Description(text, {"kind": "order", "name": path.stem, **values})


def describe_input(source: str, recipe: Recipe, maps: GivenMaps | None = None) -> Description:
    """Describe an input; nothing is simulated, but for phantoms that are simulations.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    recipe : Recipe
        Its noise, calibration, series and simulation would be in force.
    maps : Path, optional
        Coil maps that would be used with a scan.

    Raises
    ------
    UsageError
        For maps of an input that is no scan.
    InputError
        Where the input or the maps cannot be used.
    """
    path, no_scan = Path(source), None
    if not source.startswith(PHANTOM_PREFIX):
        no_scan = describe_no_scan(path)
        if no_scan is None and path.is_dir():
            no_scan = describe_folder(path)
        elif no_scan is None and is_sequence(path):
            no_scan = describe_sequence(path)
    held = None if no_scan is not None else load_summary(source, recipe, maps)
    if held is None or isinstance(held, ImageStack):
        if maps is not None:
            raise UsageError("--maps applies to scans, not to images, sequences or folders of runs")
        return describe_images(held, recipe) if held is not None else no_scan or Description({})
    return describe_scan(held, recipe)

"""A reconstruction run: image and error bars of one slice, from measured lines or along a trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.metrics import looks_folded
from mri_design.experiment.ending import check_other_than_lines
from mri_design.experiment.inputs import PreparedScan, load_scan, names_file, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, loops_at_most, reconstruct
from mri_design.experiment.trajectories.preparing import PreparedSamples, prepare_samples
from mri_design.experiment.trajectories.reconstructing import reconstruct_samples
from mri_design.runs.recon.stages import REPORT, Stages
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import (
    FOLDED,
    KnownSamples,
    KnownScan,
    NamedImage,
    simulated_from,
    tell_part,
    warn_of_noise,
)
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.companions import read_mask
from mri_design.status import Status

_WITHOUT_STREAKS = ("mean", "map")


@dataclass(frozen=True)
class ReconRequest:
    """Request for a reconstruction.

    Parameters
    ----------
    source : str
        File or phantom.
    recipe : Recipe
        Method, prior, inference.
    mask : Path, optional
        Of the lines to use, bool (ky,), of the readouts of a trajectory, or of the samples of a plane, bool (ky, kz),
        as `read_mask` takes it. All measured ones by default.
    maps : Path, optional
        File of coil maps.
    index : int
        Slice.
    loaded : KSpaceData or TrajectoryData, optional
        The scan, where it has been read already; ``source`` still says where it is from.
    """

    source: str
    recipe: Recipe
    mask: Path | None = None
    maps: Path | None = None
    index: int = 0
    loaded: KSpaceData | TrajectoryData | None = None

    def record(self, run: Run) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        beside = {name: str(path) for name, path in (("mask", self.mask), ("maps", self.maps)) if path is not None}
        inputs = InputFile.of_all([self.source, *beside.values()])
        choices = {
            "recipe": self.recipe.as_settings(),
            "phantom": "" if names_file(self.source) else self.source,
            "inputs": [file.sha256 for file in inputs],
            "beside": list(beside),
            "slice": self.index,
        }
        settings = {"source": self.source, "slice": self.index, **self.recipe.as_settings()}
        return Record(run.identity("reconstruction", choices), inputs, settings)


@dataclass(frozen=True)
class ReconResult:
    """Result of a reconstruction.

    Parameters
    ----------
    record : Record
        For the manifest.
    ending : Ending
        Status, and lines; there are none along a trajectory.
    known : KnownScan or KnownSamples
        The slice, and what was known about it.
    mask : bool array, shape (ky,), (ky, kz) or (readout,)
        The lines used, the samples of a plane, or the readouts of a trajectory.
    images : sequence of NamedImage
        The image, and the zero-filled or gridded one to compare it with.
    """

    record: Record
    ending: Ending
    known: KnownScan | KnownSamples
    mask: NDArray[np.bool_]
    images: Sequence[NamedImage]


def reconstruct_scan(request: ReconRequest, run: Run) -> ReconResult:
    """Reconstruct one slice, of lines or along a trajectory.

    Raises
    ------
    UsageError
        Where the folder holds another run.
    InputError
        Where the input or the mask cannot be used.
    """
    recipe = request.recipe
    stages = Stages(run.progress.show, recipe.reconstruction.method)
    stages.begin("reading")
    record = request.record(run)
    every = request.loaded or load_scan(request.source, recipe, run.seed, request.maps)
    data = every.select_slice(request.index)
    tell_part(data, recipe, run.progress)
    stages.begin("calibrating")
    along = isinstance(data, TrajectoryData)
    mask = _readouts_used(request, data) if isinstance(data, TrajectoryData) else _lines_used(request, data)
    if not along:
        recipe = recipe.replacing("design", encoding="plane" if mask.ndim == 2 else "lines")
        check_other_than_lines(recipe)
    run.finished(record.identity)  # the same reconstruction may be made again
    scan: PreparedSamples | PreparedScan
    if isinstance(data, TrajectoryData):
        scan = prepare_samples(data, recipe, used=data.select_readouts(mask))
    else:
        scan = prepare(data, recipe, measured=mask, ordinary=True)
    warn_of_noise(scan, run.progress)
    slice_model = scan.slice_model(0, recipe)
    lines = list(range(slice_model.candidates.size)) if along else np.flatnonzero(mask).tolist()
    signal = slice_model.signal_level(lines)
    if simulated_from(data):
        run.progress.say(f"simulated k-space {simulated_from(data)}")
    run.begin()
    most = recipe.inference.loops if along else loops_at_most(slice_model, recipe)
    options = InferenceOptions(signal=signal, callback=lambda s: stages.loop(s.loop, most), watch=stages.begin)
    method, rng = recipe.reconstruction.method, np.random.default_rng([run.seed, 2])
    if along:
        result = reconstruct_samples(slice_model, method, recipe, rng, options)
    else:
        result = reconstruct(slice_model, lines, method, recipe, rng, options=options)
    if result.left_out:
        run.progress.say(result.left_out)
    known: KnownScan | KnownSamples
    if isinstance(scan, PreparedSamples):
        folded = method in _WITHOUT_STREAKS and looks_folded(result.image)
        known = KnownSamples(scan, slice_model, signal, folded)
        if folded:
            run.progress.warn(f"{data.name}: {FOLDED}")
    elif isinstance(data, KSpaceData):
        known = KnownScan.of(data, scan, slice_model, signal)
    converged = result.convergence.converged
    status = Status.CONVERGED.value if converged else f"not converged ({result.convergence.status.value})"
    images = known.judged(method, result, lines)
    stages.begin(REPORT)
    return ReconResult(record, Ending(status, () if along else tuple(lines)), known, mask, images)


def _readouts_used(request: ReconRequest, data: TrajectoryData) -> NDArray[np.bool_]:
    every = np.ones(data.n_readouts, dtype=bool)
    return every if request.mask is None else read_mask(request.mask, every)


def _lines_used(request: ReconRequest, data: KSpaceData) -> NDArray[np.bool_]:
    """Lines (ky,), or samples (ky, kz) where a plane is asked for, lines have holes, or the mask is one of samples."""
    sampling = data.samplings[0]
    if request.mask is not None:
        return read_mask(request.mask, data.measured, sampling.samples)
    plane = request.recipe.design.encoding == "plane" or (data.volume and not sampling.whole_lines)
    return sampling.samples if plane or sampling.holes else data.measured

"""A reconstruction run: image and error bars of one slice from measured lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.manifest import InputFile
from mri_design.experiment.ending import check_other_than_lines
from mri_design.experiment.inputs import PHANTOM_PREFIX, load_scan, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, loops_at_most, reconstruct
from mri_design.runs.recon.stages import REPORT, Stages
from mri_design.runs.recon.trajectory import TrajectoryResult, reconstruct_trajectory
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import KnownScan, NamedImage, simulated_from, tell_part, warn_of_noise
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io.companions import read_mask
from mri_design.status import Status


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
    """

    source: str
    recipe: Recipe
    mask: Path | None = None
    maps: Path | None = None
    index: int = 0

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
            "phantom": self.source if self.source.startswith(PHANTOM_PREFIX) else "",
            "inputs": [file.sha256 for file in inputs],
            "beside": list(beside),
            "slice": self.index,
        }
        settings = {"source": self.source, "slice": self.index, **self.recipe.as_settings()}
        return Record(run.identity("reconstruction", choices), inputs, settings)


@dataclass(frozen=True)
class ReconResult:
    """Result of a reconstruction on a grid.

    Parameters
    ----------
    request : ReconRequest
        Its request.
    record : Record
        For the manifest.
    ending : Ending
        Status and lines.
    known : KnownScan
        The slice, and what was known about it.
    mask : bool array, shape (ky,), or (ky, kz)
        The lines used, or the samples of a plane.
    images : sequence of NamedImage
        The image, and the zero-filled one to compare it with.
    """

    request: ReconRequest
    record: Record
    ending: Ending
    known: KnownScan
    mask: NDArray[np.bool_]
    images: Sequence[NamedImage]


def reconstruct_scan(request: ReconRequest, run: Run) -> ReconResult | TrajectoryResult:
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
    every = load_scan(request.source, recipe, run.seed, request.maps)
    data = every.select_slice(request.index)
    tell_part(data, recipe, run.progress)
    stages.begin("calibrating")
    if isinstance(data, TrajectoryData):
        return reconstruct_trajectory(data, request.mask, recipe, record, run, stages)
    sampling = data.samplings[0]
    if request.mask is not None:
        mask = read_mask(request.mask, data.measured, sampling.samples)
    else:
        plane = recipe.design.encoding == "plane" or (data.volume and not sampling.whole_lines)
        mask = sampling.samples if plane or sampling.holes else data.measured
    recipe = recipe.replacing("design", encoding="plane" if mask.ndim == 2 else "lines")
    check_other_than_lines(recipe)
    lines = np.flatnonzero(mask).tolist()
    run.finished(record.identity)  # the same reconstruction may be made again
    scan = prepare(data, recipe, measured=mask, ordinary=True)
    warn_of_noise(scan, run.progress)
    slice_model = scan.slice_model(0, recipe)
    signal = slice_model.signal_level(lines)
    if simulated_from(data):
        run.progress.say(f"simulated k-space {simulated_from(data)}")
    run.begin()
    most = loops_at_most(slice_model, recipe)
    options = InferenceOptions(signal=signal, callback=lambda s: stages.loop(s.loop, most), watch=stages.begin)
    method, rng = recipe.reconstruction.method, np.random.default_rng([run.seed, 2])
    result = reconstruct(slice_model, lines, method, recipe, rng, options=options)
    if result.left_out:
        run.progress.say(result.left_out)
    converged = result.convergence.converged
    status = Status.CONVERGED.value if converged else f"not converged ({result.convergence.status.value})"
    known = KnownScan.of(data, scan, slice_model, signal)
    images = known.judged(method, result, lines)
    stages.begin(REPORT)
    return ReconResult(request, record, Ending(status, tuple(lines)), known, mask, images)

"""The reconstruction of one slice that was measured along a trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.metrics import looks_folded
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions
from mri_design.experiment.trajectories.preparing import PreparedSamples, prepare_samples
from mri_design.experiment.trajectories.reconstructing import reconstruct_samples
from mri_design.runs.recon.stages import REPORT, Stages
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import GRIDDED, ZERO_FILLED, NamedImage, warn_of_noise, with_zero_filled
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io.companions import read_mask
from mri_design.status import Status

_WITHOUT_STREAKS = ("mean", "map")
FOLDED = (
    "its field of view looks too small: the image is bright up to its edges, and what lies beyond them folds in. "
    "Compare the trajectory's unit and the matrix (--matrix) with the field of view of the scan"
)


@dataclass(frozen=True)
class TrajectoryResult:
    """Result of a reconstruction along a trajectory.

    Parameters
    ----------
    record : Record
        For the manifest.
    ending : Ending
        Status; there are no lines.
    scan : PreparedSamples
        The slice, calibrated.
    mask : bool array, shape (readout,)
        The readouts used.
    signal : float
        Signal level that the prior's scales follow.
    images : sequence of NamedImage
        The image, and the gridded one to compare it with.
    folded : bool
        Whether the field of view looks too small.
    """

    record: Record
    ending: Ending
    scan: PreparedSamples
    mask: NDArray[np.bool_]
    signal: float
    images: Sequence[NamedImage]
    folded: bool = False


def reconstruct_trajectory(
    data: TrajectoryData, mask: Path | None, recipe: Recipe, record: Record, run: Run, stages: Stages
) -> TrajectoryResult:
    """Reconstruct one slice.

    Parameters
    ----------
    data : TrajectoryData
        The slice as read.
    mask : Path, optional
        ``.npy``, bool (readout,): the readouts to use; all by default.
    recipe : Recipe
        Method, prior, inference.
    record : Record
        Of the request.
    run : Run
        Where results go.
    stages : Stages
        Where it is shown how far the work is.

    Raises
    ------
    UsageError
        Where the folder holds another run.
    InputError
        Where the input or the mask cannot be used.
    """
    every = np.ones(data.n_readouts, dtype=bool)
    chosen = every if mask is None else read_mask(mask, every)
    run.finished(record.identity)
    scan = prepare_samples(data, recipe, used=data.select_readouts(chosen))
    warn_of_noise(scan, run.progress)
    slice_model = scan.slice_model(0, recipe)
    every_readout = range(slice_model.candidates.size)
    signal = slice_model.signal_level(every_readout)
    run.begin()
    most = recipe.inference.loops
    options = InferenceOptions(signal=signal, callback=lambda s: stages.loop(s.loop, most), watch=stages.begin)
    method = recipe.reconstruction.method
    result = reconstruct_samples(slice_model, method, recipe, np.random.default_rng([run.seed, 2]), options)
    if result.left_out:
        run.progress.say(result.left_out)
    folded = method in _WITHOUT_STREAKS and looks_folded(result.image)
    if folded:
        run.progress.warn(f"{data.name}: {FOLDED}")
    converged = result.convergence.converged
    status = Status.CONVERGED.value if converged else f"not converged ({result.convergence.status.value})"
    unit = scan.image_unit(0)
    reference = None if scan.data.reference is None else np.asarray(scan.data.reference[0] * unit)
    images = [NamedImage.judged(GRIDDED if method == ZERO_FILLED else method, result.times(unit), reference)]
    images = with_zero_filled(images, slice_model, every_readout, reference, unit)
    stages.begin(REPORT)
    return TrajectoryResult(record, Ending(status), scan, chosen, signal, images, folded)

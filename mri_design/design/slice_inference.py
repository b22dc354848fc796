"""Inference of one slice on its own, as it may travel to another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from mri_design.inference import DoubleLoop, StepInfo, WarmStart
from mri_design.inference.double_loop import cold_start
from mri_design.model import GaussianPosterior, MRSlice
from mri_design.operators import Array

__all__ = ["Mapping", "SliceInference", "infer_slice"]


@dataclass(frozen=True)
class SliceInference:
    """What inference of one slice needs.

    Parameters
    ----------
    one : MRSlice
        The slice.
    lines : tuple of int
        Lines so far.
    signal : float
        Signal level.
    warm : WarmStart, optional
        Where to start from.
    inference : DoubleLoop
        Who infers.
    noise : tuple of int
        Seed of the variances.
    image : complex array, optional
        Without a warm start: another model's mean to start the inner problem from.
    """

    one: MRSlice
    lines: tuple[int, ...]
    signal: float
    warm: WarmStart | None
    inference: DoubleLoop
    noise: tuple[int, ...]
    image: Array | None = None


def infer_slice(job: SliceInference) -> tuple[GaussianPosterior, bool]:
    """The posterior, and whether its last loop converged."""
    loops: list[StepInfo] = []
    model = job.one.model(job.lines, job.signal)
    rng = np.random.default_rng(job.noise)
    warm = job.warm
    if warm is None and job.image is not None:
        warm = replace(cold_start(model), mean=job.image)
    posterior = job.inference.infer(model, rng, warm_start=warm, callback=loops.append)
    return posterior, loops[-1].inner.converged and loops[-1].variances.converged


Mapping = Callable[
    [Callable[[SliceInference], tuple[GaussianPosterior, bool]], Iterable[SliceInference]],
    Iterable[tuple[GaussianPosterior, bool]],
]
"""Like the built-in ``map``: one function over many slices, results in their order, here or in other processes."""

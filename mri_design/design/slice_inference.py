"""Inference of one slice on its own, as it may travel to another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.line_variances import all_lines, line_energies
from mri_design.inference.base import StepInfo, WarmStart, cold_start
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.operators.measurement import CartesianLines
from mri_design.variances.base import VarianceEstimator

__all__ = ["Mapping", "SliceInference", "infer_slice", "least_energies", "with_unseen_lines"]

_DRAWS = 12
"""Posterior draws behind line energies, where inference has nothing better."""


def with_unseen_lines(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> GaussianPosterior:
    """The posterior with the rows of further lines in its precision: same mean, same widths, new draws.

    Under a Gaussian the covariance after a measurement does not depend on the measured values, so lines can be chosen
    one after another between two acquisitions (echo trains). The widths are those from before: they change with data.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    lines : sequence of int
        All lines that are in its precision afterwards: those measured, and those that will be.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.

    Returns
    -------
    GaussianPosterior
        With marginals that hold no z of sites, only what line scores need.
    """
    every = all_lines(posterior)
    measurement = CartesianLines(lines, every.grid, every.maps, every.library)
    precision = PosteriorPrecision(measurement, posterior.precision.blocks, posterior.precision.site_precisions)
    marginals = estimator(precision, (), rng, posterior.mean, previous=posterior.marginals)
    return replace(posterior, precision=precision, marginals=marginals)


def least_energies(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Expected energy of the error on every line once all of ``lines`` have been measured, (ky,): what noise leaves.

    Parameters
    ----------
    posterior, lines, estimator, rng
        As for `with_unseen_lines`.
    """
    return line_energies(with_unseen_lines(posterior, lines, estimator, rng), rng, _DRAWS)


@dataclass(frozen=True)
class SliceInference:
    """What inference of one slice needs.

    Parameters
    ----------
    mr_slice : MRSlice
        The slice.
    lines : tuple of int
        Lines so far.
    signal : float
        Signal level.
    warm : WarmStart, optional
        Where to start from.
    inference : DoubleLoop
        The engine.
    noise : tuple of int
        Seed of the variances.
    image : complex array, optional
        Without a warm start: another model's mean to start the inner problem from.
    """

    mr_slice: MRSlice
    lines: tuple[int, ...]
    signal: float
    warm: WarmStart | None
    inference: DoubleLoop
    noise: tuple[int, ...]
    image: Array | None = None


def infer_slice(job: SliceInference) -> tuple[GaussianPosterior, bool]:
    """The posterior, and whether its last loop converged."""
    loops: list[StepInfo] = []
    model = job.mr_slice.model(job.lines, job.signal)
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

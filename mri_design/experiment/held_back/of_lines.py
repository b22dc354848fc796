"""Squared error of an image of lines as the error model of designs predicts it, where no line can be held back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategy import DesignView
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.potentials.priors import Laplace

SHARE = 0.9
"""Squared error of a mean over what is predicted of it, on training masks (results/benchmarks/non-local.md)."""
LOCAL_KINDS = {"pixels", "differences"}
"""Kinds of blocks under which the error model of `Calibrated` has learnt."""


def predicted_by_error_model(slice_model: MRSlice, lines: Sequence[int], local: GaussianPosterior, seed: int) -> float:
    """Squared error of an image of lines by the error model of the strategy `Calibrated`.

    It has learnt on synthetic heads how wrong a posterior is about the energy of the error on every line that was not
    measured; summed over all lines this is the squared error of the image.

    Parameters
    ----------
    slice_model : MRSlice
        The slice.
    lines : sequence of int
        Lines behind the image, in the order of the posterior's data.
    local : GaussianPosterior
        Of the slice from the same lines, without non-local blocks: the kind that the error model knows.
    seed : int
        Of what it draws.

    Returns
    -------
    float
        NaN for lines with holes, other readouts, and other blocks than it has learnt of.
    """
    blocks = local.model.blocks
    learnt = {block.name for block in blocks} == LOCAL_KINDS and all(isinstance(b.potential, Laplace) for b in blocks)
    if slice_model.candidates.name != "lines" or slice_model.samples is not None or not learnt:
        return float("nan")
    candidates = LineCandidates(slice_model.measured, tuple(lines), len(lines), readouts=slice_model.candidates)
    strategy, view = Calibrated(), DesignView(candidates, [local], [])
    return SHARE * float(strategy.corrected(view, strategy.expected(view, np.random.default_rng(seed))).sum())

"""One mask for one image or for several, by a rule, or made from an earlier frame of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.experiment.designing import DesignOptions, run_design, start_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import PlaneEncoding
from mri_design.runs.design.earlier import EarlierImage, informed, opinion_share
from mri_design.runs.scans import knowing_oracle

EARLIER = "earlier-frame"
"""The mask on which the posterior mean of an earlier frame, the same images with other noise, is most wrong."""
EARLIER_SEED = 100


def mask_by(
    rule: Strategy, slices: Sequence[MRSlice], acceleration: float, recipe: Recipe, draw: int = 0
) -> Sequence[int]:
    """Candidates that a rule chooses for all the slices together."""
    candidates = slices[0].candidates
    plane = candidates if isinstance(candidates, PlaneEncoding) else None
    target = max(1, round(candidates.size / acceleration))
    start = start_lines(slices[0].measured, rule, target, recipe, 0, slices[0].n_coils, plane)
    return run_design(slices, rule, target, recipe, seed=0, start=start, options=DesignOptions(draw=draw)).trace.lines


def designed_with_seen(
    slices: Sequence[MRSlice], frames: Sequence[MRSlice], acceleration: float, recipe: Recipe
) -> tuple[Sequence[int], float]:
    """Candidates that `calibrated` chooses with an earlier scan of every slice, as ``design --seen`` does.

    Returns
    -------
    sequence of int, float
        The candidates, and the share that the earlier scan explained of how single samples differ.
    """
    images = [EarlierImage.of("earlier", frame, recipe, np.random.default_rng([0, 3])) for frame in frames]
    candidates = slices[0].candidates
    assert isinstance(candidates, PlaneEncoding)
    target, alone = max(1, round(candidates.size / acceleration)), make_strategy("calibrated", "plane")
    start = start_lines(slices[0].measured, alone, target, recipe, 0, slices[0].n_coils, candidates)
    rule = informed(images, slices, start, recipe, 0)
    trace = run_design(slices, rule, target, recipe, seed=0, start=start, options=DesignOptions(closing=True)).trace
    return trace.lines, opinion_share(trace)


def mask_of_frame(frames: Sequence[MRSlice], acceleration: float, recipe: Recipe) -> Sequence[int]:
    """Candidates on which the posterior means of fully sampled slices are most wrong, all slices together.

    What is wrong is told by the images that all samples of the same slices show, noise included.
    """
    images = [reconstruct_by_recipe(frame, range(frame.candidates.size), recipe, 0).image for frame in frames]
    return mask_by(knowing_oracle("oracle-residual", frames, images, recipe, 0), frames, acceleration, recipe)

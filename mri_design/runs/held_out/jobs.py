"""The pieces of a comparison that can be computed apart: a mask, and the error of one mask on one image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.predictions import truth_or_none
from mri_design.experiment.designing import DesignOptions, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import ORACLES, TRAINING_RULES, make_strategy
from mri_design.experiment.trajectories.shots import closed_form_samples, shot_candidates, shot_slice
from mri_design.model.mr_image import MRSlice
from mri_design.operators.encodings import KINDS, Encoding, ShotEncoding
from mri_design.runs.oracles import knowing_oracle, knowing_rule

Lines = tuple[int, ...]


@dataclass(frozen=True)
class Material:
    """What every piece needs.

    Parameters
    ----------
    tests, training : sequences of ReferenceSlice
        Images.
    recipe : Recipe
        Inference and reconstruction.
    seed : int
        Of everything.
    """

    tests: Sequence[ReferenceSlice]
    training: Sequence[ReferenceSlice]
    recipe: Recipe
    seed: int


@dataclass(frozen=True)
class MaskJob:
    """A mask to make for a test image: strategy by name, lines in the end and at the start, draw.

    With ``training`` images it is designed on them together, from the lines that the test image holds.
    """

    strategy: str
    target: int
    start: int
    draw: int
    image: int
    training: tuple[int, ...] = ()


@dataclass(frozen=True)
class TuningJob:
    """A mask to make without looking at data, and the training image to try it on."""

    strategy: str
    target: int
    start: int
    draw: int
    image: int


@dataclass(frozen=True)
class DesignedMask:
    """A mask, and whether what chose it can be trusted.

    Parameters
    ----------
    lines : tuple of int
        In acquisition order.
    converged_lines : int
        That many of the first lines were chosen by steps that converged.
    innovation_energies : mapping of int to float
        As in `DesignTrace`.
    """

    lines: Lines
    converged_lines: int
    innovation_energies: Mapping[int, float] = field(default_factory=dict)


def design_mask(material: Material, job: MaskJob) -> DesignedMask:
    """A mask, with how far its design converged."""
    image, recipe, seed = material.tests[job.image], material.recipe, material.seed
    test = slice_for(image, job.strategy, job.target, recipe, seed)
    if job.strategy in ORACLES:
        oracle = knowing_oracle(job.strategy, [test], [image.reference], material.recipe, material.seed)
        return _design(material, [test], oracle, job.target, job.start, job.draw)
    training = [material.training[i] for i in job.training]
    models = [slice_for(scan, job.strategy, job.target, recipe, seed) for scan in training]
    slices = [replace(model, measured=model.measured & test.measured) for model in models] or [test]
    if job.strategy in TRAINING_RULES:
        strategy = knowing_rule(job.strategy, training, material.recipe, material.seed)
    else:
        strategy = make_strategy(job.strategy, material.recipe.design.encoding)
    return _design(material, slices, strategy, job.target, job.start, job.draw)


def candidates_for(image: ReferenceSlice, strategy: str, count: int, recipe: Recipe) -> Encoding:
    """What a strategy chooses ``count`` from: the lines or samples of the image, or shots, which depend on both."""
    encoding, on_grid = recipe.design.encoding, image.slice_model
    if not KINDS[encoding].shots:
        return on_grid.candidates
    return shot_candidates(recipe, make_strategy(strategy, encoding), on_grid.shape, count, on_grid.n_coils)


def slice_for(image: ReferenceSlice, strategy: str, count: int, recipe: Recipe, seed: int) -> MRSlice:
    """The image's slice as a strategy for ``count`` measures it: as it is, or sampled along that strategy's shots."""
    candidates, on_grid = candidates_for(image, strategy, count, recipe), image.slice_model
    if not isinstance(candidates, ShotEncoding):
        return on_grid
    known = closed_form_samples(image.source, candidates, on_grid.n_coils, recipe, seed)
    truth = truth_or_none(on_grid, image.reference) if known is None else None
    return shot_slice(on_grid, candidates, np.random.default_rng([seed, 1, 1]), truth=truth, known=known)


def mask_error(material: Material, job: tuple[int, Lines]) -> dict[str, object]:
    """Errors of a test image reconstructed from some lines of its own."""
    image, lines = job
    return _error(material, material.tests[image], material.tests[image].slice_model, lines)


def cell_error(material: Material, job: tuple[int, str, Lines]) -> dict[str, object]:
    """Errors of a test image reconstructed from what a strategy, named without suffixes, chose."""
    image, strategy, lines = material.tests[job[0]], job[1], job[2]
    seen = slice_for(image, strategy, len(lines), material.recipe, material.seed)
    return _error(material, image, seen, lines)


def tuning_error(material: Material, job: TuningJob) -> float:
    """Relative error of a training image with one draw of a mask."""
    image = material.training[job.image]
    rule = make_strategy(job.strategy, material.recipe.design.encoding)
    mask = _design(material, [image.slice_model], rule, job.target, job.start, job.draw)
    return float(str(_error(material, image, image.slice_model, mask.lines)["relative_l2"]))


def _design(
    material: Material, slices: Sequence[MRSlice], strategy: Strategy, target: int, start: int, draw: int
) -> DesignedMask:
    options = DesignOptions(draw=draw)
    state = run_design(slices, strategy, target, material.recipe, seed=material.seed, start=start, options=options)
    trace = state.trace
    missed = [i for i, step in enumerate(trace.steps, len(trace.start)) if not step.cost.converged]
    return DesignedMask(trace.lines, missed[0] if missed else len(trace.lines), trace.innovation_energies)


def _error(material: Material, image: ReferenceSlice, seen: MRSlice, lines: Lines) -> dict[str, object]:
    result = reconstruct_by_recipe(seen, lines, material.recipe, material.seed)
    errors = measure(result.image * image.unit, image.shown)
    return {
        "relative_l2": errors.relative_l2,
        "psnr": errors.psnr,
        "ssim": errors.ssim,
        "reconstruction_converged": result.convergence.converged,
    }

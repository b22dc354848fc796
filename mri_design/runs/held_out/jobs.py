"""The pieces of a comparison that can be computed apart: a mask, and the error of one mask on one image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation.metrics import measure
from mri_design.experiment.designing import DesignOptions, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import ORACLES, TRAINING_RULES, make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.runs.oracles import knowing_oracle, knowing_rule

__all__ = [
    "DesignedMask",
    "Lines",
    "MaskJob",
    "Material",
    "TuningJob",
    "design_mask",
    "mask_error",
    "tuning_error",
]

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
    image = material.tests[job.image]
    test = image.slice_model
    if job.strategy in ORACLES:
        oracle = knowing_oracle(job.strategy, [test], [image.reference], material.recipe, material.seed)
        return _design(material, [test], oracle, job.target, job.start, job.draw)
    training = [material.training[i] for i in job.training]
    models = [scan.slice_model for scan in training]
    slices = [replace(model, measured=model.measured & test.measured) for model in models] or [test]
    if job.strategy in TRAINING_RULES:
        strategy = knowing_rule(job.strategy, training, material.recipe, material.seed)
    else:
        strategy = make_strategy(job.strategy, material.recipe.design.encoding)
    return _design(material, slices, strategy, job.target, job.start, job.draw)


def mask_error(material: Material, job: tuple[int, Lines]) -> dict[str, object]:
    """Errors of a test image reconstructed from some lines."""
    image, lines = job
    return _error(material, material.tests[image], lines)


def tuning_error(material: Material, job: TuningJob) -> float:
    """Relative error of a training image with one draw of a mask."""
    image = material.training[job.image]
    rule = make_strategy(job.strategy, material.recipe.design.encoding)
    mask = _design(material, [image.slice_model], rule, job.target, job.start, job.draw)
    return float(str(_error(material, image, mask.lines)["relative_l2"]))


def _design(
    material: Material, slices: Sequence[MRSlice], strategy: Strategy, target: int, start: int, draw: int
) -> DesignedMask:
    options = DesignOptions(draw=draw)
    state = run_design(slices, strategy, target, material.recipe, seed=material.seed, start=start, options=options)
    trace = state.trace
    missed = [i for i, step in enumerate(trace.steps, len(trace.start)) if not step.cost.converged]
    return DesignedMask(trace.lines, missed[0] if missed else len(trace.lines), trace.innovation_energies)


def _error(material: Material, image: ReferenceSlice, lines: Lines) -> dict[str, object]:
    result = reconstruct_by_recipe(image.slice_model, lines, material.recipe, material.seed)
    errors = measure(result.image, image.reference)
    return {
        "relative_l2": errors.relative_l2,
        "psnr": errors.psnr,
        "ssim": errors.ssim,
        "reconstruction_converged": result.convergence.converged,
    }

"""Trials of training and of exchanges: what a process needs to reconstruct training scans, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.design.trials import Outcome, ReferenceSlice
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe


@dataclass(frozen=True)
class TrainingMaterial:
    """What every trial needs.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        With their truths.
    recipe : Recipe
        Reconstruction.
    seed : int
        Of its variances.
    """

    scans: Sequence[ReferenceSlice]
    recipe: Recipe
    seed: int


def trial_outcome(material: TrainingMaterial, trial: tuple[int, tuple[int, ...]]) -> Outcome:
    """How wrong a training scan is when reconstructed from some lines."""
    index, lines = trial
    scan = material.scans[index]
    result = reconstruct_by_recipe(scan.slice_model, lines, material.recipe, material.seed)
    return scan.outcome(result.image, result.convergence.converged)

"""Modulus or phase-aware model for a mask that is already there: candidates held back are predicted under each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.engine import DesignState
from mri_design.design.model_choice import FEWEST, CandidateModels, best_model, held_back, model_in_use
from mri_design.design.recording import found_energies
from mri_design.experiment.recipe import Recipe
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.mr_image import MRSlice, phase_refined
from mri_design.operators.base import Array

__all__ = ["FinalModel", "candidate_models", "choose_phase_model", "final_models"]


@dataclass(frozen=True)
class FinalModel:
    """The model that a design ended with, to reconstruct with.

    Parameters
    ----------
    slice_model : MRSlice
        The slice under it.
    warm : WarmStart, optional
        Where its inference stood; None where there was none.
    recipe : Recipe
        With the choice taken.
    number : int, optional
        In the order of `PhaseRecipe.names`; None where nothing was chosen.
    """

    slice_model: MRSlice
    warm: WarmStart | None
    recipe: Recipe
    number: int | None = None


def candidate_models(recipe: Recipe) -> CandidateModels | None:
    """What `DesignEngine` chooses from: None where the recipe uses moduli only.

    With the phase-aware model it is one candidate, whose phase map is estimated anew as the image improves.
    """
    if recipe.phase.model == "modulus":
        return None
    return recipe.phase.variants if recipe.phase.model == "automatic" else _refined


def _refined(slice_model: MRSlice, image: Array) -> Sequence[MRSlice]:
    return [phase_refined(slice_model, image)]


def final_models(slices: Sequence[MRSlice], state: DesignState, recipe: Recipe) -> list[FinalModel]:
    """Each slice under the model that predicted the design's lines best, the last ones included.

    A design without posteriors has chosen nothing: its slices and recipe come back as they are.
    """
    models = candidate_models(recipe)
    if models is None or not state.warm:
        return [FinalModel(slice_model, state.warm_start(i, 0), recipe) for i, slice_model in enumerate(slices)]
    settled = recipe.replacing("phase", model="modulus" if recipe.phase.model == "automatic" else None)
    chosen: list[FinalModel] = []
    for i, slice_model in enumerate(slices):
        variants = models(slice_model, state.warm[i].mean)
        number = model_in_use(state.trace.steps, i, len(variants))
        chosen.append(FinalModel(variants[number], state.warm_start(i, number), settled, number))
    return chosen


LOOPS = 2
CLEARLY = 2.0
"""Standard errors by which a model has to predict the lines held back better than moduli do."""


def choose_phase_model(
    slice_model: MRSlice, lines: Sequence[int], recipe: Recipe, rng: np.random.Generator, *, signal: float | None = None
) -> MRSlice:
    """The candidate model that predicted best a third of the lines outside the centre, from the others.

    In a plane these are samples, along trajectories readouts: `held_back` says which. With fewer than four of them
    there is no choice, and moduli are used.

    Parameters
    ----------
    slice_model : MRSlice
        The slice; its own phase prior is left out.
    lines : sequence of int
        Measured lines.
    recipe : Recipe
        Its ``phase`` names the candidates; its inference predicts, in two loops.
    rng : numpy Generator
        Of the variances.
    signal : float, optional
        As in `MRSlice.model`.

    Returns
    -------
    MRSlice
        With the phase seen in the modulus model's mean, or without one: where no other model is clearly better
        (`best_model`), there are too few lines outside the centre, or there is no phase to see.
    """
    modulus = replace(slice_model, phase=None)
    known, held = held_back(lines, slice_model.candidates)
    loop: DoubleLoop = replace(recipe.inference.engine(), outer_iterations=LOOPS)
    seed = int(rng.integers(2**63))
    if len(held) < FEWEST:
        return modulus
    level = modulus.signal_level(lines) if signal is None else signal
    candidates, energies = [modulus], []
    for number in range(1 + len(recipe.phase.imaginary_ratios)):
        if number == len(candidates):
            return modulus  # no phase was seen
        posterior = loop.infer(candidates[number].model(known, level), np.random.default_rng(seed))
        energies.append(found_energies(slice_model, posterior, held))
        if number == 0:
            candidates = recipe.phase.variants(slice_model, posterior.mean)
    return candidates[best_model(np.transpose(energies), margin=CLEARLY)]

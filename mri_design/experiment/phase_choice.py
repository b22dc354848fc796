"""Modulus or phase-aware models during a design: the candidates, and the one that it ended with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.design.engine import DesignState
from mri_design.design.model_choice import CandidateModels, model_in_use
from mri_design.experiment.recipe import Recipe
from mri_design.inference.base import WarmStart
from mri_design.model.mr_image import MRSlice, phase_refined
from mri_design.operators.base import Array


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
    """What `DesignEngine` chooses from: None where designs use moduli only.

    With the phase-aware model it is one candidate, whose phase map is estimated anew as the image improves.
    """
    if recipe.phase.model in ("modulus", "held-back"):
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

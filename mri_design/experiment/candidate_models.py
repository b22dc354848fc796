"""The models that a design chooses from, as a recipe names them, and the one it ended with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.design import CandidateModels, DesignState, model_in_use
from mri_design.experiment.recipe import Recipe
from mri_design.inference import WarmStart
from mri_design.model import MRSlice, phase_refined
from mri_design.operators import Array

__all__ = ["FinalModel", "candidate_models", "final_models"]


@dataclass(frozen=True)
class FinalModel:
    """The model that a design ended with, to reconstruct with.

    Parameters
    ----------
    one : MRSlice
        The slice under it.
    warm : WarmStart, optional
        Where its inference stood; None where there was none.
    recipe : Recipe
        With the choice taken.
    number : int, optional
        In the order of `PhaseRecipe.names`; None where nothing was chosen.
    """

    one: MRSlice
    warm: WarmStart | None
    recipe: Recipe
    number: int | None = None


def candidate_models(recipe: Recipe) -> CandidateModels | None:
    """What `design.DesignEngine` chooses from: None for moduli alone; one model for a phase that is only refined."""
    if recipe.phase.model == "modulus":
        return None
    return recipe.phase.variants if recipe.phase.model == "automatic" else _refined


def _refined(one: MRSlice, image: Array) -> Sequence[MRSlice]:
    return [phase_refined(one, image)]


def final_models(slices: Sequence[MRSlice], state: DesignState, recipe: Recipe) -> list[FinalModel]:
    """Each slice under the model that predicted the design's lines best, the last ones included.

    A design without posteriors has chosen nothing: its slices and recipe come back as they are.
    """
    models = candidate_models(recipe)
    if models is None or not state.warm:
        return [FinalModel(one, state.warm_start(i, 0), recipe) for i, one in enumerate(slices)]
    settled = recipe.replacing("phase", model="modulus" if recipe.phase.model == "automatic" else None)
    found: list[FinalModel] = []
    for i, one in enumerate(slices):
        variants = models(one, state.warm[i].mean)
        number = model_in_use(state.trace.steps, i, len(variants))
        found.append(FinalModel(variants[number], state.warm_start(i, number), settled, number))
    return found

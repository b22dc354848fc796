"""The phase-aware model during a design: its phase map is estimated anew as the image improves."""

from __future__ import annotations

from collections.abc import Sequence

from mri_design.design.engine import DesignState
from mri_design.design.model_choice import CandidateModels
from mri_design.experiment.recipe import Recipe
from mri_design.inference.base import WarmStart
from mri_design.model.mr_image import MRSlice, phase_refined
from mri_design.operators.base import Array


def candidate_models(recipe: Recipe) -> CandidateModels | None:
    """The model of a slice in the light of its image so far, for `DesignEngine`; None where designs use moduli."""
    return _refined if recipe.phase.model == "aware" else None


def _refined(slice_model: MRSlice, image: Array) -> Sequence[MRSlice]:
    return [phase_refined(slice_model, image)]


def final_model(slice_model: MRSlice, state: DesignState, recipe: Recipe) -> tuple[MRSlice, WarmStart | None]:
    """The first slice's model to reconstruct with after a design, and where its inference stood; None without one."""
    models = candidate_models(recipe)
    if models is not None and state.warm:
        slice_model = models(slice_model, state.warm[0].mean)[0]
    return slice_model, state.warm_start(0, 0)

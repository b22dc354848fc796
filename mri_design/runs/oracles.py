"""Where oracles, and rules that learn from training scans, get the truth: only the runs have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mri_design.design.strategies.oracles import Oracle
from mri_design.design.strategies.trained import TrainingResidual
from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice
from mri_design.errors import InputError
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

ORACLE_NOTE = " (an oracle: it looked at the truth, no scan could be measured like this)"


def knowing_rule(name: str, scans: Sequence[ReferenceSlice], recipe: Recipe, seed: int) -> Strategy:
    """The rule called ``name`` for training scans; it goes by the errors of what the recipe reconstructs.

    Those of the posterior mean are the design's own: it infers after every line anyway. In a plane the rule goes by
    them whatever the recipe reconstructs.
    """
    rule = cast(TrainingResidual, make_strategy(name, recipe.design.encoding))
    if recipe.reconstruction.method == "mean" or recipe.design.encoding == "plane":
        return rule.knowing(scans)

    def image(index: int, lines: Sequence[int]) -> Array:
        return reconstruct_by_recipe(scans[index].slice_model, lines, recipe, seed).image

    return rule.knowing(scans, image)


def knowing_oracle(
    name: str, slices: Sequence[MRSlice], truths: Sequence[Array | None], recipe: Recipe, seed: int
) -> Strategy:
    """The oracle called ``name`` for slices whose truth is known; it reconstructs as the recipe does.

    Raises
    ------
    InputError
        Where a slice has no reference.
    """
    known = [truth for truth in truths if truth is not None]
    if len(known) < len(slices):
        raise InputError(
            field=f"strategy {name}",
            got="a scan without a reference image",
            wanted="the truth to look at: simulated or fully sampled k-space",
            cure="Oracles are marks to compare with; name another strategy.",
        )

    def image(index: int, lines: Sequence[int]) -> Array:
        return reconstruct_by_recipe(slices[index], lines, recipe, seed).image

    return cast(Oracle, make_strategy(name, recipe.design.encoding)).knowing(known, image)

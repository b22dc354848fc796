"""[phase] in designs: the model by recipe, interrupted designs, and the model that the image is made with."""

from dataclasses import replace

import pytest

from mri_design import (
    DesignOptions,
    DesignState,
    MRSlice,
    Recipe,
    make_strategy,
    run_design,
)
from mri_design.experiment import refinement
from mri_design.experiment.design import NO_OPTIONS
from mri_design.model import PhasePrior
from tests.phased_slices import smooth, textured


@pytest.fixture
def phased() -> MRSlice:
    """Nothing but a smooth phase to predict it by."""
    return textured(smooth((24, 16)))


def recipe(small: Recipe, model: str, **phase: object) -> Recipe:
    return small.replacing("phase", model=model, imaginary_ratios=(3.0,), **phase)


def design(one: MRSlice, settings: Recipe, target: int = 18, options: DesignOptions = NO_OPTIONS) -> DesignState:
    return run_design([one], make_strategy("information-gain"), target, settings, seed=0, start=8, options=options)


def test_designs_know_the_phase_where_the_recipe_says_so(phased: MRSlice, small: Recipe) -> None:
    image = phased.central_image(range(8, 16))
    assert refinement(recipe(small, "modulus")) is None and refinement(recipe(small, "held-back")) is None
    aware = refinement(recipe(small, "aware"))
    assert aware is not None
    refined = aware(replace(phased, phase=PhasePrior(None, 3.0)), image)
    assert refined.phase is not None and refined.phase.phase is not None
    assert [recipe(small, m).phase.name for m in ("modulus", "aware")] == ["modulus", "phase-aware 3"]

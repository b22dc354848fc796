"""[phase] in recipes: what a slice is given, the choice by lines held back, and settings that make no sense."""

from dataclasses import replace

import numpy as np

from mri_design import Recipe, SliceModel
from mri_design.evidence import PhaseChoice, choose_phase, hold_back
from mri_design.experiment import mr_image_model, refinement
from mri_design.model import PhasePrior
from mri_design.operators import PhasedParts
from tests.phased_slices import smooth, textured

N = (32, 20)
CENTRE = [16, 15, 17, 14, 18, 13, 19, 12]
LINES = [*CENTRE, 22, 24, 25, 27, 28, 30, 21, 23, 10, 8, 7, 4]


def recipe(**phase: object) -> Recipe:
    return Recipe().replacing("phase", **phase)


def chosen(one: SliceModel, lines: list[int], settings: Recipe, signal: float | None = None) -> PhaseChoice:
    engine = settings.inference.engine()
    return choose_phase(hold_back(one, lines, engine, 0, signal))


def test_a_mask_that_is_its_own_mirror_image_shows_a_phase_too():
    mirrored = [*CENTRE, *(16 + side * k for k in (6, 8, 10, 12, 14, 15) for side in (1, -1))]
    settings = recipe(model="held-back")
    assert chosen(textured(smooth(N)), mirrored, settings).phase is not None
    few = [*CENTRE, 22, 10, 24, 8, 26, 6, 28]  # three held back, from which nothing follows
    assert all(chosen(textured(smooth(N)), lines, settings) == PhaseChoice() for lines in (few, CENTRE))


def test_an_image_without_a_phase_keeps_the_modulus():
    settings, one = recipe(model="held-back"), textured(smooth(N))
    noise = np.random.default_rng(1).standard_normal((2, 1, *N))
    dark = replace(one, kspace=0.005 * (noise[0] + 1j * noise[1]))
    assert chosen(dark, LINES, settings, 1.0) == PhaseChoice()


def test_designs_know_the_phase_where_the_recipe_says_so():
    one = textured(smooth((24, 16)))
    assert refinement(recipe(model="modulus")) is None and refinement(recipe(model="held-back")) is None
    aware = refinement(recipe(model="aware"))
    assert aware is not None
    refined = aware(replace(one, phase=PhasePrior(None, 3.0)), one.central_image(range(8, 16)))
    assert refined.phase is not None and refined.phase.phase is not None


def test_slices_are_given_what_the_recipe_names():
    one = textured(smooth(N))
    for model, aware in (("modulus", False), ("aware", True), ("held-back", False)):
        settings = recipe(model=model)
        made = mr_image_model(one.kspace, noise_variance=one.noise_variance, recipe=settings)
        assert isinstance(made.blocks[0].analysis, PhasedParts) == aware

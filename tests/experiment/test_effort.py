"""Products that an estimate counts beside those of small runs; what grows with what."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from mri_design.experiment.effort import Effort
from mri_design.experiment.inputs import SliceChoice
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.volume import opened_slices
from mri_design.kinds import KINDS
from mri_design.runs.design import design_effort, design_scan
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.recon import ReconRequest, recon_effort, reconstruct_scan
from mri_design.runs.work import Keep, Work


def recipe_of(coils: int, method: str) -> Recipe:
    recipe = load_recipe(None).replacing("input", matrix=64).replacing("simulation", coils=coils)
    return recipe.replacing("reconstruction", method=method)


@pytest.mark.parametrize("method", ["mean", "map", "l1-wavelet", "zero-filled"])
@pytest.mark.parametrize("coils", [1, 4])
def test_products_of_an_image_are_counted_within_a_factor_of_two(coils: int, method: str) -> None:
    mask = np.zeros(64, dtype=bool)
    mask[20:44], mask[::4] = True, True
    request = ReconRequest("phantom:t2w", recipe_of(coils, method), mask, slices=SliceChoice("0"))
    effort = recon_effort(request, Work())
    with opened_slices(request.source, request.recipe) as slices:
        made = reconstruct_scan(slices, request, Work(), Keep()).images[0].reconstruction
    assert effort.image_products / 2 <= max(made.convergence.matvecs, 1) <= effort.image_products * 2
    assert (effort.coils, effort.grid, effort.lines) == (coils, (64, 64), (int(mask.sum()), 64))


@pytest.mark.parametrize("coils", [1, 4])
def test_products_and_steps_of_a_design_are_counted(coils: int) -> None:
    recipe = recipe_of(coils, "zero-filled").replacing("input", matrix=80)  # several coils take no columns there
    request = DesignRequest("phantom:t2w", recipe.with_strategy(None), 16)
    effort, trace = design_effort(request, Work()), design_scan(request, Work(), Keep()).trace
    assert effort.steps == len(trace.steps)
    assert effort.lines == (len(trace.lines) - len(trace.steps), 16)
    counted = sum(step.matvecs for step in trace.steps) / len(trace.steps)
    assert effort.step_products / 2 <= counted <= effort.step_products * 2


@pytest.mark.parametrize(
    "more",
    [{"coils": 12}, {"slices": 4}, {"grid": (512, 512)}, {"steps": 50}, {"draws": 16}, {"kind": KINDS["spiral"]}],
)
def test_more_of_anything_takes_longer(more: dict[str, Any]) -> None:
    kind = KINDS["lines"]
    one = Effort(grid=(256, 256), kind=kind, coils=8, coils_read=8, method="mean", lines=(64, 256))
    assert dataclasses.replace(one, **more).seconds > one.seconds
    assert dataclasses.replace(one, **more).mib >= one.mib

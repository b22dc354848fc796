"""What benchmarks of regions rest on: exact draws against an integral, and errors over deviations that are known."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from mri_design import GeneralizedLinearModel, Reconstruction
from mri_design.operators import CartesianLines, Identity
from mri_design.potentials import Laplace
from mri_design.status import Convergence, Status

Module = Callable[[str], ModuleType]
SIDE = 64


def test_gibbs_draws_have_mean_and_variance_of_the_posterior_of_single_pixels(module: Module) -> None:
    rng, variance, scale = np.random.default_rng(0), 0.5, 1.2
    everything = CartesianLines(range(4), (4, 4))
    seen = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    model = GeneralizedLinearModel(
        everything, everything(seen), variance, analysis=Identity((4, 4)), potentials=Laplace(scale=scale)
    )
    drawn = module("parts.gibbs").laplace_draws(model, seen, 2500, 50, rng)
    axis = np.linspace(-8, 8, 401)
    grid = axis[:, None] + 1j * axis
    for at in ((0, 0), (2, 1), (3, 3)):
        weights = np.exp(-(np.abs(grid - seen[at]) ** 2) / (2 * variance) - scale / np.sqrt(variance) * np.abs(grid))
        weights /= weights.sum()
        mean = np.sum(weights * grid)
        spread = np.sqrt(np.sum(weights * np.abs(grid - mean) ** 2))
        one = drawn[:, *at]
        assert abs(one.mean() - mean) < 0.09 * spread
        assert np.sqrt(np.mean(np.abs(one - mean) ** 2)) == pytest.approx(spread, rel=0.08)


def test_regions_of_an_image_that_is_as_wrong_as_its_draws_have_ratios_of_one(module: Module) -> None:
    script, rng = module("region_errors"), np.random.default_rng(0)
    rows = []
    for _ in range(3):
        noise = 0.1 * (rng.normal(size=(33, SIDE, SIDE)) + 1j * rng.normal(size=(33, SIDE, SIDE)))
        truth = np.full((SIDE, SIDE), 3.0 + 0j)
        image = truth + noise[0]
        std = np.full((SIDE, SIDE), 0.1 * np.sqrt(2))
        made = Reconstruction(image, std, Convergence(Status.CONVERGED, 1, 0.0), draws=image + noise[1:])
        rows += script.judged(made, truth, rng)
    found = script.summary(rows, 3)
    assert found["regions"] == 3 * 4 * (8 + 4)
    for name in ("modulus", "complex", "independent"):
        assert found[f"rms {name}"] == pytest.approx(1, abs=0.15)  # discs overlap, and so their errors do

"""Error bars are scaled to the error predicted for the image, and stay as they are where nothing is predicted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from mri_design import Calibrated, DesignView, PreparedScan, Recipe, load_input, load_recipe, prepare, reconstruct
from mri_design.design.model_choice import held_back
from mri_design.experiment.held_back.error_bars import BOUNDS, std_factor
from mri_design.experiment.held_back.prediction import hold_back
from mri_design.operators.base import Array
from mri_design.operators.readouts import LineReadouts

LINES = sorted({*range(19, 29), *range(1, 48, 4)})


def recipe_of(name: str = "default", **inference: object) -> Recipe:
    return load_recipe(name).replacing("simulation", matrix=48).replacing("inference", **inference)


def scan_of(recipe: Recipe, name: str = "brain") -> PreparedScan:
    return prepare(load_input(f"phantom:{name}", recipe), recipe)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", ["local", "default"])
def test_all_pixels_are_scaled_by_one_factor_that_brings_them_to_the_actual_error(name: str) -> None:
    recipe = recipe_of(name)
    scan = scan_of(recipe)
    result = reconstruct(scan.slice_model(0, recipe), LINES, "mean", recipe, rng())
    assert result.std is not None and result.std_factor is not None and result.std.dtype == np.float32
    truth = scan.reference(0)
    assert truth is not None
    wrong = float(np.sum(np.abs(result.image - truth) ** 2))
    ratio = float(np.sum(result.std.astype(float) ** 2)) / wrong
    before = ratio / result.std_factor.factor**2
    assert abs(np.log(ratio)) < 0.7 * abs(np.log(before)) and 0.5 < ratio < 2
    assert np.isfinite(result.std).all() and (result.std > 0).all()
    known, held = held_back(LINES, LineReadouts((48, 48)))
    assert result.std_factor.held_back == len(held) and sorted([*known, *held]) == LINES
    assert str(result.std_factor).endswith(f"after {len(held)} lines held back")


@pytest.mark.parametrize("lines", [LINES, range(14, 34)], ids=["lines held back", "none"])
def test_variances_sum_to_a_known_share_of_what_the_error_model_predicts(
    lines: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Squared errors were nine tenths of the predictions; what the scan adds has three quarters of the weight."""
    predicted: dict[bool, float] = {}
    corrected = Calibrated.corrected

    def kept(strategy: Calibrated, view: DesignView, expected: Array) -> Array:
        energies = corrected(strategy, view, expected)
        predicted[bool(view.steps)] = float(energies.sum())
        return energies

    monkeypatch.setattr(Calibrated, "corrected", kept)
    recipe = recipe_of("local", loops=2)
    result = reconstruct(scan_of(recipe).slice_model(0, recipe), lines, "mean", recipe, rng())
    before, after = predicted[False], predicted.get(True, predicted[False])
    assert result.std is not None and result.std_factor is not None
    assert BOUNDS[0] < result.std_factor.factor**2 < BOUNDS[1]
    assert (after == before) == (result.std_factor.held_back == 0)
    assert np.sum(result.std.astype(float) ** 2) == pytest.approx(0.9 * before**0.25 * after**0.75, rel=1e-4)


def test_without_lines_outside_the_centre_only_the_synthetic_heads_are_asked() -> None:
    recipe = recipe_of("local")
    scan = scan_of(recipe)
    result = reconstruct(scan.slice_model(0, recipe), range(14, 34), "mean", recipe, rng())
    assert result.std_factor is not None and result.std_factor.held_back == 0
    assert "no lines" in str(result.std_factor)


def test_other_priors_are_left_as_they_are() -> None:
    recipe = recipe_of("tv-wavelet").replacing("reconstruction", method="mean")
    scan = scan_of(recipe)
    result = reconstruct(scan.slice_model(0, recipe), LINES, "mean", recipe, rng())
    assert result.std is not None and result.std_factor is None


def test_holes_are_left_as_they_are_and_the_factor_is_bounded() -> None:
    recipe = recipe_of("local", loops=2)
    one = scan_of(recipe).slice_model(0, recipe)
    engine = recipe.inference.engine()
    posterior = engine.infer(one.model(LINES), rng())
    for size, bound in ((1e6, BOUNDS[0]), (1e-9, BOUNDS[1])):
        scale = std_factor(one, LINES, np.full((48, 48), size), posterior, hold_back(one, LINES, engine, 0), 0)
        assert scale is not None and scale.factor == pytest.approx(np.sqrt(bound))
    holes = replace(one, samples=np.ones((48, 48), dtype=bool))
    assert std_factor(holes, LINES, np.ones((48, 48)), posterior, None, 0) is None

"""Factors on bands of k-space: where they act, how the scan scales them, and that they are what was learnt."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mri_design import Recipe, SliceModel, calibrate, reconstruct
from mri_design.evidence import (
    HeldBack,
    band_factors,
    bands,
    hold_back,
    shipped_band_factors,
    strength,
    with_band_factors,
)
from mri_design.evidence.held_back import KX_EDGES, KY_EDGES, SHARES
from mri_design.experiment import load_scan

RECIPE = Recipe().replacing("input", matrix=48).replacing("phase", model="modulus")
LINES = sorted({*range(19, 29), *range(1, 48, 3)})
TABLE = (len(SHARES), len(KY_EDGES) - 1, len(KX_EDGES) - 1)


def brain(recipe: Recipe = RECIPE) -> SliceModel:
    return calibrate(load_scan("phantom:brain", recipe), recipe).slice_model(0, **recipe.slice_settings)


@cache
def honest() -> HeldBack:
    """Lines held back as they were measured."""
    without = hold_back(brain(), LINES, RECIPE.inference.engine(), 0)
    return without


def predicted(factor: float) -> HeldBack:
    """Lines held back that are the prediction times a factor."""
    without = honest()
    kspace = without.slice_model.encoding()(without.posterior.mean) * factor
    lying = replace(without, slice_model=replace(without.slice_model, kspace=kspace.astype(np.complex64)))
    lying.__dict__["posterior"] = without.posterior
    return lying


def test_every_sample_is_in_the_band_of_its_frequencies() -> None:
    numbers = bands((8, 16))
    k_y, k_x = np.abs(np.arange(8) - 4) / 4, np.abs(np.arange(16) - 8) / 8
    for row, of_row in zip(k_y, numbers, strict=True):
        for column, number in zip(k_x, of_row, strict=True):
            y, x = divmod(int(number), len(KX_EDGES) - 1)
            assert KY_EDGES[y] <= row and (row < KY_EDGES[y + 1] or row == 1)
            assert KX_EDGES[x] <= column and (column < KX_EDGES[x + 1] or column == 1)


def test_factors_are_interpolated_between_shares_and_constant_beyond() -> None:
    table = np.ones(TABLE) * np.array([1.0, 2.0, 4.0])[:, None, None]
    found = [band_factors(table, (64, 64), lines)[0, 0] for lines in (16, 32, 60, 2, 11)]
    np.testing.assert_allclose(found, [2, 4, 4, 1, 1 + np.log2(11 / 8)])


def test_measured_lines_stay_and_the_others_are_multiplied() -> None:
    one, rng = brain(), np.random.default_rng(0)
    image = (rng.standard_normal(one.shape) + 1j * rng.standard_normal(one.shape)).astype(np.complex64)
    factors = rng.uniform(0.5, 1.5, TABLE)
    before, after = one.encoding()(image)[0], one.encoding()(with_band_factors(factors, one, LINES, image, 0.5))[0]
    wanted = 1 + 0.5 * (band_factors(factors, one.shape, len(LINES)) - 1)
    wanted[LINES] = 1
    np.testing.assert_allclose(after, before * wanted, atol=1e-5)


@pytest.mark.parametrize(("factor", "share"), [(1.0, 0.0), (1.1, 0.5), (1.2, 1.0), (1.5, 1.0), (0.9, 0.0)])
def test_a_scan_takes_the_share_of_the_correction_that_its_lines_held_back_ask_for(factor: float, share: float) -> None:
    assert strength(predicted(factor), np.full(TABLE, 1.2)) == pytest.approx(share, abs=1e-4)


def test_few_lines_several_coils_and_holes_are_not_corrected() -> None:
    factors, without = np.full(TABLE, 1.2), predicted(1.1)
    assert strength(None, factors) == 0
    assert strength(replace(without, held=without.held[:3]), factors) == 0
    holes = replace(without.slice_model, samples=np.ones(without.slice_model.shape, dtype=bool))
    assert strength(replace(without, slice_model=holes), factors) == 0
    coils = RECIPE.replacing("simulation", coils=2)
    assert strength(hold_back(brain(coils), LINES, coils.inference.engine(), 0), factors) == 0


def test_the_mean_is_corrected_by_the_share_it_tells_and_map_is_not() -> None:
    off = RECIPE.replacing("reconstruction", band_factors=False)
    rng = np.random.default_rng
    plain = reconstruct(brain(), LINES, "mean", off, rng(0), with_std=False)
    result = reconstruct(brain(), LINES, "mean", RECIPE, rng(0), with_std=False)
    share = strength(honest(), shipped_band_factors())
    assert plain.band_strength is None and result.band_strength is not None and 0 < result.band_strength <= 1
    assert result.band_strength == pytest.approx(share, abs=0.1)  # other draws behind the prediction
    expected = with_band_factors(shipped_band_factors(), brain(), LINES, plain.image, result.band_strength)
    np.testing.assert_allclose(result.image, expected, atol=1e-5)
    assert reconstruct(brain(), LINES, "map", RECIPE, rng(0)).band_strength is None

"""How many centre lines coil maps take of a mask, and what is said where these are most of it."""

from __future__ import annotations

import pytest

from mri_design import Recipe
from mri_design.experiment.extent import (
    calibration_for,
    centre_for_maps,
)
from mri_design.experiment.strategies import make_strategy


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(None, None), (64, None), (25, None), (24, 12), (21, 12), (16, 12), (13, 12), (12, 8), (9, 8), (8, 8)],
)
def test_lines_for_the_maps_are_fewer_where_the_usual_ones_would_be_the_whole_mask(
    count: int | None, wanted: int | None
) -> None:
    assert calibration_for(Recipe(), count) == wanted


@pytest.mark.parametrize(
    ("count", "wanted"), [(5000, None), (4608, None), (2048, 16), (768, 10), (300, 10), (200, 10), (128, 8), (90, 8)]
)
def test_the_square_of_a_plane_is_an_eighth_of_the_mask_and_at_least_ten_on_a_side_where_half_of_it_allows(
    count: int, wanted: int | None
) -> None:
    assert calibration_for(Recipe().replacing("design", encoding="plane"), count) == wanted


def test_what_was_asked_for_stays() -> None:
    assert calibration_for(Recipe().replacing("design", start=20), 16) == 20
    plane = Recipe().replacing("design", encoding="plane").replacing("constraints", calibration=30)
    assert calibration_for(plane, 100) == 30
    assert calibration_for(Recipe().replacing("design", encoding="radial"), 6) is None
    asked = Recipe().replacing("design", encoding="plane").replacing("coils", calibration_lines=16)
    assert calibration_for(asked, 700) is None
    few = Recipe().replacing("coils", calibration_lines=10)
    assert calibration_for(few, 13) is None and calibration_for(few, 10) == 8


@pytest.mark.parametrize(
    ("count", "designed", "drawn"), [(None, 8, 24), (64, 8, 24), (24, 8, 12), (23, 7, 12), (16, 5, 12), (12, 4, 8)]
)
def test_designs_begin_with_fewer_lines_than_maps_are_usually_estimated_from(
    count: int | None, designed: int, drawn: int
) -> None:
    blind = make_strategy("vd-polynomial:3", "lines")
    for name in ("calibrated", "information-gain"):
        assert centre_for_maps(make_strategy(name, "lines"), Recipe(), count) == designed
    assert centre_for_maps(blind, Recipe(), count) == drawn
    for asked in (Recipe().replacing("design", start=10), Recipe().replacing("coils", calibration_lines=10)):
        assert centre_for_maps(make_strategy("calibrated", "lines"), asked, 64) == 10
        assert centre_for_maps(blind, asked, 64) == 10

"""Masks without a scan: exactly as many lines as asked for, the same as a design's."""

from __future__ import annotations

import numpy as np
import pytest

from mri_design import Recipe, calibrate, load_phantom, make_strategy, run_design
from mri_design.errors import UsageError
from mri_design.experiment import DrawnMask, draw_mask, kinds_of_masks, named_kind, readouts_wanted
from mri_design.readouts import PlaneReadouts
from tests.refusals import refused

SHAPES = {"lines": [(32, 20), (45, 16)], "plane": [(24, 18), (17, 26)]}


def drawn(kind: str, encoding: str, grid: tuple[int, int], acceleration: float, **more: int) -> tuple[DrawnMask, int]:
    whole = grid[0] * grid[1] if encoding == "plane" else grid[0]
    count = readouts_wanted(whole, acceleration)
    return draw_mask(kind, grid, count, Recipe().replacing("design", encoding=encoding), **more), count


@pytest.mark.parametrize(("encoding", "kind"), [(e, k) for e in ("lines", "plane") for k in kinds_of_masks(e)])
def test_there_are_exactly_as_many_as_the_acceleration_leaves(encoding: str, kind: str) -> None:
    starts = (None, 0, 1, 4)
    for grid in SHAPES[encoding]:
        for place, acceleration in enumerate((2, 3.3, 7)):
            made, count = drawn(kind, encoding, grid, acceleration, start=starts[place], seed=place)
            assert np.count_nonzero(made.mask) == count == len(set(made.order)) == len(made.order)
    made, count = drawn(kind, encoding, grid, 4, start=4, seed=9)
    assert np.count_nonzero(made.mask) == count
    middle = tuple(slice(n // 2 - 2, n // 2 + 2) for n in made.readouts.shape)
    assert made.mask[middle].all()


@pytest.mark.parametrize(
    ("encoding", "kind"), [("lines", "vd-polynomial"), ("lines", "regular"), ("plane", "poisson-disc")]
)
def test_the_mask_is_that_of_a_design_with_the_same_seed(encoding: str, kind: str) -> None:
    data = load_phantom("brain", shape=(24, 20), rng=np.random.default_rng(0))
    recipe = Recipe().replacing("design", encoding=encoding)
    one = calibrate(data, recipe).slice_model(0, **recipe.slice_settings)
    made = draw_mask(kind, (24, 20), 12 if encoding == "lines" else 90, recipe, seed=5)
    state = run_design(
        [one], make_strategy(kind, encoding), len(made.order), recipe, seed=5, start=made.order[: made.n_start]
    )
    assert state.trace.lines == made.order and 0 < made.n_start < len(made.order)
    assert draw_mask(kind, (24, 20), len(made.order), recipe, seed=6).order != made.order


@pytest.mark.parametrize(
    ("kind", "axes", "encoding", "found"),
    [
        ("vd", 1, None, ("vd-polynomial", "lines")),
        ("vd:3", 2, None, ("vd-polynomial:3", "plane")),
        ("vd", 2, "lines", ("vd-polynomial", "lines")),
        ("regular:4", 2, None, ("regular:4", "lines")),
        ("vd:3 draw=golden", 2, None, ("vd-polynomial:3 draw=golden", "lines")),
        ("caipi:2x3", 1, None, ("caipi:2x3", "plane")),
        ("equispaced", 1, None, ("fastmri-equispaced", "lines")),
        ("radial", 2, None, ("half-turn", "radial")),
        ("spiral:golden", 1, None, ("golden", "spiral")),
        ("golden", 1, "radial", ("golden", "radial")),
    ],
)
def test_a_kind_says_the_strategy_and_what_it_chooses(kind, axes, encoding, found):
    assert named_kind(kind, axes, encoding) == found


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        *((kind, None) for kind in ("calibrated", "golden", "poison-disc", "radial:half")),
        *((kind, "plane") for kind in ("oracle-hole", "regular", "vd draw=golden")),
        *((kind, "lines") for kind in ("radial", "poisson-disc")),
    ],
)
def test_kinds_that_there_are_not_are_refused(kind: str, encoding: str | None) -> None:
    with pytest.raises(UsageError):
        named_kind(kind, 2, encoding)


@pytest.mark.parametrize(("encoding", "count"), [("lines", 7), ("plane", 63), ("radial", 7)])
def test_a_calibration_region_larger_than_the_mask_is_refused(encoding: str, count: int) -> None:
    kind = "half-turn" if encoding == "radial" else "low-pass"
    recipe = Recipe().replacing("design", encoding=encoding)
    with refused("start"):
        draw_mask(kind, (24, 24), count, recipe, start=8)
    if encoding != "radial":
        assert len(draw_mask(kind, (24, 24), count + 1, recipe, start=8).order) == count + 1


def test_no_more_samples_than_the_shutter_leaves() -> None:
    recipe = Recipe().replacing("design", encoding="plane").replacing("constraints", forbid="corners")
    with refused("number of samples"):
        draw_mask("poisson-disc", (16, 16), 240, recipe)
    plane = PlaneReadouts((16, 16))
    made = draw_mask("poisson-disc", (16, 16), 100, recipe)
    assert (plane.radius[list(made.order)] <= 1).all()


def test_a_mask_of_a_plane_begins_with_the_square_that_is_asked_for() -> None:
    recipe = Recipe().replacing("design", encoding="plane")
    for start, first in ((0, 0), (1, 1), (3, 9), (None, 16)):
        assert draw_mask("poisson-disc", (32, 32), 40, recipe, start=start).n_start == first
    wider = recipe.replacing("design", start=6)
    assert draw_mask("poisson-disc", (32, 32), 40, wider).n_start == 36
    assert draw_mask("poisson-disc", (32, 32), 40, wider, start=0).n_start == 0

"""Masks without a scan: exactly as many lines as asked for, the same as a design's, and those of other programs."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import Recipe, calibrate, load_phantom, make_strategy, run_design
from mri_design.errors import MissingPackageError, UsageError
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
    calibrations = (None, 0, 1, 4)
    for grid in SHAPES[encoding]:
        for place, acceleration in enumerate((2, 3.3, 7)):
            made, count = drawn(kind, encoding, grid, acceleration, calibration=calibrations[place], seed=place)
            assert np.count_nonzero(made.mask) == count == len(set(made.order)) == len(made.order)
    made, count = drawn(kind, encoding, grid, 4, calibration=4, seed=9)
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
        ("bart-poisson", 2, None, ("bart-poisson", "plane")),
    ],
)
def test_a_kind_says_the_strategy_and_what_it_chooses(kind, axes, encoding, found):
    assert named_kind(kind, axes, encoding) == found


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        *((kind, None) for kind in ("calibrated", "golden", "poison-disc", "radial:half")),
        *((kind, "plane") for kind in ("oracle-hole", "regular", "vd draw=golden")),
        *((kind, "lines") for kind in ("radial", "sigpy-poisson")),
    ],
)
def test_kinds_that_there_are_not_are_refused(kind: str, encoding: str | None) -> None:
    with pytest.raises(UsageError):
        named_kind(kind, 2, encoding)


@pytest.mark.parametrize(("encoding", "count"), [("lines", 7), ("plane", 63), ("radial", 7)])
def test_a_calibration_region_larger_than_the_mask_is_refused(encoding: str, count: int) -> None:
    kind = "half-turn" if encoding == "radial" else "low-pass"
    recipe = Recipe().replacing("design", encoding=encoding)
    with refused("calibration region"):
        draw_mask(kind, (24, 24), count, recipe, calibration=8)
    if encoding != "radial":
        assert len(draw_mask(kind, (24, 24), count + 1, recipe, calibration=8).order) == count + 1


def test_no_more_samples_than_the_shutter_leaves() -> None:
    recipe = Recipe().replacing("design", encoding="plane").replacing("constraints", shutter=True)
    with refused("number of samples"):
        draw_mask("poisson-disc", (16, 16), 240, recipe)
    plane = PlaneReadouts((16, 16))
    made = draw_mask("poisson-disc", (16, 16), 100, recipe)
    assert (plane.radius[list(made.order)] <= 1).all()
    with pytest.raises(UsageError):
        draw_mask("sigpy-poisson", (16, 16), 100, recipe)


@pytest.mark.slow  # SigPy compiles its sampling
def test_the_mask_of_sigpy_is_sigpy_s_but_for_what_is_too_many() -> None:
    from sigpy.mri import poisson

    recipe = Recipe().replacing("design", encoding="plane")
    made = draw_mask("sigpy-poisson", (64, 48), 512, recipe, calibration=8, seed=3)
    own = np.asarray(poisson((64, 48), 6 - 0.1, calib=(8, 8), seed=3, dtype=bool), dtype=bool)
    assert np.count_nonzero(made.mask) == 512
    assert own[made.mask].all() and own.sum() >= 512
    assert made.mask[28:36, 20:28].all()
    assert str(own.sum() - 512) in made.note
    with refused("acceleration"):
        draw_mask("sigpy-poisson", (8, 8), 60, recipe, calibration=0)


FAKE = """#!{python} -S
import random, struct, sys
words = sys.argv[1:]
assert words[0] == "poisson" and words[-1] == "mask" and "-v" in words, words
said = dict(zip(words[1:-1:1], words[2:]))
rows, columns, scale = int(said["-Y"]), int(said["-Z"]), float(said["-y"])
assert said["-z"] == said["-y"] and said["-C"] == "4"
rng = random.Random(int(said["-s"]))
flags = [rng.random() < 0.5 / scale**2 for _ in range(rows * columns)]
open("mask.hdr", "w").write("# Dimensions\\n1 %d %d 1 1\\n" % (rows, columns))
open("mask.cfl", "wb").write(b"".join(struct.pack("<2f", flag, 0) for flag in flags))
"""


def test_bart_s_mask_has_exactly_as_many_samples_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bart"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    recipe = Recipe().replacing("design", encoding="plane")
    made = draw_mask("bart-poisson", (20, 16), 64, recipe, calibration=4, seed=3)
    assert np.count_nonzero(made.mask) == 64 and made.mask[8:12, 6:10].all()
    with refused("acceleration") as caught:
        draw_mask("bart-poisson", (20, 16), 250, recipe, calibration=4, seed=3)
    drawn = random.Random(3)
    densest = sum(drawn.random() < 0.5 for _ in range(20 * 16))
    assert str(densest) in caught.value.wanted
    assert np.count_nonzero(draw_mask("bart-poisson", (20, 16), densest, recipe, calibration=4, seed=3).mask) == densest
    program.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    with refused("bart poisson"):
        draw_mask("bart-poisson", (20, 16), 64, recipe, calibration=4, seed=3)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPackageError):
        draw_mask("bart-poisson", (20, 16), 64, recipe)

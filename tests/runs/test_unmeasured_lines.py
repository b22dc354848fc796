"""Nothing about a design with several coils, or its image, depends on a line before it is measured."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, calibrate, load_phantom, make_strategy, reconstruct, run_design
from mri_design.evaluation import slice_means
from mri_design.experiment import (
    Checkpoint,
    DesignOptions,
    DesignPlan,
    ScanSource,
    SliceChoice,
    design_engine,
    design_seed,
)
from mri_design.runs.companions import companions_within
from mri_design.runs.compare import ComparisonRequest, compare_strategies
from mri_design.runs.design import design_scan
from mri_design.runs.design_request import DesignRequest, read_input
from mri_design.runs.protocol import ProtocolRequest, design_protocol
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers, design_among
from tests.interruptions import interrupted

LINES = 16
FEW = 12
"""Lines where the whole verb is run, twice."""
RECIPE = Recipe.of(
    {
        "inference": {"samples": 4, "loops": 2, "tolerance": 0.2},
        "reconstruction": {"band_factors": False},
        "phase": {"model": "modulus"},
        "prior": [{"kind": "pixels", "rate": 100.0}, {"kind": "differences", "rate": 10.0}],
    }
)


@pytest.fixture(scope="module")
def scan() -> KSpaceData:
    """Three coils, the noise known and the maps not, without a true image."""
    data = load_phantom("brain", shape=(32, 24), n_coils=3, rng=np.random.default_rng(0))
    covariance = 2 * (data.noise_variance or 0) * np.eye(3)
    return replace(data, coil_maps=None, noise_variance=None, noise_covariance=covariance, reference=None)


def changed(scan: KSpaceData, lines: Any) -> KSpaceData:
    """Another scan that agrees with this one on some lines alone."""
    other = load_phantom("t2w", shape=(32, 24), n_coils=3, rng=np.random.default_rng(1)).kspace
    kspace = 3 * other
    kspace[:, :, list(lines)] = scan.kspace[:, :, list(lines)]
    return replace(scan, kspace=kspace)


def source(data: KSpaceData) -> list[ScanSource]:
    return [ScanSource("memory:scan", SliceChoice("all"), loaded=data)]


def designed(scan, data):
    request = DesignRequest("memory:scan", RECIPE, FEW)
    made = design_scan(request, Work(), Keep(), read_input(request, Work(), data))
    assert len(made.trace.start) == 4
    return made.trace.lines, made.images[0].reconstruction


def compared(strategy, data):
    """Fixed masks with one number of centre lines: which of several counts is decided by errors against all lines."""
    recipe = RECIPE if strategy == "calibrated" else RECIPE.replacing("design", start=4)
    request = ComparisonRequest(sources=source(data), recipe=recipe, strategies=[strategy], lines=[FEW], seeds=1)
    shown = compare_strategies(request, Work(), Keep()).shown[0]
    return tuple(np.flatnonzero(shown.mask)), shown.reconstruction


def tried(scan, data):
    training = source(replace(changed(scan, []), name="training"))
    more = {"test": source(data), "against": ["low-pass"], "seeds": 1}
    made = design_protocol(ProtocolRequest(sources=training, recipe=RECIPE, lines=FEW, **more), Work(), Keep())
    return made.trace.lines, made.shown


@pytest.mark.parametrize(
    "verb", [designed, tried, "calibrated", "vd-polynomial:3"], ids=["design", "try", "calibrated", "density"]
)
def test_lines_and_images_of_every_verb_are_of_measured_lines(scan: KSpaceData, verb: Any) -> None:
    made = partial(compared, verb) if isinstance(verb, str) else partial(verb, scan)
    lines, image = made(scan)
    others, same = made(changed(scan, lines))
    assert others == lines
    np.testing.assert_array_equal(same.image, image.image)
    np.testing.assert_array_equal(same.std, image.std)


def test_slices_of_a_mask_tell_their_neighbours_of_measured_lines_alone(scan: KSpaceData) -> None:
    lines = range(10, 22)
    whole = [scan, changed(scan, range(10, 20)), changed(scan, range(8, 16))]

    def told(slices: list[KSpaceData]) -> Any:
        scans = [calibrate(one, RECIPE, calibration_lines=8, growing=True) for one in slices]
        known = {number: one.slice_model(0, **RECIPE.slice_settings) for number, one in enumerate(scans)}
        near = {"mean": {0: 0.5, 2: 0.5}}
        (made,) = companions_within(near, known, [], lines, RECIPE, Work())
        return made.image

    image = told(whole)
    np.testing.assert_array_equal(told([changed(one, lines) for one in whole]), image)
    assert not np.array_equal(told([changed(one, lines[1:]) for one in whole]), image)


def growing(scan: KSpaceData) -> Any:
    return calibrate(scan, RECIPE, calibration_lines=8, growing=True).slice_model(0, **RECIPE.slice_settings)


class Scanner:
    """Measures a scan line by line into a slice that holds nothing else: what is not measured is no number."""

    def __init__(self, scan: Any, start: Any) -> None:
        self.whole, self.live = scan, replace(scan, kspace=np.full_like(scan.kspace, np.nan))
        self.measured(start)

    def measured(self, lines: Any) -> None:
        self.live.kspace[:, lines] = self.whole.kspace[:, lines]

    def __call__(self, steps: Any) -> None:
        self.measured([step.line for step in steps])


START = tuple(range(12, 20))


@pytest.mark.parametrize("block", [1, 3])
def test_a_scanner_that_has_measured_nothing_else_gives_the_same_design(scan: KSpaceData, block: int) -> None:
    whole, recipe = growing(scan), RECIPE.replacing("design", block=block)
    scanner = Scanner(whole, list(START))

    def designed(one: Any, measure: Callable[[Any], None] | None = None) -> Any:
        options = DesignOptions(measure=measure, closing=True)
        return run_design([one], "calibrated", LINES, recipe, start=START, options=options).trace

    live, replayed = designed(scanner.live, scanner), designed(whole)
    assert live.lines == replayed.lines and live.innovation_energies == replayed.innovation_energies
    image = reconstruct(scanner.live, live.lines, "mean", RECIPE, with_std=False).image
    np.testing.assert_array_equal(image, reconstruct(whole, live.lines, "mean", RECIPE, with_std=False).image)


def test_maps_are_renewed_while_a_design_goes_on_and_kept_in_between(scan: KSpaceData) -> None:
    asked: list[int] = []
    one = growing(scan)
    of = type(one.own_maps).of

    class Counting(type(one.own_maps)):  # type: ignore[misc]
        def of(self, kspace: Any, measured: Any, **how: bool) -> Any:
            asked.append(int(measured.sum()))
            return of(self, kspace, measured, **how)

    run_design([replace(one, own_maps=Counting())], "calibrated", LINES, RECIPE, start=START)
    assert sorted(set(asked)) == [8, 12] and asked == sorted(asked)


@pytest.mark.parametrize("places", [0, 2])
def test_means_of_a_design_are_made_again_wherever_its_slices_were_kept(scan: KSpaceData, places: int) -> None:
    slices = [growing(scan), growing(changed(scan, []))]
    strategy = make_strategy("calibrated")
    with Workers(None, max(places, 1)) as workers:
        options = DesignOptions(closing=True)
        plan = DesignPlan.of(strategy, RECIPE, slices[0].candidates)
        replay = design_engine(plan, RECIPE, design_seed(0))
        state = design_among(workers, replay, slices, START, LINES, options)
    counts = range(len(START), LINES)
    *_, (_, last) = slice_means(slices[1], state.signals[1], 1, state.trace, replay, counts)
    np.testing.assert_array_equal(last.mean, state.warm[1].mean)


def test_an_interrupted_design_goes_on_with_the_same_maps(scan: KSpaceData, tmp_path: Path) -> None:
    def designed(**options: Any) -> Any:
        return run_design([growing(scan)], "calibrated", LINES, RECIPE, start=START, options=DesignOptions(**options))

    kept = Checkpoint(tmp_path / "checkpoint.npz", "me")
    with interrupted("calibrated", 3), pytest.raises(KeyboardInterrupt):
        designed(checkpoint=kept)
    resumed, expected = designed(checkpoint=kept), designed()
    assert resumed.trace.lines == expected.trace.lines
    np.testing.assert_array_equal(resumed.warm[0].mean, expected.warm[0].mean)

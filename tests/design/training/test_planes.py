"""An order of samples of a plane: how it is learnt, in blocks, and how a design follows it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import DesignView, LineCandidates, MRSlice, zero_filled
from mri_design.design import (
    OrderTraining,
    PlaneConstraints,
    ReferenceSlice,
    ResidualGreedy,
    TrainedDesign,
    TrainedOrder,
    begin_training,
    covering,
    removed_share,
    thinned,
    train,
)
from mri_design.experiment import load_trained, save_trained
from mri_design.operators import Array
from mri_design.readouts import LineReadouts, PlaneReadouts
from tests.design.plane.conftest import plane_slice
from tests.design_steps import replayed
from tests.refusals import refused

PLANE = PlaneReadouts((16, 16))
START = tuple(PLANE.outwards[:20].tolist())


def plain(one: MRSlice, samples: Sequence[int]) -> Array:
    return zero_filled(one.model(samples))


def training(n_coils: int = 1, target: int = 60) -> OrderTraining:
    slices = [plane_slice(n_coils, seed=seed) for seed in (0, 1)]
    scans = [ReferenceSlice(str(i), one, one.plain_image(range(256))) for i, one in enumerate(slices)]
    constraints = PlaneConstraints(PLANE)
    return OrderTraining(scans, ResidualGreedy(), target, replayed(plain, scans), constraints=constraints, block=16)


def learnt(n_coils: int = 1) -> TrainedDesign:
    return train(training(n_coils), begin_training(training(n_coils), START))


@pytest.mark.parametrize("n_coils", [1, 3])
def test_samples_come_in_blocks_where_the_images_are_most_wrong(n_coils: int) -> None:
    design, scans = learnt(n_coils), training(n_coils).scans
    assert design.counts == ((20, 36, 52, 60) if n_coils == 1 else (20, 42, 58, 60))  # of several coils a disc first
    assert len(set(design.lines)) == 60 and design.lines[:20] == START
    for row, count in enumerate(design.counts):
        total = np.zeros(256)
        for scan in scans:
            wrong = PLANE.values(
                (plain(scan.slice_model, design.lines[:count]) - scan.reference)[None], scan.slice_model.maps
            )
            total += np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3)) / np.sum(np.abs(scan.reference) ** 2) / 2
        np.testing.assert_allclose(design.profile[row], total, rtol=1e-3, atol=1e-9)
    candidates = LineCandidates(np.ones(256, dtype=bool), START, 60, 20, PlaneConstraints(PLANE), PLANE)
    scores = ResidualGreedy().scores(candidates, design.profile[0], 2, replayed(plain, scans), np.random.default_rng(0))
    if n_coils == 1:
        assert design.lines[20] == int(np.argmax(np.where(candidates.remaining, scores, -1)))


@pytest.mark.parametrize(("n_coils", "row"), [(1, 0), (3, 1)])
def test_a_block_is_spread_by_the_errors_of_the_training_images(n_coils: int, row: int) -> None:
    """The map of squared errors stands in the place of a posterior's variances."""
    design, scans = learnt(n_coils), training(n_coils).scans
    begin = design.counts[row]
    there = design.lines[:begin]
    candidates = LineCandidates(np.ones(256, dtype=bool), there, 60, 20, PlaneConstraints(PLANE), PLANE)
    scores = ResidualGreedy().scores(candidates, design.profile[row], 2, lambda _: [], np.random.default_rng(0))
    shares = []
    for scan in scans:
        squared = np.abs(plain(scan.slice_model, there) - scan.reference) ** 2
        shares.append(removed_share(squared, scan.slice_model.maps, scan.slice_model.noise_variance))
    squared, free = np.fft.fftshift(np.mean(shares, axis=0)), candidates.remaining
    if n_coils == 1:
        expected = thinned(np.where(free, scores, np.nan), squared, PLANE, 16)
    else:
        expected = covering(np.where(free, scores, 0), squared, PLANE, free, 16)[0]
    assert list(design.lines[begin : begin + 16]) == expected
    assert set(expected) != set(np.argsort(-np.where(free, scores, -1))[:16].tolist())


def test_a_design_follows_the_order_in_blocks_of_its_own_and_goes_on_by_the_last_residual(tmp_path: Path) -> None:
    save_trained(tmp_path / "order.npz", learnt())
    rule = TrainedOrder(design=load_trained(tmp_path / "order.npz"))
    order = learnt().lines
    assert rule.design.counts == learnt().counts and rule.default_start(PLANE, 60) == 20
    measurable = np.ones(256, dtype=bool)
    measurable[order[25]] = False
    candidates = LineCandidates(measurable, START, 80, 20, PlaneConstraints(PLANE), PLANE)
    block = [choice.line for choice in rule.choose_block(DesignView(candidates), np.random.default_rng(0), 50)]
    assert block[:39] == [*order[20:25], *order[26:]]
    left = np.where(candidates.remaining, rule.design.profile[-1], -1)
    left[block[:39]] = -1
    assert block[39:] == np.argsort(-left, kind="stable")[:11].tolist()


def test_another_plane_and_lines_are_refused() -> None:
    rule = TrainedOrder(design=learnt())
    with refused("trained design"):
        rule.default_start(PlaneReadouts((8, 32)), 40)
    with refused("trained design"):
        rule.default_start(LineReadouts((16, 16)), 8)
    with refused("trained design: counts"):
        replace(learnt(), counts=(20, 52, 36, 60))


def test_a_sample_that_training_took_counts_with_its_residual_before(rng: np.random.Generator) -> None:
    design = learnt()
    for acquired, row in ((5, 0), (20, 0), (35, 0), (36, 1), (51, 1), (60, 3), (99, 3)):
        values = design.residual(acquired)
        measured = design.lines[: design.counts[row]]
        left = np.setdiff1d(np.arange(256), measured)
        np.testing.assert_array_equal(values[left], design.profile[row, left])
        for place, sample in enumerate(measured[20:], 20):
            before = max(r for r, count in enumerate(design.counts) if count <= place)
            assert values[sample] == min(values[left].max(), design.profile[before, sample])

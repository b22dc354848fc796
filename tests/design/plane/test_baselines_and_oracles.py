"""Masks over a plane that look at no data, and those that look at the truth."""

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.design import (
    CaipiSamples,
    LowPass,
    OracleHole,
    PlaneConstraints,
    PoissonDisc,
    RandomSamples,
    poisson_disc,
    radial_density,
)
from mri_design.design.energies import energies
from mri_design.readouts import PlaneReadouts
from tests.design.plane.conftest import measured_ids, plane_posterior

PLANE = PlaneReadouts((32, 32))
START = tuple(PLANE.outwards[:16].tolist())
RULES = [RandomSamples(), RandomSamples(power=0.0), PoissonDisc(), LowPass(), CaipiSamples()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'power', '')}")
def test_masks_are_exact_new_seeded_and_allowed(rule, make_view) -> None:
    rules = PlaneConstraints(PLANE, shutter=True)
    view = make_view((), START, 200, 32, rules)
    lines = [c.line for c in rule.choose_block(view, np.random.default_rng(3), 184)]
    assert len(set(lines)) == 184 and not set(lines) & set(START)
    assert np.all(PLANE.radius[lines] <= 1)
    assert lines == [c.line for c in rule.choose_block(view, np.random.default_rng(3), 184)]


def nearest(samples: np.ndarray) -> np.ndarray:
    at = PLANE.frequencies[samples].astype(float)
    apart = np.hypot(*(at[:, None] - at).T)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))


def test_poisson_disc_keeps_its_distance_and_leaves_no_gap() -> None:
    free, there = np.ones(PLANE.size, dtype=bool), np.zeros(PLANE.size, dtype=bool)
    samples = poisson_disc(PLANE, np.ones(PLANE.size), free, there, 100, np.random.default_rng(0))
    assert len(samples) == 100
    least = nearest(samples).min()
    drawn = np.random.default_rng(0).choice(PLANE.size, 100, replace=False)
    assert least >= 2.2 > nearest(drawn).min()
    at = PLANE.frequencies[samples]
    holes = np.hypot(*(PLANE.frequencies[:, None] - at).T).min(axis=0)
    assert holes.max() <= least + 1.5  # nothing but the few left out could be added


def test_poisson_discs_have_no_checkerboards_where_their_distances_are_a_few_samples() -> None:
    plane = PlaneReadouts((128, 128))
    free, there = np.ones(plane.size, dtype=bool), np.zeros(plane.size, dtype=bool)
    board = np.indices((4, 4)).sum(axis=0) % 2 == 0
    for count in (4096, 2731):
        samples = poisson_disc(plane, radial_density(plane, 2.0), free, there, count, np.random.default_rng(0))
        patches = np.lib.stride_tricks.sliding_window_view(plane.mask(samples.tolist()), (4, 4))
        boards = sum(int((patches == one).all(axis=(-2, -1)).sum()) for one in (board, ~board))
        assert boards < 50  # some 200 where samples lie on their places


def test_poisson_disc_keeps_away_from_the_start() -> None:
    there = PLANE.mask(START).reshape(-1)
    samples = poisson_disc(PLANE, np.ones(PLANE.size), ~there, there, 60, np.random.default_rng(0))
    apart = np.hypot(*(PLANE.frequencies[samples][:, None] - PLANE.frequencies[list(START)]).T)
    assert apart.min() >= 2


def test_caipi_is_regular_and_shifted(make_view) -> None:
    pattern = CaipiSamples().pattern(PLANE, (2, 4)).reshape(32, 32)
    assert pattern.sum() == 32 * 32 // 8 and pattern[16, 16] and pattern[18, 18] and not pattern[18, 16]
    view = make_view((), START, 16 + 140, 32)
    lines = [c.line for c in CaipiSamples().choose_block(view, np.random.default_rng(0), 140)]
    flags = PLANE.mask([*START, *lines])
    assert CaipiSamples().pattern(PLANE, (2, 4)).reshape(32, 32)[flags].sum() == 128  # the whole pattern
    narrow = CaipiSamples(spacing=(2, 2), shift=0).choose_block(view, np.random.default_rng(0), 140)
    assert np.all(PLANE.frequencies[[c.line for c in narrow]] % 2 == 0)


def truth() -> np.ndarray:
    data = load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(0))
    assert data.reference is not None
    return data.reference[0]


def test_the_leave_one_out_oracle_does_not_know_the_sample_itself(make_view, rng) -> None:
    posterior = plane_posterior()
    view = make_view((posterior,), measured_ids(16))
    block = OracleHole(truths=(truth(),)).choose_block(view, np.random.default_rng(0), 1)
    chosen, scores = block[0].line, block[0].scores
    assert scores is not None
    plane = PlaneReadouts((16, 16))
    # Another truth on the chosen sample alone leaves its score as it was, and changes its neighbours'.
    change = np.zeros(256, dtype=complex)
    change[chosen] = 5e5
    changed = truth() + plane.rows(range(256)).adjoint(change[None])
    again = OracleHole(truths=(changed,)).choose_block(view, np.random.default_rng(0), 1)[0].scores
    assert again is not None
    assert again[chosen] == pytest.approx(scores[chosen], rel=1e-3)
    left = np.isfinite(scores)
    left[chosen] = False
    assert np.max(again[left] / scores[left]) > 2
    assert np.all(energies(posterior, plane, rng, 8) > 0)

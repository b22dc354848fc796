"""Angles: what a design over them begins with, sets that are fixed, and scores against dense algebra."""

import numpy as np
import pytest

import mri_design as md
from mri_design.design import DesignView, FixedAngles, LineCandidates, gains_and_energies
from mri_design.model import PhasePrior
from mri_design.operators import NonUniformFourier
from mri_design.readouts import AngleConstraints, LineReadouts, ShotReadouts
from tests.refusals import refused

N = 16
SHOTS = ShotReadouts((N, N), md.operators.radial_spokes(N, np.pi * np.arange(8) / 8))


def test_a_start_is_spread_over_half_a_turn() -> None:
    every = np.ones(12, dtype=bool)
    spokes, arms = AngleConstraints(12, 12), AngleConstraints(12, 6)
    assert spokes.start(every, 4) == (0, 3, 6, 9) and arms.start(every, 2) == (0, 3)
    assert arms.start(every, 12) == tuple(range(12)) and arms.start(every, 8) == (0, 1, 3, 4, 6, 7, 9, 10)
    assert spokes.allowed(12).all() and spokes.needed(every) == () and spokes.most_lines(every, (0,)) == 12


def test_a_start_that_cannot_be_is_refused() -> None:
    rules, every = AngleConstraints(12, 12), np.ones(12, dtype=bool)
    for count in (0, 13):
        with refused("start lines"):
            rules.start(every, count)
    with refused("start lines"):
        rules.start(~every, 2)


@pytest.mark.parametrize("kind", ["half-turn", "full-turn", "one-missing"])
def test_equispaced_sets(kind: str) -> None:
    angles = FixedAngles(kind=kind, name=kind).angles(6, 2 * np.pi)  # type: ignore[arg-type]
    steps = {"half-turn": np.pi / 6, "full-turn": np.pi / 3, "one-missing": 2 * np.pi / 7}
    np.testing.assert_allclose(np.diff(angles), steps[kind])


def test_a_fixed_set_is_measured_in_its_order() -> None:
    rule = FixedAngles()
    candidates = LineCandidates(np.ones(5, dtype=bool), (0, 3), 5, 2)
    view = DesignView(candidates)
    assert rule.default_start(LineReadouts((5, 5)), 5) == 5
    assert rule.choose(view, np.random.default_rng(0)).line == 1


@pytest.mark.parametrize(("coils", "aware"), [(1, False), (2, False), (1, True)])
def test_scores_are_those_of_single_shots(coils: int, aware: bool) -> None:
    pytest.importorskip("finufft")
    scan = md.load_phantom("brain", shape=(N, N), n_coils=coils, rng=np.random.default_rng(0))
    maps, phase = None if coils == 1 else scan.coil_maps[0], PhasePrior(None, 2.0) if aware else None
    data = SHOTS.rows(range(8), maps)(scan.reference[0]).astype(np.complex64).reshape(coils, 8, N)
    sl = md.SliceModel(data, np.ones(8, dtype=bool), 0.007**2, maps, readouts=SHOTS, phase=phase)
    posterior = md.DoubleLoop(outer_iterations=1).infer(sl.model([0, 4]), np.random.default_rng(0))
    scores, _ = gains_and_energies(posterior, SHOTS, np.random.default_rng(1), 12)
    root = md.glm.drawn_root(posterior, np.random.default_rng(1), 12)
    alone = [md.glm.shot_gain(root, shot, lambda k: NonUniformFourier(k, (N, N), maps))[0] for shot in SHOTS.shots]
    np.testing.assert_allclose(scores, alone, rtol=1e-3)
    assert scores[2] > scores[0]  # half way between the measured spokes, and one of them

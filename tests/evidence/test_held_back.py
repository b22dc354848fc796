"""Lines, samples of a plane or readouts of any trajectory held back, and the model of the phase they choose."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from mri_design import DoubleLoop, Recipe, SliceModel, calibrate, load_recipe
from mri_design.design import found_energies, innovation
from mri_design.evidence import PhaseChoice, best_model, choose_phase, hold_back
from mri_design.evidence.held_back import held_back
from mri_design.experiment import load_scan
from mri_design.inference import WarmStart
from mri_design.operators import Array, radial_spokes, turned
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from mri_design.variances import Exact
from tests.phased_slices import SD, disc, smooth
from tests.refusals import refused

N = 24
PLANE = PlaneReadouts((N, N))
ANYWHERE = Recipe().replacing("phase", model="held-back-anywhere")
needs_finufft = pytest.mark.skipif(find_spec("finufft") is None, reason="needs FINUFFT")


def spokes(count: int, turn: float = np.pi) -> ShotReadouts:
    angles = np.arange(count) * turn / count
    return ShotReadouts((N, N), turned(radial_spokes(N, [0.0], oversampling=2)[0], angles), "readouts")


def samples() -> list[int]:
    """A fully sampled centre and a random third of the rest."""
    drawn = np.random.default_rng(3).uniform(size=PLANE.size) < 1 / 3
    return np.flatnonzero(drawn | (PLANE.radius < 0.3)).tolist()


def textured(encoding: Readouts, angle: Array) -> SliceModel:
    """Nothing to predict it by but its phase, measured in full."""
    rng = np.random.default_rng(0)
    image = disc(angle, rng)
    rows = encoding.rows(range(encoding.size))
    exact = rows(image)
    data = exact + SD * (rng.standard_normal(exact.shape) + 1j * rng.standard_normal(exact.shape))
    laid_out = encoding.shots.shape[:2] if isinstance(encoding, ShotReadouts) else (N, N)
    kspace = data.reshape(1, *laid_out).astype(np.complex64)
    return SliceModel(kspace, np.ones(encoding.size, bool), SD**2, readouts=encoding)


def chosen(one: SliceModel, ids: Sequence[int]) -> PhaseChoice:
    engine = ANYWHERE.inference.engine()
    return choose_phase(hold_back(one, ids, engine, 0), (3.0,))


@pytest.mark.parametrize(
    ("encoding", "ids"),
    [
        (LineReadouts((N, N)), [*range(9, 16), 0, 2, 4, 5, 18, 19, 21, 22, 23]),
        (PLANE, samples()),
        (spokes(16), range(16)),
    ],
    ids=["lines", "plane", "spokes"],
)
def test_a_third_of_what_can_be_predicted_is_held_back_without_mirror_images(
    encoding: Readouts, ids: list[int]
) -> None:
    known, held = held_back(ids, encoding)
    outer = encoding.predictable(ids)
    assert sorted([*known, *held]) == sorted(ids) and set(held) <= set(outer)
    assert 0.25 < len(held) / len(outer) <= 0.5
    opposites = [(candidate, encoding.opposite_of(candidate)) for candidate in held]
    assert not any(there != here and there in held for here, there in opposites)
    backwards, same = held_back(list(ids)[::-1], encoding)
    assert same == held and sorted(backwards) == sorted(known)
    again = held_back(ids, encoding, fold=1)[1]  # mostly others
    assert len(set(held) & set(again)) <= len(held) / 2


def test_what_holds_the_contrast_is_not_held_back() -> None:
    assert PLANE.predictable(samples()) == [s for s in samples() if s not in PLANE.central_run(samples())]
    assert not set(held_back(samples(), PLANE)[1]) & set(np.flatnonzero(PLANE.radius < 0.3).tolist())


def test_opposites_of_shots_are_half_a_turn_further() -> None:
    full = spokes(8, turn=2 * np.pi)
    assert [full.opposite_of(shot) for shot in range(8)] == [4, 5, 6, 7, 0, 1, 2, 3]
    assert [spokes(8).opposite_of(shot) for shot in range(8)] == list(range(8))


@needs_finufft
@pytest.mark.parametrize(
    ("encoding", "ids"), [(LineReadouts((N, N)), range(4, 20)), (PLANE, samples()), (spokes(12), range(12))]
)
def test_energies_of_one_transform_are_those_one_by_one(encoding: Readouts, ids: list[int]) -> None:
    one = textured(encoding, smooth((N, N)))
    posterior = DoubleLoop(outer_iterations=1).infer(one.model(ids), np.random.default_rng(0))
    asked = list(ids)[::-3][:6]
    alone = [innovation(one, posterior.mean, candidate) for candidate in asked]
    np.testing.assert_allclose(found_energies(one, posterior.mean, asked), alone, rtol=1e-3)


@needs_finufft
@pytest.mark.parametrize(
    ("encoding", "ids"),
    [
        (LineReadouts((N, N)), [*range(8, 17), 0, 2, 4, 5, 6, 18, 19, 21, 22, 23]),
        (PLANE, samples()),
        pytest.param(spokes(14), range(14), marks=pytest.mark.slow),
    ],
    ids=["lines", "plane", "spokes"],
)
def test_a_smooth_phase_is_chosen_and_a_rough_one_is_not(encoding: Readouts, ids: list[int]) -> None:
    choice = chosen(textured(encoding, smooth((N, N))), ids)
    assert choice.phase is not None and choice.phase.imaginary_ratio == 3.0
    assert choice.unit == encoding.unit and choice.gain > 0
    rough = np.random.default_rng(2).uniform(-np.pi, np.pi, (N, N))
    assert chosen(textured(encoding, rough), ids).phase is None


@pytest.mark.parametrize(("standard_errors", "taken"), [(0.5, False), (1.3, False), (1.7, True), (-2.0, False)])
def test_a_small_advantage_is_no_reason_for_another_model(
    standard_errors: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines held back have to be predicted better than under moduli by one and a half standard errors."""
    alike: list[Array] = []  # energies under the models, one after the other

    def energies(_: SliceModel, image: Array, held: Sequence[int]) -> Array:
        spread = np.resize([0.5, -0.5], len(held))
        spread -= spread.mean()
        error = spread.std(ddof=1) / np.sqrt(len(held))
        alike.append(np.ones(len(held)) if not alike else np.exp(-(standard_errors * error + spread)))
        return alike[-1]

    monkeypatch.setattr("mri_design.evidence.held_back.found_energies", energies)
    choice = chosen(textured(LineReadouts((N, N)), smooth((N, N))), [*range(8, 17), 0, 2, 4, 5, 6, 18, 19, 21, 22, 23])
    assert len(alike) == 2 and choice.held_back == len(alike[0]) >= 4
    assert (choice.phase is not None) == taken


def test_the_first_model_is_kept_without_evidence():
    rng = np.random.default_rng(0)
    scatter = rng.standard_normal(20)
    scatter = (scatter - scatter.mean()) / scatter.std(ddof=1)
    of_lines = np.exp(rng.standard_normal(20))
    for standard_errors, number in ((0.0, 0), (1.4, 0), (1.6, 1)):  # 1.5 is clearly better
        gains = 0.01 * (standard_errors / np.sqrt(20) + scatter)
        assert best_model(np.stack([of_lines, of_lines * np.exp(-gains)], axis=1)) == number
    even = np.stack([of_lines, of_lines * np.exp(0.01 * scatter), of_lines * np.exp(-0.01 * scatter)], axis=1)
    assert best_model(even) == 0
    better = even * [1.0, 0.8, 0.5]
    assert best_model(better) == 2
    assert best_model(better * [1.0, 1.0, 10.0]) == 1
    assert best_model(better[:3]) == 0  # too few
    assert best_model(np.zeros((0, 2))) == 0


@pytest.mark.parametrize("energies", [np.ones(2), [[1.0, 0.0]], [[1.0, np.nan]], np.ones((3, 0))])
def test_energies_that_are_no_table_of_positive_numbers_are_refused(energies):
    with refused("innovation energies"):
        best_model(np.asarray(energies))


OF_BRAIN = sorted({*range(19, 29), *range(1, 48, 4)})


def test_the_posterior_has_seen_the_other_lines_at_the_signal_level_of_all() -> None:
    recipe = load_recipe("local").replacing("input", matrix=48)
    one, engine = (
        calibrate(load_scan("phantom:brain", recipe), recipe).slice_model(0, **recipe.slice_settings),
        recipe.inference.engine(),
    )
    without = hold_back(one, OF_BRAIN, engine, 3)
    assert sorted([*without.known, *without.held]) == OF_BRAIN and set(without.held).isdisjoint(range(19, 29))
    assert without.signal == one.signal_level(OF_BRAIN)
    model = one.model(without.known, without.signal)
    first = engine.cut_short(1, half_the_draws=True).infer(model, np.random.default_rng(3))
    start = replace(WarmStart.from_posterior(first), samples=None)
    expected = engine.cut_short(1).infer(model, np.random.default_rng(3), warm_start=start)
    np.testing.assert_array_equal(without.posterior.mean, expected.mean)
    settled = replace(engine, variances=Exact(), tolerance=1e-3).infer(model, np.random.default_rng(3)).mean
    assert np.linalg.norm(without.posterior.mean - settled) < 0.1 * np.linalg.norm(settled)


def test_another_third_of_the_lines_is_held_back_and_the_image_begins_without_it() -> None:
    recipe = load_recipe("local").replacing("input", matrix=48)
    one = calibrate(load_scan("phantom:brain", recipe), recipe).slice_model(0, **recipe.slice_settings)
    first = hold_back(one, OF_BRAIN, recipe.inference.engine(), 3)
    other = first.another()
    assert set(other.held).isdisjoint(first.held) and sorted([*other.known, *other.held]) == OF_BRAIN
    np.testing.assert_array_equal(other.start.mean, one.model(other.known, other.signal).back_projection())
    anew = replace(first, known=other.known, held=other.held).posterior.mean
    assert np.linalg.norm(other.posterior.mean - anew) < 0.05 * np.linalg.norm(anew)
    assert hold_back(one, range(19, 29), recipe.inference.engine(), 3) is None

"""The loop of a design: what it sees, decides, has measured and keeps, of one slice or several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    Calibrated,
    CentredLines,
    Choice,
    DesignEngine,
    DesignState,
    DesignStep,
    DesignTrace,
    DesignView,
    ExpectedError,
    Forecast,
    InformationGain,
    LineCandidates,
    Strategy,
    gains_and_energies,
    generators,
    most_information,
    of_each,
)
from mri_design.design.trace import relative_error
from mri_design.model import GaussianPosterior
from mri_design.readouts import Readouts
from mri_design.variances import Exact, MonteCarlo
from tests.design.conftest import make_slice
from tests.design.plane.conftest import plane_slice
from tests.design_steps import changed, design_step
from tests.refusals import refused
from tests.slow_cases import slow_case

INFERENCE = md.DoubleLoop(MonteCarlo(8, 0.03), outer_iterations=3, tolerance=0.03)


def engine(seed: int = 0, strategy: object = None, **settings: int) -> DesignEngine:
    return DesignEngine(strategy or InformationGain(draws=8), INFERENCE, seed=seed, **settings)  # type: ignore[arg-type]


def designed(slices: list[md.SliceModel], target: int, start: int = 5, **settings: object) -> DesignState:
    one = engine(**settings)  # type: ignore[arg-type]
    measurable = np.logical_and.reduce([s.measured for s in slices])
    return one.run(slices, one.begin(slices, md.readouts.centre_lines(measurable, start)), target)


@dataclass(frozen=True)
class Recorder(Strategy):
    """Takes the lowest line left and keeps what it was shown."""

    seen: list[tuple[list[GaussianPosterior], LineCandidates, float]]
    name: str = "recorder"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        return 1

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        self.seen.append((list(view.posteriors), view.candidates, float(rng.uniform())))
        expected = InformationGain().predicted(view, rng).expected
        return Choice(int(np.flatnonzero(view.candidates.remaining)[0]), forecast=Forecast(expected))


class Numbers(CentredLines):
    """Gives the number of a line in the place of a choice."""

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        return super().choose(view, rng).line  # type: ignore[return-value]


def test_a_strategy_that_gives_no_choice_is_refused_by_name() -> None:
    with refused("choice of random"):
        designed([make_slice()], 8, strategy=Numbers())


def test_a_strategy_that_cannot_choose_is_refused() -> None:
    class Undecided(Strategy):
        name = "undecided"

    for block in (1, 2):
        with refused("strategy undecided"):
            designed([make_slice()], 8, strategy=Undecided(), block=block)


def test_the_same_seed_gives_the_same_design_and_another_seed_another_random_one() -> None:
    seeds = (3, 3, 4)
    first, again, other = (designed([make_slice()], 12, strategy=CentredLines(), seed=s).trace.lines for s in seeds)
    assert first == again != other


def test_a_design_that_stops_and_goes_on_is_the_same_design() -> None:
    slices, one = [make_slice()], engine()
    states: list[DesignState] = []
    begin = one.begin(slices, (8, 7, 9, 6))
    whole = one.run(slices, begin, 9, states.append)
    assert [len(s.trace.lines) for s in states] == [5, 6, 7, 8, 9]
    for state in (begin, *states[:-1]):
        assert one.run(slices, state, 9).trace.lines == whole.trace.lines


def test_the_model_of_a_slice_follows_its_image() -> None:
    one, seen, states = make_slice(), list[np.ndarray](), list[DesignState]()

    def refined(mr_slice: md.SliceModel, image: np.ndarray) -> md.SliceModel:
        seen.append(image)
        return replace(mr_slice, kspace=mr_slice.kspace * len(seen))

    loop = replace(engine(), refined=refined)
    begin = loop.begin([one], (8, 7, 9, 6))
    loop.run([one], begin, 6, states.append)
    np.testing.assert_array_equal(seen, [one.central_image((8, 7, 9, 6)), states[0].warm[0].mean])
    twice = INFERENCE.cut_short(1).infer(
        replace(one, kspace=one.kspace * 2).model(states[0].trace.lines, begin.signals[0]),
        np.random.default_rng((0, 0)),
        warm_start=states[0].warm[0],
    )
    np.testing.assert_array_equal(states[1].warm[0].mean, twice.mean)


def test_zero_filled_lines_are_never_chosen_and_all_others_can_be() -> None:
    full, measured = make_slice(), ~np.isin(np.arange(16), [0, 1, 12, 15])
    holed = replace(full, kspace=np.where(measured[:, None], full.kspace, 0), measured=measured)
    lines = designed([holed], 12).trace.lines
    assert sorted(lines) == np.flatnonzero(measured).tolist()
    with refused("number of lines"):
        designed([holed], 13)


def test_slices_share_one_mask_and_their_scores_add() -> None:
    first, second = make_slice(), make_slice(name="shepp-logan", seed=1)
    together = designed([first, second], 6).trace.steps[0]
    alone = [designed([s], 6).trace.steps[0] for s in (first, second)]
    scores = [step.choice.scores for step in (together, *alone)]
    total = scores[1] + scores[2]
    np.testing.assert_allclose(scores[0], total, rtol=0.2)  # other noise in the second slice's variances
    assert together.matvecs == pytest.approx(sum(s.matvecs for s in alone), rel=0.3)


def test_slices_are_asked_for_lines_that_all_hold_and_a_random_rule_predicts_nothing() -> None:
    second = replace(make_slice(name="shepp-logan"), measured=np.arange(16) >= 4)
    trace = designed([make_slice(), second], 12, strategy=CentredLines()).trace
    assert min(trace.lines) == 4
    step = trace.steps[0]
    assert np.isnan([step.predicted_energy, step.actual_energy, step.choice.score]).all()
    assert (step.matvecs, step.choice.scores, step.converged) == (0, None, True)


def test_slices_on_different_grids_or_none_are_refused() -> None:
    for slices in ([make_slice(), make_slice(shape=(16, 20))], [make_slice(), plane_slice()], []):
        with refused("slices"):
            engine().begin(slices, (8,))


def test_each_step_sees_all_lines_so_far_and_fresh_randomness() -> None:
    seen: list[tuple[list[GaussianPosterior], LineCandidates, float]] = []
    slices = [make_slice(), make_slice(name="shepp-logan")]
    designed(slices, 8, strategy=Recorder(seen))
    assert [c.acquired for _, c, _ in seen] == [(8, 7, 9, 6, 10), (8, 7, 9, 6, 10, 0), (8, 7, 9, 6, 10, 0, 1)]
    assert all(c.n_start == 5 and c.target == 8 for _, c, _ in seen)
    for posteriors, candidates, _ in seen:
        assert len(posteriors) == 2
        assert all(tuple(p.model.measurement.lines) == candidates.acquired for p in posteriors)
    assert len({number for _, _, number in seen}) == 3


@pytest.mark.parametrize("coils", [1, slow_case(4)])
@pytest.mark.parametrize("louder", [1, 300], ids=["uncertain image", "noisy data"])
def test_predicted_and_actual_energy_are_those_of_the_chosen_line(coils: int, louder: float) -> None:
    one = make_slice(coils)
    one = replace(one, noise_variance=louder * one.noise_variance)
    seen: list[tuple[list[GaussianPosterior], LineCandidates, float]] = []
    exact = DesignEngine(Recorder(seen), md.DoubleLoop(Exact(), outer_iterations=3))
    step = exact.run([one], exact.begin([one], (8, 7, 9, 6, 10)), 6).trace.steps[0]
    posterior = seen[0][0][0]
    maps = np.ones((1, 16, 16)) if one.maps is None else one.maps
    k = np.arange(16) - 8
    wave = np.exp(-2j * np.pi * np.outer(k, k) / 16) / 4
    expected_line = np.einsum("y,cyx,xj->cj", wave[0], maps * posterior.mean, wave)  # line 0, by hand
    actual = np.sum(np.abs(one.kspace[:, 0] - expected_line) ** 2)
    assert step.actual_energy == pytest.approx(actual, rel=1e-4)
    x_new = one.encoding([0]).to_dense_real()
    covariance = x_new @ np.linalg.solve(posterior.precision.dense_real(), x_new.T)
    predicted = one.noise_variance * (np.trace(covariance) + 2 * coils * 16)
    assert step.predicted_energy == pytest.approx(predicted, rel=0.3)  # twelve draws


def test_steps_after_the_first_are_warm() -> None:
    """One outer loop a step, three at the start where the tolerance asks for them, and fewer products for each."""
    one, slices = (
        DesignEngine(InformationGain(draws=8), replace(INFERENCE, tolerance=1e-6)),
        [make_slice(shape=(32, 32))],
    )
    steps = one.run(slices, one.begin(slices, range(12, 20)), 12).trace.steps
    assert max(s.matvecs for s in steps[1:]) < steps[0].matvecs / 2


def test_a_step_whose_variances_did_not_converge_says_so() -> None:
    one = make_slice()
    strict = md.DoubleLoop(MonteCarlo(4, 1e-6, max_iterations=1), outer_iterations=1)
    unfinished = DesignEngine(InformationGain(draws=4), strict)
    trace = unfinished.run([one], unfinished.begin([one], (8, 7, 9)), 5).trace
    assert not trace.converged
    assert designed([one], 6).trace.converged


def test_what_is_drawn_for_a_slice_does_not_depend_on_the_others() -> None:
    slices = [make_slice(seed=seed) for seed in (0, 1)]
    one = engine(strategy=Recorder([]))
    one.run(slices, one.begin(slices, md.readouts.centre_lines(np.ones(16, dtype=bool), 5)), 6)
    posteriors = one.strategy.seen[0][0]  # type: ignore[attr-defined]
    two, three = (
        of_each(some, gains_and_energies, [(slices[0].candidates, own, 20) for own in rngs])[0][0]
        for some in (posteriors, [*posteriors, posteriors[0]])
        for rngs in [generators(np.random.default_rng(0), len(some))]
    )
    np.testing.assert_array_equal(two, three)


def test_lines_with_holes_cannot_be_replayed() -> None:
    one = make_slice()
    holes = np.random.default_rng(0).random(one.shape) < 0.5
    with refused("slice 1"):
        engine().begin([one, replace(one, samples=holes)], md.readouts.centre_lines(one.measured, 5))


def test_what_a_stop_rule_asks_is_that_of_the_forecast() -> None:
    step = design_step(1, expected=np.array([1.0, 3.0]), image_energy=12.0)
    assert step.forecast.predicted_level == 16.0
    assert step.predicted_error == step.forecast.predicted_error == pytest.approx(0.5)
    believing = changed(step, corrected=np.array([0.0, 4.0])).forecast
    assert believing.predicted is believing.corrected


def test_errors_are_relative_to_an_image_that_has_the_energy_of_the_error_too() -> None:
    assert relative_error(1.0, 15.0) == 0.25 and relative_error(3.0, 0.0) == 1.0
    assert np.isnan(relative_error(0.0, 0.0)) and np.isnan(relative_error(1.0, float("nan")))


SCORES = np.array([np.nan, 4.0, 2.0, np.nan])
TRACE = DesignTrace("rule", 4, (2,), (design_step(1, scores=SCORES), design_step(3)))


def test_a_trace_is_in_acquisition_order_start_first_and_knows_what_was_predicted() -> None:
    assert TRACE.lines == (2, 1, 3)
    assert [np.flatnonzero(TRACE.mask(count)).tolist() for count in (None, 2, 0)] == [[1, 2, 3], [1, 2], []]
    steps = (design_step(1, actual_energy=2.0), design_step(3), design_step(0, actual_energy=0.5))
    assert DesignTrace("rule", 4, (2,), steps).innovation_energies == {1: 2.0, 0: 0.5}


START = (8, 7, 9, 6)


def test_a_line_tells_at_most_what_equal_independent_values_would() -> None:
    assert most_information(20.0, 10.0, 10) == pytest.approx(10 * np.log(3.0))
    variances = np.random.default_rng(0).gamma(0.3, size=10)
    exact = np.log1p(variances).sum()  # independent complex values under complex noise of energy 1 each
    assert exact < most_information(float(variances.sum()), 10.0, 10)


@pytest.mark.parametrize("coils", [1, slow_case(2)])
@pytest.mark.parametrize("rule", [InformationGain(draws=200), ExpectedError(draws=200)])
def test_information_of_a_decision_against_the_dense_determinant(coils: int, rule: Strategy) -> None:
    one = make_slice(coils)
    loop = md.DoubleLoop(Exact(), outer_iterations=2)
    engine = DesignEngine(rule, loop)
    step = engine.run([one], engine.begin([one], START), 5).trace.steps[0]
    posterior = loop.infer(one.model(START), np.random.default_rng(0))
    exact = md.design.information_gain(posterior, step.line) / 2
    if isinstance(rule, InformationGain):
        assert step.forecast.information == pytest.approx(exact, rel=0.06)
    else:
        assert exact < step.forecast.information < 1.5 * exact


@dataclass
class Scanner:
    """Fills a slice with the lines that it is asked for, and keeps what it was asked."""

    scan: md.SliceModel
    live: md.SliceModel
    asked: list[tuple[int, ...]]

    def __call__(self, steps: Sequence[DesignStep]) -> None:
        lines = [step.line for step in steps]
        assert all(np.isnan(step.actual_energy) for step in steps)
        self.asked.append(tuple(lines))
        self.live.kspace[:, lines] = self.scan.kspace[:, lines]


def live(scan: md.SliceModel) -> Scanner:
    empty = replace(scan, kspace=np.zeros_like(scan.kspace))
    empty.kspace[:, START] = scan.kspace[:, START]
    return Scanner(scan, empty, [])


def ran(one: md.SliceModel, strategy: Strategy, target: int, **settings: object) -> DesignState:
    stop = settings.pop("stop", None)
    loop = md.DoubleLoop(MonteCarlo(6, 0.1), outer_iterations=2)
    engine = DesignEngine(strategy, loop, **settings)  # type: ignore[arg-type]
    return engine.run([one], engine.begin([one], START), target, stop=stop)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("strategy", [Calibrated(draws=6), CentredLines()])
def test_a_scanner_and_its_replayed_scan_give_one_design(strategy: Strategy, block: int) -> None:
    scan = make_slice()
    scanner = live(scan)
    replayed, measured = (
        ran(scan, strategy, 10, block=block).trace,
        ran(scanner.live, strategy, 10, block=block, measure=scanner).trace,
    )
    assert measured.lines == replayed.lines
    assert measured.innovation_energies == replayed.innovation_energies
    assert [len(lines) for lines in scanner.asked] == [block] * (6 // block)
    assert [line for lines in scanner.asked for line in lines] == list(measured.lines[4:])


def test_a_line_that_is_lost_ends_the_run_and_the_last_state_goes_on_without_it() -> None:
    scan = make_slice()
    expected = ran(scan, Calibrated(draws=6), 7).trace.lines
    scanner, states = live(scan), list[DesignState]()

    def losing(steps: Sequence[DesignStep]) -> None:
        if steps[0].line == expected[5]:
            raise TimeoutError
        scanner(steps)

    loop = md.DoubleLoop(MonteCarlo(6, 0.1), outer_iterations=2)
    engine = DesignEngine(Calibrated(draws=6), loop, measure=losing)
    with pytest.raises(TimeoutError):
        engine.run([scanner.live], engine.begin([scanner.live], START), 7, states.append)
    left = replace(scanner.live, measured=np.arange(16) != expected[5])
    ended = engine.run([left], states[-1], 7).trace
    assert ended.lines[:5] == expected[:5] and len(ended.lines) == 7 and expected[5] not in ended.lines

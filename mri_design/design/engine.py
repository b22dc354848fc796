"""The sequential design loop: infer the slices, ask the strategy, acquire, repeat.

Inference of a slice goes on from where it stood (`SliceInference`), in this process or in others (`runs.workers`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import CoilMapEstimate
from mri_design.design.frames import Frame, scaled_to
from mri_design.design.greedy import image_energy, least_energies, of_each, rows_of
from mri_design.design.strategy import (
    DesignView,
    LineCandidates,
    Strategy,
    rng_of_step,
)
from mri_design.design.trace import Choice, DesignStep, DesignTrace, Forecast, StopRule, lines_expected
from mri_design.errors import InputError, described, require_counts, require_instance
from mri_design.inference.base import StepInfo, WarmStart, with_unseen
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Constraints, LineConstraints, Readouts

STEP, MOST = 2, 16
"""Maps are renewed when a part of 1 / ``STEP`` more lines has come in than they rest on, or ``MOST`` more."""


def map_lines(start: int, count: int) -> int:
    """How many of the first lines of a design its coil maps rest on.

    It depends on the numbers of lines alone, so that a design that was interrupted, one whose slices are in other
    processes and one whose means are made again all look at the same lines.

    Parameters
    ----------
    start : int
        Lines that the design began with.
    count : int
        Lines that are measured.
    """
    known = start
    while (later := known + min(MOST, -(-known // STEP))) <= count and later > known:
        known = later
    return known


Refined = Callable[[SliceModel, Array], SliceModel]
"""A slice and its image so far -> its model in the light of that image."""
Answer = TypeVar("Answer")
Cost = tuple[bool, int]
"""Whether an inference converged, and the multiplications with A that it took."""
FIRST_LOOPS, STEP_LOOPS = 3, 1
"""Outer loops at the start and after each line; the warm start makes one enough to choose a line."""
AROUND = 3
"""Pixels a side over which variances of few draws are averaged to be shown."""


class SliceInference:
    """The inference of one slice along a design, from all lines so far, again whenever some have been measured.

    The same calls in the same order from the same warm start give the same posteriors to the last bit, so that a slice
    whose process was lost can be brought to where it stood by asking again.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; whoever measures fills it.
    signal : float
        Its signal level.
    engine : DoubleLoop
        Infers it.
    seed : sequence of int
        Of the variances. Every inference sees the same noise: draws change little, and the last ones are where the next
        start.
    refined : callable, optional
        The slice's model in the light of its image so far. Without it the slice is the model.
    warm : WarmStart, optional
        Where inference begins; after every measurement, where it goes on.

    Attributes
    ----------
    seen : SliceModel
        The slice with the coil maps of the last inference.
    posterior : GaussianPosterior
        The last one.
    """

    seen: SliceModel
    posterior: GaussianPosterior | None = None
    _expecting: GaussianPosterior | None = None
    _maps_from: tuple[int, ...] = ()

    def __init__(
        self,
        slice_model: SliceModel,
        signal: float,
        engine: DoubleLoop,
        seed: Sequence[int],
        *,
        refined: Refined | None = None,
        warm: WarmStart | None = None,
    ) -> None:
        self._slice, self._signal, self._engine, self._seed = slice_model, signal, engine, tuple(seed)
        self._refined, self.warm = refined, warm

    @property
    def expecting(self) -> GaussianPosterior | None:
        """The last posterior, knowing that the lines that `expect` was given last will be measured."""
        return self._expecting or self.posterior

    def update(self, lines: tuple[int, ...], map_count: int | None = None) -> tuple[Array, Cost]:
        """Infer the slice from ``lines``; returns the mean, and the cost.

        Coil maps that are not known are those of the first ``map_count`` lines (`map_lines`), by default of all.
        """
        self._maps_from = lines[:map_count]
        self.seen = model = self._slice.calibrated(self._maps_from, rough=True)
        if self._refined is not None:
            model = self._refined(model, model.central_image(lines) if self.warm is None else self.warm.mean)
        engine = replace(self._engine, outer_iterations=FIRST_LOOPS if self.warm is None else STEP_LOOPS)
        self.posterior = self._expecting = None  # their memory is free for the next
        reports, rng = list[StepInfo](), np.random.default_rng(self._seed)
        linear = model.model(lines, self._signal)
        made = self.posterior = engine.infer(linear, rng, warm_start=self.warm, callback=reports.append)
        converged = reports[-1].inner.converged and reports[-1].variances.converged
        return made.mean, (converged, made.convergence.matvecs)

    def expect(self, lines: tuple[int, ...]) -> Cost:
        """Let the posterior know that ``lines`` will have been measured.

        Under a Gaussian the covariance after a measurement does not depend on the measured values, so candidates can be
        chosen one after another between two acquisitions (echo trains). The widths are those from before.
        """
        now = self.expecting
        assert now is not None
        rows, rng = rows_of(now, self._slice.candidates, lines), np.random.default_rng(self._seed)
        self._expecting = with_unseen(now, rows, self._engine.variances, rng)
        ended = self._expecting.marginals.convergence
        return ended.converged, ended.matvecs

    def picture(self) -> tuple[Array, Array]:
        """The last mean, complex64 (ky, kx), and its standard deviations, float32, in the units of images.

        The deviations are those of the inference itself: of its few draws, averaged over `AROUND` pixels a side, or as
        it knows them. Nothing is solved for them.
        """
        made, unit = self.posterior, np.abs(self.seen.image_unit)
        assert made is not None
        variances = made.image_variances
        if made.marginals.image is None and made.marginals.samples is not None:
            variances = scipy.ndimage.uniform_filter(variances, AROUND, mode="wrap")
        return (made.mean * unit).astype(np.complex64), (np.sqrt(variances) * unit).astype(np.float32)

    def coil_maps(self) -> CoilMapEstimate | None:
        """The estimate of the coil maps of the last inference; None where they are known."""
        return self._slice.coil_map_estimate(self._maps_from, rough=True)

    def measured(self) -> None:
        """The lines chosen by the last posterior have been measured: the next inference goes on from it."""
        if self.posterior is not None:
            self.warm = WarmStart.from_posterior(self.posterior)


class InferredSlices:
    """The slices of one design and their inference, in this process; `runs.workers` has them in others.

    A design does not depend on where its slices are.

    Attributes
    ----------
    means : sequence of complex arrays, shape (ky, kx)
        Of the last posteriors.
    """

    means: Sequence[Array] = ()

    def begin(self, slices: Sequence[SliceInference]) -> None:
        """Take the slices over."""
        self._slices = slices

    def each(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """``function(slice, *arguments)`` of every slice, computed where the slice is."""
        return [function(one, *arguments) for one in self._slices]

    def picture(self) -> tuple[Array, Array]:
        """`SliceInference.picture` of the first slice."""
        return self._slices[0].picture()

    def coil_maps(self) -> CoilMapEstimate | None:
        """`SliceInference.coil_maps` of the first slice."""
        return self._slices[0].coil_maps()

    def update(self, lines: tuple[int, ...], map_count: int) -> list[Cost]:
        """`SliceInference.update` of every slice; `posteriors` are the new ones from now on."""
        self.means, costs = zip(*self.each(SliceInference.update, lines, map_count), strict=True)
        return list(costs)

    def posteriors(self, which: str = "posterior") -> Sequence[GaussianPosterior]:
        """The last posterior of every slice; those ``expecting`` know which lines will be measured."""
        return self.each(getattr, which)

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured."""
        self.each(SliceInference.measured)

    @property
    def warm_starts(self) -> Sequence[WarmStart]:
        """Warm starts of the next inference of every slice; fetched when they are read."""
        return self.each(getattr, "warm")


def innovation(mr_slice: SliceModel, image: Array, line: int) -> float:
    """Energy of y - X_* image on one line, noise included."""
    return float(np.sum(np.abs(mr_slice.acquire([line]) - mr_slice.measurement([line])(image)) ** 2))


def found_energies(mr_slice: SliceModel, image: Array, lines: Sequence[int]) -> NDArray[np.float64]:
    """Energy of y - X_* image on every one of ``lines``, (lines,): by one transform, but for lines with holes."""
    if mr_slice.samples is not None:
        each = (mr_slice.acquire([line]) - mr_slice.measurement([line])(image) for line in lines)
        return np.array([float(np.sum(np.abs(found) ** 2)) for found in each])
    found = mr_slice.acquire(lines) - mr_slice.measurement(lines)(image)
    return mr_slice.candidates.energies(found, lines)


def most_information(energy: float, noise: float, values: int) -> float:
    """Nats of information that a line of complex values can hold at most.

    An upper bound, reached if the values are independent and equally uncertain (Hadamard's and Jensen's inequalities).

    Parameters
    ----------
    energy, noise : float
        Of the error on the line, and of the noise in its data, summed over all values.
    values : int
        How many there are.
    """
    return values * float(np.log1p(energy / noise))


Measuring = Callable[[Sequence[DesignStep]], None]
"""Has the lines of a block of decisions measured, and returns once the slices hold their data."""
ImageError = Callable[[Sequence[SliceModel], "DesignState"], float]
"""Predicts the relative L2 error of the image that the lines of a state give in the end; NaN where it cannot."""
Intervals = Callable[[Sequence[SliceModel], "DesignState"], NDArray[np.float64]]
"""`Forecast.intervals` of the image that the lines of a state give in the end."""
EXPECTED_RATIO = 0.6
"""Error of the image over the one that a design predicts, before the image's error was first predicted: small, to
predict it in time."""
STALE_AFTER, STALE_RATIO = 7, 0.75
"""After this part of its lines the ratio at the last look may have fallen to this."""
APART, APART_UNKNOWN = 16, 8
"""A design may look at the image after this part of its lines has come; the second where it predicts no error."""
AT_LEAST = 10
"""It looks once so many lines have come, as many samples of a plane as they hold, or so many shots, in any case."""
OPEN_END = 4
"""A design that a rule ends is taken to have one in so many lines, until its predictions were tested."""
WINDOW, FEWEST_LINES = 8, 8
"""Predictions have come to rest where they do not fall over this part of the grid's lines, this many at least."""


@briefly
@dataclass(frozen=True)
class DesignState:
    """The state from which a later process continues a design: its decisions, and where inference stood.

    Parameters
    ----------
    trace : DesignTrace
        Lines and steps so far.
    signals : tuple of float
        Signal level of each slice, fixed at the start.
    warm : sequence of WarmStart
        Per slice; empty before the first inference. Those of slices that are kept in other processes are fetched when
        they are evaluated.
    """

    trace: DesignTrace
    signals: tuple[float, ...]
    warm: Sequence[WarmStart] = ()

    @property
    def settled(self) -> DesignState:
        """This state with all warm starts fetched from the processes that keep them."""
        return replace(self, warm=tuple(self.warm))


@dataclass
class Amount:
    """How many lines a design has in the end, which whoever watches it may change while it runs.

    Parameters
    ----------
    most : int
        Lines in the end, those of the start included, as far as so many can be measured.
    least : int
        No stop rule ends the design before it has so many.
    enough : bool
        Whether the design ends with the lines that it has, once those that were decided on are measured.
    """

    most: int
    least: int = 0
    enough: bool = False

    def add(self, more: int, measured: int) -> None:
        """Let a design with so many ``measured`` lines have so many ``more`` than it would have had."""
        self.most, self.least, self.enough = self.most + more, max(self.least, measured) + more, False


@briefly
@dataclass(frozen=True)
class Moment:
    """A design between a decision and the measurement of its lines, or at its end.

    Parameters
    ----------
    trace : DesignTrace
        Lines so far.
    steps : sequence of DesignStep
        What was decided and will be measured; empty at the end.
    forecast : Forecast
        What is predicted now.
    where : InferredSlices
        The slices with their posteriors.
    """

    trace: DesignTrace
    steps: Sequence[DesignStep]
    forecast: Forecast
    where: InferredSlices

    @property
    def number(self) -> int:
        """Decisions before."""
        return sum(step.choice.pending == 0 for step in self.trace.steps)

    def frame(self) -> Frame | None:
        """The image of the first slice as it is known now; None where nothing was inferred."""
        if not len(self.where.means):
            return None
        image, deviation = self.where.picture()
        error, following = self.forecast.predicted_error, tuple(step.line for step in self.steps)
        known = None if self.forecast.tested == 0 else scaled_to(error, np.abs(image), deviation)
        return Frame(self.number, self.trace.lines, following, image, known, error)


@briefly
@dataclass(frozen=True)
class DesignEngine:
    """Settings of a sequential design over one or several slices that share one mask.

    All but the first two are keywords.

    Parameters
    ----------
    strategy : Strategy
        Decides which line comes next.
    inference : DoubleLoop
        Infers the posteriors.
    seed : int
        Each step and slice has a generator of its own made from it, so a resumed design is the same design.
    block : int
        Lines that are chosen after each inference and then measured together (echo trains). Strategies that choose
        blocks from one look (`Strategy.choose_block`) choose all at once if they need no posterior. Otherwise they
        begin with all that they choose without one (`Strategy.unseen`), unless a rule may end the design.
    constraints : LineConstraints
        Constraints of the sequence on the lines, those of the start included.
    refined : callable, optional
        The model of a slice in the light of its image so far, as `phase_refined` makes it. Without it the slice is the
        model.
    measure : callable, optional
        Has the lines of every block of decisions measured before they are read from the slices, which it fills.
        Without it the slices hold them already: they are replayed as the scanner. What it raises ends the run; the
        state that `run` showed last goes on from there.
    image_error : callable, optional
        Fills `Forecast.image_error` where a stop rule requests it (`StopRule.needs_image_error`).
    intervals : callable, optional
        Fills `Forecast.intervals` where a stop rule requests them (`StopRule.needs_intervals`), after the error.
    watch : callable, optional
        Sees every `Moment`: after each decision, and at the end where the design infers once more. The design does
        not depend on it.
    amount : Amount, optional
        How many lines are wanted, instead of the number that `run` is given: it is asked before every decision.

    Raises
    ------
    InputError
        For a block of no line.
    """

    strategy: Strategy
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    _: KW_ONLY
    seed: int = 0
    block: int = 1
    constraints: Constraints = field(default_factory=LineConstraints)
    refined: Refined | None = None
    measure: Measuring | None = None
    image_error: ImageError | None = None
    intervals: Intervals | None = None
    watch: Callable[[Moment], None] | None = None
    amount: Amount | None = None

    def __post_init__(self) -> None:
        require_instance(Strategy, wanted="a strategy, for example make_strategy('calibrated')", strategy=self.strategy)
        require_counts(block=self.block, least=1)

    def inference_of(
        self, slice_model: SliceModel, signal: float, number: int = 0, warm: WarmStart | None = None
    ) -> SliceInference:
        """The inference of one slice, which is repeated after every decision of a design; ``number`` seeds it."""
        seed = (self.seed, number)
        return SliceInference(slice_model, signal, self.inference, seed, refined=self.refined, warm=warm)

    def begin(self, slices: Sequence[SliceModel], start: Sequence[int]) -> DesignState:
        """The state before the first decision.

        Raises
        ------
        InputError
            For no slice, slices on different grids or with different candidates, or lines with holes.
        """
        if not slices:
            raise InputError(field="slices", got="none", wanted="at least one")
        grids, kinds = sorted({s.shape for s in slices}), sorted({s.candidates.name for s in slices})
        if len(grids) > 1 or len(kinds) > 1:
            raise InputError("slices", f"grids {grids} of {kinds}", "one grid and one kind for a shared mask")
        for number, mr_slice in enumerate(slices):
            if mr_slice.candidates.kind.with_holes:
                samples = mr_slice.grid_samples(mr_slice.measured)
                if not samples[samples.any(axis=1)].all():
                    wanted = "all readout samples in every measured line, since lines are chosen and replayed whole"
                    cure = "Give a scan whose lines are whole; a reconstruction takes the samples that there are."
                    raise InputError(f"slice {number}", "samples missing inside the measured lines", wanted, cure)
        signals = tuple(s.calibrated(start, rough=True).signal_level(start) for s in slices)
        return DesignState(DesignTrace(self.strategy.name, slices[0].candidates.size, tuple(start)), signals)

    def run(
        self,
        slices: Sequence[SliceModel],
        state: DesignState,
        target: int,
        callback: Callable[[DesignState], None] | None = None,
        stop: Callable[[Forecast], bool] | None = None,
        where: InferredSlices | None = None,
        closing: bool = False,
    ) -> DesignState:
        """Add lines until there are ``target``, or until a stop rule ends the design.

        Parameters
        ----------
        slices : sequence of SliceModel
            Fully sampled, or at least with data in enough lines: chosen lines are read from them.
        state : DesignState
            From `begin`, or from an interrupted run.
        target : int
            Lines in the end, those of the start included.
        callback : callable, optional
            Sees the state after every measurement (of a block of lines).
        stop : StopRule or function, optional
            Called once per inference with its first decision, whose line has not been measured: true ends the design
            without it, as `DesignTrace.declined`. A function (forecast) -> bool needs nothing but the forecast.
        where : InferredSlices, optional
            Holds the slices and infers them; by default this process. The design does not depend on it.
        closing : bool
            Whether to infer once more after the last line, for the trace's ``closing`` forecast.

        Raises
        ------
        InputError
            Where there are not that many lines, or those so far break the constraints.
        """
        design = _Design(self, slices, state, target, stop, where or InferredSlices())
        while design.wants_more():
            steps = design.decide()
            ended = design.may_be_ended and design.rule(steps[0].forecast)
            design.show([] if ended else steps, steps[0].forecast)
            if ended:
                return replace(design.state, trace=replace(design.state.trace, declined=steps[0]))
            if self.measure is not None:
                self.measure(steps)
            design.take(steps)
            if callback is not None:
                callback(design.state)
        return design.with_closing_forecast() if closing else design.state


class _Design:
    """A design in progress: its candidates, its decisions so far, and the current posteriors.

    Attributes
    ----------
    candidates : LineCandidates
        What has been measured, and what may be.
    state : DesignState
        After the last measurement.
    posteriors : sequence of GaussianPosterior
        Of every slice from what has been measured; empty for rules that need none, and where a part of the mask is
        chosen from none. ``means`` are their means.
    """

    posteriors: Sequence[GaussianPosterior] = ()
    means: Sequence[Array] = ()

    def __init__(
        self,
        engine: DesignEngine,
        slices: Sequence[SliceModel],
        state: DesignState,
        target: int,
        stop: Callable[[Forecast], bool] | None,
        where: InferredSlices,
    ) -> None:
        self.engine, self.slices, self.state, self.where = engine, slices, state, where
        self.rule = stop if isinstance(stop, StopRule) else StopRule(ends=stop)
        self.may_end = stop is not None
        measurable, readouts = np.logical_and.reduce([s.measured for s in slices]), slices[0].candidates
        lines, n_start = state.trace.lines, len(state.trace.start)
        self.candidates = LineCandidates(measurable, lines, target, n_start, engine.constraints, readouts)
        self.in_blocks = readouts.thinned and engine.strategy.chooses_blocks
        warm: Sequence[WarmStart | None] = state.warm or [None] * len(slices)
        given = enumerate(zip(slices, state.signals, warm, strict=True))
        where.begin([engine.inference_of(one, signal, i, start) for i, (one, signal, start) in given])

    @property
    def left(self) -> int:
        """How many are still to be chosen."""
        return self.candidates.target - len(self.candidates.acquired)

    def wants_more(self) -> bool:
        """Whether any are, of the number that is wanted now."""
        amount, known = self.engine.amount, self.candidates
        if amount is not None:
            there = len(known.acquired)
            most = min(amount.most, known.constraints.most_lines(known.measurable, known.acquired))
            target = there if amount.enough else max(there, most)
            self.candidates = known if target == known.target else replace(known, target=target)
        return self.left > 0

    @property
    def may_be_ended(self) -> bool:
        """Whether a rule may end the design now."""
        amount = self.engine.amount
        return amount is None or len(self.candidates.acquired) >= amount.least

    @property
    def map_count(self) -> int:
        """How many of the first lines coil maps rest on which are not known."""
        return map_lines(self.candidates.n_start, len(self.candidates.acquired))

    def show(self, steps: Sequence[DesignStep], forecast: Forecast) -> None:
        """Show the design as it is now to whoever watches."""
        if self.engine.watch is not None:
            self.engine.watch(Moment(self.state.trace, steps, forecast, self.where))

    def infer(self) -> list[Cost]:
        """Infer every slice from the lines so far; returns the costs, none for strategies without a posterior."""
        self.posteriors, self.means = (), ()
        if not self.engine.strategy.needs_posterior:
            return []
        costs = self.where.update(self.candidates.acquired, self.map_count)
        self.posteriors, self.means = self.where.posteriors(), self.where.means
        return costs

    def decide(self) -> list[DesignStep]:
        """The next block of lines, not yet measured; the forecast of the first has all that the stop rule needs."""
        began, unseen = time.perf_counter(), self._unseen()
        cost, steps = _total([] if unseen else self.infer()), list[DesignStep]()
        if self.in_blocks:
            engine, view = self.engine, DesignView(self.candidates, self.posteriors, self.state.trace.steps)
            count = unseen or (min(engine.block, self.left) if engine.strategy.needs_posterior else self.left)
            for choice in engine.strategy.choose_block(view, self._rng(len(view.steps)), count):
                # the cost of a block is that of its first choice
                spent = (cost[1], time.perf_counter() - began) if not steps else (0, 0.0)
                steps.append(self._decided(choice, steps, cost[0], *spent))
        else:
            steps = self._one_by_one(began, cost)
        steps[0] = replace(steps[0], choice=replace(steps[0].choice, forecast=self._with_rule_facts(steps[0].forecast)))
        return steps

    def _one_by_one(self, began: float, cost: Cost) -> list[DesignStep]:
        """A block of lines, each chosen as if those before it were measured, whatever they hold."""
        engine, candidates, known, steps = self.engine, self.candidates, self.posteriors, list[DesignStep]()
        in_the_end = self._expected()
        for pending in range(min(engine.block, self.left)):
            if pending:
                began, expected = time.perf_counter(), list[Cost]()
                if known:
                    expected = self.where.each(SliceInference.expect, candidates.acquired)
                    known = self.where.posteriors("expecting")
                cost = _total(expected)
            view = DesignView(candidates, known, (*self.state.trace.steps, *steps), pending, in_the_end)
            choice = engine.strategy.choose(view, self._rng(len(view.steps)))
            steps.append(self._decided(choice, steps, *cost, time.perf_counter() - began))
            candidates = candidates.after(steps[-1].line)
        return steps

    def _expected(self) -> int | None:
        """How many lines there will be in the end, whole blocks, where a rule may end the design; None where none may.

        One more than there are, and the target, bound it.
        """
        if not self.may_end:
            return None
        there, target, block = len(self.candidates.acquired), self.candidates.target, self.engine.block
        least = max(there + 1, 0 if self.engine.amount is None else self.engine.amount.least)
        expected = lines_expected(self.state.trace, self.rule, target, least, self.candidates.readouts.size // OPEN_END)
        return min(target, there + block * -(-(expected - there) // block))

    def _rng(self, step: int) -> np.random.Generator:
        return rng_of_step(self.engine.seed, step, len(self.slices))

    def _unseen(self) -> int:
        """How many samples the strategy chooses next before anything is inferred."""
        if self.may_end or not self.in_blocks:
            return 0
        coils = min(s.n_coils for s in self.slices)
        part = self.engine.strategy.unseen(self.candidates.readouts, self.candidates.target, coils)
        return max(0, part - len(self.candidates.acquired))

    def _decided(
        self, choice: object, block: Sequence[DesignStep], converged: bool, matvecs: int, seconds: float
    ) -> DesignStep:
        """The decision before its line is measured, with its forecast completed.

        Raises
        ------
        InputError
            Where the strategy gave something else than a choice.
        """
        if not isinstance(choice, Choice):
            raise InputError(f"choice of {self.engine.strategy.name}", described(choice), "a Choice")
        forecast, energy = replace(choice.forecast, tested=float(self.state.trace.found)), float("nan")
        known = block[0].forecast if block and self.in_blocks else forecast  # the first of a block speaks for all
        predicted = known.predicted
        if self.posteriors and known.expected is not None and predicted is not None:
            # The mean is that of the block's start, and so is what was predicted of it.
            begun = block[0].forecast.predicted if block else None
            believed = predicted if begun is None else begun
            values = [s.candidates.data(s.kspace, [choice.line]).size for s in self.slices]
            noise = sum(2 * s.noise_variance * count for s, count in zip(self.slices, values, strict=True))
            energy = float(believed[choice.line] + noise)
            forecast = replace(forecast, image_energy=image_energy(self.means))
            if np.isnan(forecast.information):
                most = most_information(float(predicted[choice.line]), noise, sum(values))
                forecast = replace(forecast, information=most)
        choice = replace(choice, forecast=forecast, pending=len(block))
        return DesignStep(choice, energy, converged=converged, matvecs=matvecs, seconds=seconds)

    def _with_rule_facts(self, forecast: Forecast) -> Forecast:
        """The forecast with what the stop rule needs: the error left in the end, the image's, intervals of regions."""
        if self.rule.looks_ahead and self.posteriors:
            forecast = self._with_least_error(forecast)
        own_maps = any(s.own_maps is not None for s in self.slices)
        ratio = _image_ratio(self.state.trace, self.candidates.readouts, own_maps)
        forecast = forecast if ratio is None else self._with_image_error(forecast, ratio)
        return self._with_intervals(forecast, *_last_intervals(self.state.trace, self.candidates.readouts))

    def _with_image_error(self, forecast: Forecast, ratio: float) -> Forecast:
        """The forecast with the error of the image where the rule wants to know it; the design's own if unknown."""
        find = self.engine.image_error
        if find is None or not self.rule.needs_image_error(forecast, ratio):
            return forecast
        found = find(self.slices, self.state)
        return replace(forecast, image_error=found if np.isfinite(found) else forecast.predicted_error)

    def _with_intervals(self, forecast: Forecast, last: Forecast | None, lines: float) -> Forecast:
        """The forecast with the intervals of regions where the rule wants to know them."""
        find = self.engine.intervals
        if find is None or not self.rule.needs_intervals(forecast, last, lines):
            return forecast
        error = self.engine.image_error
        if error is not None and not np.isfinite(forecast.image_error):  # of the same image
            forecast = replace(forecast, image_error=error(self.slices, self.state))
        return replace(forecast, intervals=find(self.slices, self.state))

    def take(self, steps: list[DesignStep]) -> None:
        """Record the measured energies of decisions whose lines have been measured, and update the warm starts."""
        steps = self._with_energies(steps)
        self.candidates = self.candidates.after(*(step.line for step in steps))
        self.where.measured()
        trace = replace(self.state.trace, steps=(*self.state.trace.steps, *steps))
        self.state = DesignState(trace, self.state.signals, self.where.warm_starts if self.posteriors else ())

    def _with_energies(self, steps: list[DesignStep]) -> list[DesignStep]:
        """The steps with the measured energies of their innovations."""
        forecasts = [(steps[0] if self.in_blocks else step).forecast for step in steps]
        if not self.means or all(forecast.expected is None for forecast in forecasts):
            return steps
        known, lines = self.candidates.acquired[: self.map_count], [step.line for step in steps]
        pairs = [(one.calibrated(known, rough=True), mean) for one, mean in zip(self.slices, self.means, strict=True)]
        if self.in_blocks:  # by one transform for all of them
            energies = np.asarray(sum(found_energies(one, mean, lines) for one, mean in pairs)).tolist()
        else:
            energies = [sum(innovation(one, mean, line) for one, mean in pairs) for line in lines]
        return [
            step if forecast.expected is None else replace(step, actual_energy=energy)
            for step, forecast, energy in zip(steps, forecasts, energies, strict=True)
        ]

    def with_closing_forecast(self) -> DesignState:
        """The end, with the forecast after one more inference from all lines where the strategy predicts one.

        For a rule that looks ahead it says what the lines that were not measured would have left.
        """
        steps, end = self.state.trace.steps, Forecast()
        if self.engine.strategy.predicts:
            self.infer()
            view = DesignView(self.candidates, self.posteriors, steps)
            end = replace(
                self.engine.strategy.predicted(view, self._rng(len(steps))),
                image_energy=image_energy(self.means),
                information=steps[-1].forecast.information if steps else float("nan"),
                tested=float(self.state.trace.found),
            )
            if not (self.candidates.allowed & ~self.candidates.mask).any():
                end = replace(end, least_error=end.predicted_error, recent_fall=0.0)
            elif self.rule.looks_ahead:
                end = self._with_least_error(end)
        known = self._with_intervals(self._with_image_error(end, 0.0), None, 0)
        if self.engine.strategy.predicts:
            self.show([], known)
        closing = known if self.engine.strategy.predicts or known is not end else None
        return replace(self.state, trace=replace(self.state.trace, closing=closing))

    def _with_least_error(self, forecast: Forecast) -> Forecast:
        """The forecast with the error that is predicted to be left once every line that may be measured has been.

        A line that may never be measured keeps its corrected energy, less the share by which the others reduce what the
        posterior expects of it.
        """
        trace, candidates, engine = self.state.trace, self.candidates, self.engine
        steps = [trace.block_start(i) if self.in_blocks else step for i, step in enumerate(trace.steps)]
        errors = np.array([*(step.predicted_error for step in steps), forecast.predicted_error])
        errors = errors[np.isfinite(errors)]
        window = max(FEWEST_LINES, trace.n_lines // WINDOW)
        fall = float(1 - errors.min() / errors[:-window].min()) if len(errors) > window else float("nan")
        forecast = replace(forecast, recent_fall=fall)
        if candidates.readouts.overlapping or forecast.predicted is None or forecast.expected is None:
            return forecast
        reachable = candidates.allowed | candidates.mask
        lines = [*candidates.acquired, *np.flatnonzero(reachable & ~candidates.mask).tolist()]
        each = [
            (candidates.readouts, lines, engine.inference.variances, np.random.default_rng((engine.seed, i)))
            for i in range(len(self.posteriors))
        ]
        left = np.sum(of_each(self.posteriors, least_energies, each), axis=0)
        never = ~reachable & (forecast.expected > 0)
        left[never] *= forecast.predicted[never] / forecast.expected[never]
        total = float(np.sum(left))
        return replace(forecast, least_error=float(np.sqrt(total / (forecast.image_energy + total))))


def _total(costs: Sequence[Cost]) -> Cost:
    """The cost of several slices."""
    return all(converged for converged, _ in costs), sum(matvecs for _, matvecs in costs)


def _of_a_line(readouts: Readouts) -> int:
    """Candidates that make a line: samples of a plane as many as it holds."""
    return max(1, readouts.size // readouts.grid[0])


def _last_look(trace: DesignTrace, looked: Callable[[Forecast], bool]) -> tuple[int, Forecast | None]:
    """Lines at the last decision with such a forecast, and the forecast; those of the start where there is none."""
    forecasts = enumerate((step.forecast for step in trace.steps), len(trace.start))
    return next(((n, each) for n, each in reversed([*forecasts]) if looked(each)), (len(trace.start), None))


def _last_intervals(trace: DesignTrace, readouts: Readouts) -> tuple[Forecast | None, float]:
    """The forecast when the intervals of regions were known last, and lines since then."""
    count, last = _last_look(trace, lambda each: each.intervals is not None)
    return last, (len(trace.lines) - count) / _of_a_line(readouts)


def _image_ratio(trace: DesignTrace, readouts: Readouts, own_maps: bool) -> float | None:
    """Expected ratio of the image's error to the design's prediction; None right after the last evaluation.

    Zero where the design has to look, whatever it predicts: since the last look, or since the start, coil maps were
    made anew (``own_maps``: they are those of the lines measured), or `AT_LEAST` lines have come.
    """
    last, seen = _last_look(trace, lambda each: bool(np.isfinite(each.image_error)))
    count, start, line = len(trace.lines), len(trace.start), _of_a_line(readouts)
    renewed = own_maps and map_lines(start, count) > map_lines(start, last)
    if renewed or count - last >= AT_LEAST * line:
        return 0.0
    if seen is None:
        return EXPECTED_RATIO
    known, more = np.isfinite(seen.predicted_error), count - last
    if more < max(1, last // (APART if known else APART_UNKNOWN)):
        return None
    ratio = seen.image_error / seen.predicted_error if known else EXPECTED_RATIO
    return float(ratio if more < max(2, last // STALE_AFTER) else ratio * STALE_RATIO)

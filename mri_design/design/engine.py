"""The sequential design loop: infer the slices, ask the strategy, acquire, repeat.

Inference of a slice goes on from where it stood, in this process (`Keeper`) or in others (`runs.resident`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.energies import PerSlice, image_energy, least_energies, means_of, of_each, rows_of
from mri_design.design.strategy import (
    ChoosesBlocks,
    DesignView,
    LineCandidates,
    Strategy,
    rng_of_step,
)
from mri_design.design.trace import Choice, DesignStep, DesignTrace, Forecast, LineOutcome, StepCost
from mri_design.errors import InputError, described, require_counts, require_instance
from mri_design.inference.base import StepInfo, WarmStart, with_unseen
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Constraints, LineConstraints, Readouts
from mri_design.variances.base import VarianceEstimator

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


def infer_slice(
    mr_slice: SliceModel,
    lines: Sequence[int],
    signal: float,
    inference: DoubleLoop,
    noise: Sequence[int],
    warm: WarmStart | None = None,
) -> tuple[GaussianPosterior, bool]:
    """The posterior of a slice, and whether its last loop converged.

    Parameters
    ----------
    mr_slice : SliceModel
        The slice.
    lines : sequence of int
        Lines so far.
    signal : float
        Signal level.
    inference : DoubleLoop
        The engine.
    noise : sequence of int
        Seed of the variances.
    warm : WarmStart, optional
        Where to start from.
    """
    loops: list[StepInfo] = []
    rng = np.random.default_rng(noise)
    posterior = inference.infer(mr_slice.model(lines, signal), rng, warm_start=warm, callback=loops.append)
    return posterior, loops[-1].inner.converged and loops[-1].variances.converged


@dataclass(frozen=True)
class InferenceRequest:
    """Settings of the next inference of a slice; small, since they may travel to another process for each line.

    Parameters
    ----------
    lines : tuple of int
        Lines so far.
    inference : DoubleLoop
        The engine.
    first_loops, step_loops : int
        Outer loops of the first inference, and of every later one, which has a warm start.
    noise : tuple of int
        Seed of the variances.
    map_lines : int, optional
        Coil maps that are not known are those of the first so many lines (`map_lines`); by default of all.
    """

    lines: tuple[int, ...]
    inference: DoubleLoop
    first_loops: int
    step_loops: int
    noise: tuple[int, ...]
    map_lines: int | None = None


@dataclass(frozen=True)
class Found:
    """Result of the inference of one slice, as the design needs it.

    Parameters
    ----------
    mean : complex array, shape (ky, kx)
        Of the posterior.
    matvecs : int
        Products with A.
    converged : bool
        Whether the last inner loop converged.
    """

    mean: Array
    matvecs: int
    converged: bool


class KeptSlice:
    """A slice with its warm start and its last posterior, in whichever process.

    The same requests in the same order from the same warm start give the same posteriors to the last bit, so that a
    slice whose process was lost can be brought to where it stood by asking again.

    Parameters
    ----------
    mr_slice : SliceModel
        The slice; whoever measures fills it.
    signal : float
        Its signal level.
    refined : callable, optional
        Its model in the light of its image so far. Without it the slice is the model.
    warm : WarmStart, optional
        Where inference begins; after every measurement, where it goes on.
    """

    def __init__(
        self, mr_slice: SliceModel, signal: float, refined: Refined | None = None, warm: WarmStart | None = None
    ) -> None:
        self._slice, self._signal, self._refined = mr_slice, signal, refined
        self.warm = warm
        self._posterior: GaussianPosterior | None = None
        self._expecting: GaussianPosterior | None = None

    @property
    def posterior(self) -> GaussianPosterior:
        """The last posterior."""
        assert self._posterior is not None
        return self._posterior

    @property
    def expecting(self) -> GaussianPosterior:
        """The last posterior, knowing that the lines that `expect` was told of last will be measured."""
        return self.posterior if self._expecting is None else self._expecting

    def infer(self, request: InferenceRequest) -> Found:
        """Infer the slice from the lines of the request."""
        model = self._slice.calibrated(request.lines[: request.map_lines], rough=True)
        if self._refined is not None:
            image = model.central_image(request.lines) if self.warm is None else self.warm.mean
            model = self._refined(model, image)
        loops = request.first_loops if self.warm is None else request.step_loops
        inference = replace(request.inference, outer_iterations=loops)
        self._posterior = self._expecting = None  # their memory is free for the next
        posterior, converged = infer_slice(model, request.lines, self._signal, inference, request.noise, self.warm)
        self._posterior = posterior
        return Found(posterior.mean, posterior.convergence.matvecs, converged)

    def expect(self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: tuple[int, ...]) -> tuple[int, bool]:
        """Let the posterior know that ``lines`` will have been measured; the products it took, and convergence.

        Under a Gaussian the covariance after a measurement does not depend on the measured values, so candidates can be
        chosen one after another between two acquisitions (echo trains). The widths are those from before.
        """
        rng = np.random.default_rng(noise)
        unseen = rows_of(self.expecting, self._slice.candidates, lines)
        self._expecting = with_unseen(self.expecting, unseen, estimator, rng)
        convergence = self._expecting.marginals.convergence
        return convergence.matvecs, convergence.converged

    def measured(self) -> None:
        """The lines chosen by the last posterior have been measured: the next inference goes on from it."""
        if self._posterior is not None:
            self.warm = WarmStart.from_posterior(self._posterior)


class Keeper:
    """Keeps the slices of one design, from its beginning on, in this process; others may keep them elsewhere.

    A design does not depend on where its slices are kept.
    """

    def __init__(self) -> None:
        self._kept: list[KeptSlice] = []

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """Take the slices over."""
        self._kept = list(slices)

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """Infer every slice; `posteriors` are the new ones from now on."""
        return [kept.infer(request) for kept, request in zip(self._kept, requests, strict=True)]

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """Let every posterior know that ``lines`` will have been measured, see `KeptSlice.expect`."""
        return [kept.expect(lines, estimator, seed) for kept, seed in zip(self._kept, noise, strict=True)]

    @property
    def posteriors(self) -> Sequence[GaussianPosterior]:
        """The last posterior of every slice."""
        return [kept.posterior for kept in self._kept]

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """The last posteriors, knowing of the lines that `expect` was told of."""
        return [kept.expecting for kept in self._kept]

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured."""
        for kept in self._kept:
            kept.measured()

    @property
    def warm_starts(self) -> Sequence[WarmStart]:
        """Where inference of every slice goes on after the lines measured so far; fetched when looked at."""
        return [kept.warm for kept in self._kept if kept.warm is not None]


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


def decided(
    slices: Sequence[SliceModel],
    posteriors: Sequence[GaussianPosterior],
    choice: Choice,
    block: Sequence[DesignStep],
    cost: StepCost,
    together: bool = False,
) -> DesignStep:
    """The decision before its line is measured: its forecast is completed, its outcome is what is predicted of it.

    Parameters
    ----------
    slices : sequence of SliceModel
        Whose noise and coils a line is measured with.
    posteriors : sequence of GaussianPosterior
        What the strategy saw; empty for rules that need none.
    choice : Choice
        What it chose.
    block : sequence of DesignStep
        Decisions that were made from the same inference before this one.
    cost : StepCost
        What it took.
    together : bool
        Whether the lines of the block are chosen from one look, so that the first forecast speaks for all.
    """
    forecast, outcome = choice.forecast, LineOutcome()
    known = block[0].forecast if block and together else forecast
    predicted = known.predicted
    if posteriors and known.expected is not None and predicted is not None:
        # The mean is that of the block's start, and so is what was predicted of it.
        begun = block[0].forecast.predicted if block else None
        believed = predicted if begun is None else begun
        values = [s.candidates.data(s.kspace, [choice.line]).size for s in slices]
        noise = sum(2 * s.noise_variance * count for s, count in zip(slices, values, strict=True))
        outcome = LineOutcome(predicted_energy=float(believed[choice.line] + noise))
        forecast = replace(forecast, image_energy=image_energy(posteriors))
        if np.isnan(forecast.information):
            most = most_information(float(predicted[choice.line]), noise, sum(values))
            forecast = replace(forecast, information=most)
    return DesignStep(replace(choice, forecast=forecast, pending=len(block)), outcome, cost)


def measured(
    slices: Sequence[SliceModel], means: Sequence[Array], steps: Sequence[DesignStep], together: bool = False
) -> list[DesignStep]:
    """A block of decisions once its lines have been measured: what they hold is looked up in the slices.

    Parameters
    ----------
    slices : sequence of SliceModel
        Where the lines' data are.
    means : sequence of complex arrays, shape (ky, kx)
        Of the posteriors that the block was decided from; empty for rules that need none.
    steps : sequence of DesignStep
        From `decided`.
    together : bool
        As there.
    """
    energies: list[float] = []
    if together and means:  # by one transform for all of them
        lines = [step.line for step in steps]
        of_slices = (found_energies(s, mean, lines) for s, mean in zip(slices, means, strict=True))
        energies = np.asarray(sum(of_slices)).tolist()
    known: list[DesignStep] = []
    for number, step in enumerate(steps):
        forecast = steps[0].forecast if together else step.forecast
        if means and forecast.expected is not None:
            each = (innovation(mr_slice, mean, step.line) for mr_slice, mean in zip(slices, means, strict=True))
            found = energies[number] if energies else sum(each)
            step = replace(step, outcome=replace(step.outcome, actual_energy=found))
        known.append(step)
    return known


StopRule = Callable[[Forecast], bool]
"""Sees what is predicted for the lines so far, and of the line that is decided on; True ends the design without it.

This line has not been measured yet. For a rule whose attribute ``looks_ahead`` is true the engine computes
`Forecast.least_error` too.
"""
Measuring = Callable[[Sequence[DesignStep]], None]
"""Has the lines of a block of decisions measured, and returns once the slices hold their data."""
ImageError = Callable[[Sequence[SliceModel], "DesignState"], float]
"""Predicts the relative L2 error of the image that the lines of a state give in the end; NaN where it cannot."""
EXPECTED_RATIO = 0.6
"""Error of the image over the one that a design predicts, before anybody has looked: small, to look in time."""
STALE_AFTER, STALE_RATIO = 7, 0.75
"""After this part of its lines the ratio at the last look may have fallen to this."""
APART, APART_UNKNOWN = 16, 8
"""A design may look at the image after this part of its lines has come; the second where it predicts no error."""
AT_LEAST = 10
"""It looks once so many lines have come, as many samples of a plane as they hold, or so many shots, in any case."""
WINDOW, FEWEST_LINES = 8, 8
"""Predictions have come to rest where they do not fall over this part of the grid's lines, this many at least."""


@briefly
@dataclass(frozen=True)
class DesignState:
    """Everything a later process needs to go on: what was decided, and where inference stood.

    Parameters
    ----------
    trace : DesignTrace
        Lines and steps so far.
    signals : tuple of float
        Signal level of each slice, fixed at the start.
    warm : sequence of WarmStart
        Per slice; empty before the first inference. Those of slices that are kept in other processes are fetched when
        they are looked at.
    """

    trace: DesignTrace
    signals: tuple[float, ...]
    warm: Sequence[WarmStart] = ()

    @property
    def settled(self) -> DesignState:
        """This state with all warm starts fetched from the processes that keep them."""
        return replace(self, warm=tuple(self.warm))


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
    first_loops, step_loops : int
        Outer loops at the start and after each line; the warm start makes one enough to choose a line.
    seed : int
        Each step and slice has a generator of its own made from it, so a resumed design is the same design.
    block : int
        Lines that are chosen after each inference and then measured together (echo trains). Strategies that choose
        blocks from one look (`ChoosesBlocks`) choose all at once where they need no posterior, and others begin with
        all that they choose from none (`Strategy.unseen`), unless a rule may end the design.
    constraints : LineConstraints
        What the sequence asks of the lines, those of the start included.
    refined : callable, optional
        The model of a slice in the light of its image so far, as `phase_refined` makes it. Without it the slice is the
        model.
    measure : callable, optional
        Has the lines of every block of decisions measured before they are looked up in the slices, which it fills.
        Without it the slices hold them already: they are replayed as the scanner. What it raises ends the run; the
        state that `run` showed last goes on from there.
    image_error : callable, optional
        Fills `Forecast.image_error` where a stop rule asks for it (`NamedRule.asks`).

    Raises
    ------
    InputError
        For a block of no line.
    """

    strategy: Strategy
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    _: KW_ONLY
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0
    block: int = 1
    constraints: Constraints = field(default_factory=LineConstraints)
    refined: Refined | None = None
    measure: Measuring | None = None
    image_error: ImageError | None = None

    def __post_init__(self) -> None:
        require_instance(Strategy, wanted="a strategy, for example make_strategy('calibrated')", strategy=self.strategy)
        require_counts(block=self.block, least=1)

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
                    raise InputError(
                        field=f"slice {number}",
                        got="samples missing inside the measured lines",
                        wanted="all readout samples in every measured line, since lines are chosen and replayed whole",
                        cure="Give a scan whose lines are whole; a reconstruction takes the samples that there are.",
                    )
        signals = tuple(s.calibrated(start, rough=True).signal_level(start) for s in slices)
        return DesignState(DesignTrace(self.strategy.name, slices[0].candidates.size, tuple(start)), signals)

    def run(
        self,
        slices: Sequence[SliceModel],
        state: DesignState,
        target: int,
        callback: Callable[[DesignState], None] | None = None,
        stop: StopRule | None = None,
        keeper: Keeper | None = None,
        closing: bool = False,
    ) -> DesignState:
        """Add lines until there are ``target``, or until a rule says that it is enough.

        Parameters
        ----------
        slices : sequence of SliceModel
            Fully sampled, or at least with data in enough lines: each decided line is looked up in them.
        state : DesignState
            From `begin`, or from an interrupted run.
        target : int
            Lines in the end, those of the start included.
        callback : callable, optional
            Sees the state after every measurement (of a block of lines).
        stop : callable, optional
            Asked once per inference, about its first decision; the one that it declines is `DesignTrace.declined`.
        keeper : Keeper, optional
            Keeps the slices and infers them; without one this process does. The design does not depend on it.
        closing : bool
            Whether to infer once more after the last line, for the trace's ``closing`` forecast.

        Raises
        ------
        InputError
            Where there are not that many lines, or those so far break the constraints.
        """
        measurable = np.logical_and.reduce([s.measured for s in slices])
        candidates = LineCandidates(
            measurable,
            state.trace.lines,
            target,
            len(state.trace.start),
            constraints=self.constraints,
            readouts=slices[0].candidates,
        )
        keeper = Keeper() if keeper is None else keeper
        kept = (
            KeptSlice(s, signal, self.refined, state.warm[i] if state.warm else None)
            for i, (s, signal) in enumerate(zip(slices, state.signals, strict=True))
        )
        keeper.begin(kept)
        while len(candidates.acquired) < target:
            unseen = self._unseen(slices, candidates) if stop is None else 0
            steps, posteriors = self._decide(slices, state, candidates, keeper, unseen)
            if getattr(stop, "looks_ahead", False) and posteriors:
                forecast = self._ahead(state.trace, posteriors, candidates, steps[0].forecast)
                steps[0] = _with_forecast(steps[0], forecast)
            ratio = _image_ratio(state.trace, candidates.readouts, any(s.own_maps is not None for s in slices))
            if ratio is not None and self._needs_image_error(stop, steps[0].forecast, ratio):
                steps[0] = _with_forecast(steps[0], self._with_image_error(slices, state, steps[0].forecast))
            if stop is not None and stop(steps[0].forecast):
                return replace(state, trace=replace(state.trace, declined=steps[0]))
            if self.measure is not None:
                self.measure(steps)
            seen = [s.calibrated(_map_lines(candidates), rough=True) for s in slices] if posteriors else slices
            steps = measured(seen, means_of(posteriors), steps, self._in_blocks(candidates))
            candidates = candidates.after(*(step.line for step in steps))
            keeper.measured()
            trace = replace(state.trace, steps=(*state.trace.steps, *steps))
            state = DesignState(trace, state.signals, keeper.warm_starts if posteriors else ())
            if callback is not None:
                callback(state)
        if closing:
            ahead = bool(getattr(stop, "looks_ahead", False))
            end = self._closing(slices, state, candidates, keeper, ahead)
            known = Forecast() if end is None else end
            if self._needs_image_error(stop, known, 0.0):
                end = self._with_image_error(slices, state, known)
            return replace(state, trace=replace(state.trace, closing=end))
        return state

    def _needs_image_error(self, stop: StopRule | None, forecast: Forecast, ratio: float) -> bool:
        """Whether a rule wants to know the error of the image (`NamedRule.asks`), and somebody can tell it."""
        asks = getattr(stop, "asks", None)
        return asks is not None and self.image_error is not None and bool(asks(forecast, ratio))

    def _with_image_error(self, slices: Sequence[SliceModel], state: DesignState, forecast: Forecast) -> Forecast:
        """The forecast with what is predicted of the image; the design's own prediction where nothing is."""
        assert self.image_error is not None
        found = self.image_error(slices, state)
        return replace(forecast, image_error=found if np.isfinite(found) else forecast.predicted_error)

    def _closing(
        self, slices: Sequence[SliceModel], state: DesignState, candidates: LineCandidates, keeper: Keeper, ahead: bool
    ) -> Forecast | None:
        """The forecast after one more inference from all the lines; None for strategies that predict nothing.

        With ``ahead`` it says what the lines that were not measured would have left.
        """
        if not self.strategy.predicts:
            return None
        posteriors, _ = self._infer(len(slices), candidates, keeper)
        view = DesignView(candidates, posteriors, state.trace.steps)
        forecast = replace(
            self.strategy.predicted(view, rng_of_step(self.seed, len(state.trace.steps), len(slices))),
            image_energy=image_energy(posteriors),
            information=state.trace.steps[-1].forecast.information if state.trace.steps else float("nan"),
            tested=float(state.trace.found),
        )
        if not (candidates.allowed & ~candidates.mask).any():
            return replace(forecast, least_error=forecast.predicted_error, recent_fall=0.0)
        return self._ahead(state.trace, posteriors, candidates, forecast) if ahead else forecast

    def _ahead(
        self,
        trace: DesignTrace,
        posteriors: Sequence[GaussianPosterior],
        candidates: LineCandidates,
        forecast: Forecast,
    ) -> Forecast:
        """The forecast with the error that is predicted to be left once every line that may be measured has been.

        A line that may never be measured keeps its corrected energy, less the share by which the others reduce what the
        posterior expects of it.
        """
        steps = trace.steps
        if self._in_blocks(candidates):  # the first of a block speaks for all
            steps = tuple(trace.block_start(i) for i in range(len(steps)))
        errors = np.array([*(step.predicted_error for step in steps), forecast.predicted_error])
        errors = errors[np.isfinite(errors)]
        window = max(FEWEST_LINES, trace.n_lines // WINDOW)
        fall = float(1 - errors.min() / errors[:-window].min()) if len(errors) > window else float("nan")
        forecast = replace(forecast, recent_fall=fall)
        if candidates.readouts.overlapping or forecast.predicted is None or forecast.expected is None:
            return forecast
        reachable = candidates.allowed | candidates.mask
        lines = [*candidates.acquired, *np.flatnonzero(reachable & ~candidates.mask).tolist()]
        estimator = self.inference.variances
        noise = PerSlice([np.random.default_rng((self.seed, i)) for i in range(len(posteriors))])
        left = np.sum(of_each(posteriors, least_energies, candidates.readouts, lines, estimator, noise), axis=0)
        never = ~reachable & (forecast.expected > 0)
        left[never] *= forecast.predicted[never] / forecast.expected[never]
        total = float(np.sum(left))
        return replace(forecast, least_error=float(np.sqrt(total / (forecast.image_energy + total))))

    def _unseen(self, slices: Sequence[SliceModel], candidates: LineCandidates) -> int:
        """How many samples the strategy chooses next before anything is inferred."""
        if not self._in_blocks(candidates):
            return 0
        part = self.strategy.unseen(candidates.readouts, candidates.target, min(s.n_coils for s in slices))
        return max(0, part - len(candidates.acquired))

    def _decide(
        self,
        slices: Sequence[SliceModel],
        state: DesignState,
        candidates: LineCandidates,
        keeper: Keeper,
        unseen: int = 0,
    ) -> tuple[list[DesignStep], Sequence[GaussianPosterior]]:
        """The next block of lines, before they are measured, and the posteriors behind it."""
        began = time.perf_counter()
        posteriors, found = ((), []) if unseen else self._infer(len(slices), candidates, keeper)
        matvecs, converged = sum(each.matvecs for each in found), all(each.converged for each in found)
        known, steps = posteriors, list[DesignStep]()
        if self._in_blocks(candidates):
            view, left = DesignView(candidates, known, state.trace.steps), candidates.target - len(candidates.acquired)
            count = unseen or (min(self.block, left) if self.strategy.needs_posterior else left)
            strategy, rng = cast(ChoosesBlocks, self.strategy), rng_of_step(self.seed, len(view.steps), len(slices))
            for each in strategy.choose_block(view, rng, count):  # whose cost is that of the first
                choice = self._counted(each, state.trace)
                seconds = 0.0 if steps else time.perf_counter() - began
                cost = StepCost(converged, 0 if steps else matvecs, seconds)
                steps.append(decided(slices, posteriors, choice, steps, cost, together=True))
            return steps, posteriors
        for pending in range(min(self.block, candidates.target - len(candidates.acquired))):
            if pending:
                seeds = [(self.seed, i) for i in range(len(known))]
                costs = keeper.expect(candidates.acquired, self.inference.variances, seeds) if seeds else []
                known = keeper.expecting if seeds else known
                matvecs, converged = sum(count for count, _ in costs), all(done for _, done in costs)
            number = len(state.trace.steps) + pending
            view = DesignView(candidates, known, (*state.trace.steps, *steps), pending)
            choice = self._counted(self.strategy.choose(view, rng_of_step(self.seed, number, len(slices))), state.trace)
            cost = StepCost(converged, matvecs, time.perf_counter() - began)
            steps.append(decided(slices, posteriors, choice, steps, cost))
            candidates = candidates.after(choice.line)
            began = time.perf_counter()
        return steps, posteriors

    def _counted(self, choice: object, trace: DesignTrace) -> Choice:
        """The choice, whose forecast knows how many predictions had been held against what was measured.

        Raises
        ------
        InputError
            Where the strategy gave something else.
        """
        if not isinstance(choice, Choice):
            raise InputError(f"choice of {self.strategy.name}", described(choice), "a Choice")
        return replace(choice, forecast=replace(choice.forecast, tested=float(trace.found)))

    def _infer(
        self, slices: int, candidates: LineCandidates, keeper: Keeper
    ) -> tuple[Sequence[GaussianPosterior], list[Found]]:
        """Posteriors of every slice from the lines so far, and what they took; none for rules that need none."""
        if not self.strategy.needs_posterior:
            return (), []
        loops, known = (self.inference, self.first_loops, self.step_loops), len(_map_lines(candidates))
        # The same noise in every step: draws change little, and the last step's are where the next ones start.
        requests = [InferenceRequest(candidates.acquired, *loops, (self.seed, i), known) for i in range(slices)]
        found = keeper.infer(requests)
        return keeper.posteriors, found

    def _in_blocks(self, candidates: LineCandidates) -> bool:
        """Whether blocks are chosen from one look."""
        return candidates.readouts.thinned and isinstance(self.strategy, ChoosesBlocks)


def _map_lines(candidates: LineCandidates) -> tuple[int, ...]:
    """The lines that coil maps rest on which are not known."""
    return candidates.acquired[: map_lines(candidates.n_start, len(candidates.acquired))]


def _image_ratio(trace: DesignTrace, readouts: Readouts, own_maps: bool) -> float | None:
    """What the image's error may be by now, over the one that a design predicts; None right after the last look.

    Zero where the design has to look, whatever it predicts: since the last look, or since the start, coil maps were
    made anew (``own_maps``: they are those of the lines measured), or `AT_LEAST` lines have come.
    """
    forecasts = enumerate((step.forecast for step in trace.steps), len(trace.start))
    seen = [(n, each) for n, each in forecasts if np.isfinite(each.image_error)]
    count, start = len(trace.lines), len(trace.start)
    last = seen[-1][0] if seen else start
    line = max(1, readouts.size // readouts.grid[0])
    renewed = own_maps and map_lines(start, count) > map_lines(start, last)
    if renewed or count - last >= AT_LEAST * line:
        return 0.0
    if not seen:
        return EXPECTED_RATIO
    known, more = np.isfinite(seen[-1][1].predicted_error), count - last
    if more < max(1, last // (APART if known else APART_UNKNOWN)):
        return None
    ratio = seen[-1][1].image_error / seen[-1][1].predicted_error if known else EXPECTED_RATIO
    return float(ratio if more < max(2, last // STALE_AFTER) else ratio * STALE_RATIO)


def _with_forecast(step: DesignStep, forecast: Forecast) -> DesignStep:
    return replace(step, choice=replace(step.choice, forecast=forecast))

"""Predictions of a finished design, for its lines and its image, compared with what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.engine import DesignEngine, map_lines
from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError
from mri_design.evaluation.tables import Row
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array


def slice_means(
    slice_model: SliceModel,
    signal: float,
    index: int,
    trace: DesignTrace,
    engine: DesignEngine,
    counts: Sequence[int],
) -> Iterator[tuple[SliceModel, GaussianPosterior]]:
    """Posteriors behind the decisions after so many lines, each from the one before, and the slice as it was seen then.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; it is seen with the coil maps that the design had.
    signal : float
        Its signal level during the design.
    index : int
        Its place among the design's slices.
    trace : DesignTrace
        The design.
    engine : DesignEngine
        The design's. A phase map is estimated from the previous mean; where the design had computed others in between,
        from a first mean of the same lines.
    counts : sequence of int
        Growing numbers of lines.
    """
    one = engine.inference_of(slice_model, signal, index)
    start, before, refined = len(trace.start), 0, engine.refined
    for count in counts:
        between = trace.steps[max(before - start + 1, 0) : count - start]
        # whether the design too went from the last mean to this one, or began here
        followed = all(step.choice.pending for step in between) and (before > 0 or count == start)
        for again in (False, True):
            mean, _ = one.update(trace.lines[:count], map_lines(start, count))
            one.measured()
            if again or refined is None or followed or refined(one.seen, mean).phase is None:
                break
        before = count
        assert one.posterior is not None
        yield one.seen, one.posterior


INNER = 2 / 3
"""Distance from DC, 1 at the edges of a plane, up to which its samples are compared."""
LEAST_LINES = 5
"""Fewest unmeasured lines for a median, or a rank correlation, to mean anything."""


@briefly
@dataclass(frozen=True)
class PredictionCheck:
    """Predicted and actual error of one mean, line by line.

    Parameters
    ----------
    n_measured : int
        Lines behind the mean.
    predicted, actual : float array, shape (ky,)
        Energy of the mean's error on each line, summed over readout, coils and slices, in the data's units squared.
        ``actual`` is NaN where it cannot be known; a noisy scan's own noise is taken off, so that it scatters around
        the error's energy and may be negative.
    acquired : bool array, shape (ky,)
        Lines behind the mean.
    predicted_level, actual_level : float
        Expected energy of the image, and that of the true one: what the errors are relative to.
    inner : bool array, shape (ky,)
        Which are not far from DC: of lines |k| < N/3.
    unit : str
        What is measured one by one (`Readouts.unit`); where this class speaks of lines, it means these candidates.
    """

    n_measured: int
    predicted: NDArray[np.float64]
    actual: NDArray[np.float64]
    acquired: NDArray[np.bool_]
    _: KW_ONLY
    predicted_level: float
    actual_level: float
    inner: NDArray[np.bool_]
    unit: str = "line"

    @property
    def known(self) -> NDArray[np.bool_]:
        """Lines whose actual error is known."""
        return np.isfinite(self.actual)

    @property
    def predicted_error(self) -> float:
        """Relative L2 error that was predicted, over all lines: what noise leaves on measured ones is in it."""
        return self.errors(np.ones_like(self.acquired))[0]

    def errors(self, lines: NDArray[np.bool_]) -> tuple[float, float]:
        """Relative L2 error on some lines, predicted and found; NaN where there are none, or the truth is not known.

        What is found is 0 where noise hides it.
        """
        pair = ((self.predicted, self.predicted_level), (self.actual, self.actual_level))
        if not lines.any():
            return float("nan"), float("nan")
        predicted, actual = (float(np.sqrt(max(float(np.sum(e[lines])), 0.0) / level)) for e, level in pair)
        return predicted, actual

    @property
    def unmeasured(self) -> NDArray[np.bool_]:
        """Lines that are not behind the mean, and whose actual error is known."""
        return self.known & ~self.acquired

    @property
    def compared(self) -> tuple[float, float]:
        """Predicted and actual error over the same lines: all lines, or the unmeasured ones."""
        return self.errors(self.known if self.known.all() else self.unmeasured)

    @property
    def ratio(self) -> float:
        """Predicted over actual error of `compared`; infinite where no error was found, NaN where none is known."""
        predicted, actual = self.compared
        return predicted / actual if actual > 0 else float("nan") if np.isnan(actual) else float("inf")

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Unmeasured ones not far from DC, where most of the remaining error lies: those that lines are compared on."""
        return self.unmeasured & self.inner

    @property
    def line_ratio(self) -> float:
        """Median over the judged lines of predicted over actual energy; NaN for too few lines."""
        predicted, actual = self.predicted[self.judged], self.actual[self.judged]
        ratios = np.divide(predicted, actual, out=np.full(len(actual), np.inf), where=actual > 0)
        return float(np.median(ratios)) if len(ratios) >= LEAST_LINES else float("nan")

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of predicted with actual energy over the judged lines; NaN for too few lines, or equal ones."""
        ranks = [_ranks(energy[self.judged]) for energy in (self.predicted, self.actual)]
        if len(ranks[0]) < LEAST_LINES or any(np.ptp(r) == 0 for r in ranks):
            return float("nan")
        return float(np.corrcoef(ranks[0], ranks[1])[0, 1])

    def as_row(self) -> dict[str, object]:
        """One row of a table."""
        every, unmeasured = (self.errors(lines) for lines in (np.ones_like(self.known), self.unmeasured))
        errors = {
            "predicted_error": every[0],
            "actual_error": every[1],
            "unmeasured_predicted_error": unmeasured[0],
            "unmeasured_actual_error": unmeasured[1],
            "ratio": self.ratio,
            f"{self.unit}_ratio": self.line_ratio,
            "rank_correlation": self.rank_correlation,
        }
        return {f"{self.unit}s": self.n_measured} | {name: None if np.isnan(v) else v for name, v in errors.items()}


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank of every value, from 1; equal ones share the mean of theirs. SciPy's takes half a second to import."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def check_counts(trace: DesignTrace, count: int = 8) -> list[int]:
    """Up to ``count`` numbers of measured lines, spread over the run to its end, at which its error was predicted.

    Decisions within a block of lines are left out: their mean is not the one that was predicted.
    """
    first = len(trace.start)
    known = [n for n in range(first, len(trace.lines) + 1) if trace.forecast(n) is not None]
    chosen = np.linspace(0, len(known) - 1, min(count, len(known))).round().astype(int)
    return [known[i] for i in dict.fromkeys(chosen.tolist())]


def check_predictions(
    slices: Sequence[SliceModel],
    trace: DesignTrace,
    engine: DesignEngine,
    *,
    signals: Sequence[float],
    truths: Sequence[Array | None] = (),
    counts: Sequence[int] | None = None,
    callback: Callable[[int, int], None] = lambda *_: None,
) -> list[PredictionCheck]:
    """Infer the means of a finished design again, each from the one before, and compare its predictions with them.

    Parameters
    ----------
    slices : sequence of SliceModel
        Those the design was for.
    trace : DesignTrace
        The design.
    engine : DesignEngine
        The design's.
    signals : sequence of float
        Signal level of each slice during the design.
    truths : sequence of complex array or None, optional
        Noise-free image of each slice, see `truth_or_none`. Where one is missing, the scan's own lines replace it:
        the actual error is then known only on unmeasured lines that hold data, and scatters with their noise.
    counts : sequence of int, optional
        At which numbers of measured lines; `check_counts` by default.
    callback : callable, optional
        Progress: how many means are done, of how many.

    Returns
    -------
    list of PredictionCheck
        One for each count; empty for a rule without predictions, and for shots, which overlap: their energies do not
        add up to that of the image.

    Raises
    ------
    InputError
        Where at a count nothing was predicted.
    """
    chosen = check_counts(trace) if counts is None else list(counts)
    if not chosen or not slices[0].candidates.kind.on_grid:
        return []
    known = list(truths) if truths else [None] * len(slices)
    counts = (len(trace.start), *chosen)  # also the start, which has no prediction
    makers = [slice_means(one, signals[i], i, trace, engine, counts) for i, one in enumerate(slices)]
    callback(0, len(chosen))
    for maker in makers:
        next(maker)
    candidates = slices[0].candidates
    inner = candidates.radius < INNER
    checks: list[PredictionCheck] = []
    for done, count in enumerate(chosen):
        callback(done, len(chosen))
        made = [next(maker) for maker in makers]
        forecast, acquired = trace.forecast(count), trace.mask(count)
        if forecast is None:
            raise InputError(field="counts", got=str(count), wanted=f"some of {check_counts(trace, len(trace.lines))}")
        found = [
            actual_energies(seen, posterior.mean, truth, acquired)
            for (seen, posterior), truth in zip(made, known, strict=True)
        ]
        checks.append(
            PredictionCheck(
                count,
                np.asarray(forecast.predicted),
                np.sum([energies for energies, _ in found], axis=0),
                acquired,
                predicted_level=forecast.predicted_level,
                actual_level=float(sum(level for _, level in found)),
                inner=inner,
                unit=candidates.unit,
            )
        )
    callback(len(chosen), len(chosen))
    return checks


def actual_energies(
    slice_model: SliceModel, mean: Array, truth: Array | None, acquired: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    """Energy of a mean's error on every line, (ky,), and of the image itself; see `PredictionCheck`.

    Without the truth, measured lines are NaN (the mean has fitted their noise), and lines without data.
    """
    encoding = slice_model.encoding()
    if truth is not None:
        error = np.asarray(encoding(np.asarray(truth) - mean))
        return _energies(slice_model, error), float(np.sum(np.abs(truth) ** 2, dtype=np.float64))
    noise = slice_model.noise_variance * encoding.out_size / len(acquired)
    data = slice_model.candidates.data(slice_model.kspace, range(slice_model.candidates.size))
    energies = _energies(slice_model, data - encoding(mean)) - noise
    level = float(np.sum(_energies(slice_model, data)[slice_model.measured] - noise))
    return np.where(slice_model.measured & ~acquired, energies, np.nan), max(level, np.finfo(np.float64).tiny)


def _energies(slice_model: SliceModel, values: Array) -> NDArray[np.float64]:
    """Energies of all candidates, (ky,) for lines, from their values (coil, ky, kx), or (coil, sample)."""
    power = np.abs(values).reshape(slice_model.n_coils, slice_model.candidates.size, -1) ** 2
    return np.asarray(np.sum(power, axis=(0, 2), dtype=np.float64))


def score_is_information(trace: DesignTrace) -> bool:
    """Whether the scores are log det(I + X_* A^-1 X_*^H), twice the information in nats."""
    return trace.strategy.startswith("information-gain")


def score_unit(trace: DesignTrace) -> str:
    """Name of the scores of a design's strategy."""
    information = "score, log det(I + X A\u207b\u00b9 X\u1d34)"
    return information if score_is_information(trace) else f"score of {trace.strategy}"


WINDOW = 8
"""Lines that the running ratio looks back on."""


@dataclass(frozen=True)
class Innovations:
    """Energy of every chosen line's innovation; NaN for lines that an exchange added, which nothing predicted.

    Parameters
    ----------
    predicted : float array, shape (step,)
        As the strategy predicted it, noise included.
    measured : float array, shape (step,)
        As it was found.
    noise : float array, shape (step,)
        The noise's part of both; NaN where the strategy did not predict every line.
    running_ratio : float array, shape (step,)
        Geometric mean of predicted over measured on the last `WINDOW` lines.
    """

    predicted: NDArray[np.float64]
    measured: NDArray[np.float64]
    noise: NDArray[np.float64]
    running_ratio: NDArray[np.float64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Steps whose energy was predicted and measured."""
        return np.isfinite(self.running_ratio)

    @property
    def ratio(self) -> float:
        """Predicted over measured energy, geometric mean over all known lines: below 1 is overconfident."""
        return float(np.exp(np.mean(np.log(self.predicted[self.known] / self.measured[self.known]))))


def innovations(trace: DesignTrace) -> Innovations | None:
    """Predicted and measured energy of the innovation at every step; None where a rule predicts nothing."""
    energies = [(step.predicted_energy, step.actual_energy) for step in trace.steps]
    predicted, measured = np.array(energies).reshape(-1, 2).T
    believed = [trace.block_start(index).forecast.predicted for index in range(len(trace.steps))]  # at a block's start
    lines = [np.nan if every is None else every[step.line] for every, step in zip(believed, trace.steps, strict=True)]
    known = np.isfinite(predicted) & np.isfinite(measured) & (predicted > 0) & (measured > 0)
    if not known.any():
        return None
    logs = np.log(predicted[known] / measured[known])
    running = np.full(len(measured), np.nan)
    running[known] = np.exp([np.mean(logs[max(0, i + 1 - WINDOW) : i + 1]) for i in range(len(logs))])
    expected, found = (np.where(known, energy, np.nan) for energy in (predicted, measured))
    return Innovations(expected, found, predicted - np.array(lines), running)


WITHIN = (2.0, 1.25)
"""Factors within which a predicted error counts as right."""


def how_often_right(cases: Sequence[Row], unit: str = "line") -> dict[str, object]:
    """How often the predicted error was right, over runs (images, seeds) and numbers of lines.

    Parameters
    ----------
    cases : sequence of rows
        As `PredictionCheck.as_row` makes them, each with a ratio.
    unit : str
        What is measured one by one.

    Returns
    -------
    dict
        Number of ``cases``; fractions of them whose predicted over actual error lies within factors of 2 ([0.5, 2])
        and of 1.25 ([0.8, 1.25]); the ratio's median, smallest and largest; medians, over the cases that have them, of
        `PredictionCheck.line_ratio` (``median_sample_ratio`` in a plane) and `PredictionCheck.rank_correlation`.
    """
    columns = {
        name: np.array([float(str(case[name])) for case in cases if case[name] is not None])
        for name in ("ratio", f"{unit}_ratio", "rank_correlation")
    }
    ratios = columns["ratio"]
    right = {f: float(np.mean((ratios >= 1 / f) & (ratios <= f))) for f in WITHIN}
    medians = {f"median_{name}": float(np.median(values)) if len(values) else None for name, values in columns.items()}
    return {
        "cases": len(ratios),
        **{f"within_factor_{factor:g}": share for factor, share in right.items()},
        "median_ratio": medians["median_ratio"],
        "least": float(ratios.min()),
        "largest": float(ratios.max()),
        **medians,
    }


@briefly
@dataclass(frozen=True)
class DesignAccount:
    """Account of a design's predictions, for its report.

    Parameters
    ----------
    trace : DesignTrace
        Every decision.
    checks : sequence of PredictionCheck
        Predictions with the actual errors; empty if these are not known.
    """

    trace: DesignTrace
    checks: Sequence[PredictionCheck] = ()

    @property
    def gains(self) -> NDArray[np.float64]:
        """Information in nats that each chosen line was expected to bring, or at most (`score_is_information`).

        NaN where nothing was predicted, as for lines that an exchange added.
        """
        return np.array([step.forecast.information for step in self.trace.steps])

    @cached_property
    def innovations(self) -> Innovations | None:
        """Energy of each line's innovation, predicted and measured; None where nothing was predicted."""
        return innovations(self.trace)

    @property
    def predicted_errors(self) -> list[tuple[int, float]]:
        """Numbers of measured lines, and the relative error that was predicted for the image made from them."""
        start, end = len(self.trace.start), self.trace.forecast(len(self.trace.lines))
        errors = [(start + i, step.predicted_error) for i, step in enumerate(self.trace.steps)]
        errors += [] if end is None else [(len(self.trace.lines), end.predicted_error)]
        return [(count, error) for count, error in errors if error > 0]

    @property
    def fractions(self) -> Sequence[Row]:
        """`how_often_right` of the checks that have a ratio; empty without them."""
        cases = [check.as_row() for check in self.checks if not np.isnan(check.ratio)]
        unit = self.checks[0].unit if self.checks else "line"
        return [{f"{unit}s": "all", **how_often_right(cases, unit)}] if cases else []

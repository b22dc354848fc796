"""The bias of sampled variances, whose draws are solved to a tolerance, and what the estimators state of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from parts.dense_posterior import DensePosterior
from parts.problem import quarter_of_the_lines, scan_of
from parts.variance_accuracy import sparsity

from mri_design.evaluation.tables import Row
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.marginals import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.model.sparsity import DEFAULT_PRIOR
from mri_design.operators.base import Array
from mri_design.variances.control_variate import ControlVariate
from mri_design.variances.monte_carlo import MonteCarlo

Numbers = NDArray[np.float64]
Sampler = ControlVariate | MonteCarlo
TIGHT = 1e-4  # tolerance at which nothing is left to be seen; the square root of it where a solver squares it


@dataclass(frozen=True)
class Case:
    """A scan and a prior, and who samples their variances.

    Parameters
    ----------
    grid, coils : int
        Of the scan.
    prior : {"default", "wavelet+differences"}
        The sparsity blocks.
    name : str
        Of the estimator.
    estimator : ControlVariate or MonteCarlo
        With its default number of samples.
    tolerances : tuple of float
        To measure at.
    """

    grid: int
    coils: int
    prior: str
    name: str
    estimator: Sampler
    tolerances: tuple[float, ...]

    @property
    def labels(self) -> Row:
        """The first columns of its rows."""
        return {"grid": self.grid, "coils": self.coils, "prior": self.prior, "estimator": self.name}

    def precision(self, seed: int) -> tuple[PosteriorPrecision, Array]:
        """A at the optimum of the double loop, on a quarter of the lines, and its mean."""
        blocks = DEFAULT_PRIOR if self.prior == "default" else sparsity(self.prior, 10.0)
        model = replace(scan_of(self.grid, self.coils, seed), prior=blocks).model(quarter_of_the_lines(self.grid, seed))
        posterior = DoubleLoop(ControlVariate()).infer(model, np.random.default_rng(seed))
        return posterior.precision, posterior.mean

    @property
    def tight(self) -> Sampler:
        """The estimator where it solves as well as exactly."""
        squares = isinstance(self.estimator, ControlVariate) and self.estimator.control == "none"
        return replace(self.estimator, tolerance=np.sqrt(TIGHT) if squares else TIGHT)


CONTROL, PLAIN = (0.3, 0.07, 0.03, 0.01), (0.1, 0.03, 0.01)
CASES = (
    Case(64, 1, "default", "control variate (circulant)", ControlVariate(), CONTROL),
    Case(32, 1, "default", "control variate (circulant)", ControlVariate(), CONTROL),
    Case(32, 1, "wavelet+differences", "control variate (circulant)", ControlVariate(), CONTROL[:3]),
    Case(32, 4, "wavelet+differences", "control variate (columns)", ControlVariate(control="columns"), CONTROL[:2]),
    Case(32, 4, "default", "control variate (none)", ControlVariate(control="none"), CONTROL[:3]),
    Case(32, 1, "default", "perturb-and-solve", MonteCarlo(8), PLAIN),
    Case(32, 4, "wavelet+differences", "perturb-and-solve", MonteCarlo(8), PLAIN),
)


def bias_rows(
    cases: Sequence[Case] = CASES,
    truth_draws: int = 256,
    draws: Sequence[int] = (8, 64),
    seeds: Sequence[int] = (0, 1, 2),
) -> list[Row]:
    """Per case and tolerance the bias of z relative to z, and what is stated of it.

    The bias is that of ``truth_draws`` draws against the same draws solved tightly. The rows hold it in sum over all
    coefficients, in sum over the largest sixteenth, and in root mean square; what the estimator states with each number
    of ``draws``, as a multiple of the last, the smallest and the largest over ``seeds``; the same for medians over
    coefficients; and the share of coefficients whose bias is at most what is stated, the smallest over ``seeds``.
    Products with A are those of the first number of draws.
    """
    rows: list[Row] = []
    for case in cases:
        precision, like = case.precision(0)
        tight = together(made(replace(case.tight, samples=truth_draws), precision, like, 100).values)
        for tolerance in case.tolerances:
            loose = replace(case.estimator, tolerance=tolerance)
            values = together(made(replace(loose, samples=truth_draws), precision, like, 100).values)
            bias = values - tight
            largest = np.argsort(tight)[-max(tight.size // 16, 1) :]
            size = rms(bias / tight)
            row: dict[str, object] = {
                **case.labels,
                "tolerance": tolerance,
                **_products(replace(loose, samples=draws[0]), precision, like),
                "bias of the sum": float(bias.sum() / tight.sum()),
                "of the largest": float(bias[largest].sum() / tight[largest].sum()),
                "rms": size,
            }
            for count in draws:
                stated = [together(b) for b in _stated(replace(loose, samples=count), precision, like, seeds)]
                ratios = [rms(one / tight) / size for one in stated]
                row[f"stated / rms, {count} draws"] = f"{min(ratios):.1f} to {max(ratios):.1f}"
                typical = [np.median(one / tight) / np.median(np.abs(bias / tight)) for one in stated]
                row[f"of medians, {count} draws"] = f"{min(typical):.1f} to {max(typical):.1f}"
                row[f"covered, {count} draws"] = min(float(np.mean(np.abs(bias) <= one)) for one in stated)
            rows.append(row)
    return rows


def coverage_rows(
    cases: Sequence[Case] = CASES[1:], draws: Sequence[int] = (64, 256, 1024), seeds: Sequence[int] = (0, 1, 2)
) -> list[Row]:
    """Per case, tolerance and number of draws the share of coefficients whose error is within what is stated.

    Against exact values; within three standard errors, and within these and the bias; the smallest over ``seeds``.
    """
    rows: list[Row] = []
    for case in cases:
        precision, like = case.precision(0)
        dense = DensePosterior.of(precision)
        exact = together([dense.variances(block.analysis) for block in precision.blocks])
        for tolerance in case.tolerances:
            for count in draws:
                alone, with_bias = [], []
                for seed in seeds:
                    found = made(replace(case.estimator, tolerance=tolerance, samples=count), precision, like, seed)
                    assert found.std_error is not None
                    assert found.bias is not None
                    error, scatter = np.abs(together(found.values) - exact), 3 * together(found.std_error)
                    alone.append(float(np.mean(error <= scatter)))
                    with_bias.append(float(np.mean(error <= scatter + together(found.bias))))
                shares = {"3 std_error": min(alone), "3 std_error + bias": min(with_bias)}
                rows.append({**case.labels, "tolerance": tolerance, "draws": count, **shares})
    return rows


def made(estimator: Sampler, precision: PosteriorPrecision, like: Array, seed: int) -> Variances:
    """The variances of the model's own blocks."""
    analyses = [block.analysis for block in precision.blocks]
    return estimator(precision, analyses, np.random.default_rng(seed), like)


def together(values: Sequence[Array]) -> Numbers:
    """All coefficients in one row, in double precision."""
    return np.concatenate([np.ravel(v).astype(np.float64) for v in values])


def rms(values: Numbers) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def _products(estimator: Sampler, precision: PosteriorPrecision, like: Array) -> Mapping[str, object]:
    """Products with A, and how many of them the bias takes: estimators that are asked for no z do not estimate it."""
    whole = made(estimator, precision, like, 0).convergence.matvecs
    draws = estimator(precision, (), np.random.default_rng(0), like).convergence.matvecs
    return {"products": whole, "for the bias": whole - draws}


def _stated(
    estimator: Sampler, precision: PosteriorPrecision, like: Array, seeds: Sequence[int]
) -> Iterator[tuple[Array, ...]]:
    for seed in seeds:
        bias = made(estimator, precision, like, seed).bias
        assert bias is not None
        yield bias

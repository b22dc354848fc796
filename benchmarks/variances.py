"""How near sampled variances come to the exact ones, how far they are off because draws are solved to a tolerance.

    OMP_NUM_THREADS=1 python benchmarks/variances.py --out results/benchmarks

measures everything (some twenty minutes) and writes tables of variances.md, and variances.csv; ``--only SECTION``
measures one, ``--quick`` is the same on a few small cases in seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from parts.dense_posterior import DensePosterior
from parts.pages import put_conditions, put_table
from parts.problem import quarter_of_the_lines, scan_of
from threadpoolctl import threadpool_limits

from mri_design.errors import InputError
from mri_design.evaluation.tables import Row, write_csv
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.mr_image import DEFAULT_PRIOR, SparsityBlock
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.columns import ExactByColumns
from mri_design.variances.control_variate import ControlVariate
from mri_design.variances.lanczos import Lanczos
from mri_design.variances.monte_carlo import MonteCarlo

Numbers = NDArray[np.float64]
Sampler = ControlVariate | MonteCarlo
TIGHT = 1e-4  # tolerance at which nothing is left to be seen; the square root of it where a solver squares it
ESTIMATORS: Mapping[str, VarianceEstimator] = {
    "Lanczos, k = 100": Lanczos(100),
    "perturb-and-solve, 8 draws": MonteCarlo(8),
    "control variate, 4 draws": ControlVariate(4),
    "control variate, 8 draws": ControlVariate(8),
    "exact by columns": ExactByColumns(),
}
PRIORS = ("pixels+differences", "pixels+isotropic differences", "wavelet+differences")


def sparsity(prior: str, rate: float) -> tuple[SparsityBlock, ...]:
    """Blocks of one rate tau/sigma per unit of the signal level."""
    first, second = prior.split("+")
    kind = "wavelet" if first == "wavelet" else "pixels"
    return SparsityBlock(kind, rate), SparsityBlock("differences", rate, isotropic="isotropic" in second)


def posterior_precision(
    grid: int, coils: int, rate: float, prior: str, seed: int
) -> tuple[GeneralizedLinearModel, PosteriorPrecision]:
    """A at the optimum of the double loop, on a quarter of the lines."""
    scan = replace(scan_of(grid, coils, seed), prior=sparsity(prior, rate))
    model = scan.model(quarter_of_the_lines(grid, seed))
    return model, DoubleLoop(ControlVariate()).infer(model, np.random.default_rng(seed)).precision


def variance_rows(
    grid: int = 64,
    coils: Sequence[int] = (1, 8, 16),
    rates: Sequence[float] = (5.0, 10.0, 30.0),
    priors: Sequence[str] = PRIORS,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    seed: int = 0,
    estimators: Mapping[str, VarianceEstimator] = ESTIMATORS,
) -> list[Row]:
    """Per case and estimator the relative error of z over all coefficients, against dense complex algebra.

    ``median error`` and ``mean error`` are means over ``seeds`` of the estimator's randomness, ``spread`` the standard
    deviation of the median over them; ``error / stated`` the root mean square of error over standard error, where one
    is stated (1.2 to 1.5 for eight draws, whose own scatter makes it so). Estimators that do not know a model are left
    out of its rows. Products that draw right-hand sides (half of one with A each) are not counted.
    """
    rows: list[Row] = []
    for prior in priors:
        for n_coils in coils:
            for rate in rates:
                model, precision = posterior_precision(grid, n_coils, rate, prior, seed)
                dense = DensePosterior.of(precision)
                exact = [dense.variances(block.analysis) for block in model.blocks]
                case = {"grid": grid, "prior": prior, "coils": n_coils, "tau/sigma": rate}
                for name, estimator in estimators.items():
                    try:
                        measured = _measured(estimator, model, precision, exact, seeds)
                    except InputError:
                        continue
                    rows.append(case | {"estimator": name} | measured)
    return rows


def _measured(
    estimator: VarianceEstimator,
    model: GeneralizedLinearModel,
    precision: PosteriorPrecision,
    exact: Sequence[Array],
    seeds: Sequence[int],
) -> Row:
    analyses, like = [block.analysis for block in model.blocks], model.back_projection()
    reference = together(exact)
    medians, means, scores, spent, seconds = [], [], [], [], []
    for seed in seeds:
        fresh = replace(precision)  # nothing cached from the run before
        began = time.perf_counter()
        made = estimator(fresh, analyses, np.random.default_rng(seed), like)
        seconds.append(time.perf_counter() - began)
        errors = np.abs(together(made.values) - reference)
        medians.append(np.median(errors / reference))
        means.append(np.mean(errors / reference))
        spent.append(made.convergence.matvecs)
        if made.kind == "unbiased" and made.std_error is not None:
            scores.append(np.mean((errors / together(made.std_error)) ** 2))
    return {
        "kind": made.kind,
        "matvecs": max(spent),
        "median error": float(np.mean(medians)),
        "spread": float(np.std(medians)),
        "mean error": float(np.mean(means)),
        "error / stated": float(np.sqrt(np.mean(scores))) if scores else None,
        "seconds": float(np.median(seconds)),
    }


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
    coefficients; and the fraction of coefficients whose bias is at most what is stated, the smallest over ``seeds``.
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
    """Per case, tolerance and number of draws the fraction of coefficients whose error is within what is stated.

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


def tables(quick: bool, only: str | None = None) -> dict[str, Sequence[Row]]:
    """The rows of each table."""
    few = [replace(case, tolerances=case.tolerances[1:2]) for case in (CASES[1], CASES[5])]
    small = (32, (1, 2), (5.0,), ("pixels+differences",), (0, 1))
    made = {
        "Accuracy": lambda: variance_rows(*small) if quick else variance_rows(),
        "Bias": lambda: bias_rows(few, 64, (8,), (0,)) if quick else bias_rows(),
        "Many draws": lambda: coverage_rows(few, (256,), (0,)) if quick else coverage_rows(),
    }
    return {name: rows() for name, rows in made.items() if only in (None, name)}


def main() -> None:
    """Measure and write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for the tables")
    arguments.add_argument("--only", choices=("Accuracy", "Bias", "Many draws"), help="this section only")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on small cases")
    chosen = arguments.parse_args()
    with threadpool_limits(1):
        rows = tables(chosen.quick, chosen.only)
    chosen.out.mkdir(parents=True, exist_ok=True)
    formats = {"tolerance": "g"} | dict.fromkeys(("bias of the sum", "of the largest"), "+.2%") | {"rms": ".2%"}
    formats |= dict.fromkeys(("median error", "mean error", "spread", "error / stated", "seconds"), ".3g")
    for name, table in rows.items():
        shares = {column: ".1%" for row in table for column in row if "covered" in column or "std_error" in column}
        put_table(chosen.out / "variances.md", name, table, None, formats | shares)
    put_conditions(chosen.out / "variances.md", "numpy", "scipy")
    if chosen.only is None:
        write_csv(
            chosen.out / "variances.csv", [{"table": name} | dict(row) for name, made in rows.items() for row in made]
        )


if __name__ == "__main__":
    main()

"""The double loop on a9a: its end, its loops, its products, and what Lanczos variances do to it.

The first rows of a9a, Gaussian prior, tau = sigma = 1. Inner problems are solved by Newton steps of linear conjugate
gradients (relative residual 1e-3) until J falls by less than 1e-8 per weight. Products are multiplications of X^T X +
B^T D B with a vector, as in the paper's table. The numbers of glm-ie 1.5, which the authors published later, were
measured with it under Octave: converged, exact variances. Coordinate ascent takes the best width of one site after
the other, each with its marginal: one linear system, counted at the conjugate gradients' average.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.estimation.penalised import PenalisedProblem
from mri_design.glm.dense import exact_criterion, minimise_exact_criterion
from mri_design.glm.labels import site_width
from mri_design.inference.base import StepInfo
from mri_design.inference.double_loop import DoubleLoop
from mri_design.inference.evidence import evidence_bound
from mri_design.krylov import conjugate_gradients, lanczos
from mri_design.model.posterior import PosteriorPrecision
from mri_design.sites.likelihoods import Logistic
from mri_design.status import Convergence, Status
from mri_design.variances.base import Exact, Lanczos

from .data import data_set, words_like
from .pools import error_rate, with_prior
from .runner import Claim, Outcome

PLACE = "sections 2.2 to 2.4, table of products"
NEEDS = ("a9a", "a9a.t")
SIZES = {
    "tiny": {"rows": (60, 100), "minimised": 15, "ascended": 40, "steps": (5, 15, 30)},
    "small": {"rows": (1000, 4000), "minimised": 40, "ascended": 200, "steps": (20, 80, 123)},
    "full": {"rows": (1000, 4000, 32561), "minimised": 150, "ascended": 2000, "steps": (20, 40, 80, 123)},
}
GLM_IE = {1000: 386.948401, 4000: 1415.899700}
"""Rows to glm-ie's converged bound on -log P(D)."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Newton:
    """Newton steps on J, whose systems conjugate gradients solve, with a line search by halving."""

    tolerance: float = 1e-8
    max_iterations: int = 100

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        model, u, products, decrease = problem.model, start.copy(), 0, np.inf
        value = problem.value(model.data - model.measurement(u), model.analysis_coefficients(u))
        for count in range(1, self.max_iterations + 1):
            s = model.analysis_coefficients(u)
            powers = problem.site_powers(s)
            pi = tuple(bound.precision(x) for bound, x in zip(problem.penalties, powers, strict=True))
            bends = tuple(
                np.maximum(p - 4 * bound.potential.d2g(bound.dual_argument(x)) * x, 1e-12)
                for bound, x, p in zip(problem.penalties, powers, pi, strict=True)
            )
            falling = model.right_hand_side(pi) - PosteriorPrecision(model.measurement, model.blocks, pi)(u)
            hessian = PosteriorPrecision(model.measurement, model.blocks, bends)
            step, solved = conjugate_gradients(hessian, falling[None], n_axes=1, tolerance=1e-3, max_iterations=2000)
            products += solved.matvecs
            for length in 0.5 ** np.arange(30):
                moved = u + length * step[0]
                new = problem.value(model.data - model.measurement(moved), model.analysis_coefficients(moved))
                if new <= value:
                    break
            u, decrease, value = moved, (value - new) / u.size, new
            if decrease < self.tolerance:
                return u, Convergence(Status.CONVERGED, count, decrease, matvecs=products)
        return u, Convergence(Status.MAX_ITERATIONS, count, decrease, matvecs=products)


def inferred(model: Any, variances: Any, tolerance: float, loops: int) -> tuple[Any, list[StepInfo]]:
    """A posterior from a cold start, and its loops."""
    told: list[StepInfo] = []
    engine = DoubleLoop(variances, Newton(), outer_iterations=loops, tolerance=tolerance)
    return engine.infer(model, np.random.default_rng(0), callback=told.append), told


def ascent(model: Any, target: float) -> tuple[int, float]:
    """Sweeps of coordinate ascent over all widths until phi is within 1e-3 of ``target``; and phi."""
    (block,) = model.blocks
    B, site = block.analysis.to_dense_real(), block.potential
    pi, slopes = site.site_precision(np.full(len(B), 1.0)) * np.ones(len(B)), np.broadcast_to(site.shift, len(B))
    phi = np.inf
    for sweep in range(1, 31):
        S = np.linalg.inv(np.eye(B.shape[1]) + (B.T * pi) @ B)
        u = S @ (B.T @ slopes)
        for i, b in enumerate(B):
            d = S @ b
            rho, mu = b @ d, b @ u
            keep = 1 - rho * pi[i]
            free_rho, free_mu = rho / keep, (mu - rho * slopes[i]) / keep
            one = Logistic(float(np.sign(slopes[i])), 1.0)
            new = 1 / float(site_width(np.array(free_mu), np.array(free_rho), one, max_iterations=200))
            grown = 1 + rho * (new - pi[i])
            u, S = u - d * ((new - pi[i]) * mu / grown), S - np.outer(d, d) * ((new - pi[i]) / grown)
            pi[i] = new
        phi = exact_criterion(model, (pi,))
        if phi < target + 1e-3:
            return sweep, phi
    return 30, phi


def minimum(features: Any, labels: Array) -> list[Claim]:
    """End and course of the double loop against a direct minimisation of phi over all widths; the gradient z."""
    model = with_prior(features).model(np.arange(len(labels)), labels)
    posterior, told = inferred(model, Exact(), 1e-9, 60)
    phi, _ = minimise_exact_criterion(model, (np.full(len(labels), 0.25),))
    off = abs(posterior.criterion[-1] - phi) / abs(phi)
    trace = np.array([info.criterion for info in told])
    rises = int(np.sum(np.diff(trace) > 1e-10 * np.abs(trace[1:])))
    B, pi = model.blocks[0].analysis.to_dense_real(), posterior.precision.site_precisions[0]

    def logarithm(weights: Array) -> float:
        return float(np.linalg.slogdet(np.eye(B.shape[1]) + (B.T * weights) @ B)[1])

    unit, step = np.eye(len(pi))[0], 1e-5
    by_pi = (logarithm(pi + step * unit) - logarithm(pi - step * unit)) / (2 * step)
    by_gamma = (logarithm(1 / (1 / pi + step * unit)) - logarithm(1 / (1 / pi - step * unit))) / (2 * step)
    z = posterior.marginals.values[0][0]
    return [
        Claim(
            "section 2.2",
            "The double loop ends in the minimum of phi",
            "guaranteed with exact z",
            f"relative difference from a direct minimisation {off:.0e}, {len(labels)} rows, {len(told)} loops",
            off < 1e-8,
            "" if off < 1e-8 else "One of the two has not converged.",
        ),
        Claim(
            "section 2.2",
            "No outer loop with exact z raises phi",
            "bound that touches",
            f"{rises} of {len(told) - 1} loops raise it",
            rises == 0,
            "" if rises == 0 else "A loop raised it by more than rounding.",
        ),
        Claim(
            "section 2.2",
            "The minimiser z is the gradient of log|A| in gamma, and the variances of s",
            "z = gradient in gamma (as printed)",
            f"z = {z:.5f}; the gradient is {by_pi:.5f} in 1 / gamma and {by_gamma:.5f} in gamma",
            bool(abs(by_gamma - z) < 1e-6),
            "A slip of the print: the tangent is in 1 / gamma, where the gradient is z; in gamma it is -z / gamma^2.",
        ),
    ]


def known_ends(
    features: Any, labels: Array, rows: tuple[int, ...], real: bool
) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Converged double loops at several sizes, exact and with 80 Lanczos steps: bounds, loops and products."""
    table, claims = [], []
    newton, loops = [], []
    for count in rows:
        model = with_prior(features[:count]).model(np.arange(count), labels[:count])
        for name, variances in (("exact", Exact()), ("Lanczos, 80", Lanczos(80))):
            posterior, told = inferred(model, variances, 1e-5 if name == "exact" else 1e-2, 30)
            negative = -evidence_bound(model, posterior.criterion[-1])
            steps = [info.inner.iterations for info in told]
            inner = [info.inner.matvecs for info in told]
            outer = [info.variances.matvecs for info in told]
            table.append(
                {
                    "rows": count,
                    "variances": name,
                    "-log P(D)": f"{negative:.6f}",
                    "which is": "a bound" if posterior.criterion_kind == "exact" else "an estimate",
                    "outer loops": len(told),
                    "Newton steps, first loop": steps[0],
                    "all": sum(steps),
                    "N_CG": sum(inner) / sum(steps),
                    "products, inner": sum(inner),
                    "products, outer": sum(outer),
                }
            )
            newton += steps
            if name != "exact":
                loops.append(len(told))
                continue
            if count in GLM_IE:
                off = abs(negative - GLM_IE[count])
                claims.append(
                    Claim(
                        "glm-ie 1.5, published later",
                        f"-log P(D) of the first {count:,} rows of a9a at the minimum, Gaussian prior",
                        f"{GLM_IE[count]:.6f}",
                        f"{negative:.6f}",
                        off <= 5e-7 if real else None,
                        "" if real and off <= 5e-7 else "Simulated rows." if not real else "Another minimum.",
                    )
                )
    most = max(newton)
    claims += [
        Claim(
            "section 2.4",
            "Inner loops take few Newton steps",
            "about 10",
            f"{min(newton)} to {most}, mean {np.mean(newton):.1f}, from cold starts",
            most <= 15,
            "" if most <= 15 else "Some inner loops took more.",
        ),
        Claim(
            "section 2.2",
            "Four or five outer loops usually suffice",
            "4 or 5, never more than 5, stop not printed",
            f"{min(loops)} to {max(loops)} until z (80 Lanczos steps) changes by less than 1 %",
            True if max(loops) <= 5 else None,
            "" if max(loops) <= 5 else "The paper does not state when it stops.",
        ),
    ]
    return table, claims


def under_estimates(
    features: Any, labels: Array, test: tuple[Any, Array], steps: tuple[int, ...]
) -> tuple[Any, list[Claim]]:
    """Rise of Lanczos variances, exactness for few rows, and what their deficit does to mean and predictions."""
    count = len(labels)
    model = with_prior(features).model(np.arange(count), labels)
    exact, _ = inferred(model, Exact(), 1e-6, 30)
    z = exact.marginals.values[0]
    start = np.random.default_rng(0).standard_normal(features.shape[1])
    root = lanczos(exact.precision, start, features.shape[1]).inverse_root()
    sums = np.cumsum((root @ features.T) ** 2, 0)
    rises = bool((np.diff(sums, axis=0) >= 0).all())
    over = float((sums / z).max() - 1)
    few = max(2, features.shape[1] // 3)
    small = with_prior(features[:few]).model(np.arange(few), labels[:few])
    among, _ = inferred(small, Exact(), 1e-6, 30)
    krylov = lanczos(among.precision, start, few + 1).inverse_root()
    off = float(np.abs(((krylov @ features[:few].T) ** 2).sum(0) - among.marginals.values[0]).max())
    wanted = error_rate(*test, exact.mean)
    table = [{"steps": "exact", "z, part of exact": 1.0, "-log P(D)": -evidence_bound(model, exact.criterion[-1])}]
    table[0] |= {"mean off, relative": 0.0, "test error, per cent": 100 * wanted}
    for k in steps:
        posterior, _ = inferred(model, Lanczos(k), 1e-3, 30)
        table.append(
            {
                "steps": k,
                "z, part of exact": float(np.mean(posterior.marginals.values[0] / z)),
                "-log P(D)": -evidence_bound(model, posterior.criterion[-1]),
                "mean off, relative": float(np.linalg.norm(posterior.mean - exact.mean) / np.linalg.norm(exact.mean)),
                "test error, per cent": 100 * error_rate(*test, posterior.mean),
            }
        )
    poor = table[1]
    worse = max(abs(row["test error, per cent"] - 100 * wanted) for row in table[1:])
    return table, [
        Claim(
            "section 2.3",
            "Lanczos variances rise with every step, towards z from below",
            "monotone",
            f"all {sums.size - sums.shape[1]} steps rise: {'yes' if rises else 'no'}; largest excess over z {over:.0e}",
            rises and over < 1e-8,
            "" if rises and over < 1e-8 else "A step falls, or lies above z.",
        ),
        Claim(
            "section 5",
            "With a Gaussian prior Lanczos variances are exact for fewer rows than steps",
            "exact for q < k",
            f"q = {few}, k = {few + 1}: largest difference {off:.0e}",
            off < 1e-8,
            "" if off < 1e-8 else "They are not exact.",
        ),
        Claim(
            "section 2.3",
            "Variances that are far too small hardly affect the result",
            "seem to not much affect",
            f"{poor['steps']} steps: z {100 * poor['z, part of exact']:.0f} % of exact, mean off by "
            f"{100 * poor['mean off, relative']:.1f} %, test errors of all k within {worse:.2f} points",
            worse < 0.5,
            "" if worse < 0.5 else "Predictions change.",
        ),
        Claim(
            "sections 2.1 and 2.3",
            "What is minimised bounds log P(D), with Lanczos variances as well",
            "a bound; nothing said of Lanczos",
            f"-log P(D) falls from {table[0]['-log P(D)']:.2f} to {poor['-log P(D)']:.2f} at {poor['steps']} steps",
            None,
            "The paper prints no value; ours with log|A| from the same steps, too small as well, is no bound.",
        ),
    ]


def against_ascent(features: Any, labels: Array) -> Claim:
    """Products of the double loop with exact z (k = n) and of coordinate ascent, to the same phi."""
    count, weights = features.shape
    model = with_prior(features).model(np.arange(count), labels)
    target = inferred(model, Exact(), 1e-7, 30)[0].criterion[-1]
    _, told = inferred(model, Exact(), 1e-3, 30)
    reached = [j for j, info in enumerate(told) if info.criterion < target + 1e-3]
    loops = told[: reached[0] + 1] if reached else told
    ours = sum(weights + info.inner.matvecs for info in loops)
    n_cg = sum(info.inner.matvecs for info in loops) / sum(info.inner.iterations for info in loops)
    sweeps, _ = ascent(model, target)
    theirs = sweeps * count * n_cg
    return Claim(
        "section 2.2",
        "The double loop is orders of magnitude faster than coordinate ascent",
        "orders of magnitude",
        f"{count} rows, phi to 1e-3: {ours} products in {len(loops)} loops of k = n against {theirs:,.0f} in {sweeps} "
        f"sweeps ({theirs / ours:.0f} times)",
        theirs > 10 * ours,
        "" if theirs > 10 * ours else "Few rows need few systems.",
    )


def run(data: Path | None, rows: tuple[int, ...], minimised: int, ascended: int, steps: tuple[int, ...]) -> Outcome:
    """Measure."""
    real = data is not None
    if real:
        features, labels = data_set(data, "a9a")
        test = data_set(data, "a9a.t")
    else:
        half, wide = 2 * rows[-1], max(40, steps[-1])
        features, labels = words_like(2 * half, wide, wide / 5, np.random.default_rng(0))
        features, test, labels = features[:half], (features[half:], labels[half:]), labels[:half]
    claims = minimum(features[:minimised], labels[:minimised])
    table, ends = known_ends(features, labels, rows, real)
    middle = rows[1]
    rising, lanczos_claims = under_estimates(features[:middle], labels[:middle], test, steps)
    claims += [*ends, *lanczos_claims, against_ascent(features[:ascended], labels[:ascended])]
    return Outcome({"Converged double loops": table, f"Lanczos variances, {middle} rows": rising}, claims)

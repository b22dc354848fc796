"""The search for the best query, against brute force, and what is misprinted.

Random posteriors of a few unknowns, with and without fixed components. The best query of `InfomaxQuery` is held against
the best of many random ones of the same power; the edges of the feasible region against a general optimiser; and the
formulas of the paper, as they are printed, against what they stand for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mri_design.glm import FilterState, InfomaxQuery, LaplaceFilter, expected_gain
from mri_design.glm.infomax import FeasibleQueries
from mri_design.sites import BernoulliResponse, PoissonResponse

from .runner import Claim, Outcome

PLACE = "equations (7) to (25), appendix"
SIZES = {
    "tiny": {"posteriors": 3, "random": 2000, "edges": 2},
    "small": {"posteriors": 10, "random": 20_000, "edges": 5},
    "full": {"posteriors": 30, "random": 50_000, "edges": 20},
}
POWER = 2.0
Values = NDArray[np.float64]


def posterior(seed: int, n: int = 4) -> FilterState:
    """A random mean and covariance."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n)) * rng.uniform(0.2, 1.0)
    return FilterState(rng.normal(size=n), root @ root.T + 0.05 * np.eye(n))


def against_random(posteriors: int, count: int) -> list[dict]:
    """How far the best random query stays behind, for responses, with and without fixed components."""
    rows = []
    for name, response in (("Poisson", PoissonResponse()), ("Bernoulli", BernoulliResponse())):
        for fixed in ((), (0.7,)):
            search, behind, edge = InfomaxQuery(POWER, fixed, response, search="2d"), [], []
            for seed in range(posteriors):
                state, rng = posterior(seed), np.random.default_rng(seed)
                best = search.propose(state)
                free = rng.normal(size=(count, 4 - len(fixed)))
                reach = np.sqrt(POWER**2 - np.sum(np.square(fixed)))
                free *= (reach * rng.random(count) ** 0.2 / np.linalg.norm(free, axis=1))[:, None]
                pool = np.column_stack([free, np.tile(fixed, (count, 1))])
                behind.append(1 - search.score(state, pool).max() / best.score)
                one = InfomaxQuery(POWER, fixed, response, search="1d").propose(state)
                edge.append(1 - one.score / best.score)
            rows.append({
                "responses": name, "fixed": str(fixed), "random ones behind, least": min(behind),
                "random ones behind, mean": float(np.mean(behind)), "lost by searching the upper edge only": max(edge),
            })  # fmt: skip
    return rows


def edges_off(edges: int) -> float:
    """Largest and smallest variance at a mean against a general optimiser, relative."""
    worst = 0.0
    for seed in range(edges):
        state, fixed = posterior(seed), np.array([0.7])
        feasible = FeasibleQueries.of(state, POWER, fixed, 0)
        alpha = float(np.random.default_rng(seed).uniform(-0.9, 0.9) * feasible.reach)
        radius = np.sqrt(feasible.reach**2 - alpha**2)
        across = np.linalg.qr(feasible.direction[:, None], mode="complete")[0][:, 1:]

        def variance(t: Values) -> float:
            x = np.append(alpha * feasible.direction + across @ t, fixed)  # noqa: B023
            return float(x @ state.covariance @ x)  # noqa: B023

        for largest in (True, False):
            sign = -1 if largest else 1
            tried = []
            for start in np.vstack([np.eye(2), -np.eye(2)]) * radius * 0.6:
                t = scipy.optimize.minimize(
                    lambda t: sign * variance(t), start, method="SLSQP", options={"ftol": 1e-14},  # noqa: B023
                    constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t},  # noqa: B023
                ).x  # fmt: skip
                t *= min(1.0, radius / np.linalg.norm(t))  # it may end outside
                tried.append(sign * variance(t))
            found = feasible.extremes(np.array([alpha]), largest)[1].item()
            worst = max(worst, abs(found - sign * min(tried)) / found)
    return worst


def misprints(seed: int = 0) -> dict[str, float]:
    """Errors of the appendix as printed and with a mean of unit length, of the bound (14), and of the hard case."""
    state, rng = posterior(seed, 5), np.random.default_rng(seed)
    mean, C, fixed = state.mean[:4], state.covariance, np.array([0.7])
    Ck, Cka, Ca = C[:4, :4], C[:4, 4:], C[4:, 4:]

    def variance_by(m: Values, alpha: float, x: Values) -> float:
        v, w = (m * (sign - m @ Ck @ m) / 2 + Ck @ m for sign in (2, -2))
        A = Ck - np.outer(v, v) / 2 + np.outer(w, w) / 2
        b = 2 * alpha * (Ck @ m - (m @ Ck @ m) * m) + 2 * (Cka @ fixed - (m @ Cka @ fixed) * m)
        d = alpha**2 * (m @ Ck @ m) + 2 * alpha * m @ Cka @ fixed + fixed @ Ca @ fixed
        return float(x @ A @ x + b @ x + d)

    unit = mean / np.linalg.norm(mean)
    off = {"as printed": 0.0, "unit length": 0.0}
    for _ in range(20):
        x = rng.normal(size=4)
        alpha = float(unit @ x)
        whole = np.append(x, fixed)
        wanted = float(whole @ C @ whole)
        for name, m in (("as printed", mean), ("unit length", unit)):
            off[name] = max(off[name], abs(variance_by(m, alpha, x) / wanted - 1))
    feasible = FeasibleQueries.of(state, POWER, np.empty(0), 0)
    _, best = feasible.extremes(np.zeros(1), largest=True)
    alpha = 1.0
    return {
        "appendix, as printed": off["as printed"],
        "appendix, unit length": off["unit length"],
        "|x|^2 by (14)": alpha**2 + (POWER**2 - alpha**2) ** 2,
        "variance at alpha = 0, hard case": float(best[0]),
        "variance at alpha = 0, (21) alone": feasible.offset[0],
    }


def updates(count: int) -> dict[str, float]:
    """The filter's covariance against an inverse; its determinant against (8); how much it depends on the response."""
    loop, worst, ratios = LaplaceFilter(), {"inverse": 0.0, "determinant": 0.0}, []
    for seed in range(count):
        state, rng = posterior(seed), np.random.default_rng(seed)
        x = rng.normal(size=4)
        ends = []
        for r in (0.0, 2.0, 10.0):
            after = loop.update(state, x, PoissonResponse().site(r))
            D = float(np.exp(x @ after.mean))
            wanted = np.linalg.inv(np.linalg.inv(state.covariance) + D * np.outer(x, x))
            worst["inverse"] = max(worst["inverse"], float(np.abs(after.covariance - wanted).max() / wanted.max()))
            logs = [np.linalg.slogdet(one.covariance)[1] for one in (state, after)]
            gained = np.log1p(D * (x @ state.covariance @ x))
            worst["determinant"] = max(worst["determinant"], abs(float(logs[0] - logs[1] - gained)))
            ends.append(float(x @ after.covariance @ x))
        ratios.append(max(ends) / min(ends))
    return {**worst, "variance along x, largest over smallest response": float(np.median(ratios))}


def run(data: Path | None, posteriors: int, random: int, edges: int) -> Outcome:
    """Search, edges, misprints and updates."""
    found, off, printed, updated = (
        against_random(posteriors, random),
        edges_off(edges),
        misprints(),
        updates(posteriors),
    )
    least = min(row["random ones behind, least"] for row in found)
    upper = {row["responses"]: row["lost by searching the upper edge only"] for row in found if row["fixed"] == "()"}
    m, v = (grid.ravel() for grid in np.meshgrid(np.linspace(-3, 3, 13), np.geomspace(1e-3, 4, 12)))
    closed = v * np.exp(m + v / 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    by_sum = v * (np.exp(m[:, None] + np.sqrt(v)[:, None] * nodes) @ (weights / weights.sum()))
    linear = float(np.abs(by_sum / closed - 1).max())
    tiny = float(np.abs(expected_gain(PoissonResponse(), m, 1e-6 * np.ones_like(m)) / (1e-6 * np.exp(m)) - 1).max())
    spread = updated["variance along x, largest over smallest response"]
    check = Claim.checked
    claims = [
        check("equations (11) to (25)", "the search over mean and variance finds the best query", "guaranteed",
              f"{random} random queries on each of {posteriors} posteriors stay behind by {least:.1e} or more, "
              "Poisson and Bernoulli, also with a fixed component", least >= -1e-9, "A random query was better."),
        check("equations (12), (13)", "the edges of the feasible region are those of a trust-region subproblem",
              "necessary and sufficient", f"off a general optimiser by {off:.1e} at most, {edges} posteriors",
              off <= 1e-6, "An edge is missed."),
        check("section on the optimal example", "for Poisson responses a search along the largest variance is enough",
              "one-dimensional", f"score lost at most {max(0.0, upper['Poisson']):.1e}; Bernoulli "
              f"{max(0.0, upper['Bernoulli']):.1e}",
              upper["Poisson"] <= 1e-9, "The upper edge is not enough."),
        check("appendix, (30) to (34)", "A, b and d give the variance of a query from its part across the mean",
              "as printed", f"off by {printed['appendix, as printed']:.2g} as printed, by "
              f"{printed['appendix, unit length']:.1e} with a mean of unit length",
              printed["appendix, as printed"] <= 1e-8, "The mean has to be of unit length there."),
        check("equation (14)", "|x| is at most the power under the bound e^2 - e_a^2 - alpha^2 on the norm",
              "on the norm", f"|x|^2 up to {printed['|x|^2 by (14)']:.0f} with e^2 = 4, alpha = 1",
              printed["|x|^2 by (14)"] <= POWER**2, "It bounds the square of the norm, as (15) has it."),
        check("equation (21)", "y = w / (2 (lambda - c)) gives every extreme", "every local minimum and maximum",
              f"variance {printed['variance at alpha = 0, (21) alone']:.2f} at alpha = 0 without x_a, where w = 0; "
              f"the largest is {printed['variance at alpha = 0, hard case']:.2f}",
              printed["variance at alpha = 0, (21) alone"] > 0.999 * printed["variance at alpha = 0, hard case"],
              "The hard case: with lambda = c_max the top eigenvector's part is free and takes the power left."),
        check("equation (7)", "the covariance after a response follows from the Woodbury lemma in O(n^2)", "identical",
              f"off a full inverse by {updated['inverse']:.1e}", updated["inverse"] <= 1e-10, "It differs."),
        check("equation (8)", "|C| falls by the factor 1 + D sigma^2", "identical",
              f"log determinants off by {updated['determinant']:.1e}", updated["determinant"] <= 1e-9, "It differs."),
        check("equation (10)", "with a canonical link the covariance does not depend on the response", "independent",
              f"variance along x after r = 0, 2, 10 differs {spread:.1f}-fold (median)", spread < 1.001,
              "D does not name r but is taken at the new mode, which depends on it."),
        check("section on the objective", "for canonical Poisson responses the linearised objective is closed",
              "analytic", f"sigma^2 exp(mu + sigma^2 / 2) off quadrature by {linear:.1e}", linear <= 1e-8,
              "It is not."),
        check("section on the objective", "for small variances log(1 + x) may be replaced by x", "x + o(x)",
              f"gains differ by {tiny:.1e} at sigma^2 = 1e-6", tiny <= 1e-4, "It may not."),
    ]  # fmt: skip
    return Outcome({"Search": found, "Formulas": [printed], "Updates": [updated]}, claims)

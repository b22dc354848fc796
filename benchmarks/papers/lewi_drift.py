"""Unknowns that drift.

theta makes a step of variance q in each unknown before every trial, equation (26); counts have the rate
exp(x^T theta). Three ways: queries by infomax, independent queries, both with a filter that knows q; and infomax with a
filter that takes theta for constant. Squared errors are means over the second half of the trials; z^2 is the squared
error by the covariance, over n, one where error bars are right.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mri_design.glm import FilterState, InfomaxQuery, LaplaceFilter
from mri_design.sites import GaussianResponse, PoissonResponse

from .eigen_update import RankOne
from .neurons import Values, at_random, by_infomax, sine_wave
from .runner import Claim, Outcome

PLACE = "section on non-stationary theta, equation (26)"
SIZES = {
    "tiny": {"n": 5, "trials": 40, "seeds": 2, "drifts": (1e-3,)},
    "small": {"n": 8, "trials": 100, "seeds": 3, "drifts": (1e-3,)},
    "full": {"n": 16, "trials": 400, "seeds": 5, "drifts": (1e-5, 1e-4, 1e-3)},
}
POWER, RESPONSE, TINY = 3.0, PoissonResponse(), 1e-4
WAYS = ("infomax", "independent", "infomax, drift ignored")


def errors_of(way: str, n: int, q: float, trials: int, seed: int) -> tuple[Values, Values]:
    """Squared error and z^2 after each trial; theta's path is the same for all ways."""
    steps, rng = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    ask = by_infomax(InfomaxQuery(POWER)) if way.startswith("infomax") else at_random(POWER)
    loop = LaplaceFilter() if way.endswith("ignored") else LaplaceFilter(drift=q)
    theta, state = sine_wave(n), FilterState(np.zeros(n), np.eye(n))
    errors, z = [], []
    for _ in range(trials):
        x = ask(state, rng)
        theta = theta + np.sqrt(q) * steps.normal(size=n)
        state = loop.update(state, x, RESPONSE.site(float(RESPONSE.draw(theta @ x, rng))))
        away = state.mean - theta
        errors.append(float(away @ away))
        z.append(float(away @ np.linalg.solve(state.covariance, away)) / n)
    return np.array(errors), np.array(z)


def kalman_off(n: int, seed: int) -> float:
    """The filter against Kalman's equations for Gaussian responses and a drift that is a full matrix."""
    rng, response = np.random.default_rng(seed), GaussianResponse(0.3)
    root = 0.1 * rng.normal(size=(n, n))
    Q, state = root @ root.T, FilterState(np.zeros(n), np.eye(n))
    mean, C, worst = state.mean, state.covariance, 0.0
    for _ in range(30):
        x, y = rng.normal(size=n), float(rng.normal())
        state = LaplaceFilter(drift=Q).update(state, x, response.site(y))
        C = C + Q
        gain = C @ x / (x @ C @ x + 0.3)
        mean, C = mean + gain * (y - x @ mean), C - np.outer(gain, x @ C)
        worst = max(worst, float(np.abs(state.mean - mean).max()), float(np.abs(state.covariance - C).max()))
    return worst


def whitened_off(n: int, seed: int) -> float:
    """Eigenvectors by updates where Q is white: only eigenvalues shift; against a dense covariance."""
    rng = np.random.default_rng(seed)
    values, V, C = np.ones(n), np.asfortranarray(np.eye(n)), np.eye(n)
    for _ in range(3 * n):
        values, C = values + 0.01, C + 0.01 * np.eye(n)
        x, D = rng.normal(size=n), rng.uniform(0.1, 2)
        spread = values * (V.T @ x)
        rho = -D / (1 + D * float(spread @ (V.T @ x)))
        change = RankOne.of(values, spread, rho)
        values, V, seen = change.values, change.times(V), C @ x
        C = C + rho * np.outer(seen, seen)
    return float(np.abs((V * values) @ V.T - C).max())


def run(data: Path | None, n: int, trials: int, seeds: int, drifts: tuple[float, ...]) -> Outcome:
    """All ways at all drifts."""
    table, curves = [], {}
    for q in drifts:
        for way in WAYS:
            found = [errors_of(way, n, q, trials, seed) for seed in range(seeds)]
            errors, z = (np.array([each[k] for each in found]) for k in (0, 1))
            curves[q, way] = errors
            late = errors[:, trials // 2 :].mean(axis=1)
            table.append({
                "q": q, "way": way, "squared error": float(late.mean()), "spread over seeds": float(late.std()),
                "worst seed": float(late.max()), "z^2": float(np.median(z[:, trials // 2 :])),
            })  # fmt: skip
    of = {(row["q"], row["way"]): row for row in table}

    def ratios(way: str) -> dict[float, float]:
        return {q: of[q, way]["squared error"] / of[q, "infomax"]["squared error"] for q in drifts}

    def said(values: dict[float, float]) -> str:
        return ", ".join(f"{value:.2f} at q = {q:g}" for q, value in values.items())

    kalman, white = max(kalman_off(n, s) for s in range(3)), max(whitened_off(n, s) for s in range(3))
    z, ignored = ({q: of[q, way]["z^2"] for q in drifts} for way in (WAYS[0], WAYS[2]))
    large = [q for q in drifts if q >= TINY]
    check = Claim.checked
    claims = [
        check("equation (26)", "with C + Q before each trial the filter follows unknowns that drift", "extends easily",
              f"median z^2 {said(z)}; {said(ignored)} where drift is ignored",
              all(0.5 < value < 1.5 for value in z.values()) and all(ignored[q] > 1.5 for q in large),
              "z^2 is not between 0.5 and 1.5 with the drift in the model, or is without it."),
        check("section on non-stationary theta", "infomax is better than independent queries also where theta drifts",
              "can be extended", f"independent over infomax, squared error: {said(ratios(WAYS[1]))}, {seeds} seeds",
              min(ratios(WAYS[1]).values()) > 1, "At some drift it is not."),
        check("section on non-stationary theta", f"the drift has to be in the model, from q = {TINY:g} on",
              "to handle it", f"error where it is ignored over where it is known: {said(ratios(WAYS[2]))}",
              all(ratios(WAYS[2])[q] > 1.1 for q in large), "Ignoring such a drift costs less than a tenth."),
        check("section on non-stationary theta", "for Gaussian responses the filter of a drifting theta is Kalman's",
              "Kalman-based", f"off its equations by {kalman:.1e} at most", kalman <= 1e-10, "It is not."),
        check("footnote 3", "with Q white the eigenvectors stay and eigenvalues shift, so that rank-one updates do",
              "slight modifications", f"covariance off by {white:.1e} after {3 * n} trials", white <= 1e-10,
              "It is off."),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        for axes, q in zip(figure.subplots(1, len(drifts), squeeze=False, sharey=True)[0], drifts, strict=True):
            for way in WAYS:
                axes.semilogy(np.arange(1, trials + 1), curves[q, way].mean(axis=0), label=way)
            axes.set(xlabel="trials", title=f"q = {q:g}")
        figure.axes[0].set_ylabel("squared error")
        figure.axes[0].legend(fontsize=7)

    return Outcome({"Second half of the trials": table}, claims, draw)

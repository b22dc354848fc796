"""Infomax against independent queries, trial after trial and in the long run: figures 1 (a) and 2.

A neuron answers a query x with a Poisson count of rate exp(x^T theta); theta is one period of a sine of unit length in
20 unknowns, the prior N(0, I). Independent queries are uniform on the sphere |x| = e. The paper gives neither e nor the
filter's size; two powers are shown. Trials needed: where the mean curve over seeds falls for good to the error that
independent queries have after a number of trials, levels below 1, the error before the first trial.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mri_design.glm import InfomaxQuery, asymptotic_information
from mri_design.sites import PoissonResponse

from .neurons import Ask, Values, asked, at_random, by_infomax, sine_wave, trials_to
from .runner import Claim, Outcome

PLACE = "figures 1 (a) and 2, equations (27) to (29)"
SIZES = {
    "tiny": {"n": 6, "powers": (2.0,), "seeds": 2, "trials": (20, 60), "longest": (40,)},
    "small": {"n": 10, "powers": (2.0, 4.0), "seeds": 3, "trials": (80, 600), "longest": (300, 200)},
    "full": {"n": 20, "powers": (2.0, 4.0), "seeds": 5, "trials": (800, 3200), "longest": (12_000, 3000)},
}
RESPONSE = PoissonResponse()
WAYS = ("infomax", "independent")


def curves(n: int, power: float, way: str, trials: int, seed: int) -> tuple[Values, Values, Values]:
    """Per trial the squared error, and variances along and across theta, times the number of trials."""
    theta = sine_wave(n)
    states, _, _ = asked(theta, asking(power, way), trials, seed, RESPONSE)
    errors, along, across = [], [], []
    for number, state in enumerate(states[1:], 1):
        errors.append(np.sum((state.mean - theta) ** 2))
        if number % 10 == 0 or number == trials:
            along.append(number * theta @ state.covariance @ theta)
            rest = np.linalg.slogdet(state.covariance)[1] - np.log(along[-1] / number)
            across.append(number * np.exp(rest / (n - 1)))
    return np.array(errors), np.array(along), np.array(across)


def asking(power: float, way: str) -> Ask:
    """Queries of a way."""
    return by_infomax(InfomaxQuery(power)) if way == "infomax" else at_random(power)


def filter_against_map(n: int, power: float, trials: int, seed: int) -> tuple[float, float]:
    """Squared errors of the filter and of the mode of all trials, on the same data."""
    theta = sine_wave(n)
    states, X, sites = asked(theta, asking(power, "infomax"), trials, seed, RESPONSE)
    counts = np.array([site.counts.item() for site in sites])
    mode = states[-1].mean.copy()
    for _ in range(30):
        rates = np.exp(X @ mode)
        step = np.linalg.solve(np.eye(n) + (X.T * rates) @ X, X.T @ (counts - rates) - mode)
        mode += step / max(1.0, np.abs(X @ step).max())
    return float(np.sum((states[-1].mean - theta) ** 2)), float(np.sum((mode - theta) ** 2))


def run(
    data: Path | None, n: int, powers: tuple[float, ...], seeds: int, trials: tuple[int, int], longest: tuple[int, ...]
) -> Outcome:
    """Both ways at both powers."""
    needed, reached, drawn, excess = [], [], [], []
    for power, long in zip(powers, longest, strict=True):
        found = {
            way: [curves(n, power, way, count, seed) for seed in range(seeds)]
            for way, count in zip(WAYS, trials, strict=True)
        }
        errors = {way: np.array([each[0] for each in found[way]]) for way in WAYS}
        drawn.append((power, errors))
        for count in [t for t in (25, 50, 100, 200, 400, 800, 1600, 3200) if t <= trials[1]]:
            goal = float(errors["independent"].mean(axis=0)[count - 1])
            least = trials_to(errors["infomax"], goal)
            if np.isfinite(least) and goal < 1:
                needed.append({
                    "power": power, "squared error": goal, "independent": count, "infomax": least,
                    "ratio": count / least,
                })  # fmt: skip
        _, along, across = curves(n, power, "infomax", long, seeds)
        ends = {
            "infomax": (along[-1:], across[-1:], long),
            "independent": (*(np.array([e[k][-1] for e in found["independent"]]) for k in (1, 2)), trials[1]),
        }
        for way, inputs in zip(WAYS, ("optimal", "sphere"), strict=True):
            theory = asymptotic_information(RESPONSE, sine_wave(n), power, inputs)
            excess.append((way, len(theory.support), theory.excess))
            for side, values, wanted in zip(("along", "across"), ends[way][:2], theory.variances(1), strict=True):
                reached.append({
                    "power": power, "way": way, "direction": side, "trials": ends[way][2],
                    "trials x variance": float(values.mean()), "predicted": wanted,
                    "off": float(values.mean() / wanted - 1),
                })  # fmt: skip
    ratios = [row["ratio"] for row in needed]
    by_filter, by_mode = np.mean([filter_against_map(n, powers[0], trials[0] // 4, s) for s in range(seeds)], axis=0)
    off = {way: max(abs(row["off"]) for row in reached if row["way"] == way) for way in WAYS}
    optimal = [(count, value) for way, count, value in excess if way == "infomax"]
    better = [
        np.log(row["predicted"] / other["predicted"])
        for row, other in zip(
            [r for r in reached if r["way"] == "infomax"],
            [r for r in reached if r["way"] == "independent"],
            strict=True,
        )
    ]
    entropy = [float(along + (n - 1) * across) for along, across in zip(better[::2], better[1::2], strict=True)]
    check = Claim.checked
    claims = [
        Claim("figure 1 (a)", "infomax needs an order of magnitude fewer trials for the same accuracy",
              "an order of magnitude; neither power nor accuracy given",
              f"{min(ratios, default=np.nan):.1f} to {max(ratios, default=np.nan):.1f} times fewer over "
              f"{len(ratios)} levels of error at powers {powers}, {seeds} seeds", None,
              "The ratio depends on the power and on the accuracy asked for, and the paper gives neither."),
        check("results", "infomax is never worse than independent queries", "never worse asymptotically",
              f"least ratio of trials {min(ratios, default=np.nan):.2f}", min(ratios, default=0) >= 1,
              "At one level it needs more trials."),
        check("figure 2", "variances under infomax converge to the prediction", "converges",
              f"within {off['infomax']:.1%} along and across theta after {longest} trials, powers {powers}",
              off["infomax"] <= 0.1, "They are more than 10 % off: theta is found late, and earlier trials count."),
        check("figure 2", "variances under independent queries converge to the prediction", "converges",
              f"within {off['independent']:.1%} after {trials[1]} trials", off["independent"] <= 0.1,
              "They are more than 10 % off."),
        check("section on asymptotic efficiency", "the optimal design has at most two values of x along theta",
              "two values", f"{max(count for count, _ in optimal)} at most; log|E J| can be raised by n times "
              f"{max(value for _, value in optimal):.1e} at most", max(count for count, _ in optimal) <= 2
              and max(value for _, value in optimal) <= 1e-6,
              "It has more, or is not optimal."),
        check("section on asymptotic efficiency", "the posterior under the optimal design has a smaller log "
              "determinant than under independent queries", "generically",
              "log|C| smaller by " + ", ".join(f"{-value:.1f}" for value in entropy) + f" at powers {powers}",
              max(entropy) < 0, "It has not."),
        check("section on updating", "one pass loses little against the mode of all trials", "minimal",
              f"squared error {by_filter:.4f} against {by_mode:.4f} after {trials[0] // 4} trials, {seeds} seeds",
              by_filter <= 1.1 * by_mode, "More than a tenth: first responses decide where later sites are expanded."),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        for axes, (power, errors) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
            for way, values in errors.items():
                axes.loglog(np.arange(1, values.shape[1] + 1), values.mean(axis=0), label=way)
            axes.set(xlabel="trials", ylabel="squared error", title=f"e = {power:g}")
        axes.legend()

    return Outcome({"Trials needed": needed or [{"ratio": None}], "In the long run": reached}, claims, draw)

"""Responses that depend on earlier ones: fixed components of the query.

The rate of a count is exp(k^T x_t + a^T (r_{t-1}, ..., r_{t-H}) + m): a stimulus of limited power, past counts that
inhibit, and a constant. Past counts and the constant are the fixed components x_a of the query, and all of k, a and m
are estimated. Three ways: infomax and independent stimuli with the history in the model, and infomax whose model has
the constant only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mri_design.glm import FilterState, InfomaxQuery, LaplaceFilter
from mri_design.sites import PoissonResponse

from .neurons import Values, sine_wave, sphere
from .runner import Claim, Outcome

PLACE = "section on the optimal example: fixed components x_a"
SIZES = {
    "tiny": {"n": 5, "trials": 30, "seeds": 2},
    "small": {"n": 8, "trials": 150, "seeds": 4},
    "full": {"n": 16, "trials": 800, "seeds": 10},
}
POWER, RESPONSE = 2.0, PoissonResponse()
HISTORY, CONSTANT = np.array([-0.6, -0.4, -0.2]), 0.5
WAYS = ("infomax", "independent", "infomax, history ignored")


def experiment(way: str, n: int, trials: int, seed: int) -> dict[str, Values | float]:
    """Squared errors of k after each trial, those of a and m at the end, and what was asked."""
    k, rng, loop = sine_wave(n), np.random.default_rng(seed), LaplaceFilter()
    known = 0 if way.endswith("ignored") else len(HISTORY)
    theta = np.concatenate([k, HISTORY, [CONSTANT]])
    state, past = FilterState(np.zeros(n + known + 1), np.eye(n + known + 1)), np.zeros(len(HISTORY))
    errors, broken, too_long = [], 0.0, 0.0
    for _ in range(trials):
        fixed = np.append(past[:known], 1.0)
        if way.startswith("infomax"):
            x = InfomaxQuery(float(np.sqrt(POWER**2 + fixed @ fixed)), tuple(fixed)).propose(state).x
        else:
            x = np.concatenate([sphere(n, POWER, rng), fixed])
        broken = max(broken, float(np.abs(x[n:] - fixed).max()))
        too_long = max(too_long, float(np.linalg.norm(x[:n])) - POWER)
        r = float(RESPONSE.draw(theta @ np.concatenate([x[:n], past, [1.0]]), rng))
        state = loop.update(state, x, RESPONSE.site(r))
        past = np.append(r, past[:-1])
        errors.append(float(np.sum((state.mean[:n] - k) ** 2)))
    rest = state.mean[n : n + known]
    return {
        "errors": np.array(errors), "history": float(np.sum((rest - HISTORY[:known]) ** 2)),
        "constant": float((state.mean[-1] - CONSTANT) ** 2), "fixed off": broken, "beyond the power": too_long,
        "entropy": float(np.linalg.slogdet(state.covariance)[1]),
    }  # fmt: skip


def run(data: Path | None, n: int, trials: int, seeds: int) -> Outcome:
    """All ways."""
    found = {way: [experiment(way, n, trials, seed) for seed in range(seeds)] for way in WAYS}
    curves = {way: np.array([one["errors"] for one in each]) for way, each in found.items()}

    def mean(way: str, name: str) -> float:
        return float(np.mean([one[name] for one in found[way]]))

    table = [
        {
            "way": way, "squared error of k": curves[way][:, -1].mean(), "worst seed": curves[way][:, -1].max(),
            "halfway": curves[way][:, trials // 2].mean(),
            "of a": None if way.endswith("ignored") else mean(way, "history"), "of m": mean(way, "constant"),
            "log|C|": mean(way, "entropy"),
        }
        for way in WAYS
    ]  # fmt: skip
    ends = {row["way"]: row for row in table}
    kept = max(one["fixed off"] for each in found.values() for one in each)
    beyond = max(one["beyond the power"] for each in found.values() for one in each)
    ratio = ends["independent"]["squared error of k"] / ends["infomax"]["squared error of k"]
    prior = float(np.sum(HISTORY**2))
    ignored = ends[WAYS[2]]["squared error of k"] / ends["infomax"]["squared error of k"]
    check = Claim.checked
    claims = [
        check(PLACE, "past responses and a constant are held fixed while the stimulus is searched", "x = (x_k, x_a)",
              f"fixed components off by {kept:.1e}, stimulus beyond its power by {max(beyond, 0.0):.1e}",
              kept == 0 and beyond <= 1e-9, "They are not."),
        check("abstract", "infomax is efficient with effects of the output's history, too", "efficiently",
              f"squared error of k after {trials} trials {ends['infomax']['squared error of k']:.3g} against "
              f"{ends['independent']['squared error of k']:.3g} of independent ones, {ratio:.2f} times, {seeds} seeds",
              ratio > 1, "Independent stimuli do better."),
        check("equation (5)", "it tells more of stimulus filter, history and constant together", "more informative",
              f"log|C| {ends['infomax']['log|C|']:.1f} against {ends['independent']['log|C|']:.1f}",
              ends["infomax"]["log|C|"] < ends["independent"]["log|C|"], "log|C| is not smaller."),
        check("abstract", "the history's coefficients are estimated along with the stimulus filter", "handled",
              f"squared error {ends['infomax']['of a']:.3g} of {prior:.2f}, {ends['independent']['of a']:.3g} with "
              "independent stimuli", ends["infomax"]["of a"] < 0.2 * prior, "More than a fifth is left."),
        check("section on the optimal example", "terms of the history have to be in the model", "may wish to include",
              f"squared error of k is {ignored:.2f} times as large without them", ignored > 1.1,
              "Leaving them out costs less than a tenth here."),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for way, errors in curves.items():
            axes.loglog(np.arange(1, trials + 1), errors.mean(axis=0), label=way)
        axes.set(xlabel="trials", ylabel="squared error of k")
        axes.legend()

    return Outcome({"At the end": table}, claims, draw)

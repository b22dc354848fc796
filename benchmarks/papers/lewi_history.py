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
    "tiny": {"n": 5, "trials": 30, "seeds": 2, "powers": (2.0,)},
    "small": {"n": 8, "trials": 150, "seeds": 3, "powers": (2.0, 3.0)},
    "full": {"n": 16, "trials": 500, "seeds": 5, "powers": (2.0, 3.0)},
}
RESPONSE = PoissonResponse()
HISTORY, CONSTANT = np.array([-0.6, -0.4, -0.2]), 0.5
WAYS = ("infomax", "independent", "infomax, history ignored")


def experiment(way: str, n: int, power: float, trials: int, seed: int) -> dict[str, Values | float]:
    """Squared errors of k after each trial, those of a and m at the end, and what was asked."""
    k, rng, loop = sine_wave(n), np.random.default_rng(seed), LaplaceFilter()
    known = 0 if way.endswith("ignored") else len(HISTORY)
    theta = np.concatenate([k, HISTORY, [CONSTANT]])
    state, past = FilterState(np.zeros(n + known + 1), np.eye(n + known + 1)), np.zeros(len(HISTORY))
    errors, broken, too_long = [], 0.0, 0.0
    for _ in range(trials):
        fixed = np.append(past[:known], 1.0)
        if way.startswith("infomax"):
            x = InfomaxQuery(float(np.sqrt(power**2 + fixed @ fixed)), tuple(fixed)).propose(state).x
        else:
            x = np.concatenate([sphere(n, power, rng), fixed])
        broken = max(broken, float(np.abs(x[n:] - fixed).max()))
        too_long = max(too_long, float(np.linalg.norm(x[:n])) - power)
        r = float(RESPONSE.draw(theta @ np.concatenate([x[:n], past, [1.0]]), rng))
        state = loop.update(state, x, RESPONSE.site(r))
        past = np.append(r, past[:-1])
        errors.append(float(np.sum((state.mean[:n] - k) ** 2)))
    rest = state.mean[n : n + known]
    return {
        "errors": np.array(errors), "history": float(np.sum((rest - HISTORY[:known]) ** 2)),
        "constant": float((state.mean[-1] - CONSTANT) ** 2), "fixed off": broken, "beyond the power": too_long,
        "entropy": float(np.linalg.slogdet(state.covariance)[1]),
        "variance": float(np.trace(state.covariance[:n, :n])),
    }  # fmt: skip


def run(data: Path | None, n: int, trials: int, seeds: int, powers: tuple[float, ...]) -> Outcome:
    """All ways at all powers."""
    found = {
        (power, way): [experiment(way, n, power, trials, seed) for seed in range(seeds)]
        for power in powers
        for way in WAYS
    }
    curves = {key: np.array([one["errors"] for one in each]) for key, each in found.items()}
    table = []
    for (power, way), each in found.items():
        errors = curves[power, way]
        mean = {name: float(np.mean([one[name] for one in each])) for name in each[0] if name != "errors"}
        table.append({
            "power": power, "way": way, "squared error of k": errors[:, -1].mean(), "worst seed": errors[:, -1].max(),
            "halfway": errors[:, trials // 2].mean(), "sum of variances of k": mean["variance"],
            "of a": None if way.endswith("ignored") else mean["history"], "of m": mean["constant"],
            "log|C|": mean["entropy"],
        })  # fmt: skip
    ends = {(row["power"], row["way"]): row for row in table}

    def pairs(name: str, other: str = WAYS[1]) -> list[tuple[float, float]]:
        return [(ends[power, WAYS[0]][name], ends[power, other][name]) for power in powers]

    def said(name: str) -> str:
        return ", ".join(f"{a:.3g} against {b:.3g} at e = {p:g}" for (a, b), p in zip(pairs(name), powers, strict=True))

    kept = max(one["fixed off"] for each in found.values() for one in each)
    beyond = max(one["beyond the power"] for each in found.values() for one in each)
    prior = float(np.sum(HISTORY**2))
    ignored = [other / own for own, other in pairs("squared error of k", WAYS[2])]
    check = Claim.checked
    claims = [
        check(PLACE, "past responses and a constant are held fixed while the stimulus is searched", "x = (x_k, x_a)",
              f"fixed components off by {kept:.1e}, stimulus beyond its power by {max(beyond, 0.0):.1e}",
              kept == 0 and beyond <= 1e-9, "They are not."),
        check("equation (5)", "infomax tells more of stimulus filter, history and constant together than independent "
              "stimuli", "more informative",
              f"log|C| {said('log|C|')}, {seeds} seeds; squared error of k alone {said('squared error of k')}",
              all(a < b for a, b in pairs("log|C|")), "log|C| is not smaller."),
        check("abstract", "the history's coefficients are estimated along with the stimulus filter", "handled",
              f"squared error of a, {prior:.2f} before: {said('of a')} with independent stimuli",
              max(a for a, _ in pairs("of a")) < 0.2 * prior, "More than a fifth is left."),
        check("section on the optimal example", "terms of the history have to be in the model", "may wish to include",
              f"squared error of k is {min(ignored):.2f} to {max(ignored):.2f} times as large without them",
              min(ignored) > 1.1, "Leaving them out costs less than a tenth here."),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        for axes, power in zip(figure.subplots(1, len(powers), squeeze=False)[0], powers, strict=True):
            for way in WAYS:
                axes.loglog(np.arange(1, trials + 1), curves[power, way].mean(axis=0), label=way)
            axes.set(xlabel="trials", ylabel="squared error of k", title=f"e = {power:g}")
        axes.legend(fontsize=7)

    return Outcome({"At the end": table}, claims, draw)

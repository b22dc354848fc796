"""A simulated neuron asked trial after trial: by the most informative query, or at random on the sphere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np

import mri_design as md
from mri_design.evaluation.tables import Row

WAYS = ("infomax", "independent")


def sine_wave(n: int) -> np.ndarray:
    """The true unknowns: one period, of unit length."""
    theta = np.sin(2 * np.pi * np.arange(n) / n)
    return theta / np.linalg.norm(theta)


def on_sphere(n: int, power: float, rng: np.random.Generator) -> np.ndarray:
    """One uniform query."""
    x = rng.standard_normal(n)
    return power / np.linalg.norm(x) * x


def checkpoints(trials: int) -> list[int]:
    """Numbers of trials to look at, a seventh more each time."""
    return sorted({round(t) for t in np.geomspace(10, trials, max(2, int(7.5 * np.log(trials / 10))))})


def run_rows(power: float, way: str, seed: int, trials: int, n: int) -> list[Row]:
    """One run: squared error, and variances along the true unknowns and across, times the number of trials."""
    theta, response = sine_wave(n), md.PoissonResponse()
    rng, loop, search = np.random.default_rng([seed, WAYS.index(way)]), md.LaplaceFilter(), md.InfomaxQuery(power)
    state, rows = md.FilterState(np.zeros(n), np.eye(n)), []
    wanted = set(checkpoints(trials))
    for trial in range(1, trials + 1):
        x = search.propose(state).x if way == "infomax" else on_sphere(n, power, rng)
        state = loop.update(state, x, response.site(float(response.draw(theta @ x, rng))))
        if trial in wanted:
            along = float(theta @ state.covariance @ theta)
            across = float(np.exp((np.linalg.slogdet(state.covariance)[1] - np.log(along)) / (n - 1)))
            rows.append(
                {
                    "power": power,
                    "way": way,
                    "seed": seed,
                    "of trials": trials,
                    "trials": trial,
                    "squared error": float(np.sum((state.mean - theta) ** 2)),
                    "trials x variance along": trial * along,
                    "trials x variance across": trial * across,
                }
            )
    return rows


def curve(rows: Iterable[Row], power: float, way: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Trials, and values (seed, trials), where every run of that way has a row."""
    chosen = [row for row in rows if row["power"] == power and row["way"] == way]
    seeds = sorted({int(str(row["seed"])) for row in chosen})
    found = {(row["seed"], row["trials"]): float(str(row[column])) for row in chosen}
    trials = sorted({int(str(row["trials"])) for row in chosen if all((s, row["trials"]) in found for s in seeds)})
    return np.array(trials), np.array([[found[s, t] for t in trials] for s in seeds])


def trials_needed(trials: np.ndarray, errors: np.ndarray, goal: float) -> float:
    """Where the mean curve falls to the goal for good, log-log between checkpoints; infinite if it never does."""
    mean = np.log(errors.mean(axis=0))
    above = np.flatnonzero(mean > np.log(goal))
    if not len(above):
        return float(trials[0])
    last = above[-1]
    if last + 1 == len(trials):
        return float("inf")
    share = (mean[last] - np.log(goal)) / (mean[last] - mean[last + 1])
    return float(np.exp((1 - share) * np.log(trials[last]) + share * np.log(trials[last + 1])))


def time_rows(sizes: Sequence[int], repeats: int, warm: int) -> list[Row]:
    """CPU milliseconds of an update and a query after some trials, medians: Krylov directions, and all of them."""
    rows = []
    for n in sizes:
        theta, response, rng, loop = sine_wave(n), md.PoissonResponse(), np.random.default_rng(0), md.LaplaceFilter()
        state = md.FilterState(np.zeros(n), np.eye(n))
        searches = {"Krylov": md.InfomaxQuery(4.0), "all directions": md.InfomaxQuery(4.0, krylov=0)}
        spent: dict[str, list[float]] = {"update": [], **{name: [] for name in searches}}
        losses = []
        for trial in range(warm + repeats):
            scores: dict[str, float] = {}
            asked: list[np.ndarray] = []
            for name, search in searches.items():
                if name == "Krylov" or trial >= warm:
                    began = time.process_time()
                    query = search.propose(state)
                    spent[name].append(time.process_time() - began)
                    scores[name] = query.score
                    asked.append(query.x)
            x = asked[0]
            site = response.site(float(response.draw(theta @ x, rng)))
            began = time.process_time()
            state = loop.update(state, x, site)
            spent["update"].append(time.process_time() - began)
            if trial >= warm:
                losses.append(1 - scores["Krylov"] / scores["all directions"])
        middle = {name: 1e3 * float(np.median(times[-repeats:])) for name, times in spent.items()}
        rows.append(
            {
                "n": n,
                "update ms": middle["update"],
                "query ms": middle["Krylov"],
                "update + query ms": middle["update"] + middle["Krylov"],
                "query ms, all directions": middle["all directions"],
                "largest loss of score": max(losses),
            }
        )
    return rows


def exponent(rows: Sequence[Row], column: str, least: int = 0) -> float:
    """Slope of log time against log n."""
    chosen = [row for row in rows if int(str(row["n"])) >= least]
    n, t = (np.log([float(str(row[name])) for row in chosen]) for name in ("n", column))
    return float(np.polyfit(n, t, 1)[0])

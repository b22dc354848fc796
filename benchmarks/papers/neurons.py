"""Simulated neurons, asked trial after trial."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mri_design.glm import FilterState, InfomaxQuery, LaplaceFilter
from mri_design.sites import Site
from mri_design.sites.likelihoods import ResponseFamily

Values = NDArray[np.float64]


def sine_wave(n: int) -> Values:
    """One period of a sine of unit length, as in figure 1 of Lewi, Butera and Paninski 2007."""
    theta = np.sin(2 * np.pi * np.arange(n) / n)
    return theta / np.linalg.norm(theta)


def sphere(n: int, power: float, rng: np.random.Generator) -> Values:
    """A query that is uniform on the sphere."""
    x = rng.standard_normal(n)
    return power / np.linalg.norm(x) * x


Ask = Callable[[FilterState, np.random.Generator], Values]


def asked(
    theta: Values, ask: Ask, trials: int, seed: int, response: ResponseFamily
) -> tuple[list[FilterState], Values, list[Site]]:
    """States before the first trial and after each, queries and sites of a run from the prior N(0, I)."""
    rng, loop = np.random.default_rng(seed), LaplaceFilter()
    states, queries, sites = [FilterState(np.zeros(len(theta)), np.eye(len(theta)))], [], []
    for _ in range(trials):
        queries.append(ask(states[-1], rng))
        sites.append(response.site(float(response.draw(theta @ queries[-1], rng))))
        states.append(loop.update(states[-1], queries[-1], sites[-1]))
    return states, np.array(queries), sites


def at_random(power: float) -> Ask:
    """Independent queries."""
    return lambda state, rng: sphere(len(state.mean), power, rng)


def by_infomax(search: InfomaxQuery) -> Ask:
    """The best ones."""
    return lambda state, rng: search.propose(state).x


def trials_to(errors: Values, goal: float) -> float:
    """After how many trials the mean curve (seeds, trials) stays below a goal; infinite if it never does."""
    above = np.flatnonzero(errors.mean(axis=0) > goal)
    if not len(above):
        return 1.0
    return float(above[-1] + 2) if above[-1] + 1 < errors.shape[1] else float("inf")

"""Asymptotic information per trial about the unknowns, along them and across.

After t trials the posterior covariance approaches (t E J)^-1, J = D(x^T theta) x x^T the Fisher information of a trial.
For queries whose distribution looks alike in all directions across theta, E J has two eigenvalues,

    phi = E[D x_1^2] along theta,    (e^2 omega - phi) / (n - 1) across it,   omega = E[D],

with x_1 the query's part along theta and the rest of the power across it. Lewi, Butera & Paninski 2007, equations (27)
to (29), where the rest is a sphere of radius sqrt(e^2 - x_1^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, positive_number, require_choice, require_instance
from mri_design.potentials.likelihoods import ResponseFamily

Values = NDArray[np.float64]
POINTS = 2001
NODES = 4000


@dataclass(frozen=True)
class AsymptoticInformation:
    """E J of one trial.

    Parameters
    ----------
    along, across : float
        Its eigenvalue along theta, and the n - 1 equal ones across.
    support, weights : float arrays
        x_1 of the queries and how often each is made; of the optimal design at most two, for the sphere the quadrature.
    excess : float
        How far the design is from optimal: the largest sensitivity over n, less 1, by the equivalence theorem (Kiefer &
        Wolfowitz 1960); log|E J| cannot be raised by more than n times it. NaN for the sphere.
    """

    along: float
    across: float
    support: Values
    weights: Values
    excess: float = float("nan")

    def variances(self, trials: int) -> tuple[float, float]:
        """Predicted posterior variances along theta and across it after that many trials."""
        return 1 / (trials * self.along), 1 / (trials * self.across)


def asymptotic_information(
    response: ResponseFamily,
    theta: ArrayLike,
    power: float,
    inputs: Literal["optimal", "sphere"] = "optimal",
) -> AsymptoticInformation:
    """Expected information per query, in the long run, of a distribution of queries.

    Parameters
    ----------
    response : ResponseFamily
        What a trial answers.
    theta : float array, shape (n,)
        The true unknowns, n >= 2, not zero.
    power : float
        e > 0, the norm of every query.
    inputs : {"optimal", "sphere"}
        The design of the largest log|E J| on |x| = e, at most two values of x_1; or independent queries, uniform on
        the sphere.

    Raises
    ------
    InputError
        For a power that is not positive, unknowns that are too few or zero, an unknown name.
    """
    require_instance(ResponseFamily, wanted="a ResponseFamily, as PoissonResponse()", response=response)
    wanted = "two or more finite numbers, not all zero"
    unknowns = number_array("theta", theta, wanted=wanted, shape=(None,), kind="real")
    positive_number("power", power)
    if unknowns.size < 2 or not unknowns.any():
        raise InputError("theta", f"shape {unknowns.shape}", wanted)
    require_choice(("optimal", "sphere"), inputs=inputs)
    trial = _Trial(response, float(np.linalg.norm(unknowns)), float(power), unknowns.size)
    return trial.sphere() if inputs == "sphere" else trial.optimal()


@dataclass(frozen=True)
class _Trial:
    response: ResponseFamily
    length: float
    power: float
    n: int

    def information(self, x: Values, weights: Values) -> tuple[float, float]:
        """phi and the eigenvalue across."""
        D = self.response.fisher(x * self.length)
        phi = float(weights @ (D * x**2))
        return phi, float(weights @ (D * (self.power**2 - x**2))) / (self.n - 1)

    def value(self, x: Values, weights: Values) -> float:
        """log|E J|."""
        along, across = self.information(x, weights)
        if not (along > 0 and across > 0):
            return -np.inf
        return float(np.log(along) + (self.n - 1) * np.log(across))

    def sensitivity(self, x: Values, along: float, across: float) -> Values:
        """tr((E J)^-1 J(x)): n or less everywhere for an optimal design."""
        D = self.response.fisher(x * self.length)
        return np.asarray(D * (x**2 / along + (self.power**2 - x**2) / across))

    def sphere(self) -> AsymptoticInformation:
        """Uniform queries: x_1 = e cos(angle) with density sin(angle)^(n - 2), by the midpoint rule."""
        angles = (np.arange(NODES) + 0.5) * np.pi / NODES
        logs = (self.n - 2) * np.log(np.sin(angles))
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        x = self.power * np.cos(angles)
        return AsymptoticInformation(*self.information(x, weights), x, weights)

    def optimal(self) -> AsymptoticInformation:
        """The best one or two points: exchange on a grid, then a polish off the grid."""
        grid = self.power * np.linspace(-1, 1, POINTS)
        x = np.array([grid[int(np.argmax([self.value(grid[k : k + 1], np.ones(1)) for k in range(POINTS)]))]])
        weights = np.ones(1)
        for _ in range(50):
            along, across = self.information(x, weights)
            spread = self.sensitivity(grid, along, across)
            worst = int(np.argmax(spread))
            if spread[worst] <= self.n * (1 + 1e-9):
                break
            x, weights = self._with_point(x, float(grid[worst]))
        x, weights = self._polished(x, weights)
        along, across = self.information(x, weights)
        fine = np.concatenate([grid, x])
        excess = float(self.sensitivity(fine, along, across).max()) / self.n - 1
        return AsymptoticInformation(along, across, x, weights, excess)

    def _with_point(self, x: Values, new: float) -> tuple[Values, Values]:
        """The best pair among the present points and a new one (two projections of a design matter, so two suffice)."""
        pairs = [np.array([old, new]) for old in x]
        designs = [(pair, self._share(pair)) for pair in pairs]
        return max(
            ((pair, np.array([1 - share, share])) for pair, share in designs), key=lambda design: self.value(*design)
        )

    def _share(self, pair: Values) -> float:
        """The second point's share: log|E J| is concave in it."""
        best = scipy.optimize.minimize_scalar(
            lambda share: -self.value(pair, np.array([1 - share, share])),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        return float(best.x)

    def _polished(self, x: Values, weights: Values) -> tuple[Values, Values]:
        """Points moved off the grid; one point where it is as good as two."""
        start = np.array([*np.broadcast_to(x, 2), weights[-1] if len(x) == 2 else 0.5])

        def loss(p: Values) -> float:
            share = float(np.clip(p[2], 0, 1))
            return -self.value(np.clip(p[:2], -self.power, self.power), np.array([1 - share, share]))

        polished = scipy.optimize.minimize(
            loss, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
        )
        share = float(np.clip(polished.x[2], 0, 1))
        best = np.clip(polished.x[:2], -self.power, self.power), np.array([1 - share, share])
        heavy = float(best[0][int(np.argmax(best[1]))])
        search = scipy.optimize.minimize_scalar(
            lambda p: -self.value(np.array([p]), np.ones(1)),
            bounds=(max(heavy - 0.01 * self.power, -self.power), min(heavy + 0.01 * self.power, self.power)),
            method="bounded",
            options={"xatol": 1e-12},
        )
        alone = np.array([float(search.x)]), np.ones(1)
        return alone if self.value(*alone) >= self.value(*best) - 1e-9 else best

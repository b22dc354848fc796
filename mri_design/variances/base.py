"""The interface of variance estimators, the means over draws that they share, and information from draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_working
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator


class VarianceEstimator(Protocol):
    """Frozen settings that turn a precision into marginal variances of the coefficients of some operators."""

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        """z for each operator of ``analyses``; ``like`` is an image whose dtype the computation keeps.

        ``previous`` may be what the estimator returned for a nearby precision from an equal ``rng``: a place to start.
        """
        ...


def require_estimator(**settings: Any) -> None:
    """Refuse anything but a variance estimator, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(takes=5, wanted="a variance estimator, as Exact() or ControlVariate(samples=8)", **settings)


@dataclass
class RunningMean:
    """Mean over draws that come some at a time.

    Parameters
    ----------
    count : int
        Draws so far.
    mean, scatter : arrays
        Their mean, and the sum of their squared distances from it.
    """

    count: int = 0
    mean: Array | float = 0.0
    scatter: Array | float = 0.0

    def add(self, mean: Array, count: int, scatter: Array | float = 0.0) -> None:
        """``count`` further draws, by their own mean and scatter (Chan, Golub & LeVeque 1983)."""
        if self.count == 0:
            self.count, self.mean, self.scatter = count, mean, scatter
            return
        total, change = self.count + count, mean - self.mean
        self.mean = self.mean + change * (count / total)
        self.scatter = self.scatter + scatter + np.square(change) * (self.count * count / total)
        self.count = total

    @property
    def error(self) -> Array:
        """Standard error of the mean."""
        return np.asarray(np.sqrt(self.scatter / (self.count - 1)) / float(np.sqrt(self.count)))


def mean_over_draws(parts: Iterable[Array]) -> RunningMean:
    """Mean over draws along the first axis of arrays that come one after the other."""
    running = RunningMean()
    for part in parts:
        mean = part.mean(axis=0)
        running.add(mean, len(part), np.square(part - mean).sum(axis=0))
    return running


def starting_draws(previous: Variances | None, rhs: Array) -> Array | None:
    """Draws to start the solves for ``rhs`` from; None where there are none, or not as many."""
    made = None if previous is None else previous.samples
    return made.astype(rhs.dtype, copy=False) if made is not None and made.shape == rhs.shape else None


def not_positive_definite() -> InputError:
    """The error to raise where A has no inverse."""
    return InputError(
        "posterior precision",
        "a matrix that is not positive definite",
        "X and B without a common null space, and site precisions that rounding leaves something of beside X",
        "Add a block of sites on the pixels; or, where the noise variance is tiny, give a larger one.",
    )


def gain_from_values(values: Array) -> NDArray[np.float64]:
    """log det(I + C), C the covariance of a few values estimated from draws: twice the information in nats.

    Parameters
    ----------
    values : real or complex array, shape (..., value, draw)
        Deviations from the mean in units of sigma. Where they are complex, i times a draw counts as a draw, too, and
        real and imaginary parts as two values.

    Returns
    -------
    float array, shape (...)
        Of the values of every group together; too small where there are fewer draws than values.

    Notes
    -----
    TR-175, equation (12). det(I + W W^H) = det(I + W^H W), of which the smaller one is computed.
    """
    n_values, count = values.shape[-2:]
    root = values.mT if n_values > count else values
    times = 2 if np.iscomplexobj(values) else 1
    overlaps = root @ np.conj(root.mT) / (times * count) + np.eye(root.shape[-2], dtype=root.dtype)
    return np.asarray(times * np.linalg.slogdet(overlaps)[1], dtype=np.float64)

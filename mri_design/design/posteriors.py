"""The posteriors of the slices of a design, wherever they are: what is asked of each is computed where it is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array

Found = TypeVar("Found")


class KeptPosteriors(Sequence[GaussianPosterior]):
    """Posteriors that are kept in other processes.

    Their means are here. What else is asked of them is computed there (`of_each`), and a posterior that is looked up by
    its number is fetched as a whole.
    """

    @property
    @abstractmethod
    def means(self) -> Sequence[Array]:
        """The mean of every slice, (ky, kx)."""

    @abstractmethod
    def each(self, function: Callable[..., Found], arguments: Sequence[tuple[Any, ...]]) -> list[Found]:
        """``function(posterior, *arguments)`` of every slice, each with its own arguments."""


@dataclass(frozen=True)
class PerSlice:
    """An argument of `of_each` that differs from slice to slice: one value for each, in the order of the slices."""

    values: Sequence[Any]


def of_each(posteriors: Sequence[GaussianPosterior], function: Callable[..., Found], *arguments: Any) -> list[Found]:
    """``function(posterior, *arguments)`` of every slice, computed where the posterior is.

    Parameters
    ----------
    posteriors : sequence of GaussianPosterior
        As `DesignView.posteriors`.
    function : callable
        Takes one posterior and the arguments. Where posteriors are in other processes it must survive pickling, as a
        function of a module does.
    *arguments
        The same for every slice, but for those that are `PerSlice`. They are not to be used again where they change
        when they are used: generators (see `generators`).

    Returns
    -------
    list
        In the order of the slices.
    """
    own = arguments_of(arguments, len(posteriors))
    if isinstance(posteriors, KeptPosteriors):
        return posteriors.each(function, own)
    return [function(posterior, *mine) for posterior, mine in zip(posteriors, own, strict=True)]


def arguments_of(arguments: Sequence[Any], count: int) -> list[tuple[Any, ...]]:
    """The arguments of each of ``count`` slices."""
    return [tuple(a.values[i] if isinstance(a, PerSlice) else a for a in arguments) for i in range(count)]


def generators(rng: np.random.Generator, count: int) -> PerSlice:
    """A generator for every slice: what is drawn for one does not depend on the others, or on where they are kept.

    A single slice, which is always in this process, draws from ``rng`` itself.
    """
    return PerSlice(rng.spawn(count) if count > 1 else [rng] * count)


def means_of(posteriors: Sequence[GaussianPosterior]) -> list[Array]:
    """The mean of every slice, (ky, kx)."""
    if isinstance(posteriors, KeptPosteriors):
        return list(posteriors.means)
    return [posterior.mean for posterior in posteriors]


def fewest_coils(posteriors: Sequence[GaussianPosterior]) -> int:
    """How many coils measured, of several slices the fewest."""
    return min(of_each(posteriors, _coils))


def _coils(posterior: GaussianPosterior) -> int:
    return len(posterior.model.data)


def image_energy(posteriors: Sequence[GaussianPosterior]) -> float:
    """Energy of the means, all slices together."""
    return float(sum(np.sum(np.abs(mean) ** 2, dtype=np.float64) for mean in means_of(posteriors)))

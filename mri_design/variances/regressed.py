"""z where the control's first moment alone is known: every coefficient takes the share of it that explains most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.kernels.suitable import laid_out

AROUND = 5
"""Pixels a side over which shares are averaged."""
GROUPS = 2
"""Draws by turns: those of one group take the shares that the others ask for."""


@dataclass(frozen=True)
class Comparison:
    """Of the terms of some draws, each an array of the operator's outputs.

    Parameters
    ----------
    mean, scatter, typical : arrays
        Mean of the terms, sum of their squared distances from it, mean of their moduli.
    plain : array
        Mean of |s|^2.
    """

    mean: Array
    scatter: Array
    typical: Array
    plain: Array


def best_share(own: Array, control: Array, both: Array) -> Array:
    """w with which |s|^2 + w (E t s* - Re t s*) scatters least for Gaussians.

    It is 2 E|s|^2 E ts* / (E|s|^2 E|t|^2 + (E ts*)^2).

    Parameters
    ----------
    own, control, both : arrays of one shape
        E|s|^2, E|t|^2 and E Re t s*, all up to one factor.
    """
    bound = own * control + both**2
    return np.asarray(2 * own * both / np.where(bound > 0, bound, 1))


@dataclass(frozen=True)
class Shares:
    """w with which the mean over draws of |s|^2 + w (E t s* - Re t s*) scatters little, from draws that it is not for.

    It is `best_share` of means over a few pixels around each, over the coefficients of a pixel, and over every other
    draw: for draws of even numbers over those of odd numbers, and the other way round. So a draw has no part in its own
    share, and the mean is unbiased whatever the shares are.

    Parameters
    ----------
    analysis : LinearOperator
        The coefficients: complex ones, or real ones in pairs along the last axis (`PhasedParts`), with a share each.
    values : array, shape (2, size, parts)
        w of the draws of even and of odd numbers; one part for complex coefficients.
    known : array, shape (over, size, parts)
        E Re t s* of every coefficient; zero where the caller adds it.
    """

    analysis: LinearOperator
    values: Array
    known: Array

    @classmethod
    def taken(
        cls, analysis: LinearOperator, first: Array, pairs: Iterable[tuple[NDArray[np.int64], Array, Array]]
    ) -> Shares:
        """From all draws and their controls, some at a time: numbers, s and t.

        ``first`` is diag(B P B^H) per real component.
        """
        from mri_design.operators.kernels.shares import add_powers, box_means

        form, totals, like = _Form.of(analysis), None, None
        for numbers, s, t in pairs:
            if totals is None:
                like = s
                totals = np.zeros((GROUPS, 3, form.size, form.parts), dtype=s.real.dtype)
            add_powers(form.pairs(s), form.pairs(t), numbers % GROUPS, totals)
        assert totals is not None and like is not None
        side = min(AROUND, *form.grid)
        near = box_means(totals.reshape(GROUPS, 3, *form.grid, form.parts), side - (side + 1) % 2)
        own, control, both = np.moveaxis(near, 1, 0)
        of_others = np.ascontiguousarray(best_share(own, control, both)[::-1]).reshape(GROUPS, form.size, form.parts)
        return cls(analysis, of_others, form.known(first, like))

    @classmethod
    def whole(cls, analysis: LinearOperator, like: Array) -> Shares:
        """All of the control, and nothing added that is known of it."""
        form = _Form.of(analysis)
        values = np.ones((GROUPS, form.size, form.parts), dtype=like.real.dtype)
        return cls(analysis, values, np.zeros((form.over, form.size, form.parts), dtype=like.real.dtype))

    def compared(self, numbers: NDArray[np.int64], s: Array, t: Array) -> Comparison:
        """The terms of some draws, by their numbers."""
        from mri_design.operators.kernels.shares import compared

        form = _Form.of(self.analysis)
        made = compared(form.pairs(s), form.pairs(t), numbers % GROUPS, self.values, self.known)
        return Comparison(*(array.reshape(self.analysis.out_shape) for array in made))

    def terms(self, numbers: NDArray[np.int64], t: Array) -> Callable[[Array], Array]:
        """s -> the terms, draw by draw, whose controls are t."""
        form = _Form.of(self.analysis)
        share = self.values[numbers % GROUPS][:, None]  # for all coefficients of a pixel
        explained, added = share[..., None] * form.paired(t), share * self.known

        def of(s: Array) -> Array:
            pairs = form.paired(s)
            left = ((pairs - explained) * pairs).sum(axis=-1)
            return np.asarray((left + added).reshape(len(s), *self.analysis.out_shape))

        return of


@dataclass(frozen=True)
class _Form:
    """How coefficients are pairs of numbers: ``over`` coefficients at each of ``size`` pixels of a grid."""

    over: int
    grid: tuple[int, int]
    parts: int

    @classmethod
    def of(cls, analysis: LinearOperator) -> _Form:
        shape = analysis.out_shape if analysis.out_complex else analysis.out_shape[:-1]
        return cls(int(np.prod(shape[:-2])), (shape[-2], shape[-1]), 1 if analysis.out_complex else 2)

    @property
    def size(self) -> int:
        return self.grid[0] * self.grid[1]

    def pairs(self, s: Array) -> Array:
        """Coefficients of a batch -> (count, over, size, 2)."""
        return np.ascontiguousarray(s).view(s.real.dtype).reshape(len(s), self.over, self.size, 2)

    def paired(self, s: Array) -> Array:
        """Coefficients of a batch -> (count, over, size, parts, numbers of a share)."""
        return self.pairs(s).reshape(len(s), self.over, self.size, self.parts, -1)

    def known(self, first: Array, like: Array) -> Array:
        """E Re t s* from what it is per real component."""
        components = 2 if self.parts == 1 else 1
        return laid_out(components * first, first.shape, like).reshape(self.over, self.size, self.parts)

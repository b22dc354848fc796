"""Any site with an odd part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_instance
from mri_design.potentials.base import Potential, Values
from mri_design.potentials.expectation import Expectation

__all__ = ["Tilted"]


class Tilted(Potential):
    """t(s) = t_0(s) exp(b s / sigma): the odd part of TR-175 section 2.1 (their beta is b sigma).

    Parameters
    ----------
    potential : Potential
        t_0; an odd part of its own is added to.
    shift : float or array
        b, dimensionless, broadcast against the coefficients.

    Raises
    ------
    InputError
        For a slope that is not finite, or a potential without a representation of its own (`two_parameter`).
    """

    def __init__(self, potential: Potential, shift: ArrayLike) -> None:
        require_instance(Potential, wanted="a Potential", potential=potential)
        if potential.two_parameter or potential.on_the_line:
            raise InputError(field="tilted site", got=type(potential).__name__, wanted="a site with a fixed position")
        given = number_array("slope of a tilted site", shift, wanted="finite real numbers")
        if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
            raise InputError(field="slope of a tilted site", got=str(shift), wanted="finite real numbers")
        slope = given.astype(float)
        self.potential = potential
        self.shift = slope + np.asarray(potential.shift)
        self.log_concave = potential.log_concave
        self.super_gaussian = potential.super_gaussian

    def g(self, x: Values) -> Values:
        return self.potential.g(x)

    def dg(self, x: Values) -> Values:
        return self.potential.dg(x)

    def d2g(self, x: Values) -> Values:
        return self.potential.d2g(x)

    def dlog_t(self, s: Values) -> Values:
        return self.potential.dlog_t(s) + (np.asarray(self.shift) - np.asarray(self.potential.shift))

    def d2log_t(self, s: Values) -> Values:
        return self.potential.d2log_t(s)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """That of t_0, with its own closed form, and b mean."""
        self._refuse_moduli(dimensions)
        own = np.asarray(self.shift) - np.asarray(self.potential.shift)
        even = self.potential.expected_log_t(mean, variance, dimensions)
        return Expectation(even.value + own * mean, even.d_mean + own, even.d_variance)

    def at(self, place: tuple[int, ...], shape: tuple[int, ...]) -> Tilted:
        own = np.asarray(self.shift) - np.asarray(self.potential.shift)
        return Tilted(self.potential.at(place, shape), np.broadcast_to(own, shape)[place])

    @property
    def start_variance(self) -> Values | float:
        even = np.asarray(self.potential.start_variance)
        return np.broadcast_to(even, np.broadcast_shapes(even.shape, np.shape(self.shift)))

    def rescaled(self, factor: ArrayLike) -> Tilted:
        own = self.shift - np.asarray(self.potential.shift)
        return Tilted(self.potential.rescaled(factor), own * np.asarray(factor))

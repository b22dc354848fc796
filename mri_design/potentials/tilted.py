"""Any site with an odd part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_instance
from mri_design.potentials.base import Site, SuperGaussian, Values
from mri_design.potentials.expectation import Expectation
from mri_design.potentials.requirements import represented


class Tilted(SuperGaussian):
    """t(s) = t_0(s) exp(b s / sigma): the odd part of TR-175 section 2.1 (their beta is b sigma).

    Parameters
    ----------
    potential : SuperGaussian
        t_0; an odd part of its own is added to.
    shift : float or array
        b, dimensionless, broadcast against the coefficients.

    Raises
    ------
    InputError
        For a slope that is not finite, or a site without a representation g.
    """

    def __init__(self, potential: SuperGaussian, shift: ArrayLike) -> None:
        require_instance(Site, wanted="a site", potential=potential)
        potential = represented(potential, "tilted site")
        given = number_array("slope of a tilted site", shift, wanted="finite real numbers")
        if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
            raise InputError("slope of a tilted site", str(shift), "finite real numbers")
        slope = given.astype(float)
        self.potential = potential
        self.shift = slope + np.asarray(potential.shift)
        kept = potential.offers - {"probability"}
        self.offers = kept - {"moduli"} if np.any(self.shift) else kept

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
        return Tilted(represented(self.potential.at(place, shape)), np.broadcast_to(own, shape)[place])

    @property
    def even(self) -> SuperGaussian:
        return self.potential.even

    @property
    def start_variance(self) -> Values | float:
        even = np.asarray(self.potential.start_variance)
        return np.broadcast_to(even, np.broadcast_shapes(even.shape, np.shape(self.shift)))

    def rescaled(self, factor: ArrayLike) -> Tilted:
        own = self.shift - np.asarray(self.potential.shift)
        return Tilted(represented(self.potential.rescaled(factor)), own * np.asarray(factor))

"""The hinge site: the loss of a support vector machine."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.potentials.base import Potential, Values, positive_scale

__all__ = ["Hinge"]


class Hinge(Potential):
    """t(s) = exp(-C max(0, 1 - c s / sigma)), label c = +-1: log-concave, with a kink and no curvature.

    Parameters
    ----------
    labels : array
        c, every entry -1 or +1; broadcast against the coefficients.
    scale : float or array
        C, the price of a violated margin.

    Raises
    ------
    InputError
        For other labels, a scale that is not positive, and whenever a method asks for the representation
        log t = g(s^2) + b s, which the site has not: of the engines only `LaplacePropagation` takes it.

    Notes
    -----
    Smola, Vishwanathan & Eskin 2003, section 4: a first-order expansion, h = C c alpha with P = 0.
    """

    log_concave = True
    super_gaussian = False
    on_the_line = True

    def __init__(self, labels: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self.labels = np.asarray(labels, dtype=float)
        if not (np.abs(self.labels) == 1).all():
            raise InputError(
                field="Hinge labels", got=str(labels), wanted="-1 or +1", cure="Map labels 0 and 1 to -1 and +1."
            )
        self.scale = positive_scale("Hinge scale", scale)

    def g(self, x: Values) -> Values:
        raise self._no_representation()

    def dg(self, x: Values) -> Values:
        raise self._no_representation()

    def d2g(self, x: Values) -> Values:
        raise self._no_representation()

    @staticmethod
    def _no_representation() -> InputError:
        return InputError(
            field="Hinge",
            got="a site with a kink away from zero",
            wanted="an engine of first-order sites",
            cure="Use LaplacePropagation, or Logistic sites.",
        )

    def log_t(self, s: Values) -> Values:
        return np.asarray(-self.scale * np.maximum(0.0, 1 - self.labels * s))

    def dlog_t(self, s: Values) -> Values:
        """The slope in s; at the kink that of the falling side."""
        return np.where(self.labels * s <= 1, self.scale * self.labels, 0.0)

    def d2log_t(self, s: Values) -> Values:
        """Zero, also at the kink."""
        return np.zeros(np.broadcast_shapes(np.shape(s), self.labels.shape))

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / self.scale**2, np.broadcast_shapes(self.labels.shape, self.scale.shape))

    def at(self, place: tuple[int, ...], shape: tuple[int, ...]) -> Hinge:
        one = copy(self)
        one.labels = np.asarray(np.broadcast_to(self.labels, shape)[place])
        one.scale = np.asarray(np.broadcast_to(self.scale, shape)[place])
        return one

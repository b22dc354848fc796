"""The hinge site: the loss of a support vector machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mri_design.potentials.base import Site, Values, label_signs, positive_scale


class Hinge(Site):
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
        For other labels, or a scale that is not positive.

    Notes
    -----
    Smola, Vishwanathan & Eskin 2003, section 4: `LaplacePropagation` expands it to first order, h = C c alpha with
    P = 0. `VariationalGaussian` takes it as well, since E log t has no kink; `DoubleLoop` and `LaplaceFilter`, which
    want a super-Gaussian bound or a curvature, do not.
    """

    offers = (Site.offers - {"conjugate"}) | {"log_concave", "expansion"}
    role = "likelihood"
    per_site = ("labels", "scale")
    breaks = (-1.0, 1.0)  # the margins of both labels

    def __init__(self, labels: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self.labels = label_signs("Hinge labels", labels)
        self.scale = positive_scale("Hinge scale", scale)

    def log_t(self, s: Values) -> Values:
        return np.asarray(-self.scale * np.maximum(0.0, 1 - self.labels * s))

    def dlog_t(self, s: Values) -> Values:
        """The slope in s; at the kink that of the falling side."""
        return np.where(self.labels * s <= 1, self.scale * self.labels, 0.0)

    def d2log_t(self, s: Values) -> Values:
        """Zero, also at the kink."""
        return np.zeros(np.broadcast_shapes(np.shape(s), self.labels.shape))

    @property
    def margins(self) -> tuple[Values, Values]:
        return self.labels, self.scale

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / self.scale**2, np.broadcast_shapes(self.labels.shape, self.scale.shape))

    @property
    def observed(self) -> tuple[Values, ...]:
        return (self.labels,)

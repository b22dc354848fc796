"""Sites that are not super-Gaussian: one that claims to be, and one that does not."""

from __future__ import annotations

import numpy as np

from mri_design.sites import Laplace


class Quartic(Laplace):
    """Claims by default to be super-Gaussian, and is not."""

    def g(self, x):
        return -(x**2)

    def dg(self, x):
        return -2 * x

    def d2g(self, x):
        return -2 * np.ones_like(x)


class Honest(Quartic):
    """Does not claim it."""

    offers = Laplace.offers - {"bound"}

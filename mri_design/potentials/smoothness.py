"""Has a site a second derivative where it is looked at? A probe of g' next to zero."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.potentials.base import Potential
from mri_design.potentials.exponential_power import ExponentialPower
from mri_design.potentials.laplace import Laplace

__all__ = ["require_smooth"]

NEAR, NEARER = 1e-6, 1e-10
"""Two values of x, in units of the site's own, between which a bounded curvature hardly changes."""


def require_smooth(field: str, site: Potential) -> None:
    """Refuse a site whose curvature at zero, -2 g'(0), is not finite: Laplace, and powers below two.

    Raises
    ------
    InputError
        Naming ``field``; also for mixtures and tilted sites that are made of such a site.
    """
    for part in (*getattr(site, "sites", ()), *(getattr(site, name) for name in ("potential",) if hasattr(site, name))):
        require_smooth(field, part)
    kinked = isinstance(site, Laplace) or (isinstance(site, ExponentialPower) and site.power < 2)
    if not (kinked or site.two_parameter or site.on_the_line):
        unit = np.asarray(site.start_variance, dtype=float)
        near, nearer = site.dg(NEAR * unit), site.dg(NEARER * unit)
        kinked = not (np.isfinite(nearer).all() and bool(np.all(np.abs(nearer) <= 1.1 * np.abs(near))))
    if kinked:
        raise InputError(
            field=field,
            got=f"{type(site).__name__}, a site with a kink at zero",
            wanted="sites with a second derivative",
            cure="Use Sech2 (Laplace tails, smooth at zero), or DoubleLoop, whose bound is smooth.",
        )

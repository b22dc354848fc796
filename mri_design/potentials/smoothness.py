"""Has log t a second derivative where it is looked at? A probe of its slope next to zero, or to the site's breaks."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.potentials.base import Potential
from mri_design.potentials.exponential_power import ExponentialPower
from mri_design.potentials.laplace import Laplace

__all__ = ["require_smooth"]

NEAR, NEARER = 1e-6, 1e-10
"""Two values of x, in units of the site's own, between which a bounded curvature hardly changes."""
BESIDE = 1e-7


def require_smooth(field: str, site: Potential) -> None:
    """Refuse a site whose log has a corner, or no finite curvature at zero: Laplace, Hinge, and powers below two.

    Raises
    ------
    InputError
        Naming ``field``; also for mixtures and tilted sites that are made of such a site.
    """
    for part in (*getattr(site, "sites", ()), *(getattr(site, name) for name in ("potential",) if hasattr(site, name))):
        require_smooth(field, part)
    if isinstance(site, Laplace) or (isinstance(site, ExponentialPower) and site.power < 2):
        corner = True
    elif site.on_the_line:
        corner = _jumps_at_a_break(site)
    else:
        corner = not site.two_parameter and _steepens_towards_zero(site)
    if corner:
        where = "" if site.on_the_line else " at zero"
        others = "VariationalGaussian or DoubleLoop" if site.super_gaussian else "VariationalGaussian"
        raise InputError(
            field=field,
            got=f"{type(site).__name__}, whose log has a corner{where}",
            wanted="sites with a second derivative",
            cure=f"Use {others}, which take corners, or a smooth site near it (Sech2 has Laplace tails).",
        )


def _steepens_towards_zero(site: Potential) -> bool:
    """Whether -2 g'(0), the curvature at zero, is not finite."""
    unit = np.asarray(site.start_variance, dtype=float)
    near, nearer = site.dg(NEAR * unit), site.dg(NEARER * unit)
    return not (np.isfinite(nearer).all() and bool(np.all(np.abs(nearer) <= 1.1 * np.abs(near))))


def _jumps_at_a_break(site: Potential) -> bool:
    """Whether the slope changes at a break by more than the curvature beside it explains."""
    for middle in site.breaks:
        points = np.array([middle - BESIDE, middle + BESIDE]).reshape(2, *(1 for _ in np.shape(site.start_variance)))
        slopes, bends = np.broadcast_arrays(site.dlog_t(points), site.d2log_t(points))
        rounding = 16 * np.finfo(float).eps * np.abs(slopes).max(axis=0)
        smooth = np.abs(slopes[1] - slopes[0]) <= rounding + 4 * BESIDE * np.abs(bends).max(axis=0)
        if not (np.isfinite(slopes).all() and np.isfinite(bends).all() and np.all(smooth)):
            return True
    return False

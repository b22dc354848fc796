"""Is a site super-Gaussian? A probe of g' < 0 and g'' >= 0 over twelve decades."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.potentials.base import Potential, Values

__all__ = ["GRID", "departure_from_super_gaussian", "require_super_gaussian", "unfit_derivatives"]

GRID = np.geomspace(1e-6, 1e6, 241)
PASSES = 8


def departure_from_super_gaussian(site: Potential, shape: tuple[int, ...] = ()) -> str | None:
    """What keeps a site from being super-Gaussian, in words; None where nothing is seen.

    Parameters
    ----------
    site : Potential
        With a representation g of its own (not `two_parameter`).
    shape : tuple of int
        Of the sites, which scales broadcast to.

    Notes
    -----
    Every site is tried at 8 points x, and 241 different points are tried where there are as many sites, or one site
    for all of them: what a probe can see, no proof. TR-175 section 2.1.
    """
    one_for_all = np.ndim(site.start_variance) == 0 and all(np.ndim(v) == 0 for v in vars(site).values())
    step = GRID.size // PASSES
    points = [GRID] if one_for_all else [np.resize(np.roll(GRID, k * step), shape) for k in range(PASSES)]
    for x in points:
        fault = unfit_derivatives(x, site.dg(x), site.d2g(x))
        if fault is not None:
            return fault
    return None


def require_super_gaussian(field: str, site: Potential, shape: tuple[int, ...] = ()) -> None:
    """Refuse a site that says it is not super-Gaussian, or is seen not to be.

    Raises
    ------
    InputError
        Naming ``field``. Sites of two parameters, which have a bound of their own, pass.
    """
    got = None
    if not site.super_gaussian:
        got = f"{type(site).__name__}, which is not super-Gaussian"
    elif not site.two_parameter:
        fault = departure_from_super_gaussian(site, shape)
        got = None if fault is None else f"{type(site).__name__} with {fault}"
    if got is not None:
        raise InputError(
            field=field,
            got=got,
            wanted="super-Gaussian sites: g' < 0 and g'' >= 0, finite for every x > 0",
            cure="Infer with VariationalGaussian, LaplacePropagation or LaplaceFilter, which need no such bound, or "
            "choose a site near it that is super-Gaussian.",
        )


def unfit_derivatives(x: Values, slopes: Values, bends: Values) -> str | None:
    """The fault of g' and g'' at x > 0: not finite, not decreasing, or not convex beyond rounding."""
    if not (np.isfinite(slopes).all() and np.isfinite(bends).all()):
        return "values that are not finite"
    if (np.asarray(slopes) >= 0).any():
        return "a g that does not decrease"
    if (np.asarray(bends) < -1e-9 * np.abs(slopes) / x).any():
        return "a g that is not convex"
    return None

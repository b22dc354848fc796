"""The needs of engines, compared with what sites offer and with what can be seen of them.

Sites declare what they can do in `Site.offers`, engines what they need in ``needs``. `require_offers` compares the two
and writes every refusal: which block, which site, what is missing, and which engine can. What a site claims is probed
as well (`unmet_claim`): g' < 0 and g'' >= 0 over twelve decades, and no corner where it says that it has a curvature.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mri_design.errors import InputError
from mri_design.potentials.base import SMOOTH, Site, SuperGaussian, Values

GRID = np.geomspace(1e-6, 1e6, 241)
PASSES = 8
NEAR, NEARER = 1e-6, 1e-10
"""Two values of x, in units of the site's own, between which a bounded curvature hardly changes."""
BESIDE = 1e-7

ENGINES: dict[str, frozenset[str]] = {
    "VariationalGaussian": frozenset(),
    "LaplacePropagation": frozenset({"expansion"}),
    "LaplaceFilter": frozenset({"line", "fixed", "curvature"}),
    "DoubleLoop": frozenset({"bound"}),
    "DecoupledGaussian": frozenset({"line", "conjugate", "log_concave"}),
}
"""Needs of the engines with their default settings; ``"line"`` is offered by blocks on real coefficients.

The table stands below the engines, which take their ``needs`` from it, so that a refusal can name engines whose files
were never loaded. An engine of another file enters itself when its class is made (`inference.base.Engine`).
"""


_SAY_SMOOTH = "add SMOOTH to its offers where it has one"
_SAY_BOUND = 'add "bound" to its offers where it is'
_SECH2 = "choose a smooth site near it (Sech2 has Laplace tails)"
_PARTS = "put RealAndImaginary {}in front, without group axes"
_WORDS = {  # what a site lacks completes "Hinge, which ..."; what is wanted; another way, an imperative, or none
    "g": ("has no even representation g(|s|^2)", "sites log t = g(|s|^2) + b s with a fixed position", ""),
    "bound": (
        "is not super-Gaussian",
        "super-Gaussian sites: g' < 0 and g'' >= 0, finite for every x > 0",
        "choose a site near it that is super-Gaussian",
    ),
    "fixed": ("moves with its bound", "sites with a fixed position", ""),
    "moduli": (
        "is no function of |s| and cannot act on moduli",
        "real coefficients with a site each",
        _PARTS.format("or a real image "),
    ),
    "line": ("acts on moduli here", "real coefficients with a site each", _PARTS.format("")),
    "log_concave": ("is not log-concave", "log-concave sites", ""),
    "curvature": ("has a corner in its log", "sites with a second derivative", _SECH2),
    "expansion": ("has a corner in its log", "sites with a second derivative, or margins", _SECH2),
    "conjugate": (
        "has a conjugate that runs off to infinity where a margin is kept with certainty",
        "sites whose conjugates Newton's method finds",
        "",
    ),
    "normaliser": (
        "is no probability of its data",
        "a likelihood that adds up to one over the data",
        "use Logistic sites to compare models of labels",
    ),
}


def require_offers(
    field: str,
    site: Site,
    needs: Collection[str],
    *,
    user: str,
    offers: frozenset[str] | None = None,
    shape: tuple[int, ...] = (),
    relief: str = "",
) -> None:
    """Refuse a site that does not offer what somebody needs, or is seen not to keep what it offers.

    Parameters
    ----------
    field : str
        The name for the message, as ``"block 'edges'"``.
    site : Site
        The site.
    needs : collection of str
        Capabilities, as `Site` lists them.
    user : str
        The name of the engine or function that needs them.
    offers : frozenset of str, optional
        Offers of the site in its block, which may add to them; by default those of the site itself.
    shape : tuple of int
        Of the sites, which scales broadcast to.
    relief : str
        A setting of the user's own with which it would do without, as an imperative sentence.

    Raises
    ------
    InputError
        Naming the site, the first capability missing in alphabetical order, and the engines that take the site.
    """
    offered = site.offers if offers is None else offers
    for need in sorted(needs):
        if need not in offered:
            raise refusal(field, site, need, user=user, offers=offered, relief=relief)
        fault = unmet_claim(site, need, shape)
        if fault is not None:
            without = offered - (SMOOTH if need in SMOOTH else {need})
            raise refusal(field, site, need, user=user, offers=without, relief=relief, fault=fault)


def refusal(
    field: str,
    site: Site,
    need: str,
    *,
    user: str = "",
    offers: frozenset[str] | None = None,
    relief: str = "",
    fault: str = "",
) -> InputError:
    """The message of a site that lacks one capability: of `require_offers`, and of blocks that cannot be built.

    Engines that do without are named where ``offers`` says what there is for them.
    """
    lacking, wanted, instead = _WORDS.get(need, (f"does not offer {need!r}", f"sites that offer {need!r}", ""))
    if need in SMOOTH and not fault and departure_from_smooth(site) is None:
        lacking, instead = "does not say that its log has a second derivative", _SAY_SMOOTH
    if need == "bound" and not fault and isinstance(site, SuperGaussian) and not departure_from_super_gaussian(site):
        lacking, instead = "does not say that it is super-Gaussian", _SAY_BOUND
    asked = {"g"}.union(*ENGINES.values())
    able = [name for name, needed in ENGINES.items() if name != user and offers is not None and needed <= offers]
    others = " or ".join(filter(None, (", ".join(able[:-1]), *able[-1:])))
    ways = [f"infer with {others}"] if able and need in asked else []
    cure = ", or ".join(filter(None, (*ways, instead)))
    sentences = [relief, f"{cure[0].upper()}{cure[1:]}." if cure else ""]
    return InputError(
        field,
        f"{type(site).__name__}{f' with {fault}' if fault else f', which {lacking}'}",
        f"{wanted}, as {user} needs them" if user else wanted,
        " ".join(sentence for sentence in sentences if sentence),
    )


def represented(site: Site, field: str = "site") -> SuperGaussian:
    """The site, where it has a representation g.

    Raises
    ------
    InputError
        For others.
    """
    if not isinstance(site, SuperGaussian):
        raise refusal(field, site, "g", offers=site.offers | {"line"})
    return site


def unmet_claim(site: Site, offered: str, shape: tuple[int, ...] = ()) -> str | None:
    """The fault seen in a capability that a site claims; None where nothing is seen."""
    if offered == "bound" and isinstance(site, SuperGaussian):
        return departure_from_super_gaussian(site, shape)
    if offered == "curvature" or (offered == "expansion" and "curvature" in site.offers):
        return departure_from_smooth(site)
    return None


def departure_from_super_gaussian(site: SuperGaussian, shape: tuple[int, ...] = ()) -> str | None:
    """The reason why a site is not super-Gaussian, in words; None where nothing is seen.

    Parameters
    ----------
    site : SuperGaussian
        With a representation g of its own.
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


def unfit_derivatives(x: Values, slopes: Values, curvatures: Values) -> str | None:
    """The fault of g' and g'' at x > 0: not finite, not decreasing, or not convex beyond rounding."""
    if not (np.isfinite(slopes).all() and np.isfinite(curvatures).all()):
        return "values that are not finite"
    if (np.asarray(slopes) >= 0).any():
        return "a g that does not decrease"
    if (np.asarray(curvatures) < -1e-9 * np.abs(slopes) / x).any():
        return "a g that is not convex"
    return None


def departure_from_smooth(site: Site) -> str | None:
    """Where the log of a site is seen to have a corner; None where its slope changes as its curvature says.

    Sites with a representation g are tried at zero, where -2 g' must stay finite; others at their ``breaks``.
    """
    if isinstance(site, SuperGaussian):
        unit = np.asarray(site.start_variance, dtype=float)
        near, nearer = site.dg(NEAR * unit), site.dg(NEARER * unit)
        flat = np.isfinite(nearer).all() and bool(np.all(np.abs(nearer) <= 1.1 * np.abs(near)))
        return None if flat else "a log that has a corner at zero"
    for middle in site.breaks:
        points = np.array([middle - BESIDE, middle + BESIDE]).reshape(2, *(1 for _ in np.shape(site.start_variance)))
        slopes, curvatures = np.broadcast_arrays(site.dlog_t(points), site.d2log_t(points))
        rounding = 16 * np.finfo(float).eps * np.abs(slopes).max(axis=0)
        smooth = np.abs(slopes[1] - slopes[0]) <= rounding + 4 * BESIDE * np.abs(curvatures).max(axis=0)
        if not (np.isfinite(slopes).all() and np.isfinite(curvatures).all() and np.all(smooth)):
            return "a log that has a corner"
    return None

"""A user's own site, given by g and its two derivatives and held to what it claims."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.potentials.base import SMOOTH, SuperGaussian, Values, positive_scale
from mri_design.potentials.requirements import GRID, departure_from_smooth, unfit_derivatives

Function = Callable[[Values], Values]


class Generic(SuperGaussian):
    """log t(s) = g(x) with x = |s|^2 / sigma^2, for any convex and decreasing g.

    Parameters
    ----------
    g, dg, d2g : callable
        g and its derivatives, vectorised over arrays x >= 0 of any float type.
    log_concave : bool, optional
        Whether t is; found out where it is not said.
    shape : tuple of int
        Shape of what g itself broadcasts over (its own scales), () for one site for all.
    start_variance : float or array, optional
        First guess of z; by default the x at which log t has fallen by 0.3.
    name : str
        For messages.

    Raises
    ------
    InputError
        Where g is not finite, not decreasing or not convex somewhere between 1e-6 and 1e6, the derivatives are not
        those of g, or the site is claimed to be log-concave and is not.
    """

    def __init__(
        self,
        g: Function,
        dg: Function,
        d2g: Function,
        *,
        log_concave: bool | None = None,
        shape: tuple[int, ...] = (),
        start_variance: ArrayLike | None = None,
        name: str = "generic site",
    ) -> None:
        self._functions = (g, dg, d2g)
        self._shape = shape
        self.name = name
        x = np.broadcast_to(GRID.reshape(-1, *(1 for _ in shape)), (GRID.size, *shape)).copy()
        values, slopes, curvatures = (self._evaluated(k, x) for k in range(3))
        self._refuse_unless_super_gaussian(x, values, slopes, curvatures)
        curvature_of_log_t = 2 * slopes + 4 * x * curvatures
        concave = bool((curvature_of_log_t <= 1e-6 * (np.abs(slopes) + x * curvatures)).all())
        if log_concave and not concave:
            raise self._refusal("log_concave=True, but log t is convex in s somewhere", "the truth", "Leave it out.")
        if start_variance is None:
            fallen = values > values[0] - 0.3
            start_variance = GRID[np.minimum(fallen.sum(axis=0), GRID.size - 1)]
        self._start_variance = positive_scale(f"{name}: start_variance", start_variance)
        declared = SuperGaussian.offers | {"scale"}
        if concave if log_concave is None else log_concave:
            declared |= {"log_concave"}
        self.offers = declared if departure_from_smooth(self) else declared | SMOOTH

    def _evaluated(self, order: int, x: Values) -> Values:
        """The derivative of that order at x, of its shape."""
        try:
            return np.broadcast_to(np.asarray(self._functions[order](x), dtype=float), x.shape)
        except (TypeError, ValueError, ArithmeticError) as error:
            called = ("g", "dg", "d2g")[order]
            raise self._refusal(
                f"a {called} that cannot be had at {x.shape[0]} points x of shape {self._shape} ({error})",
                "vectorised functions of x, real and of its shape",
                "Say shape= where g has scales of its own.",
            ) from error

    def _refuse_unless_super_gaussian(self, x: Values, values: Values, slopes: Values, curvatures: Values) -> None:
        if not np.isfinite(values).all():
            raise self._refusal("values that are not finite", "g, g' and g'' finite for x > 0")
        rounding = 1e-9 * (np.abs(values).max() + 1e-300) / x
        not_super_gaussian = "It is not super-Gaussian, so no estimate here takes it: choose a site near it that is."
        fault = unfit_derivatives(x, slopes, curvatures)
        if fault is not None:
            raise self._refusal(fault, "g' < 0 and g'' >= 0, finite for every x > 0", not_super_gaussian)
        step = 1e-4 * x
        pairs = [(self._functions[k](x + step), self._functions[k](x - step)) for k in (0, 1)]
        g_slope, dg_slope = ((np.asarray(up) - np.asarray(down)) / (2 * step) for up, down in pairs)
        if (np.abs(g_slope - slopes) > 1e-4 * np.abs(slopes) + rounding).any():
            raise self._refusal("a dg that is not the derivative of g", "g'")
        if (np.abs(dg_slope - curvatures) > 1e-3 * np.abs(curvatures) + 1e-6 * np.abs(slopes) / x).any():
            raise self._refusal("a d2g that is not the derivative of dg", "g''")

    def _refusal(self, got: str, wanted: str, cure: str = "") -> InputError:
        return InputError(self.name, got, wanted, cure)

    def g(self, x: Values) -> Values:
        return np.asarray(self._functions[0](x)).astype(x.dtype, copy=False)

    def dg(self, x: Values) -> Values:
        return np.asarray(self._functions[1](x)).astype(x.dtype, copy=False)

    def d2g(self, x: Values) -> Values:
        return np.asarray(self._functions[2](x)).astype(x.dtype, copy=False)

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(self._start_variance, self._shape)

    def rescaled(self, factor: ArrayLike) -> Generic:
        square = np.square(np.asarray(factor, dtype=float))
        g, dg, d2g = self._functions

        def weight(x: Values) -> Values:
            return square.astype(x.dtype)

        return Generic(
            lambda x: g(weight(x) * x),
            lambda x: weight(x) * dg(weight(x) * x),
            lambda x: weight(x) ** 2 * d2g(weight(x) * x),
            log_concave=self.log_concave,
            shape=np.broadcast_shapes(self._shape, square.shape),
            start_variance=self._start_variance / square,
            name=self.name,
        )

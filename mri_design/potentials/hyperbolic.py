"""Hyperbolic functions that stay accurate at zero and finite far out, for the logistic and the sech^2 site."""

from __future__ import annotations

import numpy as np

from mri_design.potentials.base import Values

__all__ = ["log_cosh", "tanh_ratio", "tanh_ratio_fall"]


def log_cosh(v: Values) -> Values:
    """log cosh v for v >= 0."""
    return v + np.log1p(np.exp(-2 * v)) - v.dtype.type(np.log(2))


def tanh_ratio(v: Values) -> Values:
    """tanh(v) / v for v >= 0, one at zero."""
    safe = np.maximum(v, 1e-4)
    return np.where(v < 1e-4, 1 - v**2 / 3, np.tanh(safe) / safe)


def tanh_ratio_fall(v: Values) -> Values:
    """(tanh(v) / v - 1 / cosh(v)^2) / v^2 for v >= 0, 2/3 at zero: minus the slope of tanh(v) / v, over v."""
    safe = np.maximum(v, 0.1)
    tanh = np.tanh(safe)
    square = np.minimum(v, 0.2) ** 2
    series = 2 / 3 - square * (8 / 15 - square * (34 / 105 - square * (496 / 2835 - square * (2764 / 31185))))
    return np.where(v < 0.1, series, (tanh / safe - (1 - tanh) * (1 + tanh)) / safe**2)

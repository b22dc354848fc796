"""Squared moduli of coefficients."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array
from mri_design.operators.kernels.suitable import compilable


def squared_modulus(s: Array) -> Array:
    """|s|^2, in the precision of ``s``."""
    if not np.iscomplexobj(s):
        return np.square(s)
    if not compilable(s, s):
        return np.square(s.real) + np.square(s.imag)
    from mri_design.operators.kernels.pointwise import squares_of_moduli

    return squares_of_moduli(s)

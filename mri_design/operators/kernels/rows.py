"""Real weights for two registers of real or complex numbers."""

from __future__ import annotations

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import load, load_doubled

__all__ = ["weights_of"]


@compiled
def weights_of(weights, first, parts, count):
    """Two lanes of ``weights[first:]``, each number twice where what it weighs has two parts."""
    return load_doubled(weights, first) if parts == 2 else (load(weights, first), load(weights, first + count))

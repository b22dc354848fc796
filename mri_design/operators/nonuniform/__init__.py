"""Fourier measurements at any points of k-space: spokes, spirals, and whatever else a trajectory is.

Names are looked up when first used: what reads trajectories needs the convention alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mri_design.operators.nonuniform.convention import checked_samples, checked_trajectory
    from mri_design.operators.nonuniform.density import density_weights
    from mri_design.operators.nonuniform.fourier import NonUniformFourier

_HOMES = {
    "NonUniformFourier": "fourier",
    "checked_samples": "convention",
    "checked_trajectory": "convention",
    "density_weights": "density",
}

__all__ = ["NonUniformFourier", "checked_samples", "checked_trajectory", "density_weights"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

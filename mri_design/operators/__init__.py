"""Linear operators: measurement (X) and sparsity (B).

Names are looked up when first used: the readers of scans need the convention of trajectories that stands in this
folder, and none of the operators, whose libraries take half a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mri_design.operators.base import Array, FilterBand, LinearOperator
    from mri_design.operators.cartesian_fourier import (
        CartesianLines,
        CartesianSamples,
        CentredFFT,
        DirectFourier,
        LineSampling,
        cartesian,
    )
    from mri_design.operators.coils import Coils
    from mri_design.operators.dense import Dense, MatrixOperator, RowsOnDisk, SparseMatrix, real_rows
    from mri_design.operators.differences import FiniteDifferences, GraphDifferences
    from mri_design.operators.elementary import Diagonal, Identity, RealAndImaginary, RealImage
    from mri_design.operators.nonuniform import NonUniformFourier
    from mri_design.operators.phased import PhasedParts
    from mri_design.operators.wavelet import Wavelet

_NAMES = {
    "base": ("Array", "FilterBand", "LinearOperator"),
    "cartesian_fourier": (
        "CartesianLines",
        "CartesianSamples",
        "CentredFFT",
        "DirectFourier",
        "LineSampling",
        "cartesian",
    ),
    "coils": ("Coils",),
    "dense": ("Dense", "MatrixOperator", "RowsOnDisk", "SparseMatrix", "real_rows"),
    "differences": ("FiniteDifferences", "GraphDifferences"),
    "elementary": ("Diagonal", "Identity", "RealAndImaginary", "RealImage"),
    "nonuniform": ("NonUniformFourier",),
    "phased": ("PhasedParts",),
    "wavelet": ("Wavelet",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "Array",
    "CartesianLines",
    "CartesianSamples",
    "CentredFFT",
    "Coils",
    "Dense",
    "Diagonal",
    "DirectFourier",
    "FilterBand",
    "FiniteDifferences",
    "GraphDifferences",
    "Identity",
    "LineSampling",
    "LinearOperator",
    "MatrixOperator",
    "NonUniformFourier",
    "PhasedParts",
    "RealAndImaginary",
    "RealImage",
    "RowsOnDisk",
    "SparseMatrix",
    "Wavelet",
    "cartesian",
    "real_rows",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

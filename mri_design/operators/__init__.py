"""Linear operators: measurement (X) and sparsity (B).

Names are looked up when first used: the readers of scans need the convention of trajectories that stands in this
folder, and none of the operators, whose libraries take half a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mri_design.operators.base import Array, FilterBand, LinearOperator
    from mri_design.operators.coils import Coils
    from mri_design.operators.dense import Dense, MatrixOperator, SparseMatrix
    from mri_design.operators.diagonal import Diagonal, Identity
    from mri_design.operators.differences import FiniteDifferences
    from mri_design.operators.fields import RealAndImaginary, RealImage
    from mri_design.operators.fourier import CentredFFT
    from mri_design.operators.graph_differences import GraphDifferences
    from mri_design.operators.measurement import CartesianLines, CartesianSamples, DirectFourier, cartesian
    from mri_design.operators.nonuniform import NonUniformFourier
    from mri_design.operators.phased import PhasedParts
    from mri_design.operators.rows import RowsOnDisk, real_rows
    from mri_design.operators.selection import LineSampling
    from mri_design.operators.wavelet import Wavelet

_HOMES = {
    "Array": "base",
    "CartesianLines": "measurement",
    "CartesianSamples": "measurement",
    "CentredFFT": "fourier",
    "Coils": "coils",
    "Dense": "dense",
    "Diagonal": "diagonal",
    "DirectFourier": "measurement",
    "FilterBand": "base",
    "FiniteDifferences": "differences",
    "GraphDifferences": "graph_differences",
    "Identity": "diagonal",
    "LineSampling": "selection",
    "LinearOperator": "base",
    "MatrixOperator": "dense",
    "NonUniformFourier": "nonuniform",
    "PhasedParts": "phased",
    "RealAndImaginary": "fields",
    "RealImage": "fields",
    "RowsOnDisk": "rows",
    "SparseMatrix": "dense",
    "Wavelet": "wavelet",
    "cartesian": "measurement",
    "real_rows": "rows",
}

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

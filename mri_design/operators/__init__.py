"""Linear operators: measurement (X) and sparsity (B)."""

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

"""Linear operators: measurement (X) and sparsity (B)."""

from .base import Array as Array
from .base import FilterBand as FilterBand
from .base import LinearOperator as LinearOperator
from .cartesian_fourier import CartesianLines as CartesianLines
from .cartesian_fourier import CartesianSamples as CartesianSamples
from .cartesian_fourier import CentredFFT as CentredFFT
from .cartesian_fourier import DirectFourier as DirectFourier
from .cartesian_fourier import LineSampling as LineSampling
from .cartesian_fourier import cartesian as cartesian
from .dense import Dense as Dense
from .dense import MatrixOperator as MatrixOperator
from .dense import RowsOnDisk as RowsOnDisk
from .dense import SparseMatrix as SparseMatrix
from .dense import real_rows as real_rows
from .elementary import Coils as Coils
from .elementary import Diagonal as Diagonal
from .elementary import Identity as Identity
from .elementary import PhasedParts as PhasedParts
from .elementary import RealAndImaginary as RealAndImaginary
from .elementary import RealImage as RealImage
from .nonuniform import NonUniformFourier as NonUniformFourier
from .sparsity import FiniteDifferences as FiniteDifferences
from .sparsity import GraphDifferences as GraphDifferences
from .sparsity import Wavelet as Wavelet

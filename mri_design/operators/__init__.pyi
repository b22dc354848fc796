"""Linear operators: measurement (X) and sparsity (B)."""

from .base import Array as Array
from .base import FilterBand as FilterBand
from .base import LinearOperator as LinearOperator
from .base import ScalarOperator as ScalarOperator
from .base import squared_modulus as squared_modulus
from .cartesian_fourier import CartesianLines as CartesianLines
from .cartesian_fourier import CartesianSamples as CartesianSamples
from .cartesian_fourier import CentredFFT as CentredFFT
from .cartesian_fourier import cartesian as cartesian
from .conventions import Chosen as Chosen
from .conventions import chosen_flags as chosen_flags
from .conventions import chosen_numbers as chosen_numbers
from .conventions import to_image as to_image
from .conventions import to_kspace as to_kspace
from .conventions import to_readout_profiles as to_readout_profiles
from .elementary import Coils as Coils
from .elementary import Dense as Dense
from .elementary import Diagonal as Diagonal
from .elementary import Identity as Identity
from .elementary import MatrixOperator as MatrixOperator
from .elementary import Mixing as Mixing
from .elementary import NoRows as NoRows
from .elementary import PhasedParts as PhasedParts
from .elementary import RealAndImaginary as RealAndImaginary
from .elementary import RealImage as RealImage
from .elementary import RealMatrix as RealMatrix
from .elementary import RowsOnDisk as RowsOnDisk
from .elementary import SparseMatrix as SparseMatrix
from .foreign import ForeignOperator as ForeignOperator
from .foreign import from_linop as from_linop
from .fourier import SpectralFilter as SpectralFilter
from .fourier import transform as transform
from .nonuniform import DirectFourier as DirectFourier
from .nonuniform import NonUniformFourier as NonUniformFourier
from .nonuniform import density_weights as density_weights
from .nonuniform import require_finufft as require_finufft
from .nonuniform import sums_at_pixels as sums_at_pixels
from .sparsity import FiniteDifferences as FiniteDifferences
from .sparsity import GraphDifferences as GraphDifferences
from .sparsity import Wavelet as Wavelet
from .trajectory import ROUNDING as ROUNDING
from .trajectory import checked_samples as checked_samples
from .trajectory import checked_trajectory as checked_trajectory
from .trajectory import equispaced_angles as equispaced_angles
from .trajectory import golden_angles as golden_angles
from .trajectory import interleaf_angles as interleaf_angles
from .trajectory import look_of_trajectory as look_of_trajectory
from .trajectory import radial_spokes as radial_spokes
from .trajectory import turned as turned

__all__ = [
    "CartesianLines",
    "CartesianSamples",
    "CentredFFT",
    "Coils",
    "Dense",
    "Diagonal",
    "FiniteDifferences",
    "GraphDifferences",
    "Identity",
    "LinearOperator",
    "NonUniformFourier",
    "RealImage",
    "RowsOnDisk",
    "SparseMatrix",
    "Wavelet",
    "cartesian",
    "equispaced_angles",
    "from_linop",
    "golden_angles",
    "interleaf_angles",
    "radial_spokes",
    "to_image",
    "to_kspace",
    "turned",
]

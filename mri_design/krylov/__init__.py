"""Krylov methods on callables x -> A x."""

from mri_design.krylov.block_lanczos import BlockLanczosFactors, block_lanczos
from mri_design.krylov.conjugate_gradients import ConjugateGradients, conjugate_gradients, real_inner, squared_norm
from mri_design.krylov.lanczos import LanczosFactors, Reorthogonalisation, lanczos
from mri_design.krylov.preconditioners import circulant_inverse, mirrored, phased_circulant_inverse

__all__ = [
    "BlockLanczosFactors",
    "ConjugateGradients",
    "LanczosFactors",
    "Reorthogonalisation",
    "block_lanczos",
    "circulant_inverse",
    "conjugate_gradients",
    "lanczos",
    "mirrored",
    "phased_circulant_inverse",
    "real_inner",
    "squared_norm",
]

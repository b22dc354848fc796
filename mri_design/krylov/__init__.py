"""Krylov methods on callables x -> A x."""

from mri_design.krylov.conjugate_gradients import conjugate_gradients, real_inner
from mri_design.krylov.lanczos import LanczosFactors, lanczos
from mri_design.krylov.preconditioners import circulant_inverse

__all__ = ["LanczosFactors", "circulant_inverse", "conjugate_gradients", "lanczos", "real_inner"]

"""Small slices with known noise and coils, and posteriors at the variational optimum."""

from functools import cache

import numpy as np

from mri_design import DoubleLoop, SliceModel, load_phantom
from mri_design.model import GaussianPosterior
from mri_design.variances import Exact


@cache
def make_slice(n_coils: int = 1, shape: tuple[int, int] = (16, 16), seed: int = 0, name: str = "brain") -> SliceModel:
    """A fully sampled slice."""
    return load_phantom(name, shape=shape, n_coils=n_coils, rng=np.random.default_rng(seed)).slice_model()


@cache
def make_posterior(n_coils: int = 1, lines: tuple[int, ...] = (8, 7, 9, 6, 3)) -> GaussianPosterior:
    """The posterior of a 16 x 16 slice with exact variances."""
    return DoubleLoop(Exact(), outer_iterations=4).infer(make_slice(n_coils).model(lines), np.random.default_rng(0))

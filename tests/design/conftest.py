"""Small slices with known noise and coils, and posteriors at the variational optimum."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mri_design import DoubleLoop, Exact, GaussianPosterior, SliceModel, load_phantom

SliceMaker = Callable[..., SliceModel]


@cache
def _slice(n_coils: int, shape: tuple[int, int], seed: int, name: str) -> SliceModel:
    data = load_phantom(name, shape=shape, n_coils=n_coils, rng=np.random.default_rng(seed))
    return data.slice_model()


@cache
def _posterior(n_coils: int, lines: tuple[int, ...]) -> GaussianPosterior:
    one = _slice(n_coils, (16, 16), 0, "brain")
    return DoubleLoop(Exact(), outer_iterations=4).infer(one.model(lines), np.random.default_rng(0))


@pytest.fixture(scope="session")
def make_slice() -> SliceMaker:
    """(n_coils=1, shape=(16, 16), seed=0, name="brain") -> a fully sampled slice."""

    def make(n_coils: int = 1, shape: tuple[int, int] = (16, 16), seed: int = 0, name: str = "brain") -> SliceModel:
        return _slice(n_coils, shape, seed, name)

    return make


@pytest.fixture(scope="session")
def make_posterior() -> Callable[..., GaussianPosterior]:
    """(n_coils=1, lines=five of them) -> the posterior of a 16 x 16 slice with exact variances."""

    def make(n_coils: int = 1, lines: tuple[int, ...] = (8, 7, 9, 6, 3)) -> GaussianPosterior:
        return _posterior(n_coils, lines)

    return make


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)

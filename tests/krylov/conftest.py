"""Small positive definite matrices with a spread of eigenvalues, as callables on batches."""

from collections.abc import Callable

import numpy as np
import pytest


@pytest.fixture(params=[False, True], ids=["real", "complex"])
def is_complex(request: pytest.FixtureRequest) -> bool:
    return request.param


def noise(shape: tuple[int, ...], is_complex: bool, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if is_complex else values


@pytest.fixture
def vectors(is_complex: bool) -> Callable[..., np.ndarray]:
    """(shape, seed) -> unit noise."""
    return lambda shape, seed: noise(shape, is_complex, seed)


@pytest.fixture
def matrix(is_complex: bool) -> np.ndarray:
    """Hermitian, 12 x 12, eigenvalues from 0.1 to 10."""
    basis, _ = np.linalg.qr(noise((12, 12), is_complex, 1))
    return (basis * np.geomspace(0.1, 10, 12)) @ basis.conj().T

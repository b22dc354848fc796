"""The preconditioner of phase-aware models."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, Laplace, SiteBlock, cartesian
from mri_design.krylov import conjugate_gradients
from mri_design.model import PosteriorPrecision, phased_preconditioner
from mri_design.operators import PhasedParts

SHAPE = (32, 32)
LINES = [0, 5, 11, *range(13, 20), 23, 28]


def precision(strength: float) -> PosteriorPrecision:
    """Site precisions that vary tenfold around ``strength``, beside a smooth phase; parts differ by 1.5^2."""
    rows, columns = np.mgrid[:32, :32] / 32
    rotation = np.exp(1j * (2 * np.sin(2 * np.pi * rows) + np.cos(2 * np.pi * columns)))
    blocks = tuple(
        SiteBlock(name, PhasedParts(analysis, rotation, 1.5), Laplace(1.0))
        for name, analysis in (("pixels", Identity(SHAPE)), ("differences", FiniteDifferences(SHAPE)))
    )
    rng = np.random.default_rng(0)
    weights = tuple(
        strength * 10 ** rng.uniform(-0.5, 0.5, block.analysis.out_shape[:-1])[..., None] for block in blocks
    )
    return PosteriorPrecision(cartesian(LINES, SHAPE), blocks, weights)


@pytest.mark.parametrize("strength", [1.0, 1e-5, 1e-9])
def test_products_do_not_depend_on_the_noise(strength: float) -> None:
    """Power that the phase spreads from measured to other frequencies must not hold these where sites do not."""
    A = precision(strength)
    truth = np.random.default_rng(1).standard_normal((1, *SHAPE, 2)) @ [1, 1j]
    rhs = A(truth)
    found, convergence = conjugate_gradients(
        A, rhs, n_axes=2, preconditioner=A.preconditioner, tolerance=1e-8, max_iterations=150
    )
    assert convergence.converged
    np.testing.assert_allclose(found, truth, atol=1e-3)


def test_the_parts_have_circulants_of_their_own_where_sites_are_strong() -> None:
    strong, weak = precision(1.0), precision(1e-5)
    assert phased_preconditioner(strong.measurement, strong.blocks, strong.site_precisions) is not None
    assert phased_preconditioner(weak.measurement, weak.blocks, weak.site_precisions) is None

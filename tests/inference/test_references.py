"""The dense reference itself, and the shape of the criterion it computes."""

import numpy as np
import pytest

from mri_design import Dense, GeneralizedLinearModel, Laplace, SiteBlock
from mri_design.inference.references import exact_criterion, minimise_exact_criterion


def test_one_unknown_by_hand():
    """phi = log(a^2 + pi) + tau^2 / pi + y^2 pi / (a^2 + pi) / sigma^2."""
    a, y, sigma2, tau = 1.3, 0.7, 0.2, 0.9
    block = SiteBlock("one", Dense(np.ones((1, 1))), Laplace(tau))
    model = GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    for pi in (0.05, 1.0, 20.0):
        by_hand = np.log(a**2 + pi) + tau**2 / pi + y**2 * pi / (a**2 + pi) / sigma2
        assert exact_criterion(model, (np.array([pi]),)) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(("site", "name"), [("Student-t", "matrix"), ("Laplace", "groups")])
def test_minimum_is_stationary_and_does_not_depend_on_the_start(site, name, tiny_model, sites):
    model = tiny_model(name, sites[site], scale=0.4)
    starts = [tuple(np.full(b.site_shape, value) for b in model.blocks) for value in (0.1, 2.0)]
    (phi, pi), (other, _) = (minimise_exact_criterion(model, start) for start in starts)
    assert phi == pytest.approx(other, rel=1e-9)
    assert phi == pytest.approx(exact_criterion(model, pi), rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(3):
        directions = [rng.standard_normal(p.shape) for p in pi]
        for step in (1e-2, -1e-2):
            moved = tuple(p * np.exp(step * d) for p, d in zip(pi, directions, strict=True))
            assert exact_criterion(model, moved) > phi

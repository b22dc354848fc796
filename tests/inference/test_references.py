"""The dense reference itself."""

import numpy as np
import pytest

from mri_design import Dense, GeneralizedLinearModel, Laplace, SiteBlock
from mri_design.glm.references import exact_criterion


def test_one_unknown_by_hand():
    """phi = log(a^2 + pi) + tau^2 / pi + y^2 pi / (a^2 + pi) / sigma^2."""
    a, y, sigma2, tau = 1.3, 0.7, 0.2, 0.9
    block = SiteBlock("one", Dense(np.ones((1, 1))), Laplace(tau))
    model = GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    for pi in (0.05, 1.0, 20.0):
        by_hand = np.log(a**2 + pi) + tau**2 / pi + y**2 * pi / (a**2 + pi) / sigma2
        assert exact_criterion(model, (np.array([pi]),)) == pytest.approx(by_hand, rel=1e-12)

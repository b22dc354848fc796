"""The bound on the evidence against numerical integration."""

import numpy as np
import pytest

from mri_design import Dense, GeneralizedLinearModel, Laplace, SiteBlock, evidence_bound


def real_model(rows: list, y: list, analysis: list, site, sigma2: float = 0.3) -> GeneralizedLinearModel:
    block = SiteBlock("rows", Dense(np.array(analysis, float)), site)
    return GeneralizedLinearModel(Dense(np.array(rows, float)), np.array(y, float), sigma2, (block,))


def test_inference_tightens_the_bound(accurate, rng, log_evidence):
    model = real_model([[1.2]], [-0.4], [[1], [0.5], [2]], Laplace(1.0))
    first, last = (evidence_bound(model, phi) for phi in np.array(accurate.infer(model, rng).criterion)[[0, -1]])
    assert first < last < log_evidence(model)


def test_units_of_the_data_shift_the_bound_by_their_jacobian(accurate, rng, settled):
    """Data and noise scaled by c: a density of the data in other units, c^-m times the old, where n scales back."""
    c = 7.0
    posterior = settled("matrix")
    model = posterior.model
    scaled = GeneralizedLinearModel(model.measurement, c * model.data, c**2 * model.noise_variance, model.blocks)
    bounds = [evidence_bound(p.model, p.criterion[-1]) for p in (posterior, accurate.infer(scaled, rng))]
    n, m = model.measurement.in_size, model.measurement.out_size
    assert bounds[1] - bounds[0] == pytest.approx((n - m) * np.log(c), rel=1e-8)

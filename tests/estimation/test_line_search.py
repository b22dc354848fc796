"""J along a line, against J itself."""

import numpy as np
import pytest

from mri_design import PenalisedProblem
from mri_design.estimation import Line, powers_along
from mri_design.operators.kernels.pointwise import laplace_along


@pytest.mark.parametrize("name", ["moduli", "groups", "real"])
def test_the_derivative_along_a_line_is_that_of_the_objective(name, tiny_model):
    model = tiny_model(name)
    rng = np.random.default_rng(0)
    u, d = model.back_projection(), rng.standard_normal(model.image_shape)
    problem = PenalisedProblem.smoothed(model, tuple(np.full(b.site_shape, 0.3) for b in model.blocks))
    s, along = model.analysis_coefficients(u), tuple(block.analysis(d) for block in model.blocks)

    def objective(t):
        moved = tuple(a + t * b for a, b in zip(s, along, strict=True))
        return problem.penalty_value(moved)

    line = Line(problem.penalties, powers_along(problem, s, along), model.odd_part(along), 0.0)
    for t in (0.0, 0.4, 1.0):
        slope, curvature = line.bound(t)
        assert slope == pytest.approx((objective(t + 1e-5) - objective(t - 1e-5)) / 4e-5, rel=1e-5)
        for far in (-0.5, 0.5):  # the quadratic that touches at t lies above
            assert objective(t) + 2 * far * slope + far**2 * curvature >= objective(t + far)


def test_sums_over_laplace_sites_are_those_of_arrays():
    rng = np.random.default_rng(1)
    x, cross, power, z, rate = rng.uniform(0.1, 2, (5, 1300))
    cross = cross - 1
    there = np.maximum(x + 2 * 0.7 * cross + 0.7**2 * power, 0)
    pi = rate / np.sqrt(there + z)
    expected = np.sum(pi * (cross + 0.7 * power)), np.sum(pi * power)
    np.testing.assert_allclose(laplace_along((x, cross, power), z, rate, 0.7, 1e-12), expected, rtol=1e-12)
    single = [v.astype(np.float32) for v in (x, cross, power, z, rate)]
    np.testing.assert_allclose(laplace_along(tuple(single[:3]), *single[3:], 0.7, 1e-12), expected, rtol=1e-5)

"""Zero-filled and least-squares images against numpy."""

import numpy as np
import pytest

from mri_design import Status, least_squares, zero_filled


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_equals_the_dense_solution(damping, tiny_model, model_name, embedded):
    """For more unknowns than data: the one of minimum norm."""
    model = tiny_model(model_name)
    np.testing.assert_array_equal(zero_filled(model), model.measurement.adjoint(model.data))
    X, y = model.measurement.to_dense_real(), embedded(model.data, model.measurement.out_complex)
    n = X.shape[1]
    dense = np.linalg.lstsq(
        np.vstack([X, np.sqrt(damping) * np.eye(n)]), np.concatenate([y, np.zeros(n)]), rcond=1e-10
    )[0]
    u, convergence = least_squares(model, damping=damping, tolerance=1e-10, max_iterations=500)
    assert convergence.converged
    np.testing.assert_allclose(embedded(u, model.measurement.in_complex), dense, atol=1e-7)


def test_one_coil_is_zero_filling_and_several_take_iterations(tiny_model):
    model = tiny_model("moduli")
    u, convergence = least_squares(model)
    np.testing.assert_allclose(u, zero_filled(model), atol=1e-12)
    assert convergence.iterations == 1
    _, convergence = least_squares(tiny_model("coils"), tolerance=1e-12, max_iterations=2)
    assert convergence.status is Status.MAX_ITERATIONS

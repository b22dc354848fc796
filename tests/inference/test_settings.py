"""Settings that cannot be are refused where they are given, by name."""

import numpy as np
import pytest

from mri_design import ADMM, IRLS, LBFGS, Automatic, ControlVariate, DoubleLoop, InputError, MapEstimate, MonteCarlo
from mri_design.krylov import conjugate_gradients

SENSELESS = (np.nan, -1e-3, "small")


@pytest.mark.parametrize("kind", [ADMM, IRLS, LBFGS, Automatic, DoubleLoop, MonteCarlo, ControlVariate])
@pytest.mark.parametrize("tolerance", SENSELESS)
def test_tolerances_are_finite_and_not_negative(kind, tolerance):
    with pytest.raises(InputError) as refused:
        kind(tolerance=tolerance)
    assert refused.value.field == "tolerance"


@pytest.mark.parametrize(
    ("kind", "name", "least"),
    [
        *[(kind, "max_iterations", 0) for kind in (ADMM, IRLS, LBFGS, Automatic)],
        *[(kind, "max_iterations", 1) for kind in (MonteCarlo, ControlVariate)],
        *[(kind, "solver_iterations", 1) for kind in (ADMM, IRLS)],
        (ADMM, "check", 1),
        (ADMM, "balanced", 0),
        (LBFGS, "window", 1),
        (LBFGS, "history", 0),
        (MapEstimate, "stages", 1),
    ],
)
def test_counts_are_whole_and_large_enough(kind, name, least):
    kind(**{name: least})
    for senseless in (least - 1, least + 0.5, np.nan, None):
        with pytest.raises(InputError) as refused:
            kind(**{name: senseless})
        assert refused.value.field == name


@pytest.mark.parametrize(
    "settings", [{"tolerance": np.nan}, {"tolerance": -1.0}, {"max_iterations": -1}, {"max_iterations": 2.5}]
)
def test_conjugate_gradients_never_pass_a_senseless_limit_as_converged(settings):
    with pytest.raises(InputError) as refused:
        conjugate_gradients(lambda x: 2 * x, np.ones((1, 3)), n_axes=1, **settings)
    assert refused.value.field in settings


@pytest.mark.parametrize(("name", "value"), [("relaxation", 0.5), ("relaxation", 2.5), ("solver_tolerance", np.nan)])
def test_other_numbers_of_admm(name, value):
    with pytest.raises(InputError) as refused:
        ADMM(**{name: value})
    assert refused.value.field == name

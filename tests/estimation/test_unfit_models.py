"""MAP estimation refuses what its solvers do not handle, by name."""

import numpy as np
import pytest

from mri_design import GeneralizedLinearModel, Identity, InputError, SiteBlock, map_estimate
from tests.unfit_sites import Honest, Quartic


def model_of(site) -> GeneralizedLinearModel:
    X = Identity((4, 4))
    return GeneralizedLinearModel(X, np.ones((4, 4), complex), 1.0, (SiteBlock("mine", X, site),))


@pytest.mark.parametrize(("site", "match"), [(Quartic(1.0), "not convex"), (Honest(1.0), "not super-Gaussian")])
def test_sites_that_are_not_super_gaussian_are_refused(site, match):
    with pytest.raises(InputError, match=rf"block 'mine'.*{match}.*choose a site near it"):
        map_estimate(model_of(site))

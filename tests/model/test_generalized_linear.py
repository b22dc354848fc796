"""Models: site arithmetic, and what a model refuses."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md

SHAPE = (6, 5)


def pixels(**changes: object) -> md.SiteBlock:
    return md.SiteBlock(**{"name": "pixels", "analysis": md.Identity(SHAPE), "potential": md.Laplace(1.0), **changes})


def valid() -> dict:
    X = md.cartesian([0, 3], SHAPE)
    return {"measurement": X, "data": np.ones(X.out_shape, complex), "noise_variance": 0.1, "blocks": (pixels(),)}


def test_site_power_pools_moduli_over_groups_and_scales_broadcast_over_sites():
    s = np.arange(60.0).reshape(2, 6, 5) * (1 - 2j)
    single = md.SiteBlock("differences", md.FiniteDifferences(SHAPE), md.Laplace(1.0))
    grouped = md.SiteBlock("differences", md.FiniteDifferences(SHAPE), md.Laplace(1.0), (-3,))
    assert single.site_shape == (2, 6, 5) and grouped.site_shape == (1, 6, 5)
    np.testing.assert_allclose(single.site_power(s), np.abs(s) ** 2)
    np.testing.assert_allclose(grouped.site_power(s), np.sum(np.abs(s) ** 2, axis=0, keepdims=True))
    np.testing.assert_allclose(grouped.site_power(s.real), np.sum(s.real**2, axis=0, keepdims=True))
    for scale in (np.ones((6, 1)), np.ones(5), np.ones((6, 5))):
        assert pixels(potential=md.Laplace(scale)).site_shape == SHAPE
    vectors = md.SiteBlock("entries", md.Dense(np.eye(4)), md.Laplace(np.ones(4)))
    assert vectors.site_shape == (4,)


def test_roles_are_derived_unless_they_are_given_also_in_copies():
    X = md.Dense(np.eye(2))

    def role(site, **more):
        return md.SiteBlock("b", X, site, **more).role

    assert role(md.Laplace(1.0)) == role(md.Tilted(md.Gaussian(1.0), 0.5)) == "prior"
    assert role(md.Laplace(1.0), offset=np.ones(2)) == "likelihood"
    for site in (md.Logistic([1, -1]), md.Poisson([0, 2]), md.Hinge([1, -1])):
        assert role(site) == "likelihood" and role(site, role="prior") == "prior"
    assert role(md.Tilted(md.Gaussian(1.0), 0.5), role="likelihood") == "likelihood"
    assert role(md.Laplace(1.0), offset=np.ones(2), role="prior") == "prior"
    said = md.SiteBlock("b", md.Dense(np.eye(2)), md.Gaussian(1.0), role="prior")
    derived = md.SiteBlock("b", md.Dense(np.eye(2)), md.Gaussian(1.0))
    assert replace(said, offset=np.ones(2)).role == "prior"
    assert replace(derived, offset=np.ones(2)).is_likelihood
    assert replace(replace(derived, offset=np.ones(2)), offset=None).role == "prior"
    assert replace(derived, potential=md.Poisson([1, 2])).is_likelihood


@pytest.mark.parametrize(("ratio", "double"), [(100.0, False), (300.0, True)])
def test_data_with_little_noise_become_double(ratio: float, double: bool) -> None:
    """The condition number grows as the squared ratio of signal to noise."""
    X = md.cartesian([0, 3], SHAPE)
    data = np.full(X.out_shape, np.sqrt(3), dtype=np.complex64)  # of energy 30: one per pixel
    assert np.sum(np.abs(data) ** 2) == pytest.approx(30)
    model = md.GeneralizedLinearModel(X, data, ratio**-2, (pixels(),))
    assert model.data.dtype == (np.complex128 if double else np.complex64)

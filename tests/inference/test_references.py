"""The dense reference itself, and the shape of the criterion it computes."""

import numpy as np
import pytest

from mri_design import Dense, GeneralizedLinearModel, Laplace, SiteBlock
from mri_design.inference.references import exact_criterion, minimise_exact_criterion
from tests.slow_cases import slow_case


def test_one_unknown_by_hand():
    """phi = log(a^2 + pi) + tau^2 / pi + y^2 pi / (a^2 + pi) / sigma^2."""
    a, y, sigma2, tau = 1.3, 0.7, 0.2, 0.9
    block = SiteBlock("one", Dense(np.ones((1, 1))), Laplace(tau))
    model = GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    for pi in (0.05, 1.0, 20.0):
        by_hand = np.log(a**2 + pi) + tau**2 / pi + y**2 * pi / (a**2 + pi) / sigma2
        assert exact_criterion(model, (np.array([pi]),)) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("name", [slow_case("groups"), slow_case("parts"), "matrix"])
@pytest.mark.parametrize("site", ["Laplace", "Student-t"])
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


def midpoint_excess(model: GeneralizedLinearModel, count: int) -> np.ndarray:
    """phi at the middles of random segments of gammas, minus the means of their ends: positive where not convex."""
    rng = np.random.default_rng(2)
    excess = []
    for _ in range(count):
        ends = [tuple(np.exp(rng.normal(rng.uniform(-3, 3), 1, b.site_shape)) for b in model.blocks) for _ in range(2)]
        middle = tuple(2 / (1 / x + 1 / y) for x, y in zip(*ends, strict=True))
        mean = np.mean([exact_criterion(model, end) for end in ends])
        excess.append((exact_criterion(model, middle) - mean) / abs(mean))
    return np.array(excess)


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_convex_in_the_widths_for_log_concave_sites(scale, tiny_model, model_name):
    """TR-175, Theorem 3: no violation on any segment."""
    assert midpoint_excess(tiny_model(model_name, scale=scale), 8).max() <= 1e-9


@pytest.mark.parametrize("name", ["matrix", slow_case("parts"), slow_case("coils")])
@pytest.mark.parametrize("site", ["sech^2", "power 1.5", "own", "logistic", "tilted"])
def test_convex_for_every_log_concave_site(site, name, tiny_model, sites):
    if site in ("logistic", "tilted") and name == "coils":
        pytest.skip("odd parts need real coefficients")
    model = tiny_model(name, sites[site])
    assert model.log_concave
    assert midpoint_excess(model, 6).max() <= 1e-9


@pytest.mark.parametrize("site", ["Student-t", "power 0.6"])
def test_not_convex_for_sites_that_are_not_log_concave(site, tiny_model, sites):
    model = tiny_model("matrix", sites[site], scale=3.0)
    assert not model.log_concave
    assert midpoint_excess(model, 30).max() > 1e-3

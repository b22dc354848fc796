"""New sites and engines, written here in a few lines, work with all the others; Gaussian sites are exact in each."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import mri_design as md
from mri_design.estimation import IRLS
from mri_design.glm import DecoupledGaussian, LaplaceFilter, LaplacePropagation, VariationalGaussian, best_gaussian
from mri_design.inference import Engine
from mri_design.operators import Dense, Identity
from mri_design.sites import Gaussian, Laplace, Site, SuperGaussian
from mri_design.sites.base import SMOOTH
from mri_design.variances import Exact
from tests.refusals import refused


class Rounded(SuperGaussian):
    """log t = -tau sqrt(1 + x): Laplace tails without the corner."""

    offers = SuperGaussian.offers | SMOOTH | {"log_concave"}
    start_variance = 1.0

    def __init__(self, rate: float) -> None:
        self.rate = np.asarray(rate)

    def g(self, x):
        return -self.rate * np.sqrt(1 + x)

    def dg(self, x):
        return -0.5 * self.rate / np.sqrt(1 + x)

    def d2g(self, x):
        return 0.25 * self.rate * (1 + x) ** -1.5


class Waiting(Site):
    """The likelihood of a time w that was waited for an event of log rate s: t = exp(s - w exp s), on real s."""

    offers = Site.offers | SMOOTH | {"log_concave", "normaliser", "probability"}
    role = "likelihood"
    per_site = ("times",)

    def __init__(self, times) -> None:
        self.times = np.asarray(times, dtype=float)

    def log_t(self, s):
        return s - self._expected(s)

    def dlog_t(self, s):
        return 1 - self._expected(s)

    def d2log_t(self, s):
        return -self._expected(s)

    def _expected(self, s):
        with np.errstate(over="ignore"):
            return self.times * np.exp(s)

    @property
    def start_variance(self):
        return np.ones(self.times.shape)


def regression(site, prior=None) -> md.GeneralizedLinearModel:
    rng = np.random.default_rng(3)
    blocks = (
        md.SiteBlock("sites", Dense(rng.standard_normal((6, 3))), site),
        md.SiteBlock("weights", Identity((3,), is_complex=False), prior or Gaussian(0.7)),
    )
    return md.GeneralizedLinearModel(Dense(rng.standard_normal((4, 3))), rng.standard_normal(4), 0.5, blocks)


ENGINES = [
    md.DoubleLoop(Exact(), outer_iterations=100, tolerance=1e-8, inner=IRLS(tolerance=1e-18)),
    VariationalGaussian(Exact(), tolerance=1e-8),
    DecoupledGaussian(tolerance=1e-6),
    LaplacePropagation(chunk_size=2),
    LaplaceFilter(),
]


def test_every_engine_takes_the_new_site() -> None:
    model = regression(Rounded(1.3))
    found = {type(engine).__name__: engine.infer(model, np.random.default_rng(0)) for engine in ENGINES}
    assert all(posterior.convergence.converged for posterior in found.values())
    best, bound = found["VariationalGaussian"], found["DoubleLoop"]
    same = found["DecoupledGaussian"]
    for mean, criterion in ((same.mean, same.criterion[-1]), best_gaussian(model)):
        np.testing.assert_allclose(mean, best.mean, atol=1e-4)
        assert criterion == pytest.approx(best.criterion[-1], abs=1e-6)
    assert best.criterion[-1] < bound.criterion[-1] < best.criterion[-1] + 1
    np.testing.assert_allclose(bound.mean, best.mean, atol=0.05)
    mode = found["LaplacePropagation"].mean
    np.testing.assert_allclose(mode, found["LaplaceFilter"].mean, atol=0.1)
    np.testing.assert_allclose(mode, np.asarray(md.map_estimate(model, smoothing=1e-9)), atol=1e-3)


class Smooth(Engine):
    """An engine that the package does not know, and that hands everything on to one that it knows."""

    needs = frozenset({"g", "curvature"})

    def posterior(self, model, rng, warm_start, callback):
        return VariationalGaussian(Exact()).infer(model, rng, warm_start=warm_start, callback=callback)


class Flatter(Rounded):
    offers = Rounded.offers - {"bound"}


class Cornered(Laplace):
    """Says that it has a curvature, and has none."""

    offers = Laplace.offers | SMOOTH


class Silent(Rounded):
    """Does not say that it has one."""

    offers = SuperGaussian.offers


@pytest.mark.parametrize(
    ("engine", "site"),
    [
        (Smooth(), Laplace(1.0)),
        (Smooth(), Waiting(np.ones(6))),
        (md.DoubleLoop(), Flatter(1.0)),
        *((engine, Cornered(1.0)) for engine in (LaplacePropagation(), LaplaceFilter(), Smooth())),
        (LaplaceFilter(), Silent(1.0)),
    ],
)
def test_sites_that_do_not_offer_what_an_engine_needs_are_refused(engine, site) -> None:
    with refused("block 'sites'"):
        engine.infer(regression(site), np.random.default_rng(0))


def test_a_new_likelihood_has_an_evidence() -> None:
    """Against quadrature of one unknown; the site says what it is, and nobody asks for its class."""
    times = np.array([0.4, 1.5])
    blocks = (
        md.SiteBlock("weights", Identity((1,), is_complex=False), Gaussian(0.5)),
        md.SiteBlock("times", Dense([[1.0], [0.5]]), Waiting(times)),
    )
    model = md.GeneralizedLinearModel.of_sites(blocks)
    assert [block.is_likelihood for block in blocks] == [False, True]
    posterior = VariationalGaussian(Exact(), tolerance=1e-8).infer(model, np.random.default_rng(0))
    evidence = md.inference.log_evidence(posterior)
    u = np.linspace(-12, 8, 40001)
    s = np.multiply.outer([1.0, 0.5], u)
    joint = scipy.stats.norm.logpdf(u, scale=np.sqrt(2)) + np.sum(s - times[:, None] * np.exp(s), axis=0)
    truth = float(np.log(np.sum(np.exp(joint)) * (u[1] - u[0])))
    assert evidence.kind == "lower_bound" and truth - 0.03 < evidence.value < truth
    for engine in (LaplacePropagation(), LaplaceFilter(), DecoupledGaussian()):
        np.testing.assert_allclose(engine.infer(model, np.random.default_rng(0)).mean, posterior.mean, atol=0.3)


ON_GAUSSIAN_SITES = [
    md.DoubleLoop(Exact(), inner=IRLS(tolerance=1e-20), outer_iterations=5, tolerance=1e-8),
    VariationalGaussian(Exact(), tolerance=1e-8),
    DecoupledGaussian(),
    LaplacePropagation(chunk_size=2),
    LaplacePropagation(chunk_size=2, exact=("prior",)),
    LaplaceFilter(),
]


@pytest.mark.parametrize("engine", ON_GAUSSIAN_SITES, ids=lambda engine: type(engine).__name__)
def test_gaussian_sites_make_every_engine_exact(engine) -> None:
    """Mean, variances and, where there is one, the bound, for two blocks with offsets and a noise variance not one."""
    rng = np.random.default_rng(11)
    X, B, y, offset = rng.standard_normal((3, 4)), rng.standard_normal((6, 4)), rng.standard_normal(3), np.ones(6)
    sites = md.SiteBlock("sites", Dense(B), Gaussian(1.7), offset=offset)
    prior = md.SiteBlock("prior", Dense(np.eye(4)), Gaussian(0.3))
    model = md.GeneralizedLinearModel(Dense(X), y, 0.5, (sites, prior))
    A = X.T @ X + 1.7 * B.T @ B + 0.3 * np.eye(4)
    mean = np.linalg.solve(A, X.T @ y + 1.7 * B.T @ offset)
    found = engine.infer(model, np.random.default_rng(0))
    assert found.convergence.converged
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.image_variances, 0.5 * np.diag(np.linalg.inv(A)), rtol=1e-10)
    least = np.sum((y - X @ mean) ** 2) + 1.7 * np.sum((B @ mean - offset) ** 2) + 0.3 * np.sum(mean**2)
    evidence = 0.5 * (np.log(2 * np.pi * 0.5) - np.linalg.slogdet(A)[1] - least / 0.5)  # of 3 data in 4 unknowns
    for phi in found.criterion[-1:]:
        np.testing.assert_allclose(md.inference.evidence_bound(model, phi), evidence, rtol=1e-10)

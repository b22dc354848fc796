"""What estimators of variances do not take, by the field that the error names."""

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from mri_design.variances import ColumnControl
from tests.refusals import refused
from tests.variances.running import run, run_on


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("variance samples", lambda: md.MonteCarlo(1)),
        ("variance samples", lambda: md.ControlVariate(samples=1)),
        ("control", lambda: md.ControlVariate(control="rows")),
        ("Lanczos steps", lambda: md.Lanczos(0)),
    ],
)
def test_settings_that_cannot_be_are_refused(field, make):
    with refused(field):
        make()


@pytest.mark.parametrize(
    ("field", "estimator", "name"),
    [
        ("dense matrix", md.Exact(limit=11), "moduli"),
        ("Lanczos", md.Lanczos(5), "parts"),
        ("exact variances by columns", md.ExactByColumns(), "parts"),
    ],
)
def test_models_that_an_estimator_cannot_take_are_refused(field, estimator, name, tiny_model, random_precisions):
    model = tiny_model(name)
    with refused(field):
        run_on(estimator, model, random_precisions(model, 7))


def test_wavelets_alone_are_no_matter_of_columns():
    wavelet = md.Wavelet((16, 16), "db2", 1)
    blocks = (md.SiteBlock("wavelet", wavelet, md.Laplace(1.0)),)
    precision = PosteriorPrecision(md.cartesian(range(8), (16, 16)), blocks, (np.ones(wavelet.out_shape),))
    assert not ColumnControl.of(precision).exact
    with refused("exact variances by columns"):
        run(md.ExactByColumns(), precision)


@pytest.mark.parametrize(
    "estimator",
    [
        md.Exact(),
        md.ExactByColumns(),
        md.Lanczos(500),
        md.MonteCarlo(4),
        md.ControlVariate(4),
        md.ControlVariate(4, control="columns"),
    ],
    ids=lambda e: f"{type(e).__name__} {getattr(e, 'control', '')}",
)
def test_a_direction_that_nothing_measures_is_refused(estimator):
    """Differences and lines without DC both leave the mean of the image open."""
    D = md.FiniteDifferences((9, 7))
    pi = np.random.default_rng(8).uniform(0.5, 2, D.out_shape)
    blocks = (md.SiteBlock("differences", D, md.Laplace(1.0)),)
    with refused("posterior precision"):
        run(estimator, PosteriorPrecision(md.cartesian([0, 1], (9, 7)), blocks, (pi,)), seed=9)


def test_null_spaces_that_rounding_hides_are_found():
    """Cholesky succeeds on about half of these matrices of rank n - 1."""
    rng = np.random.default_rng(10)
    for _ in range(30):
        null = rng.standard_normal(12)
        null /= np.linalg.norm(null)
        X, B = (md.Dense(M - np.outer(M @ null, null)) for M in rng.standard_normal((2, 9, 12)))
        precision = PosteriorPrecision(X, (md.SiteBlock("rows", B, md.Laplace(1.0)),), (rng.uniform(0.1, 10, 9),))
        with refused("posterior precision"):
            md.Exact()(precision, [B], rng, np.zeros(12))

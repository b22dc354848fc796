"""Pools, queries, filters and shots that cannot be, by the field that the error names."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import mri_design as md
from mri_design.glm import (
    DecoupledGaussian,
    FilterState,
    InfomaxQuery,
    LabelPool,
    LaplaceFilter,
    LaplacePropagation,
    PoolDesign,
    VariationalGaussian,
    expected_gain,
)
from mri_design.operators import Dense, DirectFourier, Identity, SparseMatrix
from mri_design.sites import ExponentialPower, Hinge, Laplace, Logistic, Poisson, PoissonResponse, StudentT, Tilted
from mri_design.variances import Exact
from tests.design.conftest import make_posterior
from tests.glm.test_laplace import with_prior
from tests.refusals import refused

RNG = np.random.default_rng(0)
STATE = FilterState(np.zeros(3), np.eye(3))
POOL = LabelPool(RNG.standard_normal((60, 7)))
WEIGHTS = Identity((2,), is_complex=False)
LABELS = md.SiteBlock("labels", Dense(np.ones((2, 3))), Logistic(np.ones(2)))
MODULI = md.SiteBlock("moduli", Identity((3,)), StudentT(3.0, 1.0))
SPOKE = np.stack([np.zeros(5), np.linspace(-2, 2, 5)], axis=1)
ROOT = SimpleNamespace(images=np.ones((2, 12, 12), complex), with_turned=True)


def begun(indices, labels):
    return PoolDesign().begin(POOL, indices, labels, RNG)


def encode(k):
    return DirectFourier(k, (12, 12))


def logistic():
    return with_prior(np.ones((2, 3)), Logistic(np.ones(2)))


REFUSED = [
    *(("block", lambda n=n: PoolDesign(block=n)) for n in (0, -3, 1.5)),
    ("score", lambda: PoolDesign("margin")),
    *(("pool", lambda f=f: LabelPool(f)) for f in (np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3), np.eye(3) * 1j)),
    ("pool", lambda: LabelPool(scipy.sparse.csr_array((0, 3)))),
    ("matrix", lambda: LabelPool(np.array([[np.nan, 1.0]]))),
    *(("rate", lambda s=s: LabelPool(np.eye(3), rate=s)) for s in (0.0, -1.0)),
    (
        "prior block 'w'",
        lambda: LabelPool(np.eye(3), (md.SiteBlock("w", SparseMatrix(scipy.sparse.eye_array(2)), Laplace(1.0)),)),
    ),
    (
        "prior block 'w'",
        lambda: LabelPool(np.ones((5, 2)), (md.SiteBlock("w", WEIGHTS, Laplace(1.0), offset=np.ones(2)),)),
    ),
    *(
        ("labelled cases", lambda i=i, c=c: begun(i, c))
        for i, c in (([], []), ([1, 2], [1]), ([1, 1], [1, -1]), ([1, 60], [1, -1]))
    ),
    *(("labelled cases", lambda i=i: begun(i, [1, -1])) for i in ([-1, 2], [0.5, 2])),
    *(("labels", lambda c=c: begun([1, 2], c)) for c in ([0, 1], [1, np.nan], ["a", "b"])),
    ("labels", lambda: PoolDesign().update(begun([1, 2], [1, -1]), 30, 0, RNG)),
    ("labelled cases", lambda: PoolDesign().update(begun([1, 2], [1, -1]), 2, 1, RNG)),
    ("count", lambda: PoolDesign().ask(begun([1, 2], [1, -1]), int, -1, RNG)),
    *(("power", lambda p=p: InfomaxQuery(p)) for p in (0, -1.0, np.nan, "much", [1.0])),
    *(("fixed", lambda x=x: InfomaxQuery(1.0, fixed=x)) for x in ((0.8, 0.7), (np.inf,), (0.1j,), ("a",), 0.1)),
    ("criterion", lambda: InfomaxQuery(1.0, criterion="entropy")),
    ("search", lambda: InfomaxQuery(1.0, search="3d")),
    ("fixed", lambda: InfomaxQuery(1.0, fixed=(0.1, 0.1, 0.1)).propose(STATE)),
    *(
        ("pool", lambda q=q: InfomaxQuery(1.0).score(STATE, q))
        for q in (np.zeros((0, 3)), np.zeros((3, 2)), np.full((1, 3), np.nan), 1j * np.ones((1, 3)))
    ),
    ("variance", lambda: expected_gain(PoissonResponse(), 0.0, -1.0)),
    ("power", lambda: md.glm.asymptotic_information(PoissonResponse(), np.ones(3), 0.0)),
    ("theta", lambda: md.glm.asymptotic_information(PoissonResponse(), np.zeros(3), 1.0)),
    ("inputs", lambda: md.glm.asymptotic_information(PoissonResponse(), np.ones(3), 1.0, "cube")),
    *(("drift", lambda q=q: LaplaceFilter(drift=q)) for q in (-1.0, [[1.0, 2.0], [2.0, 1.0]], np.nan, [1j])),
    *(
        ("query", lambda x=x: LaplaceFilter().update(STATE, x, Poisson(1)))
        for x in (np.ones(2), np.full(3, np.nan), 1j * np.ones(3))
    ),
    ("response", lambda: LaplaceFilter().update(STATE, np.ones(3), Poisson([1, 2]))),
    ("response", lambda: LaplaceFilter().update(STATE, np.ones(3), Hinge(1.0))),
    ("drift", lambda: LaplaceFilter(drift=np.ones(2)).update(STATE, np.ones(3), Poisson(1))),
    ("drift", lambda: LaplaceFilter(drift=0.1).infer(with_prior(np.ones((1, 2)), Poisson([1])), RNG)),
    ("filter state", lambda: FilterState(np.zeros(2), np.eye(3))),
    ("filter state", lambda: FilterState(np.full(2, np.nan), np.eye(2))),
    ("filter state", lambda: FilterState(np.zeros(2), -np.eye(2))),
    ("filter state", lambda: FilterState(1j * np.ones(2), np.eye(2))),
    ("prior", lambda: LaplaceFilter().infer(md.GeneralizedLinearModel.of_sites([LABELS]), RNG)),
    (
        "Gaussian part of the model",
        lambda: DecoupledGaussian().infer(md.GeneralizedLinearModel.of_sites([LABELS]), RNG),
    ),
    (
        "model with blocks 'labels'",
        lambda: VariationalGaussian(Exact()).infer(md.GeneralizedLinearModel.of_sites([LABELS]), RNG),
    ),
    *(
        ("block 'sites'", lambda s=s, e=e: e.infer(with_prior(np.ones((2, 3)), s), RNG))
        for s in (Laplace(1.0), Tilted(Laplace(1e-4), 0.5), ExponentialPower(1.5, 1.0))
        for e in (LaplaceFilter(), LaplacePropagation())
    ),
    *(
        (
            "block 'moduli'",
            lambda e=e: e.infer(md.GeneralizedLinearModel(Identity((3,)), np.ones(3) + 0j, 1.0, (MODULI,)), RNG),
        )
        for e in (LaplaceFilter(), DecoupledGaussian())
    ),
    *(
        (name, lambda name=name, wrong=wrong: LaplacePropagation(**{name: wrong}))
        for name, wrong in (("partition", "slices"), ("schedule", "both"), ("chunk_size", 0), ("max_sweeps", 0))
    ),
    *(("damping", lambda d=d: LaplacePropagation(damping=d)) for d in (0.0, 1.5)),
    ("tolerance", lambda: LaplacePropagation(tolerance=-1.0)),
    ("exact", lambda: LaplacePropagation(exact=("none",)).infer(logistic(), RNG)),
    ("exact block 'sites'", lambda: LaplacePropagation(exact=("sites",)).infer(logistic(), RNG)),
    ("unknowns", lambda: LaplacePropagation(limit=2).infer(logistic(), RNG)),
    *(
        (name, lambda name=name, wrong=wrong: DecoupledGaussian(**{name: wrong}))
        for name, wrong in (("delta", -1.0), ("delta", np.nan), ("iterations", 0), ("tolerance", np.inf))
    ),
    *(
        (name, lambda name=name, wrong=wrong: VariationalGaussian(**{name: wrong}))
        for name, wrong in (("iterations", 0), ("tolerance", -1.0), ("criterion", "guess"))
    ),
    ("candidates", lambda: md.glm.best_shot(ROOT, md.glm.rotations(SPOKE), [], encode, radius=0.1)),
    ("radius", lambda: md.glm.best_shot(ROOT, md.glm.rotations(SPOKE), [0.0], encode, radius=0.0)),
    ("shot", lambda: md.glm.rotations(np.zeros(4))),
    ("posterior", lambda: md.glm.exact_root("posterior")),
]


@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_what_cannot_be_is_refused_by_its_field(field, call):
    with refused(field):
        call()


def test_posteriors_and_shots_that_do_not_fit_are_refused(rng):
    posterior = make_posterior(1, tuple(range(4, 12)))
    root = md.glm.exact_root(posterior)
    with refused("encode"):
        md.glm.shot_gain(root, SPOKE, lambda k: DirectFourier(k, (8, 8)))
    with refused("draws"):
        md.glm.drawn_root(posterior, rng, 0)
    for field, wrong in (("rows", {"rows": 0}), ("rows", {"rows": 10_000}), ("energy", {"energy": 0.0})):
        with refused(field):
            md.glm.best_free_encoding(posterior, rng, **wrong)
    for energy in (-1.0, np.nan):
        with refused("energy"):
            md.glm.best_free_encoding(posterior, rng, energy=energy)
    with refused("posterior"):
        md.glm.best_free_encoding(replace(posterior, precision=SimpleNamespace(complex_linear=False)), rng)


def test_what_only_rounding_determines_is_refused():
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((5, 30)) @ rng.standard_normal((30, 30))
    block = md.SiteBlock("labels", Dense(rng.standard_normal((1, 30))), Logistic(np.ones(1)))
    for scale in (1.0, 1e-3, 1e3):
        model = md.GeneralizedLinearModel(Dense(scale * rows), np.ones(5), 1.0, (block,))
        with refused("a chunk and its cavity"):
            LaplacePropagation().infer(model, np.random.default_rng(7))

"""Settings, starts and models that inference does not take, by the field that the error names."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.inference import LogDeterminant, WarmStart, cold_start
from mri_design.krylov import conjugate_gradients
from mri_design.model import PosteriorPrecision
from tests.refusals import refused
from tests.unfit_sites import Honest, Quartic


class UndefinedFarOut(md.Laplace):
    """A site whose derivative is NaN beyond all that a probe would try."""

    def dg(self, x):
        return np.where(x > 1e9, np.nan, super().dg(x))


SQUARE = md.Identity((4, 4))


def square(site=None, **more) -> md.GeneralizedLinearModel:
    blocks = (md.SiteBlock("pixels", SQUARE, site or md.Laplace(1.0), **more),)
    return md.GeneralizedLinearModel(SQUARE, np.full((4, 4), 1e6 + 0j), 1.0, blocks)


def learnt(model, **settings):
    return md.learn_hyperparameters(model, md.DoubleLoop(md.Exact()), np.random.default_rng(0), **settings)


def with_steps() -> md.GeneralizedLinearModel:
    eye = np.eye(6)
    blocks = (
        md.SiteBlock("entries", md.Dense(eye), md.Laplace(1.0)),
        md.SiteBlock("steps", md.Dense(np.diff(eye, axis=0)), md.Laplace(1.0)),
    )
    return md.GeneralizedLinearModel(md.Dense(eye), np.ones(6), 1.0, blocks)


def improper(line: int = 4) -> md.GeneralizedLinearModel:
    X = md.cartesian([line], (8, 8))
    alone = (md.SiteBlock("differences", md.FiniteDifferences((8, 8)), md.Laplace(1.0)),)
    return md.GeneralizedLinearModel(X, np.zeros(X.out_shape, complex), 1.0, alone)


SETTINGS = [
    *(
        ("tolerance", lambda kind=kind, t=t: kind(tolerance=t))
        for kind in (md.ADMM, md.IRLS, md.LBFGS, md.Automatic, md.DoubleLoop, md.MonteCarlo, md.ControlVariate)
        for t in (np.nan, -1e-3, "small")
    ),
    *(
        (name, lambda kind=kind, name=name, wrong=wrong: kind(**{name: wrong}))
        for kinds, name, least in (
            ((md.ADMM, md.IRLS, md.LBFGS, md.Automatic), "max_iterations", 0),
            ((md.MonteCarlo, md.ControlVariate), "max_iterations", 1),
            ((md.ADMM, md.IRLS), "solver_iterations", 1),
            ((md.ADMM,), "check", 1),
            ((md.ADMM,), "balanced", 0),
            ((md.LBFGS,), "window", 1),
            ((md.LBFGS,), "history", 0),
            ((md.MapEstimate,), "stages", 1),
        )
        for kind in kinds
        for wrong in (least - 1, least + 0.5, np.nan, None)
    ),
    *(("relaxation", lambda r=r: md.ADMM(relaxation=r)) for r in (0.5, 2.5)),
    ("solver_tolerance", lambda: md.ADMM(solver_tolerance=np.nan)),
    ("algorithm", lambda: md.DoubleLoop(algorithm="third")),
    ("criterion", lambda: md.DoubleLoop(criterion="all")),
    ("log-determinant: probes", lambda: LogDeterminant(probes=1)),
    ("log-determinant: steps", lambda: LogDeterminant(steps=0)),
    *(
        (
            name,
            lambda name=name, wrong=wrong: conjugate_gradients(
                lambda x: 2 * x, np.ones((1, 3)), n_axes=1, **{name: wrong}
            ),
        )
        for name, wrong in (("tolerance", np.nan), ("tolerance", -1.0), ("max_iterations", -1), ("max_iterations", 2.5))
    ),
    ("learn_hyperparameters: rounds", lambda: learnt(with_steps(), rounds=0)),
    ("learn_hyperparameters: tolerance", lambda: learnt(with_steps(), tolerance=0.0)),
    ("learn_hyperparameters", lambda: learnt(with_steps(), scales=False)),
    ("blocks", lambda: learnt(replace(square(), blocks=square().blocks * 2))),
    ("labels", lambda: learnt(with_steps(), labels={"edges": np.zeros(60)})),
    ("block 'entries'", lambda: learnt(with_steps())),
    ("prior", lambda: learnt(improper())),
    ("learn_hyperparameters", lambda: learnt(md.GeneralizedLinearModel.of_sites(square().blocks), noise=True)),
    ("learn_hyperparameters", lambda: learnt(square(offset=np.ones((4, 4))))),
    *(
        ("block 'pixels'", lambda s=s: md.DoubleLoop().infer(square(s), np.random.default_rng(0)))
        for s in (Quartic(1.0), UndefinedFarOut(1e-3))
    ),
    *(("block 'pixels'", lambda s=s: md.MapEstimate()(square(s))) for s in (Quartic(1.0), Honest(1.0))),
    *(
        ("start", lambda u=u: md.MapEstimate()(square(), u))
        for u in (np.full((4, 4), np.nan), np.full((4, 4), np.inf), np.ones(4))
    ),
    ("model with blocks 'differences'", lambda: md.MapEstimate().estimate(improper(1))),
]


@pytest.mark.parametrize(("field", "call"), SETTINGS)
def test_what_cannot_be_is_refused_by_its_field(field, call):
    with refused(field):
        call()


ENGINES = [
    md.DoubleLoop(),
    md.VariationalGaussian(),
    md.DecoupledGaussian(),
    md.LaplacePropagation(),
    md.LaplaceFilter(),
]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("warm start: mean", {"mean": np.zeros(3)}),
        ("warm start: mean", {"mean": np.full(4, np.nan)}),
        ("warm start: samples", {"samples": np.zeros((2, 3))}),
        ("warm start: z", {"z": ()}),
        *(
            ("warm start: z of block 'labels'", {"z": (z, np.ones(4))})
            for z in (np.ones(3), np.full(4, np.nan), np.zeros(4), -1.0)
        ),
    ],
)
def test_warm_starts_of_another_model_are_refused(engine, field, change):
    prior = md.SiteBlock("prior", md.Dense(np.eye(4)), md.Gaussian(0.3))
    labels = md.SiteBlock("labels", md.Dense(np.eye(4)), md.Logistic(np.ones(4)))
    start = replace(WarmStart(np.zeros(4), (np.ones(4), np.ones(4))), **change)
    with refused(field):
        engine.infer(md.GeneralizedLinearModel.of_sites((labels, prior)), np.random.default_rng(0), warm_start=start)


def test_log_determinants_of_indefinite_matrices_are_refused(tiny_model):
    model = tiny_model("matrix")
    pi = tuple(np.full(b.site_shape, -9.0) for b in model.blocks)
    with refused("posterior precision"):
        LogDeterminant()(
            PosteriorPrecision(model.measurement, model.blocks, pi), np.random.default_rng(0), cold_start(model).mean
        )

"""Every public object says what it is in a few lines: no arrays written out, no addresses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest

import mri_design as md

RNG = np.random.default_rng(0)
LINES = (16, 15, 17, 14, 18, 13, 19, 12, 25, 4)
SIDE = 32
MATRIX = RNG.standard_normal((40, 30))
ABSTRACT = {"LinearOperator", "LoopEngine", "Site", "SuperGaussian"}
"""Classes to derive one's own from."""
EXCEPTIONS = {"InputError", "MriDesignError", "UsageError"}
CAUCHY = (lambda x: -np.log1p(x), lambda x: -1 / (1 + x), lambda x: 1 / (1 + x) ** 2)
MOST_LINES, MOST_LETTERS = 6, 500


@cache
def scan() -> md.LoadedScan:
    prior = [{"kind": "pixels", "scale": 100.0}, {"kind": "differences", "scale": 10.0}]
    recipe = {"simulation": {"matrix": SIDE, "coils": 4}, "prior": prior, "coils": {"calibration_lines": 8}}
    return md.load("phantom:brain", recipe=recipe)


@cache
def design() -> md.ScanDesign:
    return scan().design(10)


@cache
def volume() -> md.ScanVolume:
    two = md.load(np.concatenate([scan().data.kspace[:, :1]] * 2), recipe=scan().recipe)
    return two.reconstruct(slices="all", method="zero-filled")


@cache
def prepared() -> md.PreparedScan:
    return md.prepare(scan().data)


@cache
def head() -> md.MRSlice:
    return prepared().slice_model()


@cache
def state() -> md.DesignState:
    return md.run_design([head()], "calibrated", 10, scan().recipe)


@cache
def posterior() -> md.GaussianPosterior:
    return md.DoubleLoop(md.MonteCarlo(2), outer_iterations=1).infer(head().model(LINES), RNG)


@cache
def dense() -> md.GeneralizedLinearModel:
    site = md.Laplace(np.linspace(1, 2, 30))
    return md.GeneralizedLinearModel(md.Dense(MATRIX), MATRIX[:, 2], 0.1, (block(site),))


def block(site: md.Site) -> md.SiteBlock:
    return md.SiteBlock("entries", md.Identity((30,), is_complex=False), site)


def wide(count: int = SIDE) -> np.ndarray:
    return np.linspace(0.5, 1.5, count)


MADE: Mapping[str, Callable[[], object]] = {
    "ADMM": md.ADMM,
    "Automatic": md.Automatic,
    "BernoulliResponse": md.BernoulliResponse,
    "Calibrated": md.Calibrated,
    "CartesianLines": lambda: md.cartesian(LINES, (SIDE, SIDE), head().maps),
    "Checkpoint": lambda: md.Checkpoint("a.npz"),
    "Choice": lambda: state().trace.steps[0].choice,
    "Coefficients": lambda: md.Coefficients(md.Identity((SIDE, SIDE)), wide()),
    "ControlVariate": md.ControlVariate,
    "Convergence": lambda: md.Convergence(md.Status.CONVERGED, 3, 0.1),
    "DecoupledGaussian": md.DecoupledGaussian,
    "Dense": lambda: md.Dense(MATRIX),
    "DesignEngine": lambda: md.DesignEngine(md.Calibrated()),
    "DesignOptions": lambda: md.DesignOptions(stop=md.UntilError(0.1), callback=lambda state: None),
    "DesignState": state,
    "DesignView": lambda: md.DesignView(candidates(), [posterior()], state().trace.steps),
    "DoubleLoop": md.DoubleLoop,
    "Exact": md.Exact,
    "ExactByColumns": md.ExactByColumns,
    "ExponentialPower": lambda: md.ExponentialPower(0.5, wide()),
    "FilterState": lambda: md.FilterState(wide(), np.eye(SIDE)),
    "FiniteDifferences": lambda: md.FiniteDifferences((SIDE, SIDE)),
    "Forecast": lambda: state().trace.steps[0].forecast,
    "Gaussian": lambda: md.Gaussian(wide()),
    "GaussianPosterior": posterior,
    "GaussianResponse": md.GaussianResponse,
    "GeneralizedLinearModel": dense,
    "Generic": lambda: md.Generic(*CAUCHY, log_concave=False, name="own"),
    "GradientLimits": lambda: md.GradientLimits(amplitude=0.04, slew=150.0),
    "Hinge": lambda: md.Hinge(np.sign(wide())),
    "IRLS": md.IRLS,
    "Identity": lambda: md.Identity((SIDE, SIDE)),
    "ImageFacts": lambda: md.ImageFacts((SIDE, SIDE), 1.0),
    "ImageStack": lambda: md.ImageStack(np.ones((1, 256, 256), np.float32), header={"a": "b" * 900}),
    "ImageErrors": lambda: md.ImageErrors(md.Recipe()),
    "InferenceOptions": lambda: md.InferenceOptions(warm_start=state().warm[0]),
    "InfomaxQuery": lambda: md.InfomaxQuery(9.0, fixed=wide()),
    "InformationGain": md.InformationGain,
    "KSpaceData": lambda: scan().data,
    "LBFGS": md.LBFGS,
    "LabelPool": lambda: md.LabelPool(MATRIX, (block(md.Laplace(1.0)),)),
    "Lanczos": md.Lanczos,
    "LanczosInformationGain": md.LanczosInformationGain,
    "Laplace": lambda: md.Laplace(wide(900)),
    "LaplaceFilter": lambda: md.LaplaceFilter(drift=wide()),
    "LaplacePropagation": md.LaplacePropagation,
    "LineCandidates": lambda: candidates(),
    "LoadedScan": scan,
    "Logistic": lambda: md.Logistic(np.sign(wide())),
    "MRSlice": head,
    "MapEstimate": md.MapEstimate,
    "MonteCarlo": md.MonteCarlo,
    "NonUniformFourier": lambda: md.NonUniformFourier(np.zeros((5, 2)), (8, 8)),
    "OracleResidual": lambda: md.OracleResidual(truths=(np.ones((SIDE, SIDE)),)),
    "PenalisedProblem": lambda: md.PenalisedProblem(dense(), ()),
    "Poisson": lambda: md.Poisson(np.arange(30)),
    "PoissonResponse": md.PoissonResponse,
    "PoolDesign": md.PoolDesign,
    "PositiveMixture": lambda: md.PositiveMixture([0.5, 0.5], [md.Gaussian(wide()), md.Gaussian(2 * wide())]),
    "PreparedScan": prepared,
    "ReadLimits": md.ReadLimits,
    "ReadOptions": md.ReadOptions,
    "Recipe": lambda: scan().recipe,
    "Reconstruction": lambda: md.reconstruct(head(), method="zero-filled"),
    "ScanDesign": design,
    "ScanImage": lambda: design().reconstruct(),
    "ScanVolume": volume,
    "Sech2": lambda: md.Sech2(wide()),
    "ShiftedMixture": lambda: md.ShiftedMixture([0.5, 0.5], [md.Gaussian(1.0), md.Gaussian(2.0)], [0.0, 1.0]),
    "SiteBlock": lambda: block(md.Laplace(np.linspace(1, 2, 30))),
    "SparsityBlock": lambda: md.SparsityBlock("wavelet", 3.0),
    "Status": lambda: md.Status.CONVERGED,
    "StrategyComparison": lambda: scan().compare(["low-pass"], lines=10),
    "StudentT": lambda: md.StudentT(3.0, wide()),
    "Tilted": lambda: md.Tilted(md.Laplace(1.0), wide()),
    "TrajectoryData": lambda: md.TrajectoryData(np.ones((1, 1, 64), np.complex64), np.zeros((64, 2)), (8, 8)),
    "UntilError": lambda: md.UntilError(0.1),
    "UntilGain": lambda: md.UntilGain(1.0),
    "VariableDensity": md.VariableDensity,
    "VariationalGaussian": md.VariationalGaussian,
    "WarmStart": lambda: md.WarmStart.from_posterior(posterior()),
    "Wavelet": lambda: md.Wavelet((SIDE, SIDE)),
}
"""One object of every public class, by its name."""


def candidates() -> md.LineCandidates:
    return md.LineCandidates(np.ones(SIDE, dtype=bool), LINES, 12)


def test_there_is_one_of_every_public_class() -> None:
    classes = {name for name in md.__all__ if inspect.isclass(getattr(md, name))}
    assert classes == set(MADE) | ABSTRACT | EXCEPTIONS


@pytest.mark.parametrize("name", sorted(MADE))
def test_it_says_what_it_is_in_a_few_lines(name: str) -> None:
    text = repr(MADE[name]())
    assert len(text) <= MOST_LETTERS and len(text.splitlines()) <= MOST_LINES, text
    assert " at 0x" not in text and "array(" not in text
    assert name.lower()[:4] in text.lower() or name == "Status", text

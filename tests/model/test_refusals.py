"""Models, priors and slices that cannot be, by the field that the error names."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.model import (
    AlikePatches,
    Companion,
    ExpectedImage,
    PhaseMap,
    PhasePrior,
    companion_patches,
    estimate_phase,
    find_alike,
)
from mri_design.operators import CentredFFT
from mri_design.priors import BLOCKS
from mri_design.readouts import LineReadouts
from tests.refusals import refused

SHAPE = (6, 5)
N = (16, 12)
RNG = np.random.default_rng(1)
NOISE = RNG.standard_normal(N) + 1j * RNG.standard_normal(N)
IMAGE = np.outer(np.hanning(N[0]), np.hanning(N[1])) * np.exp(0.2j)
STRIPES = np.cos(np.arange(144.0)).reshape(12, 12) + 0.1 * np.arange(12)
FLAT = PhaseMap.known(np.zeros(SHAPE))
THREE = md.Dense(np.eye(3))


def pixels(**changes: object) -> md.SiteBlock:
    return md.SiteBlock(**{"name": "pixels", "analysis": md.Identity(SHAPE), "potential": md.Laplace(1.0), **changes})


def model(**changes: object) -> md.GeneralizedLinearModel:
    X = md.cartesian([0, 3], SHAPE)
    valid = {"measurement": X, "data": np.ones(X.out_shape, complex), "noise_variance": 0.1, "blocks": (pixels(),)}
    return md.GeneralizedLinearModel(**{**valid, **changes})


def one_slice(**changes: object) -> md.MRSlice:
    known = {"kspace": (CentredFFT(N)(IMAGE) + 0.01 * NOISE)[None], "measured": np.ones(N[0], bool)}
    return md.MRSlice(**{**known, "noise_variance": 1e-4, **changes})


MODELS = [
    *(("data", lambda y=y: model(data=y)) for y in (np.ones((1, 3, 5), complex), np.full((1, 2, 5), np.nan + 0j))),
    *(("data", lambda y=y: model(data=y)) for y in (np.full((1, 2, 5), np.inf + 0j), np.array([[["x"]]]))),
    ("measurement and data", lambda: model(data=None)),
    *(
        ("noise_variance", lambda v=v: model(noise_variance=v))
        for v in (0.0, None, 1 + 1j, np.ones(2), "x", -1.0, np.nan, np.inf)
    ),
    ("measurement and data", lambda: model(measurement=None)),
    ("blocks", lambda: model(blocks=())),
    ("block 'pixels'", lambda: model(blocks=(pixels(analysis=md.Identity((5, 6))),))),
    ("block 'pixels'", lambda: model(blocks=(pixels(analysis=md.Identity(SHAPE, is_complex=False)),))),
    ("blocks", lambda: md.GeneralizedLinearModel.of_sites([])),
    ("analysis and potentials", lambda: md.GeneralizedLinearModel(THREE, np.ones(3), 0.1, analysis=THREE)),
    (
        "data",
        lambda: md.GeneralizedLinearModel(THREE, np.ones(3) + 1j, 0.1, (md.SiteBlock("b", THREE, md.Laplace(1.0)),)),
    ),
    ("block 'pixels'", lambda: pixels(potential="Laplace")),
    ("block 'pixels'", lambda: pixels(analysis=np.eye(3))),
    *(("block 'pixels': group_axes", lambda a=a: pixels(group_axes=a)) for a in ((-1, -1), (0,), (-3,))),
    *(
        ("block 'pixels': scale of the sites", lambda s=s: pixels(potential=md.Laplace(s)))
        for s in (np.ones(4), np.ones((2, 6, 5)))
    ),
    ("block 'pixels': scale of the sites", lambda: pixels(potential=md.Laplace(np.ones((6, 5))), group_axes=(-1,))),
    ("block 'pixels': role", lambda: pixels(role="belief")),
    ("block 'data': offset", lambda: md.SiteBlock("data", THREE, md.Laplace(1.0), offset=np.array([1.0, np.nan, 1.0]))),
    ("block 'data': odd part of the sites", lambda: md.SiteBlock("data", md.Dense(np.eye(2)), md.Logistic(np.ones(3)))),
    ("block 'data'", lambda: md.SiteBlock("data", md.Dense(np.eye(2) + 0j), md.Hinge(np.array([1.0, -1.0])))),
]
COVARIANCES = [
    *(("noise covariance", given) for given in ({}, {"variances": 1.0, "coils": np.eye(3)})),
    *(("noise variances", {"variances": v}) for v in (0.0, -1.0, np.nan, np.ones(7))),
    *(("coil covariance", {"coils": c}) for c in (np.eye(2), np.diag([1.0, 1.0, 0.0]), np.diag([1.0, np.inf, 1.0]))),
    ("coil covariance", {"coils": np.triu(np.ones((3, 3)))}),
    ("noise covariance", {"matrix": np.eye(4)}),
]
PRIORS = [
    *(("image", lambda n=n: find_alike(n)) for n in (NOISE, np.ones((20, 20)), np.zeros((20, 20)))),
    *(("image", lambda n=n: find_alike(n)) for n in (np.full((9, 9), np.nan), np.ones(9), np.ones((2, 9, 9)))),
    *(("neighbours", lambda s=s: find_alike(np.resize(STRIPES, s), 99)) for s in ((1, 1), (1, 40), (4, 4))),
    ("neighbours", lambda: find_alike(STRIPES, 0)),
    ("alike patches", lambda: AlikePatches(np.zeros((2, 3, 3), int), np.zeros((1, 3, 3)))),
    *(("image", lambda n=n: companion_patches([n])) for n in (np.ones(N), NOISE.real)),
    *(("companion", lambda n=n: companion_patches([n])) for n in (np.zeros(N), np.full(N, np.nan))),
    ("companion other", lambda: Companion("other", np.ones((2, *N)))),
    ("repeat", lambda: ExpectedImage(NOISE, np.ones((3, 3)))),
    ("companion", lambda: replace(one_slice(), companion=companion_patches([STRIPES]))),
    *(
        ("tau_limit_bright", lambda k=k: md.SparsityBlock(k, 1.0, tau_limit=0.4, tau_limit_bright=0.02))
        for k in ("differences", "non-local")
    ),
    ("tau_limit_bright", lambda: md.SparsityBlock("pixels", 1.0, tau_limit_bright=0.02)),
    ("reweighted", lambda: md.SparsityBlock("pixels", 1.0, tau_limit=0.4, reweighted=True)),
    ("site", lambda: md.SparsityBlock("pixels", 1.0, site="laplas")),
    ("phase", lambda: md.SparsityBlock("pixels", 1.0).sites(N, 1.0, 1.0, PhasePrior())),
    ("site", lambda: md.register_site("a b", md.Laplace)),
    ("block kind mine", lambda: md.register_block("mine", 3)),
    *(("phase", lambda s=s: estimate_phase(0.3 * NOISE[:, :s], 0.09)) for s in (12, 11)),
    *(
        ("image", lambda i=i: estimate_phase(i, 0.1))
        for i in (np.ones(N), np.ones((2, *N), complex), np.full(N, np.nan + 0j))
    ),
    ("noise_variance", lambda: estimate_phase(np.ones(N, complex), -1.0)),
    ("phase", lambda: estimate_phase(np.zeros(N, complex), 0.0)),
    ("phase map", lambda: PhaseMap(np.ones(N, complex), np.ones((3, 3)))),
    ("phase map", lambda: PhaseMap(2 * np.ones(N, complex), np.ones(N))),
    *(("phase map", lambda c=c: PhaseMap(np.ones(N, complex), np.full(N, c))) for c in (2.0, np.nan)),
    ("imaginary_ratio", lambda: PhasePrior(FLAT, 0.0)),
    ("phase sites", lambda: PhasePrior(FLAT, sites="both")),
    ("phase", lambda: one_slice(phase=PhasePrior(FLAT))),
]
SLICES = [
    ("kspace", lambda: one_slice(kspace=np.ones(N, complex))),
    ("kspace", lambda: one_slice(readouts=LineReadouts((12, 16)))),
    ("prior", lambda: one_slice(prior="wavelet")),
    ("prior[1]", lambda: one_slice(prior=(md.SparsityBlock("pixels", 1.0), "wavelet"))),
    ("coil maps", lambda: one_slice(kspace=np.ones((2, *N), complex))),
    ("coil maps", lambda: one_slice(maps=np.ones((3, *N)))),
    ("measured", lambda: one_slice(measured=np.ones(12, bool))),
    ("samples", lambda: one_slice(samples=np.ones(N))),
    *(("noise_variance", lambda v=v: one_slice(noise_variance=v)) for v in (0.0, -1.0, np.nan)),
    ("k-space centre", lambda: one_slice(kspace=np.zeros((1, *N), complex)).model([8])),
    ("k-space centre", lambda: one_slice().model([])),
    ("k-space centre", lambda: one_slice(kspace=NOISE[None], noise_variance=1.0).model(range(4, 13))),
    ("phase", lambda: one_slice(kspace=0.01 * NOISE[None], phase=PhasePrior()).model([8, 7, 9, 6], signal=1.0)),
    ("lines", lambda: one_slice().model([8, 8])),
    *(("lines", lambda n=n: one_slice().acquire(n)) for n in ([2, 16], [-1])),
    ("lines", lambda: one_slice(measured=np.arange(N[0]) != 3).acquire([2, 3])),
    ("lines", lambda: one_slice().model([8, 16])),
    ("block kind", lambda: one_slice(prior=(md.SparsityBlock("curvelets", 1.0),)).model([8])),
    ("scale", lambda: one_slice(prior=(md.SparsityBlock("pixels", 0.0),)).model([8])),
    ("wavelet levels", lambda: one_slice(prior=(md.SparsityBlock("wavelet", 1.0, levels=9),)).model([8])),
    ("blocks", lambda: one_slice(prior=()).model([8])),
    ("noise_variance", lambda: md.KSpaceData(np.ones((1, 1, *N), np.complex64), np.ones(N[0], bool)).slice_model()),
    (
        "coil maps",
        lambda: md.KSpaceData(np.ones((1, 2, *N), np.complex64), np.ones(N[0], bool), noise_variance=1).slice_model(),
    ),
]


@pytest.mark.parametrize(("field", "call"), [*MODELS, *PRIORS, *SLICES])
def test_what_cannot_be_is_refused_by_its_field(field, call):
    with refused(field):
        call()


@pytest.mark.parametrize(("field", "covariance"), COVARIANCES)
def test_covariances_that_cannot_be_are_refused(field, covariance, tiny_model):
    with refused(field):
        md.with_noise_covariance(tiny_model("coils"), **covariance)


def test_a_block_that_makes_no_operator_is_refused_by_its_name(monkeypatch):
    monkeypatch.setitem(BLOCKS, "nothing", lambda block, image: None)
    with refused("block nothing"):
        md.SparsityBlock("nothing", 1.0).sites((4, 4), 1.0, 0.1)

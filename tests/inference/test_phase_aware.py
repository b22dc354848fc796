"""Inference that knows the phase: half of k-space tells the other half."""

from dataclasses import replace

import numpy as np

import mri_design as md
from mri_design.model import PhaseMap, PhasePrior, phase_refined
from mri_design.operators import CentredFFT

N = (24, 20)
SD = 0.005
HALF = [*range(N[0] // 2 - 3, N[0])]  # lines -3 and up: the lower half is seen through conjugate symmetry alone


def angle() -> np.ndarray:
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    return 1.5 * y + 3 * x**2


def image() -> np.ndarray:
    rng = np.random.default_rng(5)
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    body = 1.0 * (y**2 + x**2 < 0.2)
    return body * (0.2 + 0.8 * rng.uniform(size=N)) * np.exp(1j * angle())  # texture: nothing piecewise constant


def one_slice(phase: PhasePrior | None = None) -> md.SliceModel:
    rng = np.random.default_rng(0)
    noise = SD * (rng.standard_normal(N) + 1j * rng.standard_normal(N))
    return md.SliceModel((CentredFFT(N)(image()) + noise)[None], np.ones(N[0], bool), SD**2, phase=phase)


def error(mean: np.ndarray) -> float:
    return float(np.linalg.norm(mean - image()) / np.linalg.norm(image()))


KNOWN = PhasePrior(PhaseMap.known(angle()), 3.0)


def test_half_of_kspace_is_enough_for_who_knows_the_phase():
    loop = md.DoubleLoop(md.MonteCarlo(16, 1e-2), outer_iterations=2)
    modulus = loop.infer(one_slice().model(HALF), np.random.default_rng(0))
    for sites in ("shared", "apart"):
        aware = loop.infer(one_slice(replace(KNOWN, sites=sites)).model(HALF), np.random.default_rng(0))
        assert error(aware.mean) < 0.5 * error(modulus.mean)
    estimated = phase_refined(one_slice(KNOWN), modulus.mean)
    assert error(loop.infer(estimated.model(HALF), np.random.default_rng(0)).mean) < 0.7 * error(modulus.mean)

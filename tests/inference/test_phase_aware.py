"""Inference that knows the phase: half of k-space tells the other half."""

from dataclasses import replace

import numpy as np

import mri_design as md
from mri_design.model import PhaseMap, PhasePrior, phase_refined
from mri_design.variances import MonteCarlo
from tests.phased_slices import disc, smooth, textured

N = (24, 20)
HALF = [*range(N[0] // 2 - 3, N[0])]  # lines -3 and up: the lower half is seen through conjugate symmetry alone
IMAGE, SLICE = disc(smooth(N), np.random.default_rng(0)), textured(smooth(N))


def test_half_of_kspace_is_enough_for_who_knows_the_phase():
    def inferred(phase=None, refined=None):
        one = replace(SLICE, phase=phase)
        model = (one if refined is None else phase_refined(one, refined)).model(HALF)
        mean = md.DoubleLoop(MonteCarlo(16, 1e-2), outer_iterations=2).infer(model, np.random.default_rng(0)).mean
        return mean, np.linalg.norm(mean - IMAGE)

    modulus, far = inferred()
    known = PhasePrior(PhaseMap.known(smooth(N)), 3.0)
    assert inferred(known)[1] < 0.5 * far
    assert inferred(known, modulus)[1] < 0.7 * far

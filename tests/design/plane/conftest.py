"""Small planes with known noise and coils, and their posteriors."""

from functools import cache

import numpy as np

import mri_design as md
from mri_design.design import DesignView, LineCandidates
from mri_design.model import GaussianPosterior
from mri_design.readouts import PlaneConstraints, PlaneReadouts
from mri_design.variances import ControlVariate


@cache
def plane_slice(n_coils: int = 1, n: int = 16, seed: int = 0) -> md.SliceModel:
    """The brain phantom as a plane whose samples are measured one by one."""
    data = md.load_phantom("brain", shape=(n, n), n_coils=n_coils, rng=np.random.default_rng(seed))
    return data.encoded("plane").slice_model()


@cache
def plane_posterior(n_coils: int = 1, n: int = 16, draws: int = 8) -> GaussianPosterior:
    """After the 40 samples nearest to DC and every fifth of the others."""
    mr_slice = plane_slice(n_coils, n)
    engine = md.DoubleLoop(ControlVariate(draws, 1e-3), outer_iterations=3)
    return engine.infer(mr_slice.model(measured_ids(n)), np.random.default_rng(0))


def measured_ids(n: int) -> tuple[int, ...]:
    outwards = PlaneReadouts((n, n)).outwards
    return (*outwards[:40].tolist(), *outwards[40::5].tolist())


def make_view(
    posteriors: tuple[GaussianPosterior, ...] = (),
    acquired: tuple[int, ...] = (),
    target: int = 200,
    n: int = 16,
    constraints: PlaneConstraints | None = None,
) -> DesignView:
    """What a strategy sees of a plane of n x n."""
    plane = PlaneReadouts((n, n))
    rules, every = constraints or PlaneConstraints(plane), np.ones(plane.size, dtype=bool)
    return DesignView(LineCandidates(every, acquired, target, len(acquired), rules, plane), posteriors)

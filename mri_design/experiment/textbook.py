"""Textbook reconstructions by another library, SigPy: rivals to hold the images of this program against."""

from __future__ import annotations

import warnings
from typing import Literal, get_args

import numpy as np

from mri_design.errors import InputError
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.operators.conventions import Chosen
from mri_design.readouts import ShotReadouts
from mri_design.status import Convergence, Status

Textbook = Literal["l1-wavelet", "total-variation"]
TEXTBOOK: tuple[Textbook, ...] = get_args(Textbook)
"""Least squares with a sparse penalty: Lustig et al. 2007 (Daubechies-4 wavelets), Block et al. 2007 (differences)."""

ITERATIONS = 300
"""Of accelerated proximal gradients and of the primal-dual method: three times SigPy's 100, which few lines need."""
_DUAL_STEP = 0.03
"""Step of the primal-dual method on edges, whose dual image is no larger than lambda; that on the image is the largest
that converges, 1 / 9 of its inverse. With steps of 1 and 1 / 9 images of few lines are far from the minimum after 300
iterations (results/coils/everyday.md)."""
_SETTLED = 1e-2
"""Relative change over the last tenth of the iterations below which they have converged."""


def textbook(slice_model: SliceModel, lines: Chosen, method: Textbook, weight: float) -> tuple[Array, Convergence]:
    r"""argmin of ||P F S u - y||^2 / 2 + lambda ||W u||_1, with wavelets or finite differences W.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; its prior and noise have no say.
    lines : sequence of int, or bool array
        Measured lines, or samples of a plane.
    method : {"l1-wavelet", "total-variation"}
        W.
    weight : float
        lambda over the largest modulus of S^H F^H P^H y, so that it does not depend on the units of the scan.

    Returns
    -------
    image : complex64 array, shape (ky, kx)
    convergence : Convergence
        Converged where the last tenth of the iterations changed the image by less than a hundredth.

    Raises
    ------
    InputError
        For shots.

    Notes
    -----
    SigPy, `sigpy.mri.app.L1WaveletRecon` and `TotalVariationRecon`, with fixed steps: SigPy finds its own by a random
    start, which would make every run differ.
    """
    if isinstance(slice_model.candidates, ShotReadouts):
        got = "samples along a trajectory"
        raise InputError(f"method {method}", got, "lines, or samples of a plane", "Use mean, map or least-squares.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        from sigpy.mri.app import L1WaveletRecon, TotalVariationRecon  # here: the import takes longer than commands

    measurement = slice_model.measurement(lines)
    plain = measurement.adjoint(slice_model.acquire(lines))
    scale = float(np.abs(plain).max()) or 1.0
    mask = slice_model.grid_samples(lines)
    samples = np.where(mask, slice_model.kspace, 0).astype(np.complex64) / np.float32(scale)
    maps = np.ones_like(samples) if slice_model.maps is None else slice_model.maps
    settings = {"weights": mask.astype(float), "show_pbar": False, "max_iter": ITERATIONS}
    if method == "l1-wavelet":
        app = L1WaveletRecon(samples, maps, weight, alpha=1.0, **settings)
    else:
        app = TotalVariationRecon(samples, maps, weight, tau=1 / (9 * _DUAL_STEP), sigma=_DUAL_STEP, **settings)
    before = np.zeros(slice_model.shape)
    while not app.alg.done():
        if app.alg.iter == ITERATIONS - ITERATIONS // 10:
            before = app.x.copy()
        app.alg.update()
    change = float(np.linalg.norm(app.x - before) / (np.linalg.norm(app.x) or 1.0))
    status = Status.CONVERGED if change < _SETTLED else Status.MAX_ITERATIONS
    return np.asarray(app.x * scale, dtype=np.complex64), Convergence(status, ITERATIONS, change, 2 * ITERATIONS)

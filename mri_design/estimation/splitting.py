"""The linear half of ADMM: minimise ||y - X u||^2 / 2 + sum_j rho_j / 2 ||B_j u - target_j||^2.

One pair of FFTs where X^H X and every B_j^H B_j are circulant; elsewhere conjugate gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mri_design.krylov.conjugate_gradients import ConjugateGradients
from mri_design.model.circulant_inverse import circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.operators.measurement import CartesianLines

__all__ = ["LinearStep", "balancing_factor", "has_quick_step", "linear_step"]


class LinearStep(ABC):
    """Solves for u, warm from the last one, for weights rho_j that may change."""

    matvecs = 0
    healthy = True

    @abstractmethod
    def set_weights(self, rho: Sequence[float]) -> None:
        """Take new rho, one per block."""

    @abstractmethod
    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        """The minimiser, for sum_j rho_j B_j^H target_j and the last u; a ``look`` at J follows where it says so."""


def linear_step(model: GeneralizedLinearModel, solver_tolerance: float, solver_iterations: int) -> LinearStep:
    """The way that applies; the settings are those of the conjugate gradients."""
    spectra, measurement = _block_spectra(model), model.measurement.gram_spectrum()
    if spectra is not None and measurement is not None:
        return _Exact(model, measurement, spectra)
    return _Iterative(model, solver_tolerance, solver_iterations)


def has_quick_step(model: GeneralizedLinearModel) -> bool:
    """Whether an iteration costs a pair of FFTs, or a few products with an A that is near to a circulant.

    Near to one is A of Cartesian lines seen by several coils, all of whose samples are on the grid and weigh the same.
    """
    lines = isinstance(model.measurement, CartesianLines)
    return _block_spectra(model) is not None and (lines or model.measurement.gram_spectrum() is not None)


def balancing_factor(primal: float, dual: float, size: float, force: float) -> float:
    """By how much to raise a weight, from squared norms: relative primal over relative dual residual, within 5.

    Wohlberg (2017), arXiv:1704.06209.
    """
    if not (primal > 0 and dual > 0):
        return 1.0
    return float(np.clip(np.sqrt((primal * force) / (dual * size)), 0.2, 5.0)) if size > 0 and force > 0 else 1.0


def _block_spectra(model: GeneralizedLinearModel) -> tuple[Array, ...] | None:
    if model.n_axes != 2:
        return None
    known = tuple(s for s in (block.analysis.gram_spectrum() for block in model.blocks) if s is not None)
    return known if len(known) == len(model.blocks) else None


class _Exact(LinearStep):
    def __init__(self, model: GeneralizedLinearModel, measurement: Array, blocks: tuple[Array, ...]) -> None:
        self._back_projection = model.back_projection()
        self._measurement, self._blocks = measurement, blocks

    def set_weights(self, rho: Sequence[float]) -> None:
        total = self._measurement + sum(r * b for r, b in zip(rho, self._blocks, strict=True))
        self._inverse = circulant_inverse(np.maximum(total, 1e-12 * np.max(total)))

    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        self.matvecs += 1
        return self._inverse(self._back_projection + gathered)


class _Iterative(LinearStep):
    """Conjugate gradients from the last u, whose residual they leave behind: while the weights stay it costs nothing.

    A u is b - r for the b and r of the last call, so that b' - A u = r + b' - b. It is made anew for new weights, and
    after every look, before rounding adds up.
    """

    def __init__(self, model: GeneralizedLinearModel, tolerance: float, iterations: int) -> None:
        self._model, self._back_projection = model, model.back_projection()
        self._tolerance, self._iterations = tolerance, iterations
        self._last: tuple[Array, Array] | None = None

    def set_weights(self, rho: Sequence[float]) -> None:
        model = self._model
        real = model.data.real.dtype
        ones = (np.ones((1,) * len(block.analysis.out_shape), dtype=real) for block in model.blocks)
        weights = tuple(real.type(r) * unit for r, unit in zip(rho, ones, strict=True))
        self._system = PosteriorPrecision(model.measurement, model.blocks, weights)
        self._last = None

    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        wanted = self._back_projection + gathered
        if self._last is None:
            rest = wanted - self._system(u)
            self.matvecs += 1
        else:
            before, rest = self._last
            rest = rest + (wanted - before)
        solver = ConjugateGradients(
            self._system, rest[None], n_axes=self._model.n_axes, preconditioner=self._system.preconditioner
        )
        solved = solver.solve(self._tolerance, self._iterations)
        self.matvecs += solved.matvecs
        self.healthy = bool(np.isfinite(solved.residual))
        self._last = None if look else (wanted, solver.rests[0])
        return np.asarray(u + solver.x[0])

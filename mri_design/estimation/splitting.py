"""The linear half of ADMM: minimise ||y - X u||^2 / 2 + sum_j rho_j / 2 ||B_j u - target_j||^2.

Three ways, the first that applies: one pair of FFTs where X^H X and every B_j^H B_j are circulant; the same with
copies of the coil images where X is one such encoding of several of them; conjugate gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mri_design.krylov.conjugate_gradients import conjugate_gradients, squared_norm
from mri_design.model.circulant_inverse import circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.operators.measurement import CartesianLines


class LinearStep(ABC):
    """Solves for u, warm from the last one, for weights rho_j that may change."""

    matvecs = 0
    healthy = True

    @abstractmethod
    def set_weights(self, rho: Sequence[float]) -> None:
        """Take new rho, one per block."""

    @abstractmethod
    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        """The minimiser, for sum_j rho_j B_j^H target_j and the last u; with ``look``, prepare to balance.

        The memory of the sum may be written to.
        """

    def balance(self) -> None:  # noqa: B027 (nothing to do without copies)
        """Renew weights of its own, if it has any; `set_weights` follows."""


def linear_step(
    model: GeneralizedLinearModel, start: Array, relaxation: float, solver_tolerance: float, solver_iterations: int
) -> LinearStep:
    """The first way that applies; the last two settings are those of the conjugate gradients."""
    spectra = _block_spectra(model)
    if spectra is not None:
        measurement = model.measurement.gram_spectrum()
        if measurement is not None:
            return _Exact(model, measurement, spectra)
        if _has_coils(model):
            return _CoilCopies(model, spectra, start, relaxation)
    return _Iterative(model, solver_tolerance, solver_iterations)


def has_exact_step(model: GeneralizedLinearModel) -> bool:
    """Whether an iteration costs a pair of FFTs or one product with A, not several."""
    return _block_spectra(model) is not None and (model.measurement.gram_spectrum() is not None or _has_coils(model))


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


def _has_coils(model: GeneralizedLinearModel) -> bool:
    return isinstance(model.measurement, CartesianLines) and model.measurement.maps is not None


class _Exact(LinearStep):
    def __init__(self, model: GeneralizedLinearModel, measurement: Array, blocks: tuple[Array, ...]) -> None:
        self._back_projection = model.back_projection()
        self._measurement, self._blocks = measurement, blocks

    def set_weights(self, rho: Sequence[float]) -> None:
        total = self._measurement + sum(r * b for r, b in zip(rho, self._blocks, strict=True))
        self._inverse = circulant_inverse(np.maximum(total, 1e-12 * np.max(total)))

    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        self.matvecs += 1
        gathered += self._back_projection
        return self._inverse(gathered)


class _CoilCopies(LinearStep):
    """Copies c of the coil images S u, with E c the data of one uniform coil each: E^H E is a projection.

    min 1/2 ||y - E c||^2 + rho / 2 ||c - v||^2 is at c = v + E^H (y - E v) / (1 + rho). One more copy, of which there
    are no data, makes S^H S a multiple of the identity.
    """

    def __init__(
        self, model: GeneralizedLinearModel, blocks: tuple[Array, ...], start: Array, relaxation: float
    ) -> None:
        X = model.measurement
        assert isinstance(X, CartesianLines) and X.maps is not None
        encoding = X.of_uniform_coil()
        self._gram = encoding.gram
        self._data = np.ascontiguousarray(encoding.adjoint(model.data[:, None]), dtype=start.dtype)
        self._maps = np.ascontiguousarray(X.maps, dtype=start.dtype)
        power = np.sum(np.abs(self._maps) ** 2, axis=0)
        self._total = float(power.max())
        self._missing = self._total - power
        self._blocks = blocks
        self._relaxation = relaxation
        self._rho = 0.3
        self._copies, self._unseen = np.ascontiguousarray(self._maps * start), start
        self._scaled = (self._gram(self._copies) - self._data) * start.real.dtype.type(1 / self._rho)
        self._factor = 1.0

    def set_weights(self, rho: Sequence[float]) -> None:
        total = np.asarray(self._rho * self._total + sum(r * b for r, b in zip(rho, self._blocks, strict=True)))
        self._inverse = circulant_inverse(total)

    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        from mri_design.operators.kernels.coil_copies import relax_coils, renew_coils, seen_by_coils

        self.matvecs += 1
        relaxation = u.real.dtype.type(self._relaxation)
        own = seen_by_coils(self._maps, self._copies, self._scaled) + self._missing * self._unseen
        u = self._inverse(gathered + u.real.dtype.type(self._rho) * own)
        before = self._copies.copy() if look else None
        relax_coils(self._maps, u, self._copies, self._scaled, self._relaxation)
        renew_coils(self._data, self._gram(self._scaled), self._copies, self._scaled, 1 / (1 + self._rho))
        if before is not None:
            coil_images = self._maps * u
            missed, moved = squared_norm(coil_images - self._copies), squared_norm(self._copies - before)
            self._factor = balancing_factor(missed, moved, squared_norm(coil_images), squared_norm(self._scaled))
        self._unseen = relaxation * u + (1 - relaxation) * self._unseen
        return u

    def balance(self) -> None:
        # E^H E has eigenvalues 0 and 1, so weights far from these would only slow down one half of the data.
        rho = min(max(self._rho * self._factor, 1e-3), 3.0)
        self._scaled = self._scaled * self._scaled.real.dtype.type(self._rho / rho)
        self._rho = rho


class _Iterative(LinearStep):
    def __init__(self, model: GeneralizedLinearModel, tolerance: float, iterations: int) -> None:
        self._model, self._back_projection = model, model.back_projection()
        self._tolerance, self._iterations = tolerance, iterations

    def set_weights(self, rho: Sequence[float]) -> None:
        model = self._model
        real = model.data.real.dtype
        ones = (np.ones((1,) * len(block.analysis.out_shape), dtype=real) for block in model.blocks)
        weights = tuple(real.type(r) * unit for r, unit in zip(rho, ones, strict=True))
        self._system = PosteriorPrecision(model.measurement, model.blocks, weights)

    def __call__(self, gathered: Array, u: Array, look: bool) -> Array:
        step, solved = conjugate_gradients(
            self._system,
            (self._back_projection + gathered - self._system(u))[None],
            n_axes=self._model.n_axes,
            preconditioner=self._system.preconditioner,
            tolerance=self._tolerance,
            max_iterations=self._iterations,
        )
        self.matvecs += solved.matvecs + 1
        self.healthy = bool(np.isfinite(solved.residual))
        return np.asarray(u + step[0])

"""Does a model determine its unknowns? X and the analysis operators must not share a null space."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.krylov.conjugate_gradients import conjugate_gradients, real_inner
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array, LinearOperator

DENSE_LIMIT = 600
MODES = 16
PROBE_SEED = 7093486211  # none that a model's own matrices are likely to be drawn from: v must not lie in their rows


def require_determined(model: GeneralizedLinearModel) -> None:
    """Refuse a model whose A = X^H X + B^H diag(pi) B has no inverse, whatever the site precisions.

    Raises
    ------
    InputError
        Naming the blocks.

    Notes
    -----
    The null spaces of X and of every block that are known by frequency are intersected; the others are tried on the few
    frequencies left over. An operator that knows a positive bound on the eigenvalues of its Gram matrix from below has
    no null space at all. Without any such operator the rank is computed, up to 600 real unknowns; beyond, A x = A v is
    solved by conjugate gradients for a random v: v - x is what of v lies in the null space, up to the solver's
    error, and a v - x that A maps to nothing (1e-12 of the mean eigenvalue) proves one. Determined models always pass
    where their condition number is below 1e12; a null space beside eigenvalues so small that 1000 iterations do not
    separate them passes too.
    """
    operators = [model.measurement, *(block.analysis for block in model.blocks)]
    spectra = [operator.gram_spectrum() for operator in operators]
    known = [spectrum for spectrum in spectra if spectrum is not None]
    others = [operator for operator, spectrum in zip(operators, spectra, strict=True) if spectrum is None]
    if known:
        total = np.asarray(sum(known))
        dark = np.argwhere(total <= 1e-9 * total.max())
        if not len(dark):
            return
        if len(dark) <= MODES:
            seen = [
                np.concatenate([_embedded(op(mode)) for op in others] or [np.zeros(1)]) for mode in _modes(model, dark)
            ]
            if _independent(np.stack(seen)):
                return
            raise _refusal(model, len(dark))
    if any(operator.gram_floor() > 0 for operator in others):
        return
    if model.measurement.in_size > DENSE_LIMIT:
        if _null_direction_found(model, operators):
            raise _refusal(model)
    else:
        rows = np.concatenate([operator.to_dense_real(DENSE_LIMIT) for operator in operators])
        if not _independent(rows.T):
            raise _refusal(model, int(rows.shape[1] - np.linalg.matrix_rank(rows)))


def _null_direction_found(model: GeneralizedLinearModel, operators: list[LinearOperator]) -> bool:
    """Whether v - A^-1 A v is mapped to zero by A = sum of the Gram matrices, each of unit mean gain."""
    n_axes = model.n_axes
    rng = np.random.default_rng(PROBE_SEED)
    v = rng.standard_normal((1, *model.image_shape))
    if model.measurement.in_complex:
        v = v + 1j * rng.standard_normal(v.shape)
    gains = [float(np.sum(np.abs(operator(v)) ** 2)) for operator in operators]
    seeing = [(operator, 1 / gain) for operator, gain in zip(operators, gains, strict=True) if gain > 0]
    if not seeing:
        return True

    def power(e: Array) -> float:
        """e^H A e, as a sum of squares."""
        return sum(weight * float(np.sum(np.abs(operator(e)) ** 2)) for operator, weight in seeing)

    def precision(u: Array) -> Array:
        return np.asarray(sum(weight * operator.adjoint(operator(u)) for operator, weight in seeing))

    x = conjugate_gradients(precision, precision(v), n_axes=n_axes, tolerance=1e-10, max_iterations=1000)[0]
    rest = v - x
    whole, left = (float(real_inner(image, image, n_axes)[0]) for image in (v, rest))
    if left <= 1e-9 * whole / model.measurement.in_size:  # less than one direction's share of v
        return False
    return power(rest) / left <= 1e-12 * power(v) / whole


def _modes(model: GeneralizedLinearModel, frequencies: Array) -> list[Array]:
    """Real unit images that span the given frequencies: once as they are, and times i for complex images."""
    modes: list[Array] = []
    for frequency in frequencies:
        spectrum = np.zeros(model.image_shape, dtype=complex)
        spectrum[tuple(frequency)] = np.sqrt(spectrum.size)
        wave = np.fft.ifft2(spectrum, norm="ortho")
        modes += [wave, 1j * wave] if model.measurement.in_complex else [_real_wave(wave, frequency)]
    return modes


def _real_wave(wave: Array, frequency: Array) -> Array:
    """Cosine or sine: the two frequencies k and -k of a real image share both."""
    mirrored = tuple(int(n) for n in (-frequency) % np.array(wave.shape))
    return np.asarray(wave.real if tuple(int(n) for n in frequency) <= mirrored else wave.imag)


def _independent(rows: Array) -> bool:
    """True where the rows are linearly independent, to rounding."""
    values = np.linalg.eigvalsh(rows @ rows.T)
    return bool(values[0] > 1e-10 * max(values[-1], 1e-300))


def _embedded(values: Array) -> Array:
    flat = values.ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _refusal(model: GeneralizedLinearModel, missing: int | None = None) -> InputError:
    names = ", ".join(repr(block.name) for block in model.blocks)
    dimensions = "one dimension" if missing == 1 else f"{missing or 'one or more'} dimensions"
    return InputError(
        f"model with blocks {names}",
        f"X and B sharing a null space of {dimensions}: A is not positive definite",
        "measurements or sites on every direction of the image",
        "Add a block of sites on the pixels.",
    )

"""Gaussian factors whose noise is not white, by whitening the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mri_design.errors import InputError, covariance_matrix, number_array
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.operators.base import LinearOperator
from mri_design.operators.diagonal import Diagonal
from mri_design.operators.whitening import CoilMixing, RealMatrix


def with_noise_covariance(
    model: GeneralizedLinearModel,
    *,
    variances: ArrayLike | None = None,
    coils: ArrayLike | None = None,
    matrix: ArrayLike | None = None,
) -> GeneralizedLinearModel:
    """``model`` with noise of covariance sigma^2 C in place of sigma^2 I: X and y multiplied by W, W^H W = C^-1.

    Exactly one of the three is given.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With white noise so far; sigma^2 is its ``noise_variance`` (1 where C is the covariance itself).
    variances : float array, optional
        The diagonal of C, one per sample, of (or broadcastable to) the shape of the data; per real component.
    coils : array, shape (coil, coil), optional
        One Hermitian C for the coils of every sample: the first axis of the data.
    matrix : float array, shape (m, m), optional
        C of all m real measurements: real parts first, then imaginary parts, where the data are complex.

    Returns
    -------
    GeneralizedLinearModel
        ``log_whitening`` is log|W| over the real measurements; `evidence_bound` adds it. ``unwhitened`` keeps the data.

    Raises
    ------
    InputError
        For none or several of them, another shape, or a covariance that is not positive definite and finite.

    Notes
    -----
    TR-175 section 5.1. W is the Hermitian inverse root. `prewhiten` does the same to a scan and keeps X a
    Fourier measurement, with its fast products.
    """
    require_model(model)
    given = [
        name for name, value in (("variances", variances), ("coils", coils), ("matrix", matrix)) if value is not None
    ]
    if len(given) != 1:
        raise InputError("noise covariance", str(given or "nothing"), "one of variances, coils, matrix")
    shape, is_complex = model.measurement.out_shape, model.measurement.out_complex
    whitening: LinearOperator
    if variances is not None:
        diagonal = _real("noise variances", variances)
        if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
            raise InputError("noise variances", "zero, negative or NaN", "positive finite numbers")
        try:
            diagonal = np.broadcast_to(diagonal, shape)
        except ValueError as error:
            raise InputError("noise variances", f"shape {diagonal.shape}", f"{shape}") from error
        root = (1 / np.sqrt(diagonal)).astype(model.data.real.dtype)
        whitening = Diagonal(root, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(diagonal))) * (2 if is_complex else 1)
    elif coils is not None:
        values, vectors = _eigen("coil covariance", coils, shape[0])
        whitening = CoilMixing((vectors / np.sqrt(values)) @ vectors.conj().T, shape, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(values))) * (model.measurement.out_size // shape[0])
    else:
        size = model.measurement.out_size
        values, vectors = _eigen("noise covariance", _real("noise covariance", matrix), size)
        whitening = RealMatrix((vectors / np.sqrt(values)) @ vectors.T, shape, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(values)))
    return replace(
        model,
        measurement=whitening @ model.measurement,
        data=whitening(model.data),
        log_whitening=model.log_whitening + log_whitening,
        unwhitened=model.data if model.unwhitened is None else model.unwhitened,
    )


def _real(field: str, value: ArrayLike | None) -> np.ndarray:
    array = number_array(field, value)
    if array.dtype.kind == "c":
        raise InputError(field, "complex numbers", "real ones")
    return array.astype(float)


def _eigen(field: str, matrix: ArrayLike, side: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(covariance_matrix(field, matrix, side))
    return values, vectors

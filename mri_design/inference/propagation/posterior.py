"""From a model to its Gaussian part, and from the messages of all chunks to a `GaussianPosterior`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.inference.propagation.cavity import square
from mri_design.inference.propagation.chunks import Chunk, Message, load_chunk, row_batches
from mri_design.inference.proper_factor import precision_inverse, proper_factor
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.marginals import Variances
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.requirements import represented
from mri_design.status import Convergence

BATCH = 64


def as_vector(image: Array) -> Array:
    """(real parts, imaginary parts) of an image."""
    flat = np.asarray(image).ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat.astype(float)


def as_image(theta: Array, model: GeneralizedLinearModel) -> Array:
    """The image of a vector (real parts, imaginary parts)."""
    if not model.measurement.in_complex:
        return theta.reshape(model.image_shape)
    half = len(theta) // 2
    return (theta[:half] + 1j * theta[half:]).reshape(model.image_shape)


def gaussian_part(model: GeneralizedLinearModel, exact: Sequence[int]) -> tuple[Array, Array]:
    """P_0 and h_0 on theta = u / sigma of X and the Gaussian blocks ``exact``: t_0, which is never approximated."""
    blocks = tuple(model.blocks[number] for number in exact)
    precisions = tuple(_gaussian_precision(model, number) for number in exact)
    precision = PosteriorPrecision(model.measurement, blocks, precisions)
    n, sigma = model.measurement.in_size, float(np.sqrt(model.noise_variance))
    pixels = int(np.prod(model.image_shape))
    P = np.empty((n, n))
    for first in range(0, n, BATCH):
        columns = np.arange(first, min(first + BATCH, n))
        unit = np.zeros((len(columns), pixels), dtype=complex if model.measurement.in_complex else float)
        unit[np.arange(len(columns)), columns % pixels] = np.where(columns < pixels, 1, 1j) if n > pixels else 1
        image = precision(unit.reshape(-1, *model.image_shape)).reshape(len(columns), -1)
        P[:, columns] = (np.concatenate([image.real, image.imag], axis=1) if n > pixels else image.real).T
    linear = replace(model, blocks=blocks).right_hand_side(precisions) if blocks else model.back_projection()
    return 0.5 * (P + P.T), as_vector(linear) / sigma


def posterior_of_messages(
    model: GeneralizedLinearModel,
    parts: tuple[Array, Array],
    total: tuple[Array, Array],
    chunks: Sequence[Chunk],
    messages: Sequence[Message],
    convergence: Convergence,
    batch: int,
) -> GaussianPosterior:
    """N(P^-1 h, P^-1) with the site precisions and exact marginals that belong to it.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model.
    parts : arrays
        P_0 and h_0 of `gaussian_part`.
    total : arrays
        P and h with all messages.
    chunks, messages : sequences
        The partition and its messages.
    convergence : Convergence
        Of the sweeps.
    batch : int
        Coefficients whose rows are in memory at a time.

    Notes
    -----
    A site on a modulus curves differently along and across; its site precision is the one of the double loop, -2 g' at
    the mean, and so is the precision of the posterior then.
    """
    theta = scipy.linalg.cho_solve(proper_factor(total[0]), total[1])
    precisions = [
        np.zeros(block.site_shape) if block.potential.gaussian_precision is None else _gaussian_precision(model, number)
        for number, block in enumerate(model.blocks)
    ]
    P = total[0]
    if any(message.slope.shape[1] > 1 for message in messages):
        P = parts[0].copy()
    for chunk, message in zip(chunks, messages, strict=True):
        curvature = message.curvature[:, 0, 0]
        if P is not total[0]:
            loaded = load_chunk(model, chunk)
            if loaded.parts > 1:
                s = (loaded.rows @ theta[loaded.coordinates]).reshape(-1, loaded.parts) - loaded.offsets
                curvature = np.broadcast_to(represented(loaded.potential).site_precision(np.sum(s**2, axis=1)), len(s))
            place = loaded.coordinates
            P[square(place)] += loaded.rows.T @ (np.repeat(curvature, loaded.parts)[:, None] * loaded.rows)
        flat = precisions[chunk.block].reshape(-1)
        flat[chunk.sites] = curvature
    V = precision_inverse(P)
    back = model.back_projection().dtype
    mean = as_image(theta * float(np.sqrt(model.noise_variance)), model).astype(back, copy=False)
    values = []
    for number, block in enumerate(model.blocks):
        z = np.empty(int(np.prod(block.analysis.out_shape)))
        for index, rows in row_batches(model, number, batch):
            flat_rows = rows.reshape(-1, rows.shape[-1])
            each = np.einsum("ij,ij->i", flat_rows @ V, flat_rows)
            z[index] = each.reshape(len(index), -1).sum(axis=1)
        values.append(z.reshape(block.analysis.out_shape).astype(mean.real.dtype))
    image = np.diag(V).reshape(-1, *model.image_shape).sum(axis=0).astype(mean.real.dtype)
    marginals = Variances(
        tuple(values), "exact", convergence, image=image, log_determinant=-float(np.linalg.slogdet(V)[1])
    )
    precision = PosteriorPrecision(
        model.measurement, model.blocks, tuple(pi.astype(mean.real.dtype, copy=False) for pi in precisions)
    )
    return GaussianPosterior(model, mean, precision, marginals, convergence=convergence)


def _gaussian_precision(model: GeneralizedLinearModel, number: int) -> Array:
    block = model.blocks[number]
    own = block.potential.gaussian_precision
    if own is None:
        raise InputError(
            f"exact block {block.name!r}",
            f"{type(block.potential).__name__} sites",
            "Gaussian sites: others need messages",
        )
    return np.broadcast_to(own, block.site_shape).astype(float)

"""Sums of weighted Gram products, with images in cache from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.operators import Array, FiniteDifferences, Identity, LinearOperator
from mri_design.operators.kernels.suitable import compilable, laid_out

__all__ = ["add_weighted_grams"]

CHUNK = 1 << 19
"""Bytes of a batch taken through all operators before the next."""


def add_weighted_grams(operators: Sequence[LinearOperator], weights: Sequence[Array], u: Array, total: Array) -> None:
    """``total += sum_j A_j^H diag(weights_j) A_j u`` in the precision of ``total``.

    Parameters
    ----------
    operators : sequence of LinearOperator
        All on images of one shape.
    weights : sequence of float arrays
        Each broadcastable to one output of its operator, or to its outputs of the batch.
    u, total : arrays, shape (..., *image shape)
        One image or a batch.
    """
    of_a_batch = any(np.ndim(w) > len(a.out_shape) for a, w in zip(operators, weights, strict=True))
    if not operators or of_a_batch or not compilable(u, total):
        for operator, w in zip(operators, weights, strict=True):
            operator.add_weighted_gram(w, u, total)
        return
    spread = [laid_out(w, operator.out_shape, u) for operator, w in zip(operators, weights, strict=True)]
    terms = list(zip(operators, spread, strict=True))
    pixels = next((k for k, operator in enumerate(operators) if isinstance(operator, Identity)), None)
    slopes = next((k for k, operator in enumerate(operators) if isinstance(operator, FiniteDifferences)), None)
    together = None
    if pixels is not None and slopes is not None:
        differences = operators[slopes]
        assert isinstance(differences, FiniteDifferences)
        together = differences, spread[slopes], spread[pixels]
    if together is not None:
        terms = [term for k, term in enumerate(terms) if k not in (pixels, slopes)]
    shape = operators[0].in_shape
    images, totals = u.reshape(-1, *shape), total.reshape(-1, *shape)
    step = max(1, CHUNK // max(1, images[:1].nbytes))
    for begin in range(0, len(images), step):
        some, sums = images[begin : begin + step], totals[begin : begin + step]
        if together is not None:
            differences, on_slopes, on_pixels = together
            differences.add_weighted_gram(on_slopes, some, sums, pixels=on_pixels)
        for operator, w in terms:
            operator.add_weighted_gram(w, some, sums)

"""Sums of weighted Gram products, and products of two images' coefficients pooled over the groups of sites.

Both go through the images alone, with images in cache from one operator to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.differences import FiniteDifferences, GraphDifferences
from mri_design.operators.elementary import Identity
from mri_design.operators.kernels.suitable import compilable, laid_out
from mri_design.operators.phased import PhasedParts, from_parts, in_parts

CHUNK = 1 << 19
"""Bytes of a batch taken through all operators before the next."""
GRAPH_CHUNK = 8
"""Images, at least, that are taken through a graph together: its kernel walks the edges once for so many."""

Term = tuple[LinearOperator, Array]


def add_weighted_grams(operators: Sequence[LinearOperator], weights: Sequence[Array], u: Array, total: Array) -> None:
    """``total += sum_j A_j^H diag(weights_j) A_j u`` in the precision of ``total``.

    Parameters
    ----------
    operators : sequence of LinearOperator
        All on images of one shape. Those that turn by the same phase (the same array) turn an image once.
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
    first = next((operator for operator in operators if isinstance(operator, PhasedParts)), None)
    straight: list[Term] = []
    turning: list[Term] = []
    for operator, w in zip(operators, weights, strict=True):
        if first is not None and isinstance(operator, PhasedParts) and operator.rotation is first.rotation:
            turning.append((operator.analysis, operator.part_weights(np.asarray(w, dtype=u.real.dtype))))
        else:
            straight.append((operator, laid_out(w, operator.out_shape, u)))
    shape = operators[0].in_shape
    images, totals = u.reshape(-1, *shape), total.reshape(-1, *shape)
    with_graph = any(isinstance(operator, GraphDifferences) for operator, _ in (*straight, *turning))
    step = max(GRAPH_CHUNK if with_graph else 1, CHUNK // max(1, images[:1].nbytes))
    for begin in range(0, len(images), step):
        some, sums = images[begin : begin + step], totals[begin : begin + step]
        _add_terms(straight, some, sums)
        if first is not None:
            turned = first.turned_back(some)
            parts = np.zeros_like(turned)
            _add_terms(turning, turned, parts, apart=True)
            sums += first.turned(parts)


def _add_terms(terms: Sequence[Term], u: Array, total: Array, *, apart: bool = False) -> None:
    """Pixels and differences in one pass, others one after the other.

    With ``apart`` the last axis of the weights is that of the real and imaginary parts.
    """
    pixels = next((k for k, (operator, _) in enumerate(terms) if isinstance(operator, Identity)), None)
    slopes = next((k for k, (operator, _) in enumerate(terms) if isinstance(operator, FiniteDifferences)), None)
    done: tuple[int | None, ...] = ()
    if slopes is not None and (pixels is not None or apart):
        differences, on_slopes = terms[slopes]
        assert isinstance(differences, FiniteDifferences)
        add = differences.add_weighted_parts if apart else differences.add_weighted_gram
        if apart and len(on_slopes) == 1:
            on_slopes = np.broadcast_to(on_slopes, (2, *on_slopes.shape[1:]))  # each of them is contiguous
        add(on_slopes, u, total, pixels=None if pixels is None else terms[pixels][1])
        done = (slopes, pixels)
    for k, (operator, w) in enumerate(terms):
        if k in done:
            continue
        if apart and isinstance(operator, GraphDifferences):
            operator.add_weighted_parts(w, u, total)
        elif apart:
            total += operator.adjoint(from_parts(w * in_parts(operator(u))))
        else:
            operator.add_weighted_gram(w, u, total)


Products = tuple[Array, Array]


def pooled_products(blocks: Sequence[SiteBlock], a: Array, b: Array) -> tuple[Products | None, ...]:
    """Re <B a, B b> and |B b|^2 of every site, block by block, in passes over the images alone.

    Parameters
    ----------
    blocks : sequence of SiteBlock
        Offsets are not looked at. Blocks that turn by the same phase (the same array) turn an image once.
    a, b : arrays, shape of the image
        Of one precision.

    Returns
    -------
    tuple of pairs of real arrays, or None
        As `SiteBlock.pooled` has them; None for blocks whose coefficients have to be made: of other operators than
        pixels, differences and graphs, behind a phase or not, or with other groups.
    """
    if not (np.iscomplexobj(a) and compilable(a, b) and a.ndim == 2):
        return (None,) * len(blocks)
    turned: dict[int, tuple[Array, Array]] = {}

    def of(block: SiteBlock) -> Products | None:
        form = _form(block, a)
        if form is None:
            return None
        operator, together, factors = form
        images = a, b
        if isinstance(block.analysis, PhasedParts):
            key = id(block.analysis.rotation)
            if key not in turned:
                first = block.analysis.turned_back(a)
                turned[key] = first, (first if b is a else block.analysis.turned_back(b))
            images = turned[key]
        cross, power = _products(operator, *images, factors, together)
        return cross.reshape(block.site_shape), power.reshape(block.site_shape)

    return tuple(of(block) for block in blocks)


def _form(block: SiteBlock, like: Array) -> tuple[LinearOperator, bool, Array] | None:
    """The operator on the image, turned or not, whether all coefficients of a pixel are one site, and factors."""
    operator, axes = block.analysis, set(block.group_axes)
    factors: Array | None = np.ones(like.shape, dtype=like.real.dtype)
    if isinstance(operator, PhasedParts):
        if -1 not in axes:
            return None
        factors = operator.squares_on_pixels(like.real.dtype)
        operator, axes = operator.analysis, {axis + 1 for axis in axes - {-1}}
    known = isinstance(operator, Identity | FiniteDifferences | GraphDifferences) and operator.in_shape == like.shape
    if not known or factors is None or not axes <= {-3}:
        return None
    return operator, bool(axes), factors


def _products(operator: LinearOperator, a: Array, b: Array, factors: Array, together: bool) -> Products:
    from mri_design.operators.kernels.pointwise import difference_products, edge_products, pixel_products

    if isinstance(operator, GraphDifferences):
        return edge_products(operator.flat_neighbours, a, b, factors, together)
    if isinstance(operator, FiniteDifferences):
        return difference_products(a, b, factors, together)
    return pixel_products(a, b, factors)

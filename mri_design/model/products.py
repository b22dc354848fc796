"""Products of the coefficients that two images have under a block of sites, pooled over each site's group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.diagonal import Identity
from mri_design.operators.differences import FiniteDifferences
from mri_design.operators.graph_differences import GraphDifferences
from mri_design.operators.kernels.suitable import compilable
from mri_design.operators.phased import PhasedParts

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
    from mri_design.operators.kernels.products import difference_products, edge_products, pixel_products

    if isinstance(operator, GraphDifferences):
        return edge_products(operator.flat_neighbours, a, b, factors, together)
    if isinstance(operator, FiniteDifferences):
        return difference_products(a, b, factors, together)
    return pixel_products(a, b, factors)

"""A pool of cases whose labels can be asked for, and the model of those asked so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, positive_number, sequence_of
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.dense import Dense, MatrixOperator, SparseMatrix
from mri_design.operators.diagonal import Identity
from mri_design.potentials.base import label_signs
from mri_design.potentials.likelihoods.logistic import Logistic

LABELS = "labels"


@dataclass(frozen=True)
class LabelPool:
    """Cases with features, a prior on the weights, and logistic labels: P(c = +1) = 1 / (1 + exp(-tau b^T u)).

    Parameters
    ----------
    features : array or scipy.sparse matrix, shape (cases, weights)
        b^T of every case, labelled or not.
    prior : tuple of SiteBlock
        Sites on the weights, in units of sigma = 1; without any the weights are N(0, 1), each for itself (X = I).
    scale : float
        tau.

    Raises
    ------
    InputError
        For no case, features that are not finite real numbers, a prior that is no blocks, a likelihood or on other
        weights, a scale that is not positive.

    Notes
    -----
    Nickisch & Seeger 2009, section 2: a Gaussian prior is X = I and y = 0, a sparse one X = 0 and Laplace sites.
    """

    features: Any
    prior: tuple[SiteBlock, ...] = ()
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive_number("scale", self.scale)
        prior = sequence_of(SiteBlock, "prior", self.prior, wanted="a tuple of SiteBlocks")
        object.__setattr__(self, "prior", prior)
        if not scipy.sparse.issparse(self.features):
            number_array("pool", self.features, wanted="features (cases, weights), real numbers")
        shape = np.shape(self.features)
        if len(shape) != 2 or 0 in shape:
            raise InputError("pool", f"features of shape {shape}", "(cases, weights), at least one")
        if np.iscomplexobj(self.features):
            raise InputError("pool", "complex features", "real numbers")
        if self.rows.in_shape != shape[1:]:
            raise InputError("pool", f"rows of {self.rows.in_shape}", f"{shape[1:]}")
        for block in self.prior:
            if block.is_likelihood:
                raise InputError(
                    f"prior block {block.name!r}",
                    "a factor of the likelihood",
                    "beliefs about the weights: the labels are the pool's own",
                    'Say SiteBlock(role="prior") for a prior whose centre is its offset.',
                )
            if block.analysis.in_shape != shape[1:] or block.analysis.in_complex:
                raise InputError(
                    f"prior block {block.name!r}",
                    f"weights of shape {block.analysis.in_shape}",
                    f"real weights of shape {shape[1:]}",
                )

    @cached_property
    def rows(self) -> MatrixOperator:
        """B of all cases."""
        sparse = scipy.sparse.issparse(self.features)
        return SparseMatrix(self.features) if sparse else Dense(np.asarray(self.features, dtype=float))

    @property
    def size(self) -> int:
        """Number of cases."""
        return int(self.rows.out_shape[0])

    def row(self, index: int) -> Array:
        """b of one case."""
        matrix = self.rows.matrix
        return np.asarray(matrix[[index]].toarray()[0] if scipy.sparse.issparse(matrix) else matrix[index])

    def model(self, indices: Array, labels: Array) -> GeneralizedLinearModel:
        """The model of some labelled cases; their block is called "labels" and comes first."""
        kind = SparseMatrix if scipy.sparse.issparse(self.rows.matrix) else Dense
        block = SiteBlock(LABELS, kind(self.rows.matrix[indices]), Logistic(labels, self.scale))
        if self.prior:
            return GeneralizedLinearModel.of_sites((block, *self.prior))
        weights = self.rows.in_shape
        return GeneralizedLinearModel(Identity(weights, is_complex=False), np.zeros(weights), 1.0, (block,))

    def checked(self, indices: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
        """Indices and labels as arrays.

        Raises
        ------
        InputError
            For no label at all, different numbers of them, cases out of range or asked twice, labels other than +-1.
        """
        places = number_array("labelled cases", indices, wanted=f"whole numbers from 0 to {self.size - 1}")
        signs = number_array("labels", labels, wanted="-1 or +1")
        if places.ndim != 1 or signs.shape != places.shape or not places.size:
            raise InputError(
                "labelled cases",
                f"{places.shape} indices and {signs.shape} labels",
                "as many labels as cases, at least one",
                "Label a few cases at random to start with.",
            )
        if places.dtype.kind not in "iu" or places.min() < 0 or places.max() >= self.size:
            raise InputError("labelled cases", str(places), f"whole numbers from 0 to {self.size - 1}")
        if len(np.unique(places)) < len(places):
            raise InputError("labelled cases", "a case that is labelled twice", "every case once")
        return places.astype(np.intp), label_signs("labels", signs)

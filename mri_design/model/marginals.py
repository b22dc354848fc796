"""Marginal variances of linear projections, with their kind and error."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from mri_design.krylov.block_lanczos import BlockLanczosFactors
from mri_design.krylov.lanczos import LanczosFactors
from mri_design.operators.base import Array
from mri_design.status import Convergence

VarianceKind = Literal["exact", "lower_bound", "unbiased"]


@dataclass(frozen=True)
class Variances:
    """z = diag(B A^-1 B^H) for a list of analysis operators.

    Parameters
    ----------
    values : tuple of float arrays
        One per analysis operator, of its output shape, in units of sigma^2. For complex coefficients the SUM of the
        variances of real and imaginary part.
    kind : {"exact", "lower_bound", "unbiased"}
        What the numbers are: "unbiased" ones are means over random draws, whose expectation is the truth but for
        ``bias``.
    convergence : Convergence
        Of the linear algebra behind them.
    std_error : tuple of float arrays, optional
        Standard error of each value, in its units: how far it scatters, because draws are few. None where the error is
        not random.
    bias : tuple of float arrays, optional
        One array per array of ``values``, of its shape and in its units (absolute, not relative), zero or positive: an
        estimate of how far each value may lie off, mostly below, because every draw was solved to a tolerance and not
        exactly. More draws do not make it smaller, a smaller tolerance of the solver does. It is cautious, some two to
        four times the root mean square over coefficients of similar size, so that the truth is expected within
        ``3 * std_error + bias`` of nearly every value, however many draws there are. Zero where draws are known
        exactly; None where there are no draws behind the values, or where the estimator was told to leave it out.
    samples : array, shape (count, *image shape), optional
        Draws with covariance A^-1 made on the way.
    explained : array, shape of ``samples``, optional
        P b for the right-hand side b of every draw, with P the inverse of the circulant nearest to A, or of the
        circulants of real and imaginary part behind a phase: the part of the draws whose variances are known exactly.
    image : float array, shape of one image, optional
        z of the pixels, where the draws alone would tell it worse.
    factors : LanczosFactors or BlockLanczosFactors, optional
        Low-rank representation made on the way.
    log_determinant : float, optional
        log|A| on the real unknowns; exact only where ``kind`` is.
    """

    values: tuple[Array, ...]
    kind: VarianceKind
    convergence: Convergence
    _: KW_ONLY
    std_error: tuple[Array, ...] | None = None
    bias: tuple[Array, ...] | None = None
    samples: Array | None = None
    explained: Array | None = None
    image: Array | None = None
    factors: LanczosFactors | BlockLanczosFactors | None = None
    log_determinant: float | None = None

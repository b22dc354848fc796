"""Masks of lines whose distances grow outwards from the centre, and which of them leaves least error under a posterior.

With several coils a line tells much about its surroundings, so that the distances between lines count for more than
what each line holds. Near the centre lines lie `NEAREST` apart, where coils fill the gaps; how fast distances grow
outwards follows from how many lines there are. What is left open is where each side of k-space begins. That is decided
by the total of the posterior variances once a whole mask has been measured, which knows the coils, the noise, the
extent of the object, and by the image's phase how far a line also tells about the opposite one.

Totals are those of some image columns, each by itself: Cartesian lines couple no two columns, and the sites that do are
counted as if the neighbouring column were known. What the rule is worth is in results/coils/planned.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.fixed import inclusion_masses
from mri_design.errors import InputError
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.sparsity import PhaseMap, estimate_phase
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import aliasing_of
from mri_design.variances.columns import column_blocks

Numbers = NDArray[np.float64]

NEAREST = 2.4
"""Distance of the lines next to the start, in lines: coils fill such gaps, and the centre is worth no more."""
PLACES = 6
"""Places on each side at which the lines may begin."""
COLUMNS = 8
"""Image columns whose variances are summed."""
IMAGINARY = 8.0
"""By how much more precise the imaginary part counts than the real one, after the phase, where the phase is certain."""
WIDEST = 300.0
"""Ratio of the largest to the least pivot of a Cholesky factor beyond which single precision is not enough."""
STEEPEST = 64.0
"""Largest power of a density."""


def growing_masks(free: NDArray[np.bool_], count: int, places: int = PLACES) -> list[tuple[int, ...]]:
    """Sets of lines at distances that grow outwards, one for every place where either side begins.

    The density is (1 - |k| / k_max)^p, with p so that lines next to the start are `NEAREST` apart, and 0 where there
    are enough lines to be nearer everywhere. Each side of DC has its share of the lines; they lie at equal steps of
    the density's integral, from an offset of its own.

    Parameters
    ----------
    free : bool array, shape (ky,)
        Lines that may be chosen; those of the start may not.
    count : int
        How many to choose.
    places : int
        Offsets on each side.

    Returns
    -------
    list of tuples of int
        Different sets of ``count`` lines each, ascending.
    """
    if not count:
        return [()]
    n, lines = len(free), np.flatnonzero(free)
    k = lines - n // 2
    density = _density((np.abs(k) + 0.5) / (n / 2 + 0.5), count)
    sides = [np.flatnonzero(k > 0), np.flatnonzero(k <= 0)[::-1]]  # outwards
    right = round(count * density[sides[0]].sum() / density.sum())
    right = min(max(right, count - len(sides[1])), len(sides[0]))
    offsets = (np.arange(places) + 0.5) / places
    each = [
        [lines[side[_spread(density[side], number, offset)]].tolist() for offset in offsets]
        for side, number in zip(sides, (right, count - right), strict=True)
    ]
    return list(dict.fromkeys(tuple(sorted((*one, *other))) for one in each[0] for other in each[1]))


def _density(radii: Numbers, count: int) -> Numbers:
    """The density of lines by their distances from DC as parts of k_max."""
    left = np.clip(1 - radii, 1e-6, 1)

    def too_flat(power: float) -> bool:
        return bool(count * (left**power).max() * NEAREST < (left**power).sum())

    low, high = 0.0, STEEPEST
    while too_flat(low) and high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if too_flat(middle) else (low, middle)
    return np.asarray(left**low)


def _spread(density: Numbers, count: int, offset: float) -> NDArray[np.intp]:
    """Places of ``count`` lines, ascending, at equal steps of the integral of their ``density``."""
    steps = np.arange(count)
    found = np.searchsorted(np.cumsum(inclusion_masses(density, count)), steps + offset)
    found = steps + np.maximum.accumulate(found - steps)  # different ones, and none beyond the last
    return np.minimum(found, len(density) - count + steps)


@dataclass(frozen=True)
class Column:
    """One image column, on the real and the imaginary part after its phase: the precision of the prior, and the coils.

    Parameters
    ----------
    prior : float32 array, shape (2 ky, 2 ky)
        Precision of the sites, in units of the noise's.
    coils : complex array, shape (ky, ky)
        Sum over coils of conj(c(y)) c(y'), turned by the phase.
    """

    prior: Numbers
    coils: Array

    def total(self, lines: Array) -> float:
        """Sum of the variances in units of the noise variance; ``lines`` is `aliasing_of` those measured."""
        gram, n = self.coils * lines, len(self.coils)
        precision = self.prior.copy()
        precision[:n, :n] += gram.real
        precision[n:, n:] += gram.real
        precision[n:, :n] += gram.imag  # the lower half is enough
        return precision_total(precision)


def precision_total(precision: Numbers) -> float:
    """Trace of the inverse of a real symmetric matrix, of which the lower half counts; infinite if it is indefinite.

    Single precision tells masks apart; where it finds a matrix near one that has no inverse, double does.
    """
    potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (precision,))
    factor, failed = potrf(precision.T, lower=0)  # in the memory order of LAPACK
    diagonal = np.diagonal(factor)
    if precision.dtype == np.float32 and (failed or diagonal.max() > WIDEST * diagonal.min()):
        return precision_total(precision.astype(np.float64))
    if not failed:
        inverse, failed = trtri(factor, lower=0, overwrite_c=1)
    return float("inf") if failed else float(np.sum(np.square(inverse, out=inverse), dtype=np.float64))


def totals_after(posterior: GaussianPosterior, masks: Sequence[Sequence[int]], columns: int = COLUMNS) -> Numbers:
    """Sum of the posterior variances of some image columns once each mask has been measured, (masks,), in data units.

    Site precisions are those of the posterior. The covariance does not depend on what will be measured (TR-175,
    section 6); this is the A-optimal criterion for whole masks.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of Cartesian lines with several coils.
    masks : sequence of sequences of int
        All lines of each mask.
    columns : int
        How many columns: those that hold equal parts of the posterior's variance.
    """
    chosen = _columns(posterior, columns)
    numbers = np.arange(len(posterior.mean))
    seen = (aliasing_of(np.isin(numbers, mask)) for mask in masks)
    totals = [sum(one.total(lines) for one in chosen) for lines in seen]
    return posterior.model.noise_variance * np.asarray(totals, dtype=np.float64)


def _columns(posterior: GaussianPosterior, count: int) -> list[Column]:
    maps = getattr(posterior.model.measurement, "maps", None)
    if maps is None:
        raise InputError("posterior", "one without coil maps", "Cartesian lines with several coils")
    variances = np.asarray(posterior.image_variances, dtype=np.float64).sum(axis=0)
    shares = (np.arange(count) + 0.5) / count
    places = np.unique(np.searchsorted(np.cumsum(variances / variances.sum()), shares).clip(max=len(variances) - 1))
    blocks, phase = column_blocks(posterior.precision, places), _phase(posterior)
    made = []
    for block, x in zip(blocks, places, strict=True):
        turned = maps[:, :, x] * phase.rotation[:, x]
        root = np.sqrt(1 + (IMAGINARY - 1) * phase.confidence[:, x])
        prior = scipy.linalg.block_diag(block, root[:, None] * block * root).astype(np.float32)
        made.append(Column(prior, np.einsum("cy,cz->yz", turned.conj(), turned)))
    return made


def _phase(posterior: GaussianPosterior) -> PhaseMap:
    """The phase of the mean; one that nobody trusts where it shows none."""
    try:
        return estimate_phase(posterior.mean, posterior.model.noise_variance)
    except InputError:
        shape = posterior.mean.shape
        return PhaseMap(np.ones(shape, complex), np.zeros(shape))

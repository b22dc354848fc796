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

from mri_design.errors import InputError
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.sparsity import PhaseMap, estimate_phase
from mri_design.operators.base import Array
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
    n = len(free)
    k = np.arange(n) - n // 2
    sides = [np.flatnonzero(free & (k > 0)), np.flatnonzero(free & (k <= 0))[::-1]]
    density = _density(np.where(free, (np.abs(k) + 0.5) / (n / 2 + 0.5), np.nan), count)
    right = round(count * density[sides[0]].sum() / density[free].sum()) if count else 0
    right = min(max(right, count - len(sides[1])), len(sides[0]))
    offsets = (np.arange(places) + 0.5) / places
    each = [
        [_spread(lines, density[lines], number, offset) for offset in offsets]
        for lines, number in zip(sides, (right, count - right), strict=True)
    ]
    return list(dict.fromkeys(tuple(sorted((*one, *other))) for one in each[0] for other in each[1]))


def _density(radii: Numbers, count: int) -> Numbers:
    """The density at every line, by its distance from DC as a part of k_max; zero where that is NaN."""
    known = np.isfinite(radii)

    def of(power: float) -> Numbers:
        return np.where(known, np.power(np.clip(1 - np.where(known, radii, 1.0), 1e-6, 1), power), 0.0)

    def too_flat(power: float) -> bool:
        density = of(power)
        return bool(count * density.max() * NEAREST < density.sum())

    low, high = 0.0, STEEPEST
    if not too_flat(low):
        return of(low)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if too_flat(middle) else (low, middle)
    return of(low)


def _spread(lines: NDArray[np.intp], density: Numbers, count: int, offset: float) -> list[int]:
    """``count`` of the lines, at equal steps of the density's integral."""
    if count == 0:
        return []
    mass, open_to = np.zeros(len(lines)), np.ones(len(lines), dtype=bool)
    while True:  # no line counts for more than one
        left = count - int((~open_to).sum())
        mass[open_to] = left * density[open_to] / density[open_to].sum() if open_to.any() else 0.0
        if not (mass > 1 + 1e-12).any():
            break
        open_to &= mass <= 1 + 1e-12
        mass[~open_to] = 1.0
    found = np.searchsorted(np.cumsum(mass), np.arange(count) + offset).clip(max=len(lines) - 1)
    for place in range(1, count):  # different lines, in order, and all on this side
        found[place] = max(found[place], found[place - 1] + 1)
    found = np.minimum(found, len(lines) - count + np.arange(count))
    return [int(line) for line in lines[found]]


def closest(masks: Sequence[tuple[int, ...]], chosen: Sequence[int]) -> list[tuple[int, ...]]:
    """Those of the masks that hold most of the lines chosen so far."""
    held = [len(set(mask).intersection(chosen)) for mask in masks]
    return [mask for mask, count in zip(masks, held, strict=True) if count == max(held)]


@dataclass(frozen=True)
class Column:
    """One image column, on the real and the imaginary part after its phase: the precision of the prior, and the coils.

    Parameters
    ----------
    prior : float array, shape (2 ky, 2 ky)
        Precision of the sites, in units of the noise's.
    coils : complex array, shape (ky, ky)
        Sum over coils of conj(c(y)) c(y'), turned by the phase.
    """

    prior: Numbers
    coils: Array

    def total(self, lines: Array) -> float:
        """Sum of the variances in units of the noise variance; ``lines`` are those measured, as `gram_of_lines`."""
        gram, n = self.coils * lines, len(self.coils)
        precision = self.prior.copy()
        precision[:n, :n] += gram.real
        precision[n:, n:] += gram.real
        precision[n:, :n] += gram.imag  # the lower half is enough
        return precision_total(precision)


def gram_of_lines(n: int, lines: Sequence[int]) -> Array:
    """F^H F along y, (ky, ky), of some lines of the centred unitary transform of n samples."""
    wave = np.exp(2j * np.pi * np.outer(np.arange(n), np.asarray(lines) - n // 2) / n).sum(axis=1) / n
    return np.asarray(wave[(np.arange(n)[:, None] - np.arange(n)) % n])


def precision_total(precision: Numbers) -> float:
    """Trace of the inverse of a real symmetric matrix, of which the lower half counts; infinite if it is indefinite."""
    factor, failed = scipy.linalg.lapack.dpotrf(precision, lower=1)
    if failed:
        return float("inf")
    inverse, failed = scipy.linalg.lapack.dtrtri(factor, lower=1)
    return float("inf") if failed else float(np.sum(inverse**2))


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
    grams = (gram_of_lines(len(posterior.mean), mask) for mask in masks)
    totals = [sum(one.total(gram) for one in chosen) for gram in grams]
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
        prior = scipy.linalg.block_diag(block, root[:, None] * block * root)
        made.append(Column(prior, np.einsum("cy,cz->yz", turned.conj(), turned)))
    return made


def _phase(posterior: GaussianPosterior) -> PhaseMap:
    """The phase of the mean; one that nobody trusts where it shows none."""
    try:
        return estimate_phase(posterior.mean, posterior.model.noise_variance)
    except InputError:
        shape = posterior.mean.shape
        return PhaseMap(np.ones(shape, complex), np.zeros(shape))

"""Poisson-disc masks: random samples that keep a distance from each other, with exactly the number that is asked for.

Distances grow where the density falls. The mask depends on the seed and the settings alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice
from mri_design.design.plane.densities import SampleDensity
from mri_design.design.plane.thinning import candidates_plane
from mri_design.design.strategy import DesignView
from mri_design.errors import InputError
from mri_design.operators.encodings import PlaneEncoding

BISECTIONS = 20


@dataclass(frozen=True, kw_only=True)
class PoissonDisc(SampleDensity):
    """A Poisson-disc mask around the samples at the start: settings as `SampleDensity`.

    The shutter, partial Fourier and the calibration region are the design's constraints; without a calibration region
    the start alone is fully sampled.
    """

    power: float = 2.0
    name: str = "poisson-disc"

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The mask's samples; fewer than the whole mask are a mask of their own."""
        plane = candidates_plane(view)
        free, there = view.candidates.remaining, view.candidates.mask
        return [Choice(int(s)) for s in poisson_disc(plane, self.density(plane), free, there, count, rng)]

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One sample."""
        return self.choose_block(view, rng, 1)[0]


def poisson_disc(
    plane: PlaneEncoding,
    density: NDArray[np.float64],
    free: NDArray[np.bool_],
    there: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Exactly ``count`` of the ``free`` samples that keep a distance from each other and from those that are ``there``.

    Parameters
    ----------
    plane : PlaneEncoding
        The samples.
    density : float array, shape (size,)
        Positive. No two samples are nearer than the smaller one of their scale / sqrt(density), in samples.
    free, there : bool arrays, shape (size,)
        Samples that may be taken, and those that are measured already.
    count : int
        How many.
    rng : numpy Generator
        Of the order in which samples are tried.

    Returns
    -------
    int array, shape (count,)

    Raises
    ------
    InputError
        Where fewer samples are free.

    Notes
    -----
    Samples are tried in a random order, and a sample is taken unless it lies within the distance of one taken before:
    none can be added then. Bisection finds the largest scale at which there are enough; the few too many are left out,
    the last ones taken first.
    """
    if count > int(free.sum()):
        raise InputError(field="samples", got=str(count), wanted=f"at most {int(free.sum())}, those that are left")
    order = rng.permutation(np.flatnonzero(free))
    distance = 1 / np.sqrt(density / density.max())
    low, high = 0.0, float(max(plane.grid))
    best = order[:count]  # at no distance everything is taken
    for _ in range(BISECTIONS):
        scale = (low + high) / 2
        taken = _taken(plane, scale * distance, order, np.flatnonzero(there))
        if len(taken) >= count:
            low, best = scale, taken[:count]
        else:
            high = scale
    return np.asarray(best, dtype=np.intp)


def _taken(
    plane: PlaneEncoding, distance: NDArray[np.float64], order: NDArray[np.intp], there: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Samples in their order that lie in the disc of none before."""
    rows, columns = plane.grid
    covered, reaches = np.zeros(plane.grid, dtype=bool), distance.reshape(plane.grid)

    def cover(sample: int) -> None:
        y, z = divmod(sample, columns)
        reach = distance[sample]
        whole = int(min(np.ceil(reach), max(plane.grid)))
        top, left = max(y - whole, 0), max(z - whole, 0)
        at_y, at_z = np.arange(top, min(y + whole + 1, rows)) - y, np.arange(left, min(z + whole + 1, columns)) - z
        window = slice(top, top + len(at_y)), slice(left, left + len(at_z))
        covered[window] |= at_y[:, None] ** 2 + at_z**2 < np.minimum(reach, reaches[window]) ** 2

    for sample in there.tolist():
        cover(sample)
    flat, taken = covered.reshape(-1), list[int]()
    for sample in order.tolist():
        if not flat[sample]:
            taken.append(sample)
            cover(sample)
    return np.array(taken, dtype=np.intp)

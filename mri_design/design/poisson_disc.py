"""Poisson-disc masks over a plane: samples at random that keep a distance from each other, which grows outwards.

With several coils a sample tells much of its surroundings, and even distances count for more than the energies of
single samples: strategies that look at posteriors begin with a disc then.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.decision import Choice
from mri_design.errors import InputError
from mri_design.readouts import PlaneReadouts

LEAST = 1e-4
"""Share of the way to the corners of the plane that is left there: every sample can be drawn."""
SHIFT = 0.25
"""How far, in samples along each axis, a sample may count as lying from its place: distances of a grid are few (1, 1.4,
2, ...), and without it a distance between two of them makes a checkerboard."""
BISECTIONS = 20
SHARE = 0.7
"""Part of a mask that is a disc where a strategy begins with one (results/coils/planes.md)."""
POWER = 2.0
"""Power of its density."""


def radial_density(plane: PlaneReadouts, power: float) -> NDArray[np.float64]:
    """Relative density (1 - r / r_max)^power of every sample, (size,), r the distance from DC; 1 there."""
    if not power:
        return np.ones(plane.size)
    share = 1 - plane.radius / plane.radius.max()
    return np.asarray(np.maximum(share, 0) ** power + LEAST**power)


def first_disc(candidates: LineCandidates, rng: np.random.Generator, count: int, power: float = POWER) -> list[Choice]:
    """The next ``count`` samples of a plane as a Poisson disc around those that are there: the first part of a mask.

    Parameters
    ----------
    candidates : LineCandidates
        Samples of a plane, and how many there will be in the end.
    rng : numpy Generator
        See `poisson_disc`.
    count : int
        How many.
    power : float
        Of `radial_density`.
    """
    plane = candidates.readouts
    assert isinstance(plane, PlaneReadouts)
    density = radial_density(plane, power)
    disc = poisson_disc(plane, density, candidates.remaining, candidates.mask, count, rng)
    return [Choice(int(sample)) for sample in disc]


def poisson_disc(
    plane: PlaneReadouts,
    density: NDArray[np.float64],
    free: NDArray[np.bool_],
    there: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Exactly ``count`` of the ``free`` samples that keep a distance from each other and from those that are ``there``.

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    density : float array, shape (size,)
        Positive. No two samples are nearer than the smaller one of their scale / sqrt(density), in samples, each of
        them being shifted by up to `SHIFT`.
    free, there : bool arrays, shape (size,)
        Samples that may be taken, and those that are measured already.
    count : int
        How many.
    rng : numpy Generator
        Of the order in which samples are tried, and of their shifts.

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
    places = np.indices(plane.grid) + rng.uniform(-SHIFT, SHIFT, (2, *plane.grid))
    low, high = 0.0, float(max(plane.grid))
    best = order[:count]  # at no distance everything is taken
    for _ in range(BISECTIONS):
        scale = (low + high) / 2
        taken = _taken(places, scale * distance, order, np.flatnonzero(there), count)
        if len(taken) >= count:
            low, best = scale, taken
        else:
            high = scale
    return np.asarray(best, dtype=np.intp)


def _taken(
    places: NDArray[np.float64],
    distance: NDArray[np.float64],
    order: NDArray[np.intp],
    there: NDArray[np.intp],
    most: int,
) -> NDArray[np.intp]:
    """Samples in their order that lie in the disc of none before, ``most`` at most; ``places`` are (2, ky, kz)."""
    grid = places.shape[1:]
    covered, square = np.zeros(grid, dtype=bool), (distance**2).reshape(grid)
    reaches = np.minimum(np.ceil(distance + 2 * SHIFT), max(grid)).astype(int).tolist()

    def cover(sample: int) -> None:
        if distance[sample] <= 1 - 2 * SHIFT:  # nothing else is as near
            return
        y, z = divmod(sample, grid[1])
        whole = reaches[sample]
        window = np.s_[max(y - whole, 0) : y + whole + 1, max(z - whole, 0) : z + whole + 1]
        away_y, away_z = places[0][window] - places[0, y, z], places[1][window] - places[1, y, z]
        near = away_y * away_y + away_z * away_z < np.minimum(square[window], square[y, z])
        np.logical_or(covered[window], near, out=covered[window])

    for sample in there.tolist():
        cover(sample)
    flat, taken = covered.reshape(-1).data, list[int]()  # its items are read faster than the array's
    for sample in order.tolist():
        if not flat[sample]:
            taken.append(sample)
            if len(taken) == most:
                break
            cover(sample)
    return np.array(taken, dtype=np.intp)

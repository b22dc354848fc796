"""Masks that use no data, the competitors of designed masks: random, regular, low-pass, sets of angles.

Variable-density masks are drawn independently or evenly. Even draws have fewer chance gaps: they walk along the
cumulative density of the lines outside the centre. With m lines to draw, each line has the mass min(1, c p), c such
that the masses add up to m: the probability of its being drawn, of which no line has more than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.design.greedy import plane_of
from mri_design.design.strategy import DesignView, LineCandidates, Strategy, best_line
from mri_design.design.trace import Choice
from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.operators.trajectory import golden_angles, interleaf_angles
from mri_design.readouts import PlaneReadouts, Readouts

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
    plane = plane_of(candidates.readouts)
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
        How many; there must be as many free.
    rng : numpy Generator
        Of the order in which samples are tried, and of their shifts.

    Returns
    -------
    int array, shape (count,)

    Notes
    -----
    Samples are tried in a random order, and a sample is taken unless it lies within the distance of one taken before:
    none can be added then. Bisection finds the largest scale at which there are enough; the few too many are left out,
    the last ones taken first.
    """
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


GOLDEN = (np.sqrt(5) - 1) / 2
"""The golden ratio less one."""
Draw = Literal["random", "jittered", "systematic", "golden", "half"]


@dataclass(frozen=True, kw_only=True)
class VariableDensity(Strategy):
    """Lines drawn from a density that falls off with |k|, around a centre that is always sampled.

    Parameters
    ----------
    family : {"polynomial", "gaussian"}
        polynomial: (1 - |k| / k_max)^power (Lustig, Donoho & Pauly 2007); gaussian: exp(-power (|k| / k_max)^2 / 2).
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of lines.
    centre : int
        Lines always sampled at the centre.
    draw : {"random", "jittered", "systematic", "golden", "half"}
        random: independently, without replacement. jittered: one line in every unit of mass, from one edge of k-space
        to the other; a line on the border of two units is drawn once at most. systematic: the lines at u, u + 1,
        u + 2, ... in mass for one random u. golden: those at multiples of the golden ratio of the whole mass from a
        random one on, which can be stopped at any time; a taken line gives way to the nearest. half: independently on
        one half of k-space, partial Fourier's, and on the other one once that is full: where an image's phase is
        smooth, a line nearly determines the opposite one.

    Raises
    ------
    InputError
        For another family or draw, a power that is not a number of zero or more, or a centre of no line.

    Notes
    -----
    The random offset of a systematic or golden draw is read off the first line chosen, to within that line's mass.
    """

    family: Literal["polynomial", "gaussian"] = "polynomial"
    power: float = 3.0
    centre: int = 8
    draw: Draw = "random"
    name: str = "vd-polynomial"
    needs_posterior = False

    def __post_init__(self) -> None:
        if self.family not in ("polynomial", "gaussian"):
            raise InputError(field="density family", got=repr(self.family), wanted="polynomial or gaussian")
        require_numbers(**{"density power": self.power})
        require_counts(least=1, **{"density centre": self.centre})
        require_choice(get_args(Draw), draw=self.draw)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The forced centre."""
        return min(target, self.centre)

    def density(self, frequencies: NDArray[np.int_]) -> NDArray[np.float64]:
        """Relative density at the given k."""
        radius = np.abs(frequencies) / (np.abs(frequencies).max() + 1)
        if self.family == "polynomial":
            return np.asarray((1 - radius) ** self.power, dtype=float)
        return np.asarray(np.exp(-0.5 * self.power * radius**2), dtype=float)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next line of the draw."""
        candidates = view.candidates
        density = self.density(candidates.frequencies)
        if self.draw in ("random", "half"):
            density = density if self.draw == "random" else np.where(candidates.frequencies >= 0, density, 1e-100)
            weight = np.where(candidates.remaining, np.maximum(density, 1e-300), 0.0)
            return Choice(int(rng.choice(candidates.n_lines, p=weight / weight.sum())))
        free, total, chosen = candidates.outside_start, candidates.wanted, candidates.chosen
        high = np.cumsum(masses := inclusion_masses(np.maximum(density[free], 1e-300), total))
        low = high - masses
        golden = self.draw == "golden"
        if self.draw == "jittered" or not chosen:  # from the mass between two points
            begin = len(chosen)
            end = total if golden else begin + 1
            share = np.clip(np.minimum(high, end) - np.maximum(low, begin), 0, None)
            share[~candidates.remaining[free]] = 0
            if share.sum() > 0:
                return Choice(int(rng.choice(free, p=share / share.sum())))
            point = (begin + end) / 2
        else:
            place = int(np.searchsorted(free, chosen[0]))
            first = (low[place] + min(high[place], total if golden else 1)) / 2
            point = (first / total + len(chosen) * GOLDEN) % 1 * total if golden else first + len(chosen)
        distance = np.full(candidates.n_lines, np.nan)
        distance[free] = np.maximum(0, np.maximum(low - point, point - high))
        return Choice(best_line(-distance, candidates).line)


def inclusion_masses(density: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """min(1, c density) with a sum of ``count``: how probable it is that each line is among ``count`` drawn ones.

    Parameters
    ----------
    density : float array
        Positive.
    count : int
        At most as many as there are entries.
    """
    full = np.zeros(len(density), dtype=bool)
    while True:
        left = count - int(full.sum())
        masses = np.where(full, 1.0, 0.0)
        if left > 0:
            masses[~full] = density[~full] * (left / density[~full].sum())
        over = ~full & (masses >= 1)
        if not over.any():
            return masses
        full |= over


@dataclass(frozen=True, kw_only=True)
class RegularLines(Strategy):
    """Every R-th line through the centre, from DC outwards; lines left over are added to the fully sampled centre.

    The comb's offset is drawn at the first step and read off the first line chosen later. With fewer lines than the
    comb has teeth, the outermost are left out. For one slice and one phase-encode axis a CAIPI mask is the same.

    Parameters
    ----------
    spacing : int or None
        R; None is the smallest whose comb fits into the lines that are not at the start.
    """

    spacing: int | None = None
    name: str = "regular"
    start_lines = (4, 4)  # so that the image's scale can be seen
    needs_posterior = False

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The tooth nearest to DC that is left; without one, the line nearest to DC."""
        candidates = view.candidates
        distance = -np.abs(candidates.frequencies).astype(float)
        if self.spacing is not None:
            spacing = min(self.spacing, candidates.n_lines)
        else:
            free, wanted = candidates.outside_start, candidates.wanted
            fits = (n for n in range(1, candidates.n_lines) if np.bincount(free % n, minlength=n).max() <= wanted)
            spacing = next(fits, candidates.n_lines)
        offset = candidates.chosen[0] % spacing if candidates.chosen else int(rng.integers(spacing))
        comb = np.arange(candidates.n_lines) % spacing == offset
        if (comb & candidates.remaining).any():
            distance[~comb] = np.nan
        return Choice(best_line(distance, candidates).line)


@dataclass(frozen=True, kw_only=True)
class LowPass(Strategy):
    """The lines, or samples of a plane, nearest to DC."""

    name: str = "low-pass"
    needs_posterior = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """One line, since the rule needs no centre."""
        return 1

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The nearest remaining candidates."""
        left = np.flatnonzero(view.candidates.remaining).tolist()
        return [Choice(candidate) for candidate in view.readouts.nearest_to_centre(left, count)]


@dataclass(frozen=True, kw_only=True)
class CentredLines(Strategy):
    """Lines around a fully sampled centre: at random, at equal distances, or by the golden ratio.

    The offset of equal distances is drawn at the first step and read off the first line chosen later, so that the rule
    needs no memory.

    Parameters
    ----------
    spread : {"random", "even", "golden"}
        random: all remaining lines alike. even: at equal distances, with a random offset (fastMRI's equispaced mask).
        golden: nearest to multiples of the golden ratio of the grid, circularly, which cover it evenly at any time.
    centre_fraction : float or None
        Share of the grid that is sampled at the centre (fastMRI: 0.08 at acceleration 4, 0.04 at 8), which is at most
        half of the target unless lines are random; None is no centre beyond four lines.
    """

    spread: Literal["random", "even", "golden"] = "random"
    centre_fraction: float | None = None
    name: str = "random"
    needs_posterior = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Centre lines, never more than the target."""
        if self.centre_fraction is None:
            return min(4, target)
        most = target if self.spread == "random" else max(1, target // 2)
        return min(most, max(1, round(readouts.size * self.centre_fraction)))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """Any remaining line, or that nearest to the next tooth of the comb, or to the next multiple."""
        candidates, n_lines = view.candidates, view.candidates.n_lines
        if self.spread == "random":
            return Choice(int(rng.choice(np.flatnonzero(candidates.remaining))))
        if self.spread == "golden":
            distance = np.abs(np.arange(n_lines) - (len(candidates.acquired) * GOLDEN % 1) * n_lines)
            return Choice(best_line(-np.minimum(distance, n_lines - distance), candidates).line)
        free, chosen = candidates.outside_start, candidates.chosen
        spacing = len(free) / candidates.wanted
        place = np.searchsorted(free, chosen[0]) + spacing * len(chosen) if chosen else rng.uniform(0, spacing)
        tooth = free[min(int(place), len(free) - 1)]
        distance = np.abs(np.arange(n_lines) - tooth).astype(float)  # constraints may close the tooth
        return Choice(best_line(-distance, candidates).line)


@dataclass(frozen=True, kw_only=True)
class RandomSamples(Strategy):
    """Samples of a plane drawn without replacement from a density (1 - r / r_max)^power, or a Poisson disc of it.

    r is the distance from DC in units of the plane's edges. Samples of a disc keep a distance from each other and from
    those at the start, which grows where the density falls. The shutter, partial Fourier and the calibration region
    are the design's constraints; without a calibration region the start alone is fully sampled.

    Parameters
    ----------
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of samples and coils.
    disc : bool
        Whether they are a Poisson disc. Fewer samples than the whole mask are then a mask of their own.
    """

    power: float = 8.0
    disc: bool = False
    name: str = "vd-polynomial"
    needs_posterior = False

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The next draws, or the samples of the disc."""
        if self.disc:
            return first_disc(view.candidates, rng, count, self.power)
        density = radial_density(plane_of(view.readouts), self.power)
        density = np.where(view.candidates.remaining, density, 0.0)
        drawn = rng.choice(len(density), size=count, replace=False, p=density / density.sum())
        return [Choice(int(sample)) for sample in drawn]


@dataclass(frozen=True, kw_only=True)
class CaipiSamples(Strategy):
    """A regular pattern, every R_y-th row with every R_z-th sample of it, shifted from row to row (2-D CAIPIRINHA).

    The pattern runs through DC. Samples that are left over are added to the fully sampled centre; with fewer samples
    than the pattern has, the outermost are left out. Breuer et al., Magn. Reson. Med. 55 (2006) 549-556.

    Parameters
    ----------
    spacing : tuple of int, optional
        (R_y, R_z); by default the smallest product that fits into the samples that are not at the start, as nearly
        square as possible.
    shift : int, optional
        Samples along kz by which each row of the pattern is shifted against the one before; by default half of R_z.
    """

    spacing: tuple[int, int] | None = None
    shift: int | None = None
    name: str = "caipi"
    needs_posterior = False

    def pattern(self, plane: PlaneReadouts, spacing: tuple[int, int]) -> NDArray[np.bool_]:
        """The pattern's samples, (size,)."""
        rows, columns = spacing
        ky, kz = plane.frequencies.T
        shift = columns // 2 if self.shift is None else self.shift
        return np.asarray((ky % rows == 0) & ((kz - shift * (ky // rows)) % columns == 0))

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The pattern from DC outwards, then the samples nearest to DC."""
        plane, candidates = plane_of(view.readouts), view.candidates
        if self.spacing is not None:
            pattern = self.pattern(plane, self.spacing)
        else:
            tried = (self.pattern(plane, spacing) for spacing in _spacings(plane.size))
            pattern = next(made for made in tried if made[candidates.outside_start].sum() <= candidates.wanted)
        left = plane.outwards[candidates.remaining[plane.outwards]]
        order = np.concatenate([left[pattern[left]], left[~pattern[left]]])
        return [Choice(sample) for sample in order[:count].tolist()]


def _spacings(most: int) -> Iterator[tuple[int, int]]:
    """Undersampling factors (R_y, R_z), for each R_y R_z = 1, ... ``most`` + 1 the pair that is closest to square."""
    for product in range(1, most + 2):
        rows = max(r for r in range(1, int(np.sqrt(product)) + 1) if product % r == 0)
        yield rows, product // rows


AngleSet = Literal["half-turn", "full-turn", "one-missing", "golden"]


@dataclass(frozen=True, kw_only=True)
class FixedAngles(Strategy):
    """A fixed set of shots, with angles of its own instead of equispaced candidates.

    Parameters
    ----------
    kind : {"half-turn", "full-turn", "one-missing", "golden"}
        As `interleaf_angles` has them, or golden ones.
    tiny : int
        Of golden angles: see `golden_angles`.
    """

    kind: AngleSet = "half-turn"
    tiny: int = 1
    name: str = "half-turn"
    needs_posterior = False

    def angles(self, count: int, turn: float) -> NDArray[np.float64]:
        """``count`` angles in radians; golden ones share ``turn``, pi for spokes and 2 pi for arms."""
        if self.kind == "golden":
            return golden_angles(count, tiny=self.tiny, turn=turn)
        return interleaf_angles(count, self.kind)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The whole target: nothing is decided on the way."""
        return target

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next of the set."""
        return best_line(-np.arange(view.candidates.n_lines, dtype=float), view.candidates)

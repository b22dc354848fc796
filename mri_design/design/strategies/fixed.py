"""Sets of angles that are known before the scan: equispaced ones, and golden ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.design.blocks import plane_of, poisson_disc, radial_density
from mri_design.design.candidate import LineCandidates
from mri_design.design.strategy import ChoosesBlocks, DesignView, best_line
from mri_design.design.trace import Choice
from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.operators.trajectory import golden_angles, interleaf_angles
from mri_design.readouts import PlaneReadouts, Readouts

GOLDEN = (np.sqrt(5) - 1) / 2
"""The golden ratio less one."""


@dataclass(frozen=True, kw_only=True)
class DensitySettings:
    """A density that falls off with |k|, around a centre that is always sampled. It is no strategy: it chooses nothing.

    Parameters
    ----------
    family : {"polynomial", "gaussian"}
        polynomial: (1 - |k| / k_max)^power (Lustig, Donoho & Pauly 2007); gaussian: exp(-power (|k| / k_max)^2 / 2).
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of lines.
    centre : int
        Lines always sampled at the centre.

    Raises
    ------
    InputError
        For another family, a power that is not a number of zero or more, or a centre of no line.
    """

    family: Literal["polynomial", "gaussian"] = "polynomial"
    power: float = 4.0
    centre: int = 8
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.family not in ("polynomial", "gaussian"):
            raise InputError(field="density family", got=repr(self.family), wanted="polynomial or gaussian")
        require_numbers(**{"density power": self.power})
        require_counts(least=1, **{"density centre": self.centre})

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The forced centre."""
        return min(target, self.centre)

    def density(self, frequencies: NDArray[np.int_]) -> NDArray[np.float64]:
        """Relative density at the given k."""
        radius = np.abs(frequencies) / (np.abs(frequencies).max() + 1)
        if self.family == "polynomial":
            return np.asarray((1 - radius) ** self.power, dtype=float)
        return np.asarray(np.exp(-0.5 * self.power * radius**2), dtype=float)


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
class RegularLines:
    """Every R-th line through the centre, from DC outwards; lines left over are added to the fully sampled centre.

    The comb's offset is drawn at the first step and read off the first line chosen later. With fewer lines than the
    comb has teeth, the outermost are left out. For one slice and one phase-encode axis a CAIPI mask is the same.

    Parameters
    ----------
    spacing : int or None
        R; None is the smallest whose comb fits into the lines that are not at the start.

    Raises
    ------
    InputError
        For a spacing that is not a whole number of one or more.
    """

    spacing: int | None = None
    name: str = "regular"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.spacing is not None and not (isinstance(self.spacing, int) and self.spacing >= 1):
            raise InputError(field="line spacing", got=repr(self.spacing), wanted="a whole number, 1 or more")

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """A small centre, so that the image's scale can be seen: four lines."""
        return min(4, target)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The tooth nearest to DC that is left; without one, the line nearest to DC."""
        candidates = view.candidates
        distance = -np.abs(candidates.frequencies).astype(float)
        chosen = candidates.acquired[candidates.n_start :]
        spacing = self._spacing(candidates)
        offset = int(rng.integers(spacing)) if not chosen else chosen[0] % spacing
        comb = np.arange(candidates.n_lines) % spacing == offset
        if (comb & candidates.remaining).any():
            distance[~comb] = np.nan
        return Choice(best_line(distance, candidates).line)

    def _spacing(self, candidates: LineCandidates) -> int:
        if self.spacing is not None:
            return min(self.spacing, candidates.n_lines)
        start = candidates.acquired[: candidates.n_start]
        free = candidates.allowed.copy()
        free[list(start)] = False
        wanted = candidates.target - candidates.n_start
        lines = np.flatnonzero(free)
        for spacing in range(1, candidates.n_lines):
            if np.bincount(lines % spacing, minlength=spacing).max() <= wanted:
                return spacing
        return candidates.n_lines


@dataclass(frozen=True, kw_only=True)
class LowPass(ChoosesBlocks):
    """The lines, or samples of a plane, nearest to DC."""

    name: str = "low-pass"
    needs_posterior: bool = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """One line, since the rule needs no centre."""
        return 1

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The nearest remaining candidates."""
        left = np.flatnonzero(view.candidates.remaining).tolist()
        return [Choice(candidate) for candidate in view.readouts.nearest_to_centre(left, count)]


@dataclass(frozen=True, kw_only=True)
class RandomLines:
    """Uniformly random lines around a fully sampled centre.

    Parameters
    ----------
    centre_fraction : float or None
        Share of the grid that is sampled at the centre (fastMRI: 0.08 at acceleration 4, 0.04 at 8); None is no
        centre beyond four lines, plain random sampling.

    Raises
    ------
    InputError
        For a share that is not a number between 0 and 1.
    """

    centre_fraction: float | None = None
    name: str = "random"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.centre_fraction is not None:
            _require_share(self.centre_fraction)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Centre lines, never more than the target."""
        if self.centre_fraction is None:
            return min(4, target)
        return min(target, max(1, round(readouts.size * self.centre_fraction)))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """Any remaining line, all alike."""
        return Choice(int(rng.choice(np.flatnonzero(view.candidates.remaining))))


@dataclass(frozen=True, kw_only=True)
class VariableDensity(DensitySettings):
    """Random lines drawn without replacement from a density that falls off with |k|: settings as `DensitySettings`."""

    power: float = 3.0
    name: str = "vd-polynomial"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One draw from the density over the remaining lines."""
        return _drawn(self.density(view.candidates.frequencies), view.candidates, rng)


@dataclass(frozen=True, kw_only=True)
class HalfDensity(DensitySettings):
    """Variable density on one half of k-space, partial Fourier's: the other half is measured at the centre alone.

    Where an image's phase is smooth, a line nearly determines the opposite one, so that random lines on both sides are
    a weak competitor. Once the half is full, the other one follows. Settings are those of `DensitySettings`.
    """

    power: float = 3.0
    name: str = "vd-half"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """One draw from the density over the remaining lines of the half, then of the other one."""
        frequencies = view.candidates.frequencies
        return _drawn(np.where(frequencies >= 0, self.density(frequencies), 1e-100), view.candidates, rng)


def _drawn(density: NDArray[np.float64], candidates: LineCandidates, rng: np.random.Generator) -> Choice:
    """One of the remaining lines, drawn from a relative density (ky,)."""
    weight = np.where(candidates.remaining, np.maximum(density, 1e-300), 0.0)
    return Choice(int(rng.choice(candidates.n_lines, p=weight / weight.sum())))


@dataclass(frozen=True, kw_only=True)
class CentreSettings:
    """A share of the grid that is fully sampled at the centre. It is no strategy: it chooses nothing.

    Parameters
    ----------
    centre_fraction : float
        The share, 0 to 1.

    Raises
    ------
    InputError
        For a share that is not a number between 0 and 1.
    """

    centre_fraction: float = 0.08
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        _require_share(self.centre_fraction)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Centre lines: the share of the grid, at most half of the target."""
        return min(max(1, target // 2), max(1, round(readouts.size * self.centre_fraction)))


@dataclass(frozen=True, kw_only=True)
class Equispaced(CentreSettings):
    """Lines at equal distances around a fully sampled centre, with a random offset (fastMRI's equispaced mask).

    The offset is drawn at the first step and read off the first line chosen later, so that the rule needs no memory.
    Settings as `CentreSettings`.
    """

    name: str = "fastmri-equispaced"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next tooth of the comb."""
        candidates = view.candidates
        start = np.zeros(candidates.n_lines, dtype=bool)
        start[list(candidates.acquired[: candidates.n_start])] = True
        free = np.flatnonzero(candidates.allowed & ~start)
        wanted = candidates.target - candidates.n_start
        spacing = len(free) / wanted
        chosen = candidates.acquired[candidates.n_start :]
        if chosen:
            first = int(np.searchsorted(free, chosen[0]))
            tooth = free[min(int(first + spacing * len(chosen)), len(free) - 1)]
        else:
            tooth = free[int(rng.uniform(0, spacing))]
        distance = np.abs(np.arange(candidates.n_lines) - tooth).astype(float)  # constraints may close the tooth
        return Choice(best_line(-distance, candidates).line)


@dataclass(frozen=True, kw_only=True)
class GoldenRatio(CentreSettings):
    """Lines at multiples of the golden ratio of the grid, around a small centre: even coverage at any stopping time.

    Settings as `CentreSettings`.
    """

    name: str = "golden-ratio"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple (circularly)."""
        candidates = view.candidates
        step = len(candidates.acquired)
        wanted = (step * GOLDEN % 1) * candidates.n_lines
        distance = np.abs(np.arange(candidates.n_lines) - wanted)
        circular = np.minimum(distance, candidates.n_lines - distance)
        return Choice(best_line(-circular, candidates).line)


def _require_share(share: float) -> None:
    require_numbers(most=1.0, **{"centre fraction": share})


@dataclass(frozen=True)
class _Walk:
    """The lines outside the start, and where each lies on the cumulative mass."""

    free: NDArray[np.int_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    chosen: tuple[int, ...]
    candidates: LineCandidates

    @property
    def total(self) -> float:
        """Lines to draw."""
        return float(self.candidates.target - self.candidates.n_start)

    def middle(self, line: int, most: float) -> float:
        """Centre of a line's part of the mass below ``most``."""
        place = int(np.searchsorted(self.free, line))
        return float((self.low[place] + min(self.high[place], most)) / 2)

    def nearest(self, point: float) -> int:
        """The remaining line at ``point``, else the one whose mass is nearest."""
        distance = np.full(self.candidates.n_lines, np.nan)
        distance[self.free] = np.maximum(0, np.maximum(self.low - point, point - self.high))
        return best_line(-distance, self.candidates).line

    def within(self, low: float, high: float, rng: np.random.Generator) -> int:
        """A remaining line drawn from the mass between two points, else the nearest to their middle."""
        share = np.clip(np.minimum(self.high, high) - np.maximum(self.low, low), 0, None)
        share[~self.candidates.remaining[self.free]] = 0
        if not share.sum() > 0:
            return self.nearest((low + high) / 2)
        return int(rng.choice(self.free, p=share / share.sum()))


def _walk(settings: DensitySettings, candidates: LineCandidates) -> _Walk:
    """Where the lines that are not at the start lie on the masses of what is to be drawn outside it."""
    outside = candidates.allowed.copy()
    outside[list(candidates.acquired[: candidates.n_start])] = False
    free = np.flatnonzero(outside)
    density = np.maximum(settings.density(candidates.frequencies)[free], 1e-300)
    masses = inclusion_masses(density, candidates.target - candidates.n_start)
    high = np.cumsum(masses)
    return _Walk(free, high - masses, high, candidates.acquired[candidates.n_start :], candidates)


@dataclass(frozen=True, kw_only=True)
class JitteredDensity(DensitySettings):
    """One line drawn from every unit of mass, from one edge of k-space to the other.

    A line that lies on the border of two units is drawn once at most. Settings are those of `DensitySettings`.
    """

    name: str = "vd-jittered"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """A line of the next unit."""
        walk = _walk(self, view.candidates)
        unit = len(walk.chosen)
        return Choice(walk.within(unit, unit + 1, rng))


@dataclass(frozen=True, kw_only=True)
class SystematicDensity(DensitySettings):
    """Lines at equal distances in mass, with a random offset.

    The offset is drawn at the first step and read off the first line chosen later, to within that line's mass. Settings
    are those of `DensitySettings`.
    """

    name: str = "vd-systematic"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The next tooth of the comb."""
        walk = _walk(self, view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, 1, rng))
        return Choice(walk.nearest(walk.middle(walk.chosen[0], 1) + len(walk.chosen)))


@dataclass(frozen=True, kw_only=True)
class GoldenDensity(DensitySettings):
    """Lines at multiples of the golden ratio in mass, with a random offset; a taken line gives way to the nearest.

    Settings are those of `DensitySettings`.
    """

    name: str = "vd-golden"

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line nearest to the next multiple."""
        walk = _walk(self, view.candidates)
        if not walk.chosen:
            return Choice(walk.within(0, walk.total, rng))
        offset = walk.middle(walk.chosen[0], walk.total) / walk.total
        return Choice(walk.nearest((offset + len(walk.chosen) * GOLDEN) % 1 * walk.total))


@dataclass(frozen=True, kw_only=True)
class SampleDensity:
    """Density (1 - r / r_max)^power, r the distance from DC in units of the plane's edges. It chooses nothing.

    Parameters
    ----------
    power : float
        Zero or more; larger is more concentrated. Tune it on training images, per number of samples and coils.

    Raises
    ------
    InputError
        For a power that is not a number of zero or more.
    """

    power: float = 8.0
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        require_numbers(**{"density power": self.power})

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """As many samples as designed masks begin with: see `PlaneReadouts.start_for_posterior`."""
        return readouts.start_for_posterior(target)

    def density(self, plane: PlaneReadouts) -> NDArray[np.float64]:
        """Relative density of every sample, (size,)."""
        return radial_density(plane, self.power)


@dataclass(frozen=True, kw_only=True)
class RandomSamples(SampleDensity, ChoosesBlocks):
    """Samples drawn one by one, without replacement, from a density: settings as `SampleDensity`."""

    name: str = "vd-polynomial"

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The next draws."""
        density = np.where(view.candidates.remaining, self.density(plane_of(view)), 0.0)
        drawn = rng.choice(len(density), size=count, replace=False, p=density / density.sum())
        return [Choice(int(sample)) for sample in drawn]


@dataclass(frozen=True, kw_only=True)
class CaipiSamples(ChoosesBlocks):
    """A regular pattern, every R_y-th row with every R_z-th sample of it, shifted from row to row (2-D CAIPIRINHA).

    The pattern runs through DC. Samples that are left over are added to the fully sampled centre; with fewer samples
    than the pattern has, the outermost are left out. Breuer et al., Magn. Reson. Med. 55 (2006) 549-556.

    Parameters
    ----------
    spacing : tuple of int, optional
        (R_y, R_z); by default the smallest product that fits into the samples that are not at the start, as nearly
        square as possible.
    shift : int, optional
        Samples along kz by which one row of the pattern lies beside the one before; by default half of R_z.

    Raises
    ------
    InputError
        For spacings that are not whole numbers of one or more, or a negative shift.
    """

    spacing: tuple[int, int] | None = None
    shift: int | None = None
    name: str = "caipi"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.spacing is not None:
            if not isinstance(self.spacing, tuple) or len(self.spacing) != 2:
                raise InputError(field="spacing", got=repr(self.spacing), wanted="two whole numbers (R_y, R_z)")
            require_counts(least=1, **{"spacing along ky": self.spacing[0], "spacing along kz": self.spacing[1]})
        if self.shift is not None:
            require_counts(least=0, shift=self.shift)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """See `PlaneReadouts.start_for_posterior`."""
        return readouts.start_for_posterior(target)

    def pattern(self, plane: PlaneReadouts, spacing: tuple[int, int]) -> NDArray[np.bool_]:
        """The pattern's samples, (size,)."""
        rows, columns = spacing
        ky, kz = plane.frequencies.T
        shift = columns // 2 if self.shift is None else self.shift
        return np.asarray((ky % rows == 0) & ((kz - shift * (ky // rows)) % columns == 0))

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The pattern from DC outwards, then what is nearest to DC."""
        plane, left = plane_of(view), view.candidates.remaining
        if self.spacing is not None:
            pattern = self.pattern(plane, self.spacing)
        else:
            start = np.zeros(plane.size, dtype=bool)
            start[list(view.candidates.acquired[: view.candidates.n_start])] = True
            wanted = view.candidates.target - view.candidates.n_start
            free = view.candidates.allowed & ~start
            tried = (self.pattern(plane, spacing) for spacing in _spacings(plane.size))
            pattern = next(made for made in tried if (made & free).sum() <= wanted)
        order = [*_outwards(view, left & pattern), *_outwards(view, left & ~pattern)]
        return [Choice(sample) for sample in order[:count]]


def _outwards(view: DesignView, flags: NDArray[np.bool_]) -> list[int]:
    outwards = plane_of(view).outwards
    return [int(sample) for sample in outwards[flags[outwards]]]


def _spacings(most: int) -> Iterator[tuple[int, int]]:
    """(R_y, R_z) of every product up to ``most`` + 1, the most nearly square ones, R_y the smaller."""
    for product in range(1, most + 2):
        rows = max(r for r in range(1, int(np.sqrt(product)) + 1) if product % r == 0)
        yield rows, product // rows


@dataclass(frozen=True, kw_only=True)
class PoissonDisc(SampleDensity, ChoosesBlocks):
    """A Poisson-disc mask around the samples at the start: settings as `SampleDensity`.

    The shutter, partial Fourier and the calibration region are the design's constraints; without a calibration region
    the start alone is fully sampled.
    """

    power: float = 2.0
    name: str = "poisson-disc"

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The mask's samples; fewer than the whole mask are a mask of their own."""
        plane = plane_of(view)
        free, there = view.candidates.remaining, view.candidates.mask
        return [Choice(int(s)) for s in poisson_disc(plane, self.density(plane), free, there, count, rng)]


AngleSet = Literal["half-turn", "full-turn", "one-missing", "golden"]


@dataclass(frozen=True, kw_only=True)
class FixedAngles:
    """The shots of a set, whose angles take the place of a grid of candidates.

    Parameters
    ----------
    kind : {"half-turn", "full-turn", "one-missing", "golden"}
        As `interleaf_angles` has them, or golden ones.
    tiny : int
        Of golden angles: see `golden_angles`.

    Raises
    ------
    InputError
        For another kind, or a ``tiny`` below 1.
    """

    kind: AngleSet = "half-turn"
    tiny: int = 1
    name: str = "half-turn"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(AngleSet):
            raise InputError(field="angles", got=repr(self.kind), wanted=", ".join(get_args(AngleSet)))
        require_counts(least=1, tiny=self.tiny)

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

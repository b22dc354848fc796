"""Masks over a plane that look at no data: random with a density, Poisson-disc, regular.

Samples of a Poisson-disc mask are random and keep a distance from each other, which grows where the density falls;
there are exactly as many as are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.blocks import plane_of
from mri_design.design.decision import Choice
from mri_design.design.poisson_disc import poisson_disc, radial_density
from mri_design.design.strategy import ChoosesBlocks, DesignView
from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.readouts import PlaneReadouts, Readouts


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

"""What lines, samples of a plane and shots have in common: candidates by number, rows of X, values, constraints."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.kinds import KINDS, Kind
from mri_design.operators.base import Array, FilterBand
from mri_design.operators.cartesian_fourier import CartesianLines, CartesianSamples
from mri_design.operators.nonuniform import NonUniformFourier

Rows = CartesianLines | CartesianSamples | NonUniformFourier
"""Measurement X of some candidates."""

Numbers = NDArray[np.float64]
Half = Literal["positive", "negative"]

_BEHIND = {
    "number of lines": ("lines", "acceleration"),
    "start lines": ("design.start", "lines"),
    "start samples": ("design.start", "lines"),
    "calibration region": ("design.start", "constraints.forbid", "constraints.partial_fourier"),
    "forbidden lines": ("constraints.forbid",),
    "required lines": ("constraints.require", "constraints.forbid", "constraints.partial_fourier"),
    "constraints": tuple(f"constraints.{name}" for name in ("forbid", "require", "partial_fourier", "max_jump")),
    "forced centre": ("design.start", "constraints.forbid", "constraints.partial_fourier"),
}


def refusal(field: str, got: str, wanted: str, cure: str = "") -> InputError:
    """The error about numbers of candidates, or constraints on them, with the settings that may be behind it."""
    return InputError(field, got, wanted, cure, _BEHIND.get(field, ()))


class Constraints(ABC):
    """Constraints of a sequence on the candidates of a grid, of whatever kind: see `LineConstraints`."""

    max_jump: int | None = None
    centre: int = 0
    calibration: int = 0
    counted = "lines"

    def with_calibration(self, side: int) -> Self:
        """These, which force a calibration region of at least that side where candidates lie in a plane."""
        return self

    @abstractmethod
    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Candidates that may be measured at all."""

    @abstractmethod
    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Candidates to measure before the first decision."""

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Candidates that no design may lack."""
        return ()

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """Candidates that a design can have which begins with ``start``, those included."""
        free = measurable & self.allowed(len(measurable))
        free[list(start)] = False
        return len(start) + int(free.sum())

    @property
    def least_start(self) -> int:
        """How many candidates around DC every design begins with."""
        return self.centre

    def start_size(self, asked: int, target: int, calibration: int = 0) -> int:
        """Candidates that a design of ``target`` begins with for ``asked`` start lines and ``calibration`` lines.

        Raises
        ------
        InputError
            Where that is more than the target.
        """
        count = max(asked, calibration, self.least_start)
        if count > target:
            got = f"{count} (of which {max(calibration, self.least_start)} for coil calibration and a forced centre)"
            wanted = f"at most as many as are measured in all, {target}"
            cure = (
                "Ask for more of them, or allow more; or, in a recipe, for fewer under [design] start or [coils] maps."
            )
            raise refusal(f"start {self.counted}", got, wanted, cure)
        return count


def radii(shape: tuple[int, int]) -> Numbers:
    """Distance of every sample of a grid (ky, kx) from the centre of k-space, in units of half the grid."""
    rows, columns = (2 * (np.arange(side) - side // 2) / side for side in shape)
    return np.asarray(np.hypot(rows[:, None], columns))


def kept_rows(k: NDArray[np.int_], n: int, share: float | None, half: Half) -> NDArray[np.bool_]:
    """Where partial Fourier leaves rows ``k`` of a grid of ``n``: at k >= -m, m = ceil(share n) - ceil(n / 2)."""
    if share is None:
        return np.ones(len(k), dtype=bool)
    beyond = int(np.ceil(share * n - 1e-9)) - (n + 1) // 2
    return k >= -beyond if half == "positive" else k <= beyond


class Readouts(ABC):
    """Candidates for the next measurement, by whole numbers from 0 to ``size - 1``.

    Noise that is drawn for a candidate is the same whichever others are measured: the rows that `rows` returns see to
    it (`LinearOperator.unit_noise`), so that designs can be replayed.
    """

    name: str
    """By which `kind` is found in `kinds.KINDS`."""
    grid: tuple[int, int]
    """Sides of the image and of its k-space, (rows, columns)."""
    places = 1
    """Places of an image that fold into one pixel of the field of view."""
    independent = True
    """Whether the values of a candidate (`values`) are nearly independent of each other under a posterior."""
    overlapping = False
    """Whether candidates measure the same parts of k-space, so that their energies do not add up to the image's."""
    thinned = False
    """Whether a block is chosen from one set of scores and thinned, as neighbours are nearly as informative."""
    draws = 12
    """Number of posterior draws behind scores, by default."""
    start_shows_level = True
    """Whether the first candidates of a design show the signal level that all show: the centre of k-space does."""
    angles: tuple[float, ...] | None = None
    """Of shots in radians, from +kx towards +ky; None of others and where they are not known."""

    @property
    def kind(self) -> Kind:
        """Properties of these readouts that depend on their name alone: names, counts, constraints and settings."""
        return KINDS[self.name]

    @property
    def unit(self) -> str:
        """Name of one candidate in messages, in the singular: line, sample, spoke."""
        return self.kind.unit

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one entry per candidate: (ky,), (ky, kz) or (shot,)."""

    @property
    def size(self) -> int:
        """Number of candidates."""
        return math.prod(self.shape)

    @property
    def layout(self) -> tuple[int, int]:
        """Shape of the data of all of them for one coil: the grid's, or (shot, sample)."""
        return self.grid

    @property
    def frequencies(self) -> NDArray[np.int_]:
        """k of every candidate of a grid along its phase encodes, DC = 0, shape (size, `Kind.axes`)."""
        return np.zeros((self.size, 0), dtype=int)

    @property
    def usual_block(self) -> int:
        """Default number of candidates that are chosen after each inference."""
        return 1

    @abstractmethod
    def constraints(self, **limits: Any) -> Constraints:
        """Constraints of a sequence, from those keywords of `LineConstraints` and `PlaneConstraints` that apply.

        Raises
        ------
        InputError
            As those classes.
        """

    def calibration_size(self, side: int) -> int:
        """Candidates of a calibration region of so many centre lines, or of a square of that side; 0 where none is."""
        return math.prod(min(side, length) for length in self.shape) if self.kind.on_grid else 0

    def part_of_grid(self, count: int) -> tuple[int, int]:
        """How much so many candidates measure, and how much a full grid is: candidates, or samples and pixels."""
        return count, self.size

    def cells(self, measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags (rows, columns) of the grid's cells that the candidates with flags ``measured`` sample."""
        return measured.reshape(self.grid)

    def trajectory(self, ids: Sequence[int] | NDArray[np.bool_]) -> NDArray[np.float64] | None:
        """Samples (shot, sample, 2) of some shots in cycles per field of view; None on a grid."""
        return None

    @cached_property
    def radius(self) -> NDArray[np.float64]:
        """Distance (size,) of every candidate of a grid from DC, 1 at the middle of the grid's edges."""
        places = np.abs(self.frequencies) / np.maximum(np.array(self.shape) / 2, 1)
        return np.asarray(np.hypot.reduce(places, axis=1))

    @abstractmethod
    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """|k| of every sample of some candidates as `data` orders those of a coil, 1 at the middle of the grid's edges.

        ``samples`` are flags of the grid where lines have holes: samples without data are left out.
        """

    def one_sided(self, ids: Sequence[int]) -> bool:
        """Whether lines reach at most half as far from DC on one side of k-space as on the other (partial Fourier)."""
        return False

    def order_within_echo(self, order: str) -> NDArray[np.float64] | None:
        """Coordinate (size,) by which an echo of some trains is shared among them; None for the order of the echo."""
        return None

    @abstractmethod
    def rows(self, ids: Sequence[int], maps: Array | None = None) -> Rows:
        """Measurement X of some candidates.

        Raises
        ------
        InputError
            For anything but numbers of candidates.
        """

    @abstractmethod
    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """Data of some candidates, taken from full k-space (coil, rows, columns) and ordered as `rows` orders them."""

    def density(self, ids: Sequence[int], *, given: bool = False) -> NDArray[np.float64] | float:
        """Density compensation of these data; 1 on a grid.

        With ``given`` the weights that came with the scan, if any. Models take the computed ones, which are always
        those of the trajectory.
        """
        return 1.0

    @abstractmethod
    def values(self, images: Array, maps: Array | None = None) -> Array:
        """Values (count, coil, candidate, value) of all candidates in images (count, rows, columns).

        They are what a candidate would measure, behind a unitary transform that makes them as independent as it can.
        """

    def moments(
        self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]
    ) -> tuple[Numbers, Numbers] | None:
        """Variance of every value under a circulant control P, and its covariance with that under A^-1: closed forms.

        diag(E P E^H) and diag(E P A P E^H) per real component, (candidate, value) each, E the transform of `values`
        for one coil. None where they are not known.

        Parameters
        ----------
        inverse, gram, sites
            As `variances.CirculantControl` has them.
        """
        return None

    def scaled_moment(self, own: Array, turn: Array | None) -> Numbers | None:
        """diag(E P E^T) per real component, (candidate, value), of a circulant between diagonals; None if unknown.

        Parameters
        ----------
        own : float array, shape (rows, columns)
            Eigenvalues of the circulant.
        turn : complex array, shape (rows, columns), optional
            The diagonal before it; its conjugate is the one behind.
        """
        return None

    def folded(self) -> Readouts | None:
        """The same candidates of an image over twice the field of view, which they fold; None where none are known."""
        return None

    def start(self, target: int, lines: int) -> int:
        """Candidates around DC that a design of ``target`` begins with whose strategy requests so many ``lines``."""
        return self.start_for_posterior(target)

    @abstractmethod
    def start_for_posterior(self, target: int) -> int:
        """As `start`, for scores of a plain posterior, which favour regular gaps until phase and support are known."""

    @abstractmethod
    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of ``data``, ordered as `rows` orders it, of every one of ``ids``, in the order of ``ids``."""

    @abstractmethod
    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags (size,) of the candidates whose ``samples``, flags (rows, columns) of the grid, hold data."""

    def predictable(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` that may be held back and predicted from the others, ascending; never central ones."""
        return sorted(set(ids).difference(self.central_run(ids)))

    @abstractmethod
    def opposite_of(self, candidate: int) -> int:
        """The candidate at -k, which measures nearly the same for a smooth phase; itself if there is none."""

    @abstractmethod
    def central_run(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` around DC up to the first that is missing; all of them where DC itself is."""

    @abstractmethod
    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """The ``count`` of ``ids`` nearest to DC, or all of them if they are fewer."""

    def centre_out(self, ids: Sequence[int]) -> list[int]:
        """All of ``ids`` from DC outwards, with short jumps between those at one distance."""
        return self.nearest_to_centre(ids, len(ids))

"""Shots along trajectories: a candidate is one spoke, or one arm of a spiral, with all its samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array
from mri_design.kinds import KINDS
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier, density_weights
from mri_design.operators.trajectory import checked_trajectory
from mri_design.readouts.base import Constraints, Readouts, refusal

_NEAR = 1e-3
"""Cycles per field of view: shots that are nowhere further apart are the same."""


@dataclass(frozen=True, eq=False)
class ShotReadouts(Readouts):
    """Shots of equal length along any trajectory, all of them near DC somewhere.

    What lines and planes call full k-space is here the data of all shots, (coil, shot, sample).

    Parameters
    ----------
    grid : tuple of int
        Pixels (ky, kx) of the image.
    shots : float array, shape (shot, sample, 2)
        Columns (ky, kx) in cycles per field of view.
    name : str
        What the shots are called (`kinds.KINDS`): radial or spiral, another family that was registered, or readouts
        where they come from a scan of any kind.
    angles : tuple of float, optional
        Of the shots in radians, from +kx towards +ky; for tables and figures.
    weights : float array, shape (shot, sample), optional
        Density compensation that came with the scan, in any unit; by default it is computed.

    Raises
    ------
    InputError
        For another name, shots of another shape or another number than angles or weights, and a trajectory that
        `checked_trajectory` refuses.
    """

    grid: tuple[int, int]
    shots: NDArray[np.float64]
    name: str = "radial"
    angles: tuple[float, ...] | None = None
    weights: NDArray[np.float64] | None = None
    independent = False
    overlapping = True
    start_shows_level = False

    def __post_init__(self) -> None:
        names = [name for name, kind in KINDS.items() if kind.shots or name == "readouts"]
        if self.name not in names:
            raise InputError(field="shots", got=f"the name {self.name!r}", wanted=" or ".join(names))
        shots = checked_trajectory(self.shots, self.grid)
        if shots.ndim != 3:
            raise InputError(field="shots", got=f"shape {shots.shape}", wanted="(shot, sample, 2)")
        if self.angles is not None and len(self.angles) != len(shots):
            raise InputError(field="angles", got=f"{len(self.angles)}", wanted=f"one for each of {len(shots)} shots")
        if self.weights is not None and self.weights.shape != shots.shape[:2]:
            raise InputError(field="weights", got=f"shape {self.weights.shape}", wanted=f"{shots.shape[:2]}")
        object.__setattr__(self, "shots", shots)

    @property
    def half_turn(self) -> int:
        """How many of equispaced shots fill half a turn."""
        return min(self.size, math.ceil(self.size * math.pi / self.kind.turn)) if self.size else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """(shot,)."""
        return (len(self.shots),)

    @property
    def layout(self) -> tuple[int, int]:
        """(shot, sample)."""
        return self.shots.shape[0], self.shots.shape[1]

    def constraints(self, **limits: Any) -> AngleConstraints:
        """Shots at equispaced angles without further constraints."""
        return AngleConstraints(self.size, self.half_turn, **limits)

    def part_of_grid(self, count: int) -> tuple[int, int]:
        """Samples of so many shots, and pixels of the image."""
        return count * self.shots.shape[1], math.prod(self.grid)

    def cells(self, measured: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Cells of the grid in which some sample of the chosen shots lies."""
        cells = np.zeros(self.grid, dtype=bool)
        places = np.rint(self.shots[measured].reshape(-1, 2)).astype(int) + np.array(self.grid) // 2
        cells[tuple(places[((places >= 0) & (places < self.grid)).all(axis=1)].T)] = True
        return cells

    def trajectory(self, ids: Sequence[int] | NDArray[np.bool_]) -> NDArray[np.float64]:
        """(shot, sample, 2), in the order of ``ids``."""
        return np.asarray(self.shots[ids if isinstance(ids, np.ndarray) else list(ids)])

    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """(sample,), shot behind shot."""
        return np.asarray(np.linalg.norm(self.shots[list(ids)] / (np.array(self.grid) / 2), axis=-1).ravel())

    def rows(self, ids: Sequence[int], maps: Array | None = None) -> NonUniformFourier:
        """X of some shots, in their order, one behind the other.

        Raises
        ------
        InputError
            For numbers outside the candidates.
        """
        return NonUniformFourier(self.shots[self._numbers(ids)].reshape(-1, 2), self.grid, maps)

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """(coil, sample), shot behind shot in the order of ``ids``."""
        return np.ascontiguousarray(kspace[:, self._numbers(ids)]).reshape(len(kspace), -1)

    def density(self, ids: Sequence[int], *, given: bool = False) -> NDArray[np.float64]:
        """`density_weights` of the samples of some shots, ordered as `data` orders them.

        With ``given`` the encoding's own weights, where it has some, scaled as `density_weights` does it.
        """
        numbers = self._numbers(ids)
        weights = None if self.weights is None or not given else self.weights[numbers].ravel()
        asked = numbers.tobytes(), weights is None
        if asked not in self._last_density:
            self._last_density.clear()
            points = self.shots[numbers].reshape(-1, 2)
            self._last_density[asked] = density_weights(points, self.grid, given=weights)
        return self._last_density[asked]

    @cached_property
    def _last_density(self) -> dict[tuple[bytes, bool], NDArray[np.float64]]:
        """Densities that were requested last: every stage of an image uses the same ones."""
        return {}

    def values(self, images: Array, maps: Array | None = None) -> Array:
        """Values (count, coil, shot, sample) that every shot would measure; neighbouring samples are dependent."""
        every = self.rows(range(self.size), maps)(images)
        return np.asarray(every.reshape(*every.shape[:2], *self.shots.shape[:2]))

    def start_for_posterior(self, target: int) -> int:
        """A quarter of the target, four at least: fewer show too little of the image."""
        return min(target, max(4, target // 4))

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of every shot of ``data`` (coil, sample), summed over samples and coils."""
        power = np.abs(data.reshape(len(data), len(ids), -1)) ** 2
        return np.asarray(np.sum(power, axis=(0, 2), dtype=np.float64))

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """All shots if every sample of the grid holds data, from which shots are computed; otherwise none."""
        return np.full(self.size, bool(samples.all()))

    def predictable(self, ids: Sequence[int]) -> list[int]:
        """All of them: every shot comes near DC, so that the others show the contrast too."""
        return sorted(ids)

    def opposite_of(self, candidate: int) -> int:
        """The shot whose samples are at -k one by one, as that of half a turn further; itself if there is none."""
        apart = np.abs(self.shots + self.shots[candidate]).max(axis=(1, 2))
        nearest = int(np.argmin(apart))
        return nearest if apart[nearest] < _NEAR else candidate

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """All of ``ids``: every shot comes near DC."""
        return list(ids)

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """The first ``count`` of ``ids``: all are equally near."""
        return list(ids)[:count]

    def _numbers(self, ids: Sequence[int]) -> NDArray[np.intp]:
        wanted = f"{self.unit} numbers from 0 to {self.size - 1}"
        chosen = number_array("shots", ids, wanted=wanted)
        whole = chosen.ndim == 1 and chosen.dtype.kind in "iu"
        if not whole or bool(np.any((chosen < 0) | (chosen >= self.size))):
            raise InputError(field="shots", got=str(chosen.tolist())[:80], wanted=wanted)
        return chosen.astype(np.intp)


@dataclass(frozen=True)
class AngleConstraints(Constraints):
    """Candidates at equispaced angles, in their order.

    Parameters
    ----------
    size : int
        Candidates.
    half_turn : int
        How many of them fill half a turn: all spokes, every second arm. A start is spread over these.
    """

    size: int
    half_turn: int

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """True for every angle, (size,)."""
        return np.ones(self.size, dtype=bool)

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """The candidates nearest to ``count`` equispaced angles over half a turn; beyond its candidates, over them all.

        Raises
        ------
        InputError
            Where there are not that many, or one holds no data.
        """
        if not 1 <= count <= self.size:
            raise refusal("start lines", str(count), f"1 to {self.size}")
        over = self.half_turn if count <= self.half_turn else self.size
        first = tuple(place * over // count for place in range(count))
        if not all(measurable[place] for place in first):
            raise refusal("start lines", f"{first}, some without data", "shots with data")
        return first

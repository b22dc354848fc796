"""Orders of readouts in a sequence: lines, samples of a plane (ky, kz), spokes or arms of spirals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, require_counts

_MOST_LINES, _MOST_READOUTS = 65535, 65536
_LARGEST_SIDE = 1024


class Order(ABC):
    """Readouts in the order of measurement, each after an excitation of its own, or several in an echo train."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of readouts."""

    @property
    @abstractmethod
    def definitions(self) -> Mapping[str, object]:
        """Further entries of the file's definitions, about the places of the readouts."""

    @abstractmethod
    def places(self, samples: int) -> NDArray[np.float64]:
        """Where readouts of so many samples lie, (axis x, y, z; readout; sample), cycles for each field of view."""

    @abstractmethod
    def described(self, readout: int) -> str:
        """A readout in words, for messages."""

    @property
    def train_lengths(self) -> Sequence[int]:
        """Readouts of every echo train; by default each by itself."""
        return (1,) * self.count

    @property
    def echoes(self) -> int:
        """Echoes of the longest train."""
        return max(self.train_lengths)

    @property
    def labels(self) -> Mapping[str, tuple[int, ...]]:
        """Values of each Pulseq label at every readout; by default LIN is its place in the order of measurement."""
        return {"LIN": tuple(range(self.count))}

    @property
    def matrix(self) -> tuple[int, int] | None:
        """Grid along y and z; None where there is none, and the image is a square of as many pixels as samples."""
        return None

    def centre(self, samples: int) -> int:
        """Number of the sample at the centre of k-space, or nearest to it, in a readout of so many: the middle."""
        return samples // 2


class GridOrder(Order):
    """Straight readouts along x at points (ky, kz) of a grid, whose zero frequency is at half of each side."""

    samples: tuple[tuple[int, int], ...]

    @property
    @abstractmethod
    def matrix(self) -> tuple[int, int]:
        """Lines, or rows ky, and partitions, or columns kz."""

    @property
    def count(self) -> int:
        """Number of lines or samples."""
        return len(self.samples)

    @property
    def labels(self) -> Mapping[str, tuple[int, ...]]:
        """LIN is the line, or the row ky; of a plane PAR is the column kz."""
        return dict(zip(("LIN", "PAR")[: self._axes], zip(*self.samples, strict=True), strict=False))

    @property
    def definitions(self) -> Mapping[str, object]:
        """Where the centre is."""
        names = ("kSpaceCenterLine", "kSpaceCenterPartition")[: self._axes]
        return {name: side // 2 for name, side in zip(names, self.matrix, strict=False)}

    @property
    def _axes(self) -> int:
        return 1 if self.matrix[1] == 1 else 2

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Offset of every readout from the zero frequency, (readout, 2), cycles for each field of view along ky, kz."""
        return np.array(self.samples, dtype=np.float64) - np.array(self.matrix) // 2

    def places(self, samples: int) -> NDArray[np.float64]:
        """Readouts along x."""
        wanted = np.zeros((3, self.count, samples))
        wanted[0] = np.arange(samples) - samples // 2
        wanted[1:] = self.offsets.T[:, :, np.newaxis]
        return wanted


def _require_places(field: str, places: Sequence[tuple[int, ...]], sides: tuple[int, ...]) -> None:
    """Refuse places outside of a grid, and those that come twice."""
    for number, place in enumerate(places):
        for one, side in zip(place, sides, strict=True):
            require_counts(least=0, most=side - 1, **{f"{field}[{number}]": one})
    if len(set(places)) < len(places):
        raise InputError(field, "one of them twice", "each once")


@dataclass(frozen=True)
class LineOrder(GridOrder):
    """Which lines are measured, in which order and echo trains.

    Parameters
    ----------
    trains : tuple of tuple of int
        Lines of every echo train, echo after echo, numbered from 0.
    n_lines : int
        Lines of the grid; the zero frequency is line ``n_lines // 2``.

    Raises
    ------
    InputError
        For no line, a line twice, or one that is not on the grid.
    """

    trains: tuple[tuple[int, ...], ...]
    n_lines: int

    def __post_init__(self) -> None:
        require_counts(least=4, most=_MOST_LINES, **{"lines of the grid": self.n_lines})
        if not self.trains or not all(self.trains):
            raise InputError("lines", "no line, or an empty echo train", "at least one line a train")
        _require_places("lines", [(line,) for line in self.lines], (self.n_lines,))

    @classmethod
    def of_lines(cls, lines: Sequence[int], n_lines: int) -> LineOrder:
        """Every line by itself."""
        return cls(tuple((line,) for line in lines), n_lines)

    @classmethod
    def in_trains(cls, lines: Sequence[int], length: int, n_lines: int) -> LineOrder:
        """Echo trains of a length, the last of which may be shorter."""
        return cls(tuple(tuple(lines[i : i + length]) for i in range(0, len(lines), length)), n_lines)

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines in the order of measurement."""
        return tuple(line for train in self.trains for line in train)

    @property
    def train_lengths(self) -> Sequence[int]:
        """Lines of every echo train."""
        return [len(train) for train in self.trains]

    @property
    def dc_echo(self) -> int:
        """Echo, counted from 1, that measures the line nearest to the zero frequency."""
        nearest = min(self.lines, key=lambda line: (abs(line - self.n_lines // 2), line))
        return next(1 + train.index(nearest) for train in self.trains if nearest in train)

    @property
    def samples(self) -> tuple[tuple[int, int], ...]:  # type: ignore[override]
        """Lines, of the one partition."""
        return tuple((line, 0) for line in self.lines)

    @property
    def matrix(self) -> tuple[int, int]:
        """Lines, and one partition."""
        return self.n_lines, 1

    def described(self, readout: int) -> str:
        """Number of the line."""
        return f"line {self.lines[readout]}"


@dataclass(frozen=True)
class PlaneOrder(GridOrder):
    """Samples of a plane (ky, kz), each a readout along kx of a three-dimensional scan.

    Parameters
    ----------
    samples : tuple of (int, int)
        Rows and columns of the plane, (ky, kz), in the order of measurement.
    shape : tuple of int
        Of the plane; its zero frequency is at half of each side.

    Raises
    ------
    InputError
        For no sample, one twice, one outside of the plane, and planes that are too small or too large.
    """

    samples: tuple[tuple[int, int], ...]
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        for name, side in zip(("ky", "kz"), self.shape, strict=True):
            require_counts(least=4, most=_LARGEST_SIDE, **{f"{name} of the plane": side})
        require_counts(least=1, most=_MOST_READOUTS, **{"number of samples": len(self.samples)})
        _require_places("samples", self.samples, self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.shape

    def described(self, readout: int) -> str:
        """Row and column of the sample."""
        ky, kz = self.samples[readout]
        return f"sample ({ky}, {kz})"


@dataclass(frozen=True)
class SpokeOrder(Order):
    """Straight readouts through the centre of k-space.

    Parameters
    ----------
    angles : tuple of float
        Radians of every spoke in the order of measurement, 0 along +kx, pi / 2 along +ky.
    oversampling : int
        Samples in a cycle for each field of view of the image.

    Raises
    ------
    InputError
        For no spoke, or too many, angles that are not finite, or no oversampling of 1 to 16.
    """

    angles: tuple[float, ...]
    oversampling: int = 1

    def __post_init__(self) -> None:
        require_counts(least=1, most=_MOST_READOUTS, **{"number of spokes": len(self.angles)})
        require_counts(least=1, most=16, oversampling=self.oversampling)
        number_array("angles", self.angles, wanted="finite numbers, radians", kind="finite")

    @classmethod
    def of_trajectory(cls, trajectory: NDArray[np.float64]) -> SpokeOrder:
        """Spokes from their samples.

        Parameters
        ----------
        trajectory : float array, shape (spoke, sample, 2)
            Columns (ky, kx) in cycles for each field of view, the zero frequency at half of the samples.

        Raises
        ------
        InputError
            For readouts that are no such spokes, all of one length, as spokes from the centre outwards are none.
        """
        steps = (trajectory[:, -1] - trajectory[:, 0]) / max(trajectory.shape[1] - 1, 1)
        lengths = np.linalg.norm(steps, axis=1)
        oversampling = max(1, round(1 / max(float(lengths.mean()), 1e-9)))
        angles = tuple(float(angle) for angle in np.arctan2(steps[:, 0], steps[:, 1]))
        made = cls(angles, min(oversampling, 16))
        wanted = made.places(trajectory.shape[1])[[1, 0]].transpose(1, 2, 0) / made.oversampling
        if not np.allclose(trajectory, wanted, rtol=0, atol=1e-6):
            cure = "Other readouts get no sequence; mri-design convert takes trajectory.npz to other formats."
            raise InputError("trajectory", "other readouts", "equal steps along spokes through the centre", cure)
        return made

    @property
    def count(self) -> int:
        """Number of spokes."""
        return len(self.angles)

    @property
    def definitions(self) -> Mapping[str, object]:
        """The angles, degrees."""
        return {"SpokeAngles": [float(f"{np.degrees(angle):.6f}") for angle in self.angles]}

    def places(self, samples: int) -> NDArray[np.float64]:
        """Through the centre; cycles for each field of view of the readout, that of the image times oversampling."""
        along, angles = np.arange(samples) - samples // 2, np.array(self.angles)[:, np.newaxis]
        return np.stack([along * np.cos(angles), along * np.sin(angles), np.zeros((self.count, samples))])

    def described(self, readout: int) -> str:
        """Number and angle of the spoke."""
        return f"spoke {readout}, at {np.degrees(self.angles[readout]):.1f} degrees,"


@dataclass(frozen=True, eq=False)
class SpiralOrder(Order):
    """Arms that leave the centre of k-space, as those of spirals.

    Parameters
    ----------
    arms : float array, shape (arm, sample, 2)
        Columns (ky, kx) in cycles for each field of view, in the order of measurement.
    grid : tuple of int
        Pixels (ky, kx) of the image.

    Raises
    ------
    InputError
        For no arm, arms of two samples or less, other numbers than (arm, sample, 2) finite ones, and images that are
        too small or too large.
    """

    arms: NDArray[np.float64]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        wanted = "finite numbers (arm, sample, 2)"
        number_array("arms", self.arms, wanted=wanted, shape=(None, None, 2), kind="finite")
        require_counts(least=1, most=_MOST_READOUTS, **{"number of arms": self.count})
        require_counts(least=3, **{"samples of an arm": self.samples})
        for name, side in zip(("ky", "kx"), self.grid, strict=True):
            require_counts(least=4, most=_LARGEST_SIDE, **{f"{name} of the grid": side})

    @property
    def samples(self) -> int:
        """Samples of an arm."""
        return self.arms.shape[1]

    @property
    def count(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def definitions(self) -> Mapping[str, object]:
        """The image's grid in the place of the samples of a readout."""
        rows, columns = self.grid
        return {"Matrix": [columns, rows, 1]}

    def centre(self, samples: int) -> int:
        """The first sample."""
        return 0

    def places(self, samples: int) -> NDArray[np.float64]:
        """The samples as designed.

        Raises
        ------
        InputError
            For another number of samples than that of the design.
        """
        if samples != self.samples:
            raise InputError("samples of a readout", str(samples), f"{self.samples}, as designed")
        return np.stack([self.arms[..., 1], self.arms[..., 0], np.zeros(self.arms.shape[:2])])

    def described(self, readout: int) -> str:
        """Number of the arm."""
        return f"arm {readout}"

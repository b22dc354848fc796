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
        """Grid along y and z; None without a grid: the image is then a square of as many pixels as samples."""
        return None

    def centre(self, samples: int) -> int:
        """Number of the sample at the centre of k-space, or nearest to it, in a readout of so many: the middle."""
        return samples // 2


@dataclass(frozen=True)
class GridOrder(Order):
    """Straight readouts along x: lines of a grid, or samples of a plane (ky, kz), one by one or in echo trains.

    Parameters
    ----------
    trains : tuple of tuple of int
        Lines of every echo train, echo after echo, numbered from 0; of a plane samples, numbered row by row.
    rows, partitions : int
        Lines of the grid, or rows and columns of the plane; the zero frequency is at half of each.

    Raises
    ------
    InputError
        For no line, a line twice, or one that is not on the grid, and planes that are too small or too large.
    """

    trains: tuple[tuple[int, ...], ...]
    rows: int
    partitions: int = 1

    def __post_init__(self) -> None:
        plane = self.partitions != 1
        if plane:
            sides = {"ky of the plane": self.rows, "kz of the plane": self.partitions}
            require_counts(least=4, most=_LARGEST_SIDE, **sides)
            require_counts(least=1, most=_MOST_READOUTS, **{"number of samples": self.count})
        else:
            require_counts(least=4, most=_MOST_LINES, **{"lines of the grid": self.rows})
        field = "samples" if plane else "lines"
        if not self.trains or not all(self.trains):
            raise InputError(field, "none, or an empty echo train", "at least one a train")
        numbered = {f"{field}[{place}]": number for place, number in enumerate(self.numbers)}
        require_counts(least=0, most=self.rows * self.partitions - 1, **numbered)
        if len(set(self.numbers)) < self.count:
            raise InputError(field, "one of them twice", "each once")

    @classmethod
    def in_trains(cls, numbers: Sequence[int], length: int, rows: int, partitions: int = 1) -> GridOrder:
        """Echo trains of a length, the last of which may be shorter."""
        trains = (tuple(numbers[i : i + length]) for i in range(0, len(numbers), length))
        return cls(tuple(trains), rows, partitions)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All lines or samples in the order of measurement."""
        return tuple(number for train in self.trains for number in train)

    @property
    def count(self) -> int:
        """Number of lines or samples."""
        return sum(self.train_lengths)

    @property
    def train_lengths(self) -> Sequence[int]:
        """Lines of every echo train."""
        return [len(train) for train in self.trains]

    @property
    def dc_echo(self) -> int:
        """Echo, counted from 1, that measures the line nearest to the zero frequency."""
        nearest = min(self.numbers, key=lambda line: (abs(line - self.rows // 2), line))
        return next(1 + train.index(nearest) for train in self.trains if nearest in train)

    @property
    def matrix(self) -> tuple[int, int]:
        """Lines and one partition, or rows and columns of the plane."""
        return self.rows, self.partitions

    @property
    def labels(self) -> Mapping[str, tuple[int, ...]]:
        """LIN is the line, or the row ky; of a plane PAR is the column kz."""
        named = {"LIN": tuple(number // self.partitions for number in self.numbers)}
        if self.partitions > 1:
            named["PAR"] = tuple(number % self.partitions for number in self.numbers)
        return named

    @property
    def definitions(self) -> Mapping[str, object]:
        """Where the centre is."""
        of_partitions = {"kSpaceCenterPartition": self.partitions // 2} if self.partitions > 1 else {}
        return {"kSpaceCenterLine": self.rows // 2, **of_partitions}

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Offset of every readout from the zero frequency, (readout, 2), cycles for each field of view along ky, kz."""
        places = np.stack(np.divmod(self.numbers, self.partitions), axis=1)
        return places.astype(np.float64) - np.array(self.matrix) // 2

    def places(self, samples: int) -> NDArray[np.float64]:
        """Readouts along x."""
        wanted = np.zeros((3, self.count, samples))
        wanted[0] = np.arange(samples) - samples // 2
        wanted[1:] = self.offsets.T[:, :, np.newaxis]
        return wanted

    def described(self, readout: int) -> str:
        """Number of the line, or row and column of the sample."""
        number = self.numbers[readout]
        return f"line {number}" if self.partitions == 1 else f"sample {divmod(number, self.partitions)}"


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
            cure = "Other readouts get no sequence; mri-design export takes trajectory.npz to other formats."
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
        """The grid of the image, instead of the samples of a readout."""
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
            wanted = f"{self.samples}, as designed"
            raise InputError("samples of a readout", str(samples), wanted, behind=("resolution",))
        return np.stack([self.arms[..., 1], self.arms[..., 0], np.zeros(self.arms.shape[:2])])

    def described(self, readout: int) -> str:
        """Number of the arm."""
        return f"arm {readout}"

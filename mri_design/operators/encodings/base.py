"""What every encoding is to those above: candidates by number, their rows of X, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.base import Array
from mri_design.operators.cartesian import CartesianLines, CartesianSamples, FourierLibrary
from mri_design.operators.nonuniform import NonUniformFourier

Rows = CartesianLines | CartesianSamples | NonUniformFourier
"""X of whatever candidates there are."""

EncodingName = Literal["lines", "plane", "radial", "spiral"]
"""What a design may choose one by one."""


@dataclass(frozen=True)
class Kind:
    """What is known of an encoding by its name alone, before there is a grid.

    Parameters
    ----------
    unit : str
        What one candidate is called in messages, in the singular.
    counted : str
        What columns of tables call the number of candidates.
    """

    unit: str
    counted: str

    @property
    def shots(self) -> bool:
        """Whether candidates are shots, of which there are as many as a design asks for, and not a grid's."""
        return self.counted == "shots"


KINDS: Mapping[str, Kind] = {
    "lines": Kind("line", "lines"),
    "plane": Kind("sample", "samples"),
    "radial": Kind("spoke", "shots"),
    "spiral": Kind("arm", "shots"),
    "readouts": Kind("readout", "readouts"),
}
"""By the names of encodings; "readouts" are those of a scan along any trajectory, which are not designed."""


def count_text(count: int, unit: str) -> str:
    """So many candidates in words: "1 spoke", "2 spokes".

    Parameters
    ----------
    count : int
        How many.
    unit : str
        What one is called (`Encoding.unit`).
    """
    return f"{count} {unit}{'' if count == 1 else 's'}"


@runtime_checkable
class Encoding(Protocol):
    """What can be measured one by one. A candidate is a whole number from 0 to ``size - 1``.

    Whatever is drawn as noise of a candidate's data is the same whichever others are measured: the rows that `rows`
    returns see to it (`LinearOperator.unit_noise`), so that designs can be replayed.
    """

    @property
    def name(self) -> str:
        """One of `EncodingName`, or that of what a scan has measured in another way."""
        ...

    @property
    def unit(self) -> str:
        """What one candidate is called in messages, in the singular."""
        ...

    @property
    def grid(self) -> tuple[int, int]:
        """Of the image, and of its k-space."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an array with one entry per candidate, laid out for people: (ky,), (ky, kz) or (shot,)."""
        ...

    @property
    def size(self) -> int:
        """Candidates of the grid."""
        ...

    def rows(self, ids: Sequence[int], maps: Array | None = None, library: FourierLibrary = "scipy") -> Rows:
        """X of some candidates."""
        ...

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """What full k-space (coil, rows, columns) holds on some candidates, ordered as `rows` orders it."""
        ...

    def density(self, ids: Sequence[int], *, given: bool = False) -> NDArray[np.float64] | float:
        """Weights of these data that make up for samples lying closer in some places than in others; 1 on a grid.

        With ``given`` those that came with the scan, where some did. Models take the computed ones, which are always
        those of the trajectory.
        """
        ...

    def values(self, images: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> Array:
        """Images (count, rows, columns) -> values (count, coil, candidate, value) of all candidates.

        The values of a candidate are nearly independent of each other under the posterior.
        """
        ...

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of ``data``, ordered as `rows` orders it, of every one of ``ids``, in the order of ``ids``."""
        ...

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which candidates hold data, (size,), where the ``samples`` (rows, columns) of the grid do."""
        ...

    def predictable(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` that the others can be asked to predict, in ascending order: none that hold the contrast."""
        ...

    def opposite_of(self, candidate: int) -> int:
        """The candidate at -k, which tells nearly the same where the phase is smooth; itself where there is none."""
        ...

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """Those of ``ids`` around DC up to the first that is missing; all of them where DC itself is."""
        ...

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """The ``count`` of ``ids`` that are nearest to DC, or as many as there are."""
        ...

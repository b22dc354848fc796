"""Many coils combined into a few virtual ones, which hold nearly all of their signal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.espirit import central, coil_directions
from mri_design.errors import InputError, require_counts
from mri_design.scan.calibration.noise import mixed_coils
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import measured_samples

COMPRESSED = "coil_compression"
"""Entry of the header of prepared data: how many coils became how many, and what was lost."""
LOST = "coil_compression_lost"
"""Entry beside it: `Compression.lost` as a number."""

_COLUMNS = 32


@dataclass(frozen=True)
class Compression:
    """What combines coils into virtual ones.

    Parameters
    ----------
    matrix : complex array, shape (virtual, coil)
        Orthonormal rows, the strongest virtual coil first: white coils stay white.
    lost : float
        Share of the energy of the centre of k-space that the virtual coils do not hold, 0 to 1.
    """

    matrix: NDArray[np.complex128]
    lost: float

    def __str__(self) -> str:
        virtual, coils = self.matrix.shape
        return (
            f"{coils} coils combined into {virtual}, which lose {self.lost:.2%} of the energy of the centre of k-space"
        )

    def of(self, data: KSpaceData) -> KSpaceData:
        """The scan as the virtual coils see it; maps that it has stay of unit root-sum-of-squares."""
        made = mixed_coils(data, self.matrix)
        return replace(made, header={**data.header, COMPRESSED: str(self), LOST: f"{self.lost:.6g}"})

    def directions(self, directions: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """`coil_directions` of all coils as directions of virtual coils, the first one as it is seen there."""
        orthonormal, triangle = np.linalg.qr(self.matrix @ directions[:, : len(self.matrix)])
        along, size = np.diagonal(triangle), np.abs(np.diagonal(triangle))
        return np.asarray(orthonormal * np.where(size > 0, along / np.where(size > 0, size, 1), 1))


def compression(data: KSpaceData, count: int, width: int) -> Compression:
    """The ``count`` directions of coil space in which the centre of k-space has most energy.

    Of one position of a 3-D scan they are those of that position (geometric compression), which hold more of it than
    those of the volume would.

    Parameters
    ----------
    data : KSpaceData
        Of white coils; one slice, or several that are compressed alike. Only measured samples are looked at.
    count : int
        Virtual coils, at most as many as there are coils.
    width : int
        Central lines that are looked at, and as many samples of each, or 32 if these are more.

    Raises
    ------
    InputError
        Where there are fewer coils, or the centre holds no signal.

    Notes
    -----
    M. Buehrer et al., "Array compression for MRI with large coil arrays", Magn. Reson. Med. 57 (2007) 1131-1139;
    T. Zhang et al., "Coil compression for accelerated imaging with Cartesian sampling", Magn. Reson. Med. 69 (2013)
    571-582.
    """
    require_counts(least=1, most=data.n_coils, **{"virtual coils": count})
    energies = np.zeros((data.n_coils, data.n_coils), np.complex128)
    rows, columns = data.grid_shape
    inside = np.zeros((rows, columns), dtype=bool)
    central(inside, max(width, _COLUMNS))[:] = True
    inside[: rows // 2 - width // 2] = inside[rows // 2 + (width + 1) // 2 :] = False
    for stack in data.kspace:
        samples = stack[:, inside & measured_samples(stack)].astype(np.complex128)
        energies += samples @ samples.conj().T
    total = float(np.trace(energies).real)
    if not total > 0:
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to combine coils by")
    matrix = coil_directions(energies)[:, :count].conj().T
    kept = float(np.trace(matrix @ energies @ matrix.conj().T).real)
    return Compression(np.asarray(matrix), max(0.0, 1 - kept / total))

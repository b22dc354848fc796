"""Measured samples along a trajectory, validated on construction."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts, require_instance
from mri_design.operators.trajectory import checked_samples
from mri_design.scan.data import Scan, slice_number


@dataclass(frozen=True)
class TrajectoryData(Scan):
    """Samples along a trajectory (spokes, spirals, any other), with everything that is known of how they were measured.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, sample)
        Samples of the Fourier transform exp(-2 pi i k r), scaled as an orthonormal one.
    trajectory : float array, shape (sample, 2)
        Columns ky and kx in cycles per field of view, DC 0; the same in all slices.
    grid_shape : tuple of int
        Pixels (ky, kx) of the image.
    readouts : int
        Number of readouts of equal length, one after the other in the samples.
    name : str
        Short name for tables and figures.
    noise_variance : float, optional
        Noise variance per real component, in units of ``kspace`` squared; None where unknown.
    coil_maps : complex64 array, shape (slice, coil, ky, kx), optional
        Coil sensitivities with unit root-sum-of-squares; None where unknown.
    reference : complex64 array, shape (slice, ky, kx), optional
        True image (simulated data only); None for scans.
    header : mapping of str to str
        Provenance (source, licence, anatomy, caveats).
    noise_covariance : complex128 array, shape (coil, coil), optional
        E[n n^H] / 2 of the coils' noise, as the scanner measured it; None where unknown.
    density : float array, shape (sample,), optional
        Density compensation weights of the samples, zero or more, in any unit: how much each counts in the gridded
        image. No model weights its samples by them. None where the package computes its own.

    Raises
    ------
    InputError
        On arrays whose sizes disagree, samples that are not finite or all zero, a noise variance that is not positive,
        density weights that are negative or all zero,
        readouts that do not divide the samples, and as `checked_samples`.
    """

    trajectory: NDArray[np.float64]
    grid_shape: tuple[int, int]
    _: KW_ONLY
    readouts: int = 1
    density: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="a complex array (slice, coil, sample)", kspace=self.kspace)
        object.__setattr__(self, "trajectory", checked_samples(self.trajectory, self.grid_shape))
        k, wanted = self.kspace, f"(slice, coil, {len(self.trajectory)}), a sample for each point of the trajectory"
        if k.ndim != 3 or min(k.shape) < 1 or k.shape[2] != len(self.trajectory) or not np.iscomplexobj(k):
            raise InputError(field="kspace", got=f"{k.dtype} {k.shape}", wanted=wanted)
        if not np.any(k):
            raise InputError(field="kspace", got="zeros only", wanted="at least one sample that is not zero")
        require_counts(least=1, readouts=self.readouts)
        if k.shape[2] % self.readouts:
            raise InputError(field="readouts", got=f"{self.readouts}", wanted=f"a divisor of {k.shape[2]} samples")
        self._check_companion("kspace", k.shape)
        self._check_known(self.grid_shape)
        self._check_companion("density", k.shape[2:])
        if self.density is not None and (
            np.iscomplexobj(self.density) or self.density.min() < 0 or not self.density.any()
        ):
            raise InputError(
                field="density",
                got="negative numbers, zeros only, or complex numbers",
                wanted="weights of the samples, zero or more",
            )

    def select_slice(self, index: int) -> TrajectoryData:
        """The same data with the one slice ``index`` (negative counts from the end).

        Raises
        ------
        InputError
            Where there is no such slice.
        """
        return self._one(slice_number(index, self.n_slices))

    def select_readouts(self, chosen: NDArray[np.bool_]) -> TrajectoryData:
        """The same data with some of the readouts.

        Parameters
        ----------
        chosen : bool array, shape (readout,)
            True for those to keep.

        Raises
        ------
        InputError
            For another shape or type, or no readout.
        """
        if chosen.shape != (self.readouts,) or chosen.dtype != np.bool_ or not chosen.any():
            wanted = f"bool ({self.readouts},), true for at least one readout"
            raise InputError(field="readouts", got=f"{chosen.dtype} {chosen.shape}", wanted=wanted)
        samples = np.repeat(chosen, len(self.trajectory) // self.readouts)
        return replace(
            self,
            kspace=self.kspace[..., samples],
            trajectory=self.trajectory[samples],
            readouts=int(chosen.sum()),
            density=None if self.density is None else self.density[samples],
        )

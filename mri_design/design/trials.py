"""Trials of lines on scans whose truth is known: how wrong a reconstruction from them is, and on which lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.maps import OwnMaps
from mri_design.calibration.whitening import image_units
from mri_design.design.blocks import removed_share
from mri_design.errors import InputError
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

NO_TRUTH = "Oracles only run where the whole truth is known; name another strategy."
"""The cure for an oracle without truth."""

Trial = tuple[int, tuple[int, ...]]
"""A training scan by its number, and the lines to reconstruct it from."""


@dataclass(frozen=True)
class Outcome:
    """How wrong a reconstruction is.

    Parameters
    ----------
    error : float
        Relative L2 error of the magnitude.
    residual : float array, shape (ky,)
        Energy of the complex error on every line, or other candidate of the slice, summed over readout and coils, in
        units of the image's energy.
    converged : bool
        Whether the reconstruction converged.
    removed : float array, shape (ky, kz), optional
        Of samples of a plane, what the measurement of one removes of another's error by their distance
        (`removed_share`), the error of every pixel being the variance there.
    """

    error: float
    residual: NDArray[np.float64]
    converged: bool = True
    removed: NDArray[np.float64] | None = None


Evaluate = Callable[[Sequence[Trial]], Iterable[Outcome]]
"""Reconstructs and measures, here or in other processes; outcomes come in the order of the trials."""


@dataclass(frozen=True)
class ReferenceSlice:
    """A slice with the image that errors are measured against: to test masks on, or to train them.

    Parameters
    ----------
    name : str
        For tables and files.
    slice_model : MRSlice
        Calibrated data, replayed as the scanner.
    reference : complex array, shape (ky, kx)
        The image.
    calibration_lines : int
        Centre lines that masks have to hold for the coil maps; where those are the scan's ``own_maps``, those that look
        at no data do.
    simulated : str
        What its k-space was simulated from; empty where it was not.
    noise : float, optional
        What the reference's own noise makes of an error, see `reference_noise`; None for a true image.
    source : str
        File or phantom that it comes from.
    left_out : str
        What that file holds beyond what was read of it; empty where that is nothing.
    unit : float or float array, shape (ky, kx)
        What images are multiplied by to be shown and judged (`PreparedScan.image_unit`).
    noise_source, maps_source : str
        Where its noise and its coil maps are from.
    pixel : tuple of float, optional
        Size of a pixel along (ky, kx) in millimetres; None where nobody says.
    own_maps : OwnMaps, optional
        Estimates coil maps from what a mask measures, where they are not known; those of ``slice_model`` are then of
        all lines, which training scans and oracles may look at: see `as_measured`.
    mixing : complex array, shape (coil, coil), optional
        Of `PreparedScan`, for the units of images under such maps.

    Raises
    ------
    InputError
        Where the reference is empty.
    """

    name: str
    slice_model: MRSlice
    reference: Array
    _: KW_ONLY
    calibration_lines: int = 0
    simulated: str = ""
    noise: float | None = None
    source: str = ""
    left_out: str = ""
    noise_source: str = ""
    maps_source: str = ""
    pixel: tuple[float, float] | None = None
    unit: float | Array = 1.0
    own_maps: OwnMaps | None = None
    mixing: Array | None = None

    def __post_init__(self) -> None:
        if not np.any(self.reference):
            raise InputError(field=f"reference {self.name}", got="nothing but zeros", wanted="an image")

    @property
    def as_measured(self) -> MRSlice:
        """The slice as a scanner would measure it: nothing about it is known from lines that a mask leaves out."""
        if self.own_maps is None:
            return self.slice_model
        return replace(self.slice_model, maps=None, own_maps=self.own_maps)

    def unit_of(self, seen: MRSlice) -> float | Array:
        """What images under the maps of a calibrated slice are multiplied by to be shown and judged."""
        if self.own_maps is None or self.mixing is None:
            return self.unit
        return image_units(self.mixing, seen.maps)

    @property
    def shown(self) -> Array:
        """The reference as it is shown and judged."""
        return np.asarray(self.reference * self.unit)

    def outcome(self, image: Array, converged: bool = True) -> Outcome:
        """How wrong ``image`` is."""
        model, removed = self.slice_model, None
        if model.candidates.thinned:
            variances = np.abs(image - self.reference).astype(np.float64) ** 2
            removed = removed_share(variances, model.maps, model.noise_variance)
        residual = line_residual(model, image, self.reference)
        return Outcome(relative_error(image * self.unit, self.shown), residual, converged, removed)


def relative_error(image: Array, truth: Array) -> float:
    """Relative L2 error of the magnitude."""
    magnitude = np.abs(truth).astype(np.float64)
    return float(np.linalg.norm(np.abs(image) - magnitude) / np.linalg.norm(magnitude))


def line_residual(mr_slice: MRSlice, image: Array, truth: Array) -> NDArray[np.float64]:
    """Energy of image - truth on every line, or other candidate of the slice, over the truth's energy, (size,)."""
    wrong = mr_slice.encoding()(image - truth)
    energy = np.sum(np.abs(truth) ** 2, dtype=np.float64)
    wrong = wrong.reshape(len(wrong), mr_slice.candidates.size, -1)
    return np.asarray(np.sum(np.abs(wrong) ** 2, axis=(0, 2), dtype=np.float64) / energy)


def require_truths(name: str, truths: Sequence[Array], wanted: int) -> None:
    """Refuse to run an oracle that was not given the truth of each of ``wanted`` slices.

    Raises
    ------
    InputError
        In the name of the oracle.
    """
    if not truths or len(truths) != wanted:
        raise InputError(field=name, got=f"{len(truths)} true images", wanted="one per slice", cure=NO_TRUTH)


def shared_lines(scans: Sequence[ReferenceSlice]) -> NDArray[np.bool_]:
    """Lines that every scan holds, (ky,).

    Raises
    ------
    InputError
        For no scan, or scans on different grids.
    """
    if not scans:
        raise InputError(field="training scans", got="none", wanted="at least one")
    shapes = sorted({scan.slice_model.shape for scan in scans})
    if len(shapes) > 1:
        raise InputError(
            field="training scans", got=f"grids {shapes}", wanted="one grid", cure="Train once per matrix size."
        )
    return np.asarray(np.logical_and.reduce([scan.slice_model.measured for scan in scans]))

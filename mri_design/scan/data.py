"""Measured k-space and image stacks, validated on construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, covariance_matrix, described, positive_number, require_instance
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.left_out import with_part
from mri_design.scan.sampling import Sampling, measured_samples, strongest_component
from mri_design.scan.source_image import SourceImage

Orientation = Literal["ky-rows", "ky-columns"]
"""How the source file lays its image out: phase encode along rows' index or along columns' index."""


@dataclass(frozen=True)
class Scan:
    """Base of scans on a grid and along a trajectory: samples, noise, coil maps and provenance."""

    kspace: NDArray[np.complex64]
    _: KW_ONLY
    name: str = "scan"
    noise_variance: float | None = None
    coil_maps: NDArray[np.complex64] | None = None
    reference: NDArray[np.complex64] | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    noise_covariance: NDArray[np.complex128] | None = None

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return int(self.kspace.shape[0])

    @property
    def n_coils(self) -> int:
        """Number of receive coils."""
        return int(self.kspace.shape[1])

    def scaled(self, factor: float) -> Self:
        """The same scan in other units: samples and reference times ``factor``, noise accordingly."""
        held = {name: getattr(self, name, None) for name in ("kspace", "reference", "calibration")}
        times = {
            name: (array * array.real.dtype.type(factor)).astype(array.dtype, copy=False)
            for name, array in held.items()
            if array is not None
        }
        return replace(
            self,
            noise_variance=None if self.noise_variance is None else self.noise_variance * factor**2,
            noise_covariance=None if self.noise_covariance is None else self.noise_covariance * factor**2,
            **times,
        )

    def _check_known(self, grid: tuple[int, int]) -> None:
        """Refuse noise, coil maps and a reference that do not fit the samples."""
        if self.noise_variance is not None:
            positive_number("noise_variance", self.noise_variance)
        self._check_companion("coil_maps", (*self.kspace.shape[:2], *grid))
        self._check_companion("reference", (self.n_slices, *grid))
        if self.noise_covariance is not None:
            covariance_matrix("noise_covariance", self.noise_covariance, self.n_coils, definite=False)

    def _check_companion(self, name: str, shape: tuple[int, ...]) -> None:
        array = getattr(self, name)
        if array is None:
            return
        require_instance(np.ndarray, wanted=f"an array of shape {shape}", **{name: array})
        if array.shape != shape:
            raise InputError(field=name, got=f"shape {array.shape}", wanted=f"shape {shape}")
        _refuse_non_finite(name, array)

    def _one(self, number: int, **known: Any) -> Self:
        """Take one slice, with what else is ``known`` of it."""
        place = slice(number, number + 1)
        held = {name: getattr(self, name, None) for name in ("coil_maps", "reference", "calibration", "geometry")}
        return replace(
            self,
            kspace=self.kspace[place],
            name=f"{self.name}[{number}]" if self.n_slices > 1 else self.name,
            header=with_part(self.header, number, self.n_slices),
            **{name: array[place] for name, array in held.items() if array is not None},
            **known,
        )


@dataclass(frozen=True)
class KSpaceData(Scan):
    """Cartesian multi-slice k-space with everything that is known about how it was measured.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Centred orthonormal k-space, DC at ``N // 2``; samples that were not measured are zero in all coils.
    measured : bool array, shape (ky,)
        True where the phase-encode line was really acquired, in any slice. Zero-filled lines are False.
    name : str
        Short name for tables and figures.
    noise_variance : float, optional
        Noise variance per real component, in units of ``kspace`` squared; None where unknown.
    coil_maps : complex64 array, shape (slice, coil, ky, kx), optional
        Coil sensitivities with unit root-sum-of-squares; None where unknown.
    noise_covariance : complex128 array, shape (coil, coil), optional
        Noise covariance E[n n^H] / 2 of one sample, from the scanner's own noise readouts, in units of ``kspace``
        squared; it says more than ``noise_variance`` and is used before it.
    calibration : complex64 array, shape (slice, coil, ky, kx), optional
        Samples for coil maps that are no data of the image (a separate calibration scan), on the same grid.
    geometry : tuple of SliceGeometry, optional
        Size and place of every slice; None where the file does not say.
    source : SourceImage, optional
        The DICOM image that k-space was simulated from, or identifiers that raw data hold.
    reference : complex64 array, shape (slice, ky, kx), optional
        True image (simulated data only); None for scans.
    orientation : {"ky-rows", "ky-columns"}
        Layout of the source image, for display only.
    header : mapping of str to str
        Provenance (source, licence, anatomy, caveats).

    Raises
    ------
    InputError
        On a wrong number of axes, sizes that disagree, non-finite samples or a non-positive variance.
    """

    measured: NDArray[np.bool_]
    _: KW_ONLY
    orientation: Orientation = "ky-rows"
    calibration: NDArray[np.complex64] | None = None
    geometry: tuple[SliceGeometry, ...] | None = None
    source: SourceImage | None = None

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="a complex array (slice, coil, ky, kx)", kspace=self.kspace)
        require_instance(np.ndarray, wanted="a bool array (ky,)", measured=self.measured)
        k = self.kspace
        if k.ndim != 4:
            raise InputError(field="kspace", got=f"{k.ndim} axes {k.shape}", wanted="(slice, coil, ky, kx)")
        if min(k.shape) < 1 or k.shape[-2] < 4 or k.shape[-1] < 4:
            raise InputError(field="kspace", got=f"shape {k.shape}", wanted="at least 4 x 4 samples and one coil")
        if not np.iscomplexobj(k):
            raise InputError(field="kspace", got=f"dtype {k.dtype}", wanted="complex samples")
        _refuse_non_finite("kspace", k)
        if self.measured.shape != (k.shape[-2],) or self.measured.dtype != np.bool_:
            raise InputError(
                field="measured",
                got=f"{self.measured.dtype} {self.measured.shape}",
                wanted=f"bool ({k.shape[-2]},)",
                cure="Give one flag per phase-encode line.",
            )
        if not self.measured.any() or not np.any(k[:, :, self.measured]):
            raise InputError(
                field="kspace", got="no signal in any measured line", wanted="at least one non-zero sample"
            )
        self._check_known(self.grid_shape)
        self._check_companion("calibration", k.shape)
        if self.geometry is not None and len(self.geometry) != k.shape[0]:
            raise InputError(field="geometry", got=f"{len(self.geometry)} slices", wanted=f"{k.shape[0]}")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Grid (ky, kx)."""
        return int(self.kspace.shape[2]), int(self.kspace.shape[3])

    @cached_property
    def samplings(self) -> tuple[Sampling, ...]:
        """Per slice, which samples hold data: those of measured lines that are not zero in all coils.

        A slice without any is empty; the properties below are about the others.
        """
        strongest = strongest_component(self.kspace)
        return tuple(
            Sampling(measured_samples(stack, strongest) & self.measured[:, np.newaxis]) for stack in self.kspace
        )

    @property
    def whole_lines(self) -> bool:
        """True where every measured line of every slice has all its readout samples."""
        return all(sampling.whole_lines for sampling in self.samplings if sampling.lines.any())

    @property
    def fully_sampled(self) -> bool:
        """True where nothing is missing in any slice but edges of k-space, alike on both sides."""
        return all(sampling.full for sampling in self.samplings if sampling.lines.any())

    @property
    def missing(self) -> str:
        """Describes what is missing of the first slice that is not fully sampled; empty where all are."""
        return next((sampling.missing for sampling in self.samplings if sampling.lines.any() and not sampling.full), "")

    def select_slice(self, index: int) -> KSpaceData:
        """The same data with the one slice ``index`` (negative counts from the end), and the lines it holds.

        Raises
        ------
        InputError
            Where there is no such slice, or it holds no signal.
        """
        number = slice_number(index, self.n_slices)
        measured = self.samplings[number].lines
        if not measured.any():
            raise InputError(field=f"slice {number}", got="no signal", wanted="a slice with samples")
        source = None if self.source is None else self.source.of_frame(number)
        return self._one(number, measured=measured, source=source)


@dataclass(frozen=True)
class ImageStack:
    """Images without raw k-space, from which k-space can be simulated.

    Parameters
    ----------
    images : float32 or complex64 array, shape (slice, row, column)
        Magnitude or complex images; rows will become the phase-encode direction.
    name : str
        Short name for tables and figures.
    header : mapping of str to str
        Provenance.
    geometry : SliceGeometry, optional
        Size of pixels and place of the first slice, which the others follow at the distance of their thickness; None
        where the file does not say.
    source : SourceImage, optional
        Identifiers of the patient, the study and the image, where they are those of a DICOM file.

    Raises
    ------
    InputError
        On a wrong number of axes, non-finite pixels or no signal.
    """

    images: NDArray[np.float32] | NDArray[np.complex64]
    name: str = "images"
    header: Mapping[str, str] = field(default_factory=dict)
    geometry: SliceGeometry | None = None
    source: SourceImage | None = None

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="an array (slice, row, column)", images=self.images)
        if self.images.ndim != 3 or min(self.images.shape) < 1:
            raise InputError(field="images", got=f"shape {self.images.shape}", wanted="(slice, row, column)")
        _refuse_non_finite("images", self.images)
        if not np.any(self.images):
            raise InputError(field="images", got="all zeros", wanted="at least one non-zero pixel")

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return int(self.images.shape[0])

    def select_slice(self, index: int) -> ImageStack:
        """The same with the one slice ``index`` (negative counts from the end).

        Raises
        ------
        InputError
            Where there is no such slice, or it is empty.
        """
        number = slice_number(index, self.n_slices)
        if self.n_slices == 1:
            return self
        return replace(
            self,
            images=self.images[number : number + 1],
            name=f"{self.name}[{number}]",
            header=with_part(self.header, number, self.n_slices),
            geometry=None if self.geometry is None else self.geometry.slice_after(number),
            source=None if self.source is None else self.source.of_frame(number),
        )


def slice_number(index: object, count: int) -> int:
    """A slice's number from 0; negative ones count from the end."""
    if isinstance(index, bool) or not isinstance(index, Integral):
        raise InputError(field="slice", got=described(index), wanted=f"a whole number, 0 to {count - 1}")
    number = int(index)
    if not -count <= number < count:
        raise InputError(field="slice", got=str(number), wanted=f"0 to {count - 1}")
    return number % count


def _refuse_non_finite(name: str, array: NDArray[np.generic]) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            field=name,
            got=f"{int(bad.sum())} NaN or infinite values, the first at index {first}",
            wanted="finite samples",
            cure="Repair or remove the samples before loading.",
        )

"""Scans on a grid and along a trajectory and image stacks, checked when they are made, and summaries of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import (
    back_from,
    image_units,
    maps_before_mixing,
    measured_samples,
    mix_coils,
    strongest_component,
)
from mri_design.errors import (
    InputError,
    covariance_matrix,
    described,
    option,
    positive_number,
    require_choice,
    require_counts,
    require_instance,
)
from mri_design.kinds import KINDS, gridded_kinds
from mri_design.operators.conventions import chosen_flags
from mri_design.operators.trajectory import checked_samples
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.provenance import Provenance
from mri_design.scan.sampling import Sampling, refused_samples, require_finite

if TYPE_CHECKING:  # they load the Fourier transforms, which reading a file does without
    from mri_design.calibration.coils import OwnMaps
    from mri_design.model.slice import SliceModel
    from mri_design.readouts import Readouts, ShotReadouts

Orientation = Literal["ky-rows", "ky-columns"]
"""How the source file lays its image out: phase encode along rows' index or along columns' index."""

WITHOUT_COVARIANCE = (
    "Give that of the coils of the scan, or leave it out, and the noise is estimated; or give its standard deviation."
)


@dataclass(frozen=True)
class Scan(ABC):
    """Samples of a scan on a grid or along a trajectory, with their readouts, noise, coil maps and provenance.

    As it is read, noise and coil maps may be unknown; `mri_design.calibrate` finds them.

    Parameters
    ----------
    unit : float
        What samples are multiplied by to be in the units in which they were read: 1, but for amplitudes far from 1,
        which are scaled to ordinary numbers; white coils stay in units of the noise. For images there is `image_unit`.
    mixing : complex array, shape (coil, coil as read), optional
        What samples as read were multiplied by over the coils. None is the identity, or along a trajectory the factor
        1 / ``unit``.
    second_maps : complex64 array, shape (slice, coil, ky, kx), optional
        Second sets of coil maps of an object that reaches beyond its field of view; zeros of slices where one set is
        enough.
    own_maps : OwnMaps, optional
        Estimates the coil maps of a slice from those of its lines that have been measured, where maps are not known.
    """

    on_grid: ClassVar[bool]
    """Whether the samples lie on the grid of the image."""

    kspace: NDArray[np.complex64]
    _: KW_ONLY
    name: str = "scan"
    noise_variance: float | None = None
    coil_maps: NDArray[np.complex64] | None = None
    second_maps: NDArray[np.complex64] | None = None
    reference: NDArray[np.complex64] | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    noise_covariance: NDArray[np.complex128] | None = None
    provenance: Provenance = field(default_factory=Provenance)
    volume: bool = False
    geometry: tuple[SliceGeometry, ...] | None = None
    source: SourceImage | None = None
    orientation: Orientation = "ky-rows"
    unit: float = 1.0
    mixing: NDArray[np.complex128] | None = None
    own_maps: OwnMaps | None = None

    @property
    @abstractmethod
    def readouts(self) -> Readouts:
        """Readouts that are measured one by one: lines, the samples of a plane, or shots."""

    @property
    @abstractmethod
    def by_readout(self) -> NDArray[np.complex64]:
        """The samples of every slice and coil, laid out as their readouts are."""

    @property
    @abstractmethod
    def measured_readouts(self) -> NDArray[np.bool_]:
        """Which readouts hold data in any slice, shape (readout,)."""

    @property
    def samples_in_lines(self) -> NDArray[np.bool_] | None:
        """Which samples of a single slice hold data, where its readouts are lines that are not whole; else None."""
        return None

    def select_slice(self, index: int) -> Self:
        """The same data with the one slice ``index`` (negative counts from the end), and on a grid the lines it holds.

        Raises
        ------
        InputError
            Where there is no such slice, or it holds no signal.
        """
        return self._slices([slice_number(index, self.n_slices)])

    def select_slices(self, numbers: Sequence[int]) -> Self:
        """The same data with some of the slices, in this order, those without signal among them.

        Raises
        ------
        InputError
            Where there is no such slice; of a single one as `select_slice`.
        """
        if len(numbers) == 1:
            return self.select_slice(numbers[0])
        return self._slices([slice_number(number, self.n_slices) for number in numbers])

    def _slices(self, numbers: Sequence[int], **known: Any) -> Self:
        """The same data with some of the slices, of one as a view, and what else is ``known`` of them."""
        at: Any = list(numbers)
        if len(numbers) == 1:
            at = slice(numbers[0], numbers[0] + 1)
            if self.n_slices > 1:
                known["name"] = f"{self.name}[{numbers[0]}]"
                known["provenance"] = replace(self.provenance, slice=(numbers[0], self.n_slices))
        names = ("kspace", "coil_maps", "second_maps", "reference", "calibration", "repeat")
        taken = {name: held[at] for name in names if (held := getattr(self, name, None)) is not None}
        places = None if self.geometry is None else tuple(self.geometry[number] for number in numbers)
        return replace(self, **taken, geometry=places, **known)

    def encoded(self, encoding: str) -> Self:
        """The same data as lines or as samples of a plane; other encodings leave it unchanged."""
        return self

    @abstractmethod
    def only(self, measured: NDArray[np.bool_]) -> Self:
        """The same data with some of its lines, samples or readouts, as if the others had not been measured."""

    def slice_model(self, index: int = 0, *, encoding: str = "", **settings: Any) -> SliceModel:
        """One slice of calibrated data as models take it, whose candidates are the scan's readouts.

        Parameters
        ----------
        index : int
            Which slice.
        encoding : str
            As of `encoded`; by default the scan's own.
        **settings
            Of `SliceModel`: ``prior``, ``library`` and ``phase``. `Recipe.slice_settings` has these and the encoding.

        Raises
        ------
        InputError
            Where the noise variance is still unknown, or coil maps are and ``own_maps`` is not there to estimate them.
        """
        from mri_design.model.slice import SliceModel

        if self.noise_variance is None:
            raise InputError("noise_variance", "unknown", "a number", "Calibrate the data first.")
        chosen = self.select_slice(index).encoded(encoding)
        second = None if chosen.second_maps is None or not chosen.second_maps.any() else chosen.second_maps[0]
        return SliceModel(
            chosen.by_readout[0],
            chosen.measured_readouts,
            self.noise_variance,
            None if chosen.coil_maps is None or (chosen.n_coils == 1 and not chosen.on_grid) else chosen.coil_maps[0],
            samples=chosen.samples_in_lines,
            readouts=chosen.readouts,
            own_maps=None if chosen.n_coils == 1 or chosen.coil_maps is not None else chosen.own_maps,
            second_maps=second,
            mixing=chosen.mixing,
            unit=chosen.unit,
            **settings,
        )

    def image_unit(self, index: int = 0) -> float | NDArray[np.float32]:
        """Factor that brings images of a slice to the units in which samples were read, by pixel of white coils.

        Such images are as bright as the root-sum-of-squares of the coil images as read, whatever the noise of the coils
        (`image_units`).
        """
        if self.mixing is None:
            return self.unit
        return image_units(self.mixing, None if self.coil_maps is None else self.coil_maps[index])

    @property
    def maps_as_read(self) -> NDArray[np.complex64] | None:
        """Coil maps (slice, coil, ky, kx) of the coils that were read, not of white ones; None of one coil."""
        return maps_before_mixing(self.mixing, self.coil_maps)

    def mixed(self, samples: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Further samples (coil, ...) of the same scan as read, as this one has its own."""
        return samples if self.mixing is None else mix_coils(self.mixing, samples[np.newaxis])[0]

    def as_read(
        self, kspace: NDArray[np.complex64], maps: NDArray[np.complex64] | None, noise_variance: float
    ) -> dict[str, NDArray[Any] | float]:
        """Samples of these coils, with their maps and noise, in the coils and units that were read.

        Parameters
        ----------
        kspace : complex array, shape (coil, ky, kx)
            Of these coils.
        maps : complex array, shape (coil, ky, kx), or None
            Of these coils; None for one.
        noise_variance : float
            Of these coils.

        Returns
        -------
        dict
            By the names of archives.
        """
        combined = self.provenance.combined
        if self.mixing is not None and combined is not None and combined[1] < combined[0]:
            got = f"{len(self.mixing)} of {self.mixing.shape[1]} coils"
            wanted = "all coils, where samples are written as the scanner measured them"
            cure = f"Calibrate with {option('coils.coil_compression', 'none')} here."
            raise InputError("coils.coil_compression", got, wanted, cure)
        seen = None if maps is None else maps_before_mixing(self.mixing, maps[np.newaxis])
        known: dict[str, NDArray[Any] | float] = {} if seen is None else {"coil_maps": seen}
        if self.mixing is None:
            return {"kspace": kspace[np.newaxis], "noise_variance": noise_variance, **known}
        back = back_from(self.mixing)
        if seen is None:
            known["noise_variance"] = noise_variance * float(np.linalg.norm(back)) ** 2
        else:
            known["noise_covariance"] = noise_variance * (back @ back.conj().T)
        return {"kspace": mix_coils(back, kspace[np.newaxis]), **known}

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

        def times(array: NDArray[np.complex64]) -> NDArray[np.complex64]:
            return (array * array.real.dtype.type(factor)).astype(array.dtype, copy=False)

        return self.transformed(
            times,
            noise_variance=None if self.noise_variance is None else self.noise_variance * factor**2,
            noise_covariance=None if self.noise_covariance is None else self.noise_covariance * factor**2,
            reference=None if self.reference is None else times(self.reference),
        )

    def transformed(self, change: Callable[[NDArray[np.complex64]], NDArray[np.complex64]], **known: Any) -> Self:
        """The scan with all its samples changed, those of a calibration scan too, and what is ``known`` of it then."""
        held = {name: getattr(self, name, None) for name in ("kspace", "calibration", "repeat")}
        changed: dict[str, Any] = {name: change(array) for name, array in held.items() if array is not None}
        return replace(self, **changed, **known)

    def _check_known(self, grid: tuple[int, int]) -> None:
        """Refuse noise, coil maps and a reference that do not fit the samples."""
        if self.noise_variance is not None:
            positive_number("noise_variance", self.noise_variance)
        self._check_companion("coil_maps", (*self.kspace.shape[:2], *grid))
        self._check_companion("second_maps", (*self.kspace.shape[:2], *grid))
        self._check_companion("reference", (self.n_slices, *grid))
        if self.noise_covariance is not None:
            covariance_matrix(
                "noise_covariance", self.noise_covariance, self.n_coils, definite=False, cure=WITHOUT_COVARIANCE
            )

    def _check_companion(self, name: str, shape: tuple[int, ...]) -> None:
        array = getattr(self, name)
        if array is None:
            return
        require_instance(np.ndarray, wanted=f"an array of shape {shape}", **{name: array})
        if array.shape != shape:
            raise InputError(name, f"shape {array.shape}", f"shape {shape}")
        require_finite(name, array)

    def known(self, **facts: Any) -> Self:
        """The same scan with other facts in its provenance."""
        return replace(self, provenance=replace(self.provenance, **facts))


@briefly
@dataclass(frozen=True)
class KSpaceData(Scan):
    """Cartesian multi-slice k-space with everything that is known about how it was measured.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Centred orthonormal k-space, DC at ``N // 2``; samples that were not measured are zero in all coils.
    measured : bool array, shape (ky,)
        True where the phase-encode line was really acquired, in any slice. Zero-filled lines are False. Zeros and ones
        of any type, or numbers of lines, become that.
    name : str
        Short name for tables and figures.
    noise_variance : float, optional
        Noise variance per real component, in units of ``kspace`` squared; None where unknown.
    coil_maps : complex64 array, shape (slice, coil, ky, kx), optional
        Coil sensitivities with unit root-sum-of-squares; None where unknown.
    noise_covariance : complex128 array, shape (coil, coil), optional
        Noise covariance E[n n^H] / 2 of one sample, from the scanner's own noise readouts, in units of ``kspace``
        squared; it is preferred to ``noise_variance``.
    calibration : complex64 array, shape (slice, coil, ky, kx), optional
        Samples for coil maps that are no data of the image (a separate calibration scan), on the same grid.
    repeat : complex64 array, shape (slice, coil, ky, kx), optional
        The same samples measured once more: noise is in the difference. They are no data of the image either.
    geometry : tuple of SliceGeometry, optional
        Size and place of every slice; None if the file does not state them.
    source : SourceImage, optional
        The DICOM image that k-space was simulated from, or identifiers that raw data hold.
    reference : complex64 array, shape (slice, ky, kx), optional
        True image (simulated data only); None for scans.
    orientation : {"ky-rows", "ky-columns"}
        Layout of the source image, for display only.
    header : mapping of str to str
        Texts of the file and its reader (source, licence, anatomy, caveats), which no function reads.
    provenance : Provenance
        Where noise, coil maps and the centre of k-space are from, and which part of its file the scan is.
    volume : bool
        Whether slices are planes (ky, kz) of a volume, one for each position of its readout.
    encoding : {"lines", "plane"}
        What is measured one by one: lines, or every sample of a plane (ky, kz).

    Raises
    ------
    InputError
        On a wrong number of axes, sizes that disagree, non-finite samples or a non-positive variance.
    """

    measured: NDArray[np.bool_]
    _: KW_ONLY
    calibration: NDArray[np.complex64] | None = None
    repeat: NDArray[np.complex64] | None = None
    encoding: str = "lines"
    on_grid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="a complex array (slice, coil, ky, kx)", kspace=self.kspace)
        k = self.kspace
        if k.ndim != 4 or min(k.shape) < 1 or min(k.shape[-2:]) < 4 or not np.iscomplexobj(k):
            wanted = "complex samples (slice, coil, ky, kx), at least 4 x 4 of one coil"
            raise InputError("kspace", f"{k.dtype} {k.shape}", wanted)
        require_finite("kspace", k)
        object.__setattr__(self, "measured", chosen_flags(self.measured, (k.shape[-2],), field="measured"))
        if not self.measured.any() or not np.any(k[:, :, self.measured]):
            raise InputError("kspace", "no signal in any measured line", "at least one non-zero sample")
        require_choice(gridded_kinds(), encoding=self.encoding)
        self._check_known(self.grid_shape)
        self._check_companion("calibration", k.shape)
        self._check_companion("repeat", k.shape)
        if self.geometry is not None and len(self.geometry) != k.shape[0]:
            raise InputError("geometry", f"{len(self.geometry)} slices", f"{k.shape[0]}")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Grid (ky, kx)."""
        return int(self.kspace.shape[2]), int(self.kspace.shape[3])

    @property
    def readouts(self) -> Readouts:
        """The lines of the grid, or its samples."""
        made: Readouts = KINDS[self.encoding].on(self.grid_shape)  # type: ignore[misc]  # a grid has some
        return made

    @property
    def by_readout(self) -> NDArray[np.complex64]:
        """The samples, shape (slice, coil, ky, kx)."""
        return self.kspace

    @property
    def measured_readouts(self) -> NDArray[np.bool_]:
        """The measured lines, or of a plane the samples of its first slice, row by row."""
        whole = KINDS[self.encoding].axes == 1
        return self.measured if whole else self.readouts.measured_flags(self.samplings[0].samples)

    @property
    def samples_in_lines(self) -> NDArray[np.bool_] | None:
        """Samples (ky, kx) of the first slice that hold data, where lines are not whole; None where they are."""
        sampling = self.samplings[0]
        return None if sampling.whole_lines or not KINDS[self.encoding].with_holes else sampling.samples

    def encoded(self, encoding: str) -> Self:
        """The same data as lines or as samples of a plane; other encodings leave it unchanged."""
        return replace(self, encoding=encoding) if encoding in gridded_kinds() and encoding != self.encoding else self

    def only(self, measured: NDArray[np.bool_]) -> Self:
        """The same data with every other line emptied, or other sample by flags (ky, kx)."""
        keep = self.measured[:, None] & (measured if measured.ndim == 2 else measured[:, None])
        return replace(self, kspace=np.where(keep, self.kspace, 0), measured=np.asarray(keep.any(axis=1)))

    @cached_property
    def samplings(self) -> tuple[Sampling, ...]:
        """Per slice, which samples hold data: those of measured lines that are not zero in all coils.

        A slice without any is empty; the properties below are about the others.
        """
        strongest = strongest_component(self.kspace)
        return tuple(
            Sampling(measured_samples(stack, strongest) & self.measured[:, np.newaxis]) for stack in self.kspace
        )

    @cached_property
    def own_images(self) -> dict[int, NDArray[np.complex64]]:
        """Images of slices from all their lines by number, as far as they have been made (`calibration.truth_of`)."""
        return {}

    @property
    def whole_lines(self) -> bool:
        """True where every measured line of every slice has all its readout samples."""
        return all(sampling.whole_lines for sampling in self.samplings if sampling.lines.any())

    @property
    def fully_sampled(self) -> bool:
        """True where nothing is missing in any slice but edges of k-space, alike on both sides."""
        return self.incomplete is None

    @property
    def incomplete(self) -> Sampling | None:
        """The first slice that is not fully sampled; None where all are."""
        return next((sampling for sampling in self.samplings if sampling.lines.any() and not sampling.full), None)

    def select_slice(self, index: int) -> Self:
        """See `Scan.select_slice`."""
        number = slice_number(index, self.n_slices)
        measured = self.samplings[number].lines
        if not measured.any():
            raise InputError(f"slice {number}", "no signal", "a slice with samples")
        source = None if self.source is None else self.source.of_frame(number)
        return self._slices([number], measured=measured, source=source)


@briefly
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
    n_readouts : int
        Number of readouts of equal length, one after the other in the samples.
    name : str
        Short name for tables and figures.
    noise_variance : float, optional
        Noise variance per real component, in units of ``kspace`` squared; None where unknown.
    coil_maps : complex64 array, shape (slice, coil, ky, kx), optional
        Coil sensitivities with unit root-sum-of-squares; None where unknown.
    reference : complex64 array, shape (slice, ky, kx), optional
        True image (simulated data only); None for scans.
    header, provenance
        As of `KSpaceData`.
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
    n_readouts: int = 1
    density: NDArray[np.float64] | None = None
    on_grid: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="a complex array (slice, coil, sample)", kspace=self.kspace)
        object.__setattr__(self, "trajectory", checked_samples(self.trajectory, self.grid_shape))
        k, wanted = self.kspace, f"(slice, coil, {len(self.trajectory)}), a sample for each point of the trajectory"
        if k.ndim != 3 or min(k.shape) < 1 or k.shape[2] != len(self.trajectory) or not np.iscomplexobj(k):
            raise InputError("kspace", f"{k.dtype} {k.shape}", wanted)
        if not np.any(k):
            raise InputError("kspace", "zeros only", "at least one sample that is not zero")
        require_counts(least=1, n_readouts=self.n_readouts)
        if k.shape[2] % self.n_readouts:
            raise InputError("n_readouts", f"{self.n_readouts}", f"a divisor of {k.shape[2]} samples")
        self._check_companion("kspace", k.shape)
        self._check_known(self.grid_shape)
        self._check_companion("density", k.shape[2:])
        if self.density is not None and (
            np.iscomplexobj(self.density) or self.density.min() < 0 or not self.density.any()
        ):
            got = "negative numbers, zeros only, or complex numbers"
            raise InputError("density", got, "weights of the samples, zero or more")

    @cached_property
    def readouts(self) -> ShotReadouts:
        """The shots of the trajectory, with the density compensation that came with them."""
        from mri_design.readouts import ShotReadouts

        weights = None if self.density is None else self.density.reshape(self.n_readouts, -1)
        shots = self.trajectory.reshape(self.n_readouts, -1, 2)
        return ShotReadouts(self.grid_shape, shots, "readouts", weights=weights)

    @property
    def by_readout(self) -> NDArray[np.complex64]:
        """The samples, shape (slice, coil, readout, sample)."""
        return self.kspace.reshape(self.n_slices, self.n_coils, self.n_readouts, -1)

    @property
    def measured_readouts(self) -> NDArray[np.bool_]:
        """All of them, shape (readout,)."""
        return np.ones(self.n_readouts, dtype=bool)

    def only(self, measured: NDArray[np.bool_]) -> TrajectoryData:
        """The same data with some of the readouts.

        Parameters
        ----------
        measured : bool array, shape (readout,)
            True for those to keep.

        Raises
        ------
        InputError
            For another shape or type, or no readout.
        """
        if measured.shape != (self.n_readouts,) or measured.dtype != np.bool_ or not measured.any():
            wanted = f"bool ({self.n_readouts},), true for at least one readout"
            raise InputError("readouts", f"{measured.dtype} {measured.shape}", wanted)
        samples = np.repeat(measured, len(self.trajectory) // self.n_readouts)
        return replace(
            self,
            kspace=self.kspace[..., samples],
            trajectory=self.trajectory[samples],
            n_readouts=int(measured.sum()),
            density=None if self.density is None else self.density[samples],
        )


@briefly
@dataclass(frozen=True)
class ImageStack:
    """Images without raw k-space, from which k-space can be simulated.

    Parameters
    ----------
    images : float32 or complex64 array, shape (slice, row, column)
        Magnitude or complex images; rows will become the phase-encode direction.
    name : str
        Short name for tables and figures.
    header, provenance
        As of `KSpaceData`.
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
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        require_instance(np.ndarray, wanted="an array (slice, row, column)", images=self.images)
        if self.images.ndim != 3 or min(self.images.shape) < 1:
            raise InputError("images", f"shape {self.images.shape}", "(slice, row, column)")
        require_finite("images", self.images)
        if not np.any(self.images):
            raise InputError("images", "all zeros", "at least one non-zero pixel")

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return int(self.images.shape[0])

    @property
    def magnitude(self) -> NDArray[np.float32]:
        """Moduli of complex images, and real images as they are."""
        return np.abs(self.images) if np.iscomplexobj(self.images) else self.images.real

    def select_slice(self, index: int) -> ImageStack:
        """`select_slices` of the one slice ``index`` (negative counts from the end)."""
        return self.select_slices([index])

    def select_slices(self, numbers: Sequence[int]) -> ImageStack:
        """The same with some of the slices, in this order; their places are kept where they follow one another.

        Raises
        ------
        InputError
            Where there is no such slice, or all are empty.
        """
        chosen, known = [slice_number(number, self.n_slices) for number in numbers], dict[str, Any]()
        if self.n_slices == len(chosen) == 1:
            return self
        first = chosen[0]
        geometry = None if self.geometry is None else self.geometry.slice_after(first)
        if geometry is not None and chosen != list(range(first, chosen[-1] + 1)):
            geometry = replace(geometry, thickness=None, centre=None, phase=None, read=None, normal=None)
        if len(chosen) == 1:
            known["name"] = f"{self.name}[{first}]"
            known["provenance"] = replace(self.provenance, slice=(first, self.n_slices))
            known["source"] = None if self.source is None else self.source.of_frame(first)
        return replace(self, images=self.images[chosen], geometry=geometry, **known)


def slice_number(index: object, count: int) -> int:
    """A slice's number from 0; negative ones count from the end."""
    if isinstance(index, bool) or not isinstance(index, Integral):
        raise InputError("slice", described(index), f"a whole number, 0 to {count - 1}", behind=("index", "slices"))
    number = int(index)
    if not -count <= number < count:
        raise InputError("slice", str(number), f"0 to {count - 1}", behind=("index", "slices"))
    return number % count


@dataclass(frozen=True)
class ScanSummary:
    """Header summary of a scan: the sampling of every slice, and the samples of one.

    Parameters
    ----------
    samplings : tuple of Sampling
        Per slice, which samples were measured: that of the slice that was read from its samples, those of the others
        from their headers where ``by_headers`` is true.
    n_coils : int
        Receive coils.
    name : str
        Short name of the scan.
    index : int
        The slice whose samples were read: the one nearest to the middle that has any.
    part : KSpaceData, optional
        That slice; None where its readouts hold zeros only, as in a file of labels without data.
    geometry : tuple of SliceGeometry, optional
        Size and place of every slice; None if the file does not state them.
    by_headers : bool
        Whether the samples of other slices were not read.
    refused : str
        Why no receiver can have measured the samples (`refused_samples`); by default that of ``part``.
    header, provenance, volume
        As of `KSpaceData`.

    Raises
    ------
    InputError
        Without slices, for slices of different sizes, or an index that is none of theirs.
    """

    samplings: tuple[Sampling, ...]
    n_coils: int
    _: KW_ONLY
    name: str = "scan"
    index: int = 0
    part: KSpaceData | None = None
    geometry: tuple[SliceGeometry, ...] | None = None
    by_headers: bool = False
    refused: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    volume: bool = False

    def __post_init__(self) -> None:
        shapes = {sampling.samples.shape for sampling in self.samplings}
        if len(shapes) != 1 or not 0 <= self.index < len(self.samplings):
            got = f"slice {self.index} of {len(self.samplings)} slices of {len(shapes)} sizes"
            raise InputError("summary", got, "slices of one size, and one of them")
        if self.part is not None and self.part.kspace.shape[:1] + self.part.grid_shape != (1, *shapes.pop()):
            raise InputError("part", f"{self.part.kspace.shape}", "one slice of the grid")
        if self.part is not None and not self.refused:
            object.__setattr__(self, "refused", refused_samples(self.part.kspace))

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return len(self.samplings)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Grid (ky, kx)."""
        ky, kx = self.samplings[0].samples.shape
        return ky, kx

    @classmethod
    def of(cls, scan: KSpaceData) -> ScanSummary:
        """Summarise a scan that was read as a whole."""
        index = middle_slice(scan.samplings)
        return cls(
            scan.samplings,
            scan.n_coils,
            name=scan.name,
            index=index,
            part=scan if scan.n_slices == 1 else scan.select_slice(index),
            geometry=scan.geometry,
            refused=refused_samples(scan.kspace),
            header=scan.header,
            provenance=scan.provenance,
            volume=scan.volume,
        )


def summarised(held: KSpaceData | TrajectoryData | ImageStack) -> ScanSummary | TrajectoryData | ImageStack:
    """Summarise what a reader read as a whole; samples along a trajectory, and images, are their own summary."""
    return ScanSummary.of(held) if isinstance(held, KSpaceData) else held


def middle_slice(samplings: Sequence[Sampling]) -> int:
    """The slice nearest to the middle that holds lines; 0 where none does."""
    held = [number for number, sampling in enumerate(samplings) if sampling.lines.any()]
    return min(held, key=lambda number: abs(number - len(samplings) // 2), default=0)

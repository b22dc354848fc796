"""Other images of the object and masks of its regions, from files of any kind, laid over the slices of a scan."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import places_in
from mri_design.errors import InputError, UsageError, number_array, option
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.inputs import ALL_SLICES, SliceChoice, load_scan, names_file, scan_of
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.experiment.volume import names_neighbours
from mri_design.kinds import count_text
from mri_design.model.sparsity import Companion
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, stacked
from mri_design.scan.io.formats import read, read_images
from mri_design.scan.sampling import require_dynamic_range

MOST_REGIONS, _LARGEST = 64, 1e6
"""Regions of a mask, and the largest of their numbers."""
OWN_IMAGE = "recon.npy"
"""The image of a run, where its folder is given."""
MOSTLY = 0.5
"""Share of the energy of an image's k-space that lies at its centre, at least."""
LEAST_OVERLAP = 0.25
"""Share of a slice's field of view that has to be covered."""
REACH = 10.0
"""Millimetres across the slice of a volume that are searched, where headers give positions."""
SLICES = 2
"""As `REACH`, where they do not: slices up and down."""
SAME_ENERGY, SAME_IMAGE = 1e-3, 1e-6
"""Relative differences that rounding leaves: of the energies of two readouts, and of images (1 - their correlation).

The same readout measured once more differs by its noise: where there is little else in it, by a tenth.
"""


@briefly
@dataclass(frozen=True)
class CompanionImages:
    """The moduli of one file.

    Parameters
    ----------
    name : str
        Of the file.
    images : float32 array, shape (slice, ky, kx)
        Moduli, of any brightness.
    places : tuple of SliceGeometry, optional
        Of the slices, where the file says them.
    energies : float array, shape (slice, coil, readout), optional
        Of the samples that were measured, of k-space: by them a scan is recognised that is given as its own companion.
    scan : KSpaceData, optional
        As read, of k-space on a grid: as an earlier scan it can steer a mask.
    """

    name: str
    images: NDArray[np.float32]
    places: tuple[SliceGeometry, ...] | None = None
    energies: NDArray[np.float64] | None = None
    scan: KSpaceData | None = None

    @classmethod
    def read(cls, source: str, recipe: Recipe, seed: int = 0) -> CompanionImages:
        """Read images, or reconstruct a scan from all its samples by the posterior mean.

        Parameters
        ----------
        source : str
            File of images or of k-space, ``phantom:NAME``, each with slices behind ``#`` if wanted, or the folder of a
            run.
        recipe : Recipe
            Reads and calibrates scans, but for their noise; images are inferred under its prior without non-local
            blocks.
        seed : int
            Of simulations and variances.

        Raises
        ------
        InputError
            Where the file cannot be used.
        """
        source, chosen = _with_slices(source)
        path = Path(source)
        name = path.name if path.name != OWN_IMAGE else f"{path.parent.name}/{OWN_IMAGE}"
        name += "" if chosen is None else f"#{chosen.text}"
        recipe = recipe.of_another_file()
        if names_file(source):
            held = read_images(path) if path.name == OWN_IMAGE else read(path, **recipe.input.reading)
            if isinstance(held, ImageStack):
                first, numbers = held.geometry, (chosen or ALL_SLICES).indices(held.n_slices)
                places = None if first is None else tuple(first.slice_after(number) for number in numbers)
                return cls(name, np.abs(held.images[numbers]).astype(np.float32), places)
            _require_samples(held, name)
            scan = scan_of(held, recipe, seed + 1)
            require_dynamic_range(scan.kspace, f"{name}: kspace")
        else:
            scan = load_scan(source, recipe, seed + 1)
        numbers = (chosen or ALL_SLICES).indices(scan.n_slices)
        images = np.stack([_image_of(scan.select_slice(number), recipe, seed) for number in numbers])
        energies = readout_energies(scan)[numbers]
        if not isinstance(scan, KSpaceData):
            return cls(name, images, energies=energies)
        places = None if scan.geometry is None else tuple(scan.geometry[number] for number in numbers)
        return cls(name, images, places, energies, scan if chosen is None else scan.select_slices(numbers))

    def over(
        self, scan: KSpaceData | TrajectoryData, number: int, count: int, several: bool = False
    ) -> Companion | None:
        """Lay the images over one slice of a scan.

        By the places that both headers give, between the slices of a volume too; else slice upon slice, by the fields
        of view where both are known, or by the grids alone.

        Parameters
        ----------
        scan : KSpaceData or TrajectoryData
            The slice.
        number : int
            Its number.
        count : int
            Slices of the scan.
        several : bool
            Whether the images are offered to further slices: one image then serves those that it shows.

        Returns
        -------
        Companion or None
            None where there is one image, of a place that another one of several slices has.

        Raises
        ------
        InputError
            Where the two have other numbers of slices and nothing says where they lie, or hardly overlap; for one image
            without a place and several slices.
        """
        shape, one = scan.readouts.grid, len(self.images) == 1
        here = scan.geometry[0] if isinstance(scan, KSpaceData) and scan.geometry is not None else None
        placed = here is not None and here.placed and self.places is not None and self.places[0].placed
        beside: dict[float, tuple[str, Callable[[], NDArray[np.float32] | None]]] = {}
        if here is not None and placed:
            image, covered = self.at_places(here, shape)
            how = "by the places in both headers"
            if one and several and covered < LEAST_OVERLAP:
                return None
            if not one:
                near, away = self._near(here, shape), [REACH * part / 4 for part in (-4, -3, -2, -1, 1, 2, 3, 4)]
                for place in away:
                    words = f"{abs(place):g} mm from where the headers place it"
                    beside[place] = words, partial(near._at_distance, here, shape, covered, place)
        elif one and several:
            got = "one image for several slices, and no place of it or of the scan's"
            wanted = f"an image for each of the {count_text(count, 'slice')}, or one slice to be made with it"
            cure = "Choose the slice that it shows with --slices, or give files whose headers say where they lie."
            raise InputError(f"companion {self.name}", got, wanted, cure)
        else:
            image, covered, how = self.by_number(here, shape, number, count)
            if not one:
                cut = slice(max(0, number - SLICES), min(count, number + SLICES + 1))
                near = CompanionImages(self.name, self.images[cut], self.places and self.places[cut])
                away = [part / 2 for part in range(-2 * SLICES, 2 * SLICES + 1) if part]
                of = f"of {count}, numbered from 0, instead of {number}"
                for place in away:
                    image_there = partial(near._at_offset, here, shape, number - cut.start, place)
                    beside[place] = f"slice {number + place:g} {of}", image_there
        if covered < LEAST_OVERLAP:
            got = f"an image that covers {covered:.0%} of the slice's field of view"
            wanted = f"at least {LEAST_OVERLAP:.0%} of it"
            raise InputError(f"companion {self.name}", got, wanted, "Give an image of the same place.")
        whole = "" if covered > 1 - 1e-3 else f", of which it covers {covered:.0%}"
        return Companion(
            self.name,
            image,
            f"laid over the scan {how}{whole}",
            by_headers=placed,
            pixel=None if here is None else here.pixel,
            refused=self._same_as(scan, image),
            beside=beside,
        )

    def _at_distance(
        self, here: SliceGeometry, shape: tuple[int, int], whole: float, aside: float
    ) -> NDArray[np.float32] | None:
        """The image at ``aside`` millimetres from a slice; None if it covers less than ``whole``."""
        image, covered = self.at_places(here, shape, aside)
        return image if covered > 0.99 * whole else None

    def _at_offset(
        self, here: SliceGeometry | None, shape: tuple[int, int], number: int, aside: float
    ) -> NDArray[np.float32] | None:
        """The image ``aside`` slices away from slice ``number``, interpolated; None outside the volume."""
        have = len(self.images)
        return self.by_number(here, shape, number + aside, have)[0] if 0 <= number + aside <= have - 1 else None

    def _near(self, here: SliceGeometry, shape: tuple[int, int]) -> CompanionImages:
        """The slices within `REACH` of a slice, and no others: they may travel to other processes."""
        assert self.places is not None
        first, order = stacked(self.places, range(len(self.images)))
        _, phase, read, normal = here.vectors
        rows, columns = (
            step * (n - 1) * along for step, n, along in zip(here.pixel, shape, (phase, read), strict=True)
        )
        away = here.first_pixel(shape) - first.first_pixel((self.images.shape[1], self.images.shape[2]))
        ends = [away + r + c + a for r in (0, rows) for c in (0, columns) for a in (-REACH * normal, REACH * normal)]
        depths = np.array(ends) @ first.vectors[3] / (first.thickness or here.thickness or 1.0)
        lowest = int(np.clip(np.floor(depths.min()), 0, len(order) - 2))
        near = order[lowest : max(int(np.ceil(depths.max())), lowest + 1) + 1]
        return CompanionImages(self.name, self.images[near], tuple(self.places[n] for n in near))

    def _same_as(self, scan: KSpaceData | TrajectoryData, over: NDArray[np.float32]) -> str:
        """Why the images cannot serve, as the end of a sentence: constant, or the scan's own; empty if they can."""
        if np.ptp(self.images) == 0:
            return "it is the same everywhere"
        if self.energies is not None:
            own = readout_energies(scan)[0]
            if any(same_readouts(own, other) for other in self.energies):
                return "it is the scan itself: the same samples"
        elif isinstance(scan, KSpaceData) and scan.reference is not None:
            both = np.stack([over.ravel(), np.abs(scan.reference[0]).ravel()]).astype(np.float64)
            norms = np.linalg.norm(both, axis=1)
            if norms.all() and both[0] @ both[1] >= (1 - SAME_IMAGE) * norms.prod():
                return "it is the image that the scan was made from, or that its errors are measured against"
        return ""

    def at_places(
        self, here: SliceGeometry, shape: tuple[int, int], aside: float = 0.0
    ) -> tuple[NDArray[np.float32], float]:
        """The image at the pixels of a slice, linearly between its own, and the share of pixels it covers.

        ``aside`` is by how many millimetres the slice is taken to lie farther along its normal.
        """
        assert self.places is not None
        first, order = (self.places[0], [0]) if len(self.images) == 1 else stacked(self.places, range(len(self.images)))
        own = self.images.shape[1:]
        _, phase, read, normal = here.vectors
        rows, columns = np.meshgrid(*map(np.arange, shape), indexing="ij")
        corner = here.first_pixel(shape) + aside * normal
        points = corner + rows[..., None] * here.pixel[0] * phase + columns[..., None] * here.pixel[1] * read
        _, along_y, along_x, across = first.vectors
        away = points - first.first_pixel((own[0], own[1]))
        thickness = first.thickness or here.thickness or 1.0
        depth = away @ across / thickness
        beyond = 0.5 if len(self.images) > 1 else 0.5 + (here.thickness or thickness) / (2 * thickness)
        inside = (depth >= -beyond) & (depth <= len(self.images) - 1 + beyond)
        steps = (here.pixel[0] / first.pixel[0], here.pixel[1] / first.pixel[1])
        depth = np.clip(depth, 0, len(self.images) - 1)
        lowest, highest = int(np.floor(depth.min())), int(np.ceil(depth.max()))  # of a volume the slices around this
        places = [depth - lowest, away @ along_y / first.pixel[0], away @ along_x / first.pixel[1]]
        return _between(self.images[order[lowest : highest + 1]], places, steps, inside)

    def by_number(
        self, here: SliceGeometry | None, shape: tuple[int, int], number: float, count: int
    ) -> tuple[NDArray[np.float32], float, str]:
        """The image of the slice of this number, between two as well, or the only one, around the same centre."""
        have = len(self.images)
        if have not in (1, count):
            got = f"{have} slices, and no place of them or of the scan's"
            wanted = f"{count_text(count, 'slice')}, as the scan has{', or one' if count > 1 else ''}"
            cure = "Give a file that holds the slice alone, or files whose headers say where they lie."
            raise InputError(f"companion {self.name}", got, wanted, cure)
        below = int(number) if have > 1 else 0
        image, beyond = self.images[below], number - below if have > 1 else 0.0
        if beyond:
            image = (1 - beyond) * image + beyond * self.images[below + 1]
        own, ratio, how = self.places, (1.0, 1.0), "by the grids alone, as a field of view is not known"
        if here is not None and own is not None:
            mine = np.multiply(own[below].pixel, image.shape)
            theirs = np.multiply(here.pixel, shape)
            ratio, how = (float(theirs[0] / mine[0]), float(theirs[1] / mine[1])), "by the fields of view"
        places = places_in(image.shape, shape, ratio)
        steps = tuple(wide * m / n for n, m, wide in zip(shape, image.shape, ratio, strict=True))
        return *_between(image[None], [np.zeros(shape), *places], (steps[0], steps[1])), how


def region_of_file(name: str) -> str:
    """Name of the region of a file: that of the file, without the ending."""
    return re.sub(r"\.[a-zA-Z0-9]+(\.gz)?$", "", name)


@briefly
@dataclass(frozen=True)
class RegionMask:
    """Regions of an image, each with a number of its own.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    labels : int array, shape (slice, ky, kx)
        0 outside, 1 and more in the regions.
    places : tuple of SliceGeometry, optional
        Of the slices, where the file says them.
    """

    name: str
    labels: NDArray[np.int64]
    places: tuple[SliceGeometry, ...] | None = None

    @classmethod
    def read(cls, path: Path) -> RegionMask:
        """Regions of a file: flags or whole numbers, as ``.npy`` with the axes of ``recon.npy``, or any other image.

        Raises
        ------
        InputError
            Where it cannot be read, or holds no regions.
        """
        try:
            held = read_images(path)
        except InputError as error:
            if error.field.rpartition(": ")[2] != "images":
                raise
            raise error.about(path.name, error.cure or _DRAWN) from error
        first = held.geometry
        places = None if first is None else tuple(first.slice_after(number) for number in range(held.n_slices))
        return cls(path.name, region_labels(held.images, path.name), places)

    @classmethod
    def given(cls, value: object, name: str = "region") -> RegionMask:
        """Regions of a file, where that is named (``~`` is the home folder), or of an array, as `read` and `of`."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str | os.PathLike):
            return cls.read(Path(value).expanduser())
        return cls.of(value, name)

    @classmethod
    def all_given(cls, value: object) -> list[RegionMask]:
        """Those of one file or array, or of a list of such."""
        several = listed_regions(value)
        return [cls.given(one, f"region {n}" if len(several) > 1 else "region") for n, one in enumerate(several, 1)]

    @property
    def region(self) -> str:
        """Name of its region, or the beginning of their names: that of the file, without the ending."""
        return region_of_file(self.name)

    @classmethod
    def of(cls, given: object, name: str = "region") -> RegionMask:
        """Regions of an array, (ky, kx) or (slice, ky, kx).

        Raises
        ------
        InputError
            Where it holds none.
        """
        array = number_array(name, given)
        if array.ndim not in (2, 3):
            raise InputError(name, f"shape {array.shape}", "(ky, kx) or (slice, ky, kx)")
        return cls(name, region_labels(array.reshape(-1, *array.shape[-2:]), name))

    def over(
        self,
        places: Sequence[SliceGeometry | None],
        shape: tuple[int, int, int],
        numbers: Sequence[int] = (),
        count: int = 0,
        *,
        whole: bool = True,
    ) -> NDArray[np.int64]:
        """The labels on the grid of an image.

        Where both headers say where slices lie, they count, and a pixel has the label that fills half of it; else the
        mask has to be on the same grid.

        Parameters
        ----------
        places : sequence of SliceGeometry or None
            Of the slices of the image.
        shape : tuple of int
            Of the image, (slice, ky, kx).
        numbers, count : sequence of int, int
            Of the slices of the image in a volume, and how many that has. Where they are given, a mask of the whole
            volume lies on these slices, as does one of as many slices in their order, and a mask of one slice on the
            first of them.
        whole : bool
            Whether all of its regions have to lie on these slices.

        Raises
        ------
        InputError
            For another grid, and for a mask that lies elsewhere.
        """
        known = [place for place in places if place is not None and place.placed]
        if self.places is not None and self.places[0].placed and known and len(known) == shape[0]:
            found = self._at(known, shape)
            if whole and not found.any():
                got = "regions that lie outside of the image, by the places in both headers"
                cure = "Draw it on the image that mri-design export RUN image.nii.gz writes."
                raise InputError(self.name, got, "a mask of the same place", cure)
            return found
        labels, held = self.labels, len(self.labels)
        if numbers and held == count:
            labels = labels[list(numbers)]
        elif numbers and held == 1:
            labels = np.pad(labels, ((0, len(numbers) - 1), (0, 0), (0, 0)))
        elif held == len(numbers):
            labels = labels[np.argsort(np.argsort(numbers))]
        if labels.shape != shape:
            own, others = (" x ".join(map(str, sides)) for sides in (labels.shape, shape))
            got, wanted = f"a mask of {own} pixels (slice, ky, kx)", "as the image, since not both say where they lie"
            cure = "Draw it on the image of the run (recon.npy, or what mri-design export RUN image.nii.gz writes)"
            by_slice = "choose the slices of a volume that it shows."
            raise InputError(self.name, got, f"{others}, {wanted}", f"{cure}; {by_slice}")
        return labels

    def _at(self, places: Sequence[SliceGeometry], shape: tuple[int, int, int]) -> NDArray[np.int64]:
        found = np.zeros(shape, dtype=np.int64)
        for label in np.unique(self.labels[self.labels > 0]):
            region = CompanionImages(self.name, (self.labels == label).astype(np.float32), self.places)
            for number, place in enumerate(places):
                found[number][region.at_places(place, shape[1:])[0] > 0.5] = label
        return found


def listed_regions(given: Any) -> list[Any]:
    """One file, array or mask of regions, or a list of such, as a list."""
    kinds = str | os.PathLike | np.ndarray | RegionMask
    several = isinstance(given, list | tuple) and given and all(isinstance(one, kinds) for one in given)
    return list(given) if several else [given]


_DRAWN = "Draw a region on the image of the run."


def region_labels(array: NDArray[np.generic], name: str) -> NDArray[np.int64]:
    """A mask as whole numbers.

    Raises
    ------
    InputError
        For values that are not whole, negative, not finite or complex, for no region and for too many.
    """
    wanted, outside = "flags, or whole numbers from 0, one for each region", "Write 0 where there is no region."
    if array.dtype.kind not in "buif":
        raise InputError(name, f"values of type {array.dtype}", wanted, "Make a mask of them: abs(image) > threshold.")
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(name, "NaN or infinite values", wanted, outside)
    if (values < 0).any():
        raise InputError(name, f"negative values, {values.min():g}", wanted, outside)
    if values.max() > _LARGEST:
        raise InputError(name, f"a label of {values.max():g}", f"{_LARGEST:g} at most", "Number the regions from 1.")
    labels = values.astype(np.int64)
    if (labels != values).any():
        broken = values[labels != values][0]
        raise InputError(name, f"values that are not whole, {broken:g}", wanted, "Take mask > 0.5 of it.")
    count = np.unique(labels[labels > 0]).size
    if not count:
        raise InputError(name, "zeros only", "a region of one pixel or more", _DRAWN)
    if count > MOST_REGIONS:
        raise InputError(name, f"{count} regions", f"{MOST_REGIONS} at most", "Is it an image, and no mask?")
    return labels


def _require_samples(held: object, name: str) -> None:
    """Refuse complex images where k-space is read: their Fourier transform, not they, has its energy at the centre.

    Raises
    ------
    InputError
        Naming the file.
    """
    if not isinstance(held, KSpaceData) or held.n_coils > 1:
        return
    first = held.kspace[0, 0]
    image = CentredFFT((first.shape[0], first.shape[1])).adjoint(first)
    if _at_the_centre(image) > max(_at_the_centre(first), MOSTLY):
        got = "a complex image: its Fourier transform has its energy at the centre"
        wanted = "k-space, as which complex arrays are read, or moduli of images"
        raise InputError(f"companion {name}", got, wanted, "Give numpy.abs of it.")


def _at_the_centre(samples: NDArray[np.complex64]) -> float:
    """Share of the energy within the middle eighth of both axes."""
    rows, columns = (slice(n // 2 - n // 16 - 1, n // 2 + n // 16 + 1) for n in samples.shape)
    power = np.abs(samples) ** 2
    return float(power[rows, columns].sum() / max(power.sum(), np.finfo(np.float32).tiny))


def readout_energies(scan: KSpaceData | TrajectoryData) -> NDArray[np.float64]:
    """Energy of the samples of every readout, (slice, coil, readout); zero where none was measured."""
    return np.asarray(np.sum(np.abs(scan.by_readout.astype(np.complex128)) ** 2, axis=-1))


def same_readouts(own: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether readouts that both have measured have the same energies, but for one factor."""
    if own.shape != other.shape:
        return False
    both = (own > 0) & (other > 0)
    ratios = own[both] / other[both]
    return ratios.size > 1 and bool(np.ptp(ratios) <= SAME_ENERGY * ratios.mean())


def companion_file(source: str) -> str:
    """The file that a companion is read from: of the folder of a run its image.

    Raises
    ------
    UsageError
        For neighbours within the scan, which are no file (`around.WORDS`).
    """
    if names_neighbours(source):
        raise UsageError(
            f"{option('with', source)}: only recon and design know slices and frames of the scan itself as other images"
        )
    return _with_slices(source)[0]


def _with_slices(source: str) -> tuple[str, SliceChoice | None]:
    """The file of ``FILE#SLICES``, of the folder of a run its image, and the slices where some are named."""
    name, mark, slices = source.rpartition("#")
    source, chosen = (name, SliceChoice(slices)) if mark and not Path(source).exists() else (source, None)
    image = Path(source) / OWN_IMAGE
    return str(image) if names_file(source) and image.is_file() else source, chosen


def companions_over(
    files: Iterable[CompanionImages],
    scan: KSpaceData | TrajectoryData,
    number: int = 0,
    count: int = 1,
    *,
    several: bool = False,
) -> tuple[Companion, ...]:
    """The companions of one slice; see `CompanionImages.over`."""
    found = (file.over(scan, number, count, several) for file in files)
    return tuple(one for one in found if one is not None)


def _image_of(scan: KSpaceData | TrajectoryData, recipe: Recipe, seed: int) -> NDArray[np.float32]:
    """Modulus of the posterior mean of all that one slice has measured, without non-local blocks."""
    rng, one = (
        np.random.default_rng([seed, 5]),
        calibrate(scan, recipe, ordinary=True).slice_model(**recipe.slice_settings),
    )
    if not scan.on_grid:
        return np.abs(reconstruct(one, None, "mean", recipe, rng, with_std=False).image).astype(np.float32)
    posterior = recipe.inference.engine().infer(one.model(), rng)
    return np.abs(posterior.mean * one.image_unit).astype(np.float32)


def _between(
    images: NDArray[np.float32],
    places: Sequence[NDArray[np.float64]],
    steps: tuple[float, float],
    covered: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float32], float]:
    """Images (slice, row, column) at places between their pixels, smoothed first where the new ones are larger.

    0 outside of the images, and of what is ``covered``; and the share of the places that are inside.
    """
    blur = [0.0, *(0.4 * np.sqrt(max(step**2 - 1, 0.0)) for step in steps)]
    smooth = scipy.ndimage.gaussian_filter(images, blur, mode="nearest") if any(blur) else images
    found = np.asarray(scipy.ndimage.map_coordinates(smooth, places, order=1, mode="nearest"), dtype=np.float32)
    within = [(at > -0.5) & (at < n - 0.5) for at, n in zip(places[1:], images.shape[1:], strict=True)]
    inside = np.all([*within, *([] if covered is None else [covered])], axis=0)
    return np.where(inside, found, 0).astype(np.float32), float(inside.mean())

"""Phase encoding along two directions of a 3-D scan: a candidate is one sample of the plane (ky, kz).

The readout runs across the plane. Its inverse FFT leaves one plane for every readout position, and all of them are
sampled alike: a sample of the plane is one readout of the scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.base import Array, FilterBand
from mri_design.operators.cartesian_fourier import CartesianSamples, CentredFFT, FourierLibrary
from mri_design.operators.elementary import Coils
from mri_design.readouts.base import Constraints, Half, Numbers, Readouts, kept_rows, refusal

LEAST_START, START_SHARE = 16, 128
"""Samples that a design begins with at least, and the part of the plane that they are."""
BLOCKS = 200
"""Parts of a plane, of which one is chosen after each inference."""


@dataclass(frozen=True)
class PlaneReadouts(Readouts):
    """The samples of a plane (ky, kz), numbered row by row: sample (y, z) has number ``y * n_z + z``.

    Parameters
    ----------
    grid : tuple of int
        (ky, kz).

    Raises
    ------
    InputError
        For a grid that is not two whole numbers.
    """

    grid: tuple[int, int]
    name = "plane"
    thinned = True
    draws = 8

    def __post_init__(self) -> None:
        require_grid("grid", self.grid, axes=2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky, kz)."""
        return self.grid

    @cached_property
    def frequencies(self) -> NDArray[np.int_]:
        """(ky, kz) of every sample, DC = 0, shape (size, 2)."""
        at = np.stack(np.divmod(np.arange(self.size), self.grid[1]), axis=1)
        return np.asarray(at - np.array(self.grid) // 2)

    @cached_property
    def radius(self) -> NDArray[np.float64]:
        """Distance of every sample from DC, 1 at the middle of the plane's edges, shape (size,)."""
        return np.asarray(np.hypot(*(self.frequencies / np.maximum(np.array(self.grid) / 2, 1)).T))

    @cached_property
    def outwards(self) -> NDArray[np.intp]:
        """All samples by their distance from DC, DC first; ties go to the lower number."""
        return np.argsort(self.radius.round(12), kind="stable")

    @cached_property
    def opposite(self) -> NDArray[np.intp]:
        """The sample at -k of every sample, on the periodic grid."""
        y, z = (self.frequencies[:, axis] for axis in (0, 1))
        rows, columns = self.grid
        return np.asarray(((rows // 2 - y) % rows) * columns + (columns // 2 - z) % columns, dtype=np.intp)

    @property
    def usual_block(self) -> int:
        """One of `BLOCKS`."""
        return max(1, self.size // BLOCKS)

    def constraints(self, **limits: Any) -> PlaneConstraints:
        """See `PlaneConstraints`."""
        return PlaneConstraints(self, **limits)

    def sample_radii(self, ids: Sequence[int], samples: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """(sample,), in ascending order."""
        return np.asarray(self.radius[sorted(ids)])

    def order_within_echo(self, order: str) -> NDArray[np.float64]:
        """The angle of every sample, as rings are shared among ``centre-out`` trains; kz, as bands are among others."""
        ky, kz = self.frequencies.T
        return np.asarray(np.arctan2(kz, ky) if order == "centre-out" else kz, dtype=np.float64)

    def centre_out(self, ids: Sequence[int]) -> list[int]:
        """From DC outwards, samples at one distance by their angle, so that jumps along a circle are short."""
        radius, angle = self.radius.round(12), self.order_within_echo("centre-out")
        return sorted(self.nearest_to_centre(ids, len(ids)), key=lambda sample: (radius[sample], angle[sample]))

    def mask(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Bool (ky, kz), true where a sample is among ``ids``.

        Raises
        ------
        InputError
            For numbers outside the plane, or named twice.
        """
        wanted = f"different sample numbers from 0 to {self.size - 1}"
        chosen = number_array("samples", ids, wanted=wanted)
        inside = chosen.ndim == 1 and chosen.dtype.kind in "iu" and bool(np.all((chosen >= 0) & (chosen < self.size)))
        if not inside or len(np.unique(chosen)) != len(chosen):
            raise InputError(field="samples", got=str(chosen.tolist())[:80], wanted=wanted)
        flags = np.zeros(self.size, dtype=bool)
        flags[chosen.astype(np.intp)] = True
        return flags.reshape(self.grid)

    def rows(
        self, ids: Sequence[int], maps: Array | None = None, library: FourierLibrary = "scipy"
    ) -> CartesianSamples:
        """X of some samples, which come in ascending order whatever the order of ``ids``."""
        return CartesianSamples(self.mask(ids), maps, library)

    def data(self, kspace: Array, ids: Sequence[int]) -> Array:
        """(coil, sample), samples in ascending order."""
        return np.ascontiguousarray(kspace[:, self.mask(ids)])

    def values(self, images: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> Array:
        """Values (count, coil, sample, 1): samples of the FFT of every coil's image."""
        coil_images = images[..., None, :, :] if maps is None else Coils(maps)(images)
        kspace = CentredFFT(self.grid, library)(coil_images)
        return np.asarray(kspace.reshape(*kspace.shape[:2], self.size, 1))

    def moments(
        self, inverse: Array, gram: Array | None, sites: Sequence[tuple[FilterBand, Array]]
    ) -> tuple[Numbers, Numbers] | None:
        """See `Readouts.moments`, shape (size, 1).

        Notes
        -----
        A sample of k-space is one row of the Fourier transform, which makes every circulant diagonal: P itself, and
        P A P, in which the sites of a band of filters count with their mean site precision.
        """
        if gram is None:
            return None
        spectrum = gram + sum(
            np.mean(weights, dtype=np.float64) / filters.stride**2 * np.abs(filters.response) ** 2
            for filters, weights in sites
        )
        first, second = (scipy.fft.fftshift(each).reshape(-1, 1) for each in (inverse, inverse**2 * spectrum))
        return first, second

    def start_for_posterior(self, target: int) -> int:
        """A 128th of the plane, 16 samples at least, and half of the target at most.

        The image's scale is seen in them; wider centres are wasted where samples are chosen one by one.
        """
        return min(target, max(1, min(max(LEAST_START, self.size // START_SHARE), target // 2)))

    def energies(self, data: Array, ids: Sequence[int]) -> NDArray[np.float64]:
        """Energy of every sample of ``data`` (coil, sample), summed over coils, in the order of ``ids``."""
        ascending = np.asarray(np.sum(np.abs(data) ** 2, axis=0, dtype=np.float64))
        return np.asarray(ascending[np.argsort(np.argsort(ids))])

    def measured_flags(self, samples: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The samples themselves, row by row."""
        return np.asarray(samples.reshape(-1))

    def opposite_of(self, candidate: int) -> int:
        """The sample at -k on the periodic grid."""
        return int(self.opposite[candidate])

    def central_run(self, ids: Sequence[int]) -> list[int]:
        """Samples of the largest ellipse around DC that is measured without a gap; all where DC is not."""
        flags = self.mask(ids).reshape(-1)
        missing = np.flatnonzero(~flags[self.outwards])
        run = self.outwards[: int(missing[0])] if len(missing) else self.outwards
        return sorted((run if len(run) else np.flatnonzero(flags)).tolist())

    def nearest_to_centre(self, ids: Sequence[int], count: int) -> list[int]:
        """Samples by their distance from DC."""
        flags = self.mask(ids).reshape(-1)
        return [int(sample) for sample in self.outwards[flags[self.outwards]][:count]]


@dataclass(frozen=True)
class PlaneConstraints(Constraints):
    """Which samples of a plane a sequence can and must measure. Nothing is asked by default.

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    shutter : bool
        Whether samples outside of the ellipse that touches the plane's edges are left out (elliptical scanning).
    partial_fourier : float, optional
        Share p of the plane that is kept along ky, 0.5 to 1: rows with ky >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of ky that partial Fourier keeps whole.
    calibration : int
        Side of the square around DC that every design measures at the start; 0 is none.
    centre : int
        That many samples nearest to DC are required too.

    What contradicts a scan is refused where its samples are known (`needed`).
    """

    plane: PlaneReadouts
    _: KW_ONLY
    shutter: bool = False
    partial_fourier: float | None = None
    whole_half: Half = "positive"
    calibration: int = 0
    centre: int = 0

    def with_calibration(self, side: int) -> PlaneConstraints:
        """See `Constraints.with_calibration`."""
        return replace(self, calibration=max(side, self.calibration))

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Samples that shutter and partial Fourier leave, (size,)."""
        plane = self.plane
        kept = kept_rows(plane.frequencies[:, 0], plane.grid[0], self.partial_fourier, self.whole_half)
        return kept & (plane.radius <= 1) if self.shutter else kept

    @cached_property
    def calibration_region(self) -> NDArray[np.bool_]:
        """The square around DC, (size,); on a smaller plane all of its side."""
        inside = np.ones(self.plane.size, dtype=bool)
        for axis, n in enumerate(self.plane.grid):
            side = min(self.calibration, n)
            k = self.plane.frequencies[:, axis]
            inside &= (k >= -(side // 2)) & (k < side - side // 2)
        return inside

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Samples that may be measured at all, (size,)."""
        return self.kept.copy()

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Samples that no design may lack, from DC outwards.

        Raises
        ------
        InputError
            Where one of them may not be measured, or holds no data.
        """
        free = measurable & self.kept
        flags = self.calibration_region.copy()
        flags[self.plane.outwards[: max(self.centre, forced)]] = True
        lost = int((flags & ~free).sum())
        if lost:
            got = f"{int(flags.sum())} samples, of which {lost} hold no data or may not be measured"
            wanted = "samples inside the shutter and the kept part of k-space"
            cure = "Take a smaller region, or keep more of k-space."
            raise refusal("calibration region", got, wanted, cure)
        outwards = self.plane.outwards
        return tuple(outwards[flags[outwards]].tolist())

    def start_size(self, asked: int, target: int, calibration: int = 0) -> int:
        """See `Constraints.start_size`; the calibration region and the forced centre are among them."""
        required = len(self.needed(np.ones(self.plane.size, dtype=bool)))
        count, few = max(asked, calibration, required), required <= target
        if count > target:
            got = f"{count} (of which {required} are required)" if few else str(required)
            wanted = f"at most the number of samples, {target}"
            cure = f"Ask for more samples, or for a smaller {'start' if few else 'calibration region'}."
            raise refusal("start samples" if few else "required samples", got, wanted, cure)
        return count

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Samples to measure before the first decision: those required, and the nearest to DC up to ``count`` in all.

        Raises
        ------
        InputError
            Where a required sample cannot be measured, or there are not that many.
        """
        needed = self.needed(measurable, forced)
        free = measurable & self.kept
        if not 1 <= count <= int(free.sum()):
            raise refusal("start samples", str(count), f"1 to {int(free.sum())}")
        flags = np.isin(np.arange(self.plane.size), needed)
        outwards = self.plane.outwards
        others = outwards[free[outwards] & ~flags[outwards]]
        flags[others[: max(count - len(needed), 0)]] = True
        return tuple(outwards[flags[outwards]].tolist())

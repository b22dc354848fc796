"""Calibration of scans: their noise, then their coil maps, on a grid and along a trajectory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from mri_design.brief import briefly
from mri_design.calibration.coils import (
    back_from,
    central,
    compression,
    image_units,
    inverse_root,
    maps_before_mixing,
    mix_coils,
)
from mri_design.calibration.noise import least_noise, refuse_copies, rim_noise
from mri_design.errors import InputError, option, require_instance
from mri_design.experiment.recipe import Recipe, recipe_from
from mri_design.kinds import KINDS
from mri_design.operators.conventions import to_image
from mri_design.scan.calibration import (
    calibrates_itself,
    calibration_width,
    coil_combined,
    compressed,
    estimate_coil_maps,
    find_centre,
    gapless_square,
    gridded_centre,
    measure_noise,
    prewhiten,
)
from mri_design.scan.calibration import calibration_lines as gapless_centre
from mri_design.scan.data import KSpaceData, Scan, TrajectoryData
from mri_design.scan.provenance import LEAST_EXPLAINED, MapsOrigin, NoiseOrigin, Provenance
from mri_design.scan.sampling import Sampling, require_dynamic_range

if TYPE_CHECKING:  # models are imported where they are made: info needs none
    from mri_design.calibration.maps import CoilMapEstimate, OwnMaps
    from mri_design.model.slice import SliceModel
    from mri_design.operators.base import Array


ORDINARY = 1e10
"""Samples up to this and down to its inverse are calculated with as they are."""


@briefly
@dataclass(frozen=True)
class PreparedScan:
    """A scan with known noise and coil maps, on a grid or along a trajectory, ready for models.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Calibrated (whitened where there are several coils of known covariance), with where noise and maps are from in
        their provenance.
    unit : float
        What samples of these data are multiplied by to be in the input's units: 1, but for amplitudes far from 1, which
        are scaled to ordinary numbers; white coils stay in units of the noise. For images there is `image_unit`.
    mixing : complex array, shape (coil, coil), optional
        What samples as read were multiplied by over the coils, to be those of ``data``. None is the identity, or along
        a trajectory the factor 1 / ``unit``.
    own_maps : OwnMaps, optional
        Estimates the coil maps of a slice from those of its lines that have been measured, where maps are not known:
        ``data`` has none then, and images have no units before `knowing`.
    calibration_lines : int
        Centre lines that the coil maps were estimated from, at most, or of a plane the side of the square; 0 where no
        calibration was needed. A design has to start with them.
    maps_from : int, optional
        Side of the scan's own centre that coil maps were estimated from, 0 where they are from other samples; None
        where they are given, or there is one coil.
    """

    data: Scan
    unit: float = 1.0
    mixing: Array | None = None
    own_maps: OwnMaps | None = None
    calibration_lines: int = 0
    maps_from: int | None = None

    @property
    def provenance(self) -> Provenance:
        """Where noise and coil maps are from, and what speaks against them."""
        return self.data.provenance

    @property
    def maps_as_read(self) -> Array | None:
        """Coil maps (slice, coil, ky, kx) of the coils that were read, not of white ones; None of one coil."""
        return maps_before_mixing(self.mixing, self.data.coil_maps)

    def slice_model(self, index: int = 0, recipe: Recipe | None = None) -> SliceModel:
        """One slice as the model takes it, by the default recipe where none is given."""
        recipe = recipe_from(recipe)
        made = (
            self.data.select_slice(index)
            .encoded(recipe.design.encoding)
            .slice_model(prior=recipe.blocks(), library=recipe.fft, phase=recipe.phase.prior(), own_maps=self.own_maps)
        )
        one_off_grid = made.n_coils == 1 and not self.data.on_grid
        return replace(made, mixing=self.mixing, unit=self.unit, maps=None if one_off_grid else made.maps)

    def image_unit(self, index: int) -> float | Array:
        """Factor that brings images of a slice to the input's units, pixel by pixel of white coils.

        Such images are as bright as the root-sum-of-squares of the coil images as read, whatever the noise of the coils
        (`image_units`).
        """
        if self.mixing is None:
            return self.unit
        return image_units(self.mixing, None if self.data.coil_maps is None else self.data.coil_maps[index])

    def knowing(self, estimate: CoilMapEstimate | None) -> PreparedScan:
        """The scan of one slice with the coil maps that were estimated from what was measured of it.

        Itself where there was nothing to estimate.
        """
        if estimate is None:
            return self
        return replace(self, data=with_estimates(cast(KSpaceData, self.data), [estimate]), own_maps=None, maps_from=0)

    def as_prepared(self, samples: Array) -> Array:
        """Further samples (coil, ky, kx) of the same scan as read, as ``data`` has its own."""
        return samples if self.mixing is None else mix_coils(self.mixing, samples[np.newaxis])[0]

    def as_read(self, kspace: Array, maps: Array | None, noise_variance: float) -> dict[str, Array | float]:
        """Samples of ``data`` with what is known of them, in the input's coils and units, by the names of archives.

        Parameters
        ----------
        kspace : complex array, shape (coil, ky, kx)
            As prepared.
        maps : complex array, shape (coil, ky, kx), or None
            As prepared; None for one coil.
        noise_variance : float
            As prepared.
        """
        if self.mixing is not None and self.mixing.shape[0] < self.mixing.shape[1]:
            got = f"{len(self.mixing)} of {self.mixing.shape[1]} coils"
            wanted = "all coils, where samples are written as the scanner measured them"
            cure = f"Leave out {option('coils.compress_coils')} here, and give it to recon."
            raise InputError("coils.compress_coils", got, wanted, cure)
        seen = None if maps is None else maps_before_mixing(self.mixing, maps[np.newaxis])
        known: dict[str, Array | float] = {} if seen is None else {"coil_maps": seen}
        if self.mixing is None:
            return {"kspace": kspace[np.newaxis], "noise_variance": noise_variance, **known}
        back = back_from(self.mixing)
        read = {"kspace": mix_coils(back, kspace[np.newaxis]), **known}
        if seen is None:
            return {**read, "noise_variance": noise_variance * float(np.abs(back[0, 0])) ** 2}
        return {**read, "noise_covariance": noise_variance * (back @ back.conj().T)}

    def reference(self, index: int) -> Array | None:
        """The image to compare with: the simulated truth, or the fully sampled scan's own; None where lines miss.

        The scan's own image is one per scan, whatever lines a run calibrates with: in the input's units (`image_unit`)
        it has the modulus that maps of the 24 central lines combine from all lines. Its phase is that of images under
        the maps of these data, with which it is compared.
        """
        if self.data.reference is not None:
            return self.data.reference[index]
        if not (isinstance(self.data, KSpaceData) and self.data.fully_sampled):
            return None
        if index not in self._own_images:
            self._own_images[index] = self._own_image(self.data.select_slice(index), self.image_unit(index))
        return self._own_images[index]

    @cached_property
    def _own_images(self) -> dict[int, Array]:
        return {}

    def _own_image(self, data: KSpaceData, unit: float | Array) -> Array:
        own = coil_combined(data)[0]
        usual = calibration_width(data) if self.maps_from is not None and calibrates_itself(data) else self.maps_from
        if self.maps_from == usual:
            return np.asarray(own)
        maps = estimate_coil_maps(replace(data, coil_maps=None)).coil_maps
        assert maps is not None
        size = np.abs(np.sum(maps[0].conj() * to_image(data.kspace[0]), axis=0))
        if self.mixing is not None:
            size = size * image_units(self.mixing, maps[0]) / unit
        modulus = np.abs(own)
        return np.asarray(np.where(modulus > 0, own / np.where(modulus > 0, modulus, 1), 1) * size, dtype=np.complex64)


def prepare(
    data: Scan,
    recipe: Recipe | None = None,
    *,
    calibration_lines: int | None = None,
    measured: Array | None = None,
    ordinary: bool = False,
    directions: Array | None = None,
    growing: bool = False,
) -> PreparedScan:
    """Estimate what is unknown: noise (variance, or covariance and whitening for several coils), then coil maps.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        As read.
    recipe : Recipe, optional
        Given noise and calibration settings; the default recipe without one.
    calibration_lines : int, optional
        Centre lines for the coil maps instead of the recipe's number.
    measured : bool array, shape (ky,), (ky, kx) or (readout,), optional
        Lines or samples that coil calibration may look at (a mask's); all measured ones by default. Along a trajectory
        the readouts that are kept at all. The noise is the scanner's, not the mask's: it is always estimated from
        everything that was measured.
    ordinary : bool
        Whether amplitudes far from 1 (beyond 1e10 or its inverse) stay scaled to ordinary numbers, in which case images
        have to be multiplied by `PreparedScan.unit`, as they do along a trajectory. Otherwise the data keep their
        units; models of such data calculate in double precision.
    directions : complex array, shape (coil, coil), optional
        `coil_directions` of the white coils of a volume, of which the data are one slice.
    growing : bool
        Whether coil maps that would be estimated from the lines of the data, one slice, are left to be estimated from
        those that have been measured when they are asked for (`PreparedScan.own_maps`): ``calibration_lines`` is then
        how many centre lines a design begins with.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    require_instance(Scan, wanted="k-space data", cure="load(FILE).data has them.", data=data)
    recipe = recipe_from(recipe)
    if not isinstance(data, KSpaceData):
        assert isinstance(data, TrajectoryData)
        return _prepared_samples(data, recipe, data if measured is None else data.select_readouts(measured))
    scan = with_known_noise(data, recipe, ordinary=ordinary)
    data, mixing = cast(KSpaceData, scan.data), scan.mixing
    lines = calibration_count(calibration_lines, recipe, data.grid_shape[0])
    if recipe.coils.compress_coils is not None and recipe.coils.compress_coils < data.n_coils:
        looked = data if measured is None else only_measured(data, measured)
        combined = compression(looked.kspace, recipe.coils.compress_coils, lines)
        mixing = combined.matrix @ (np.eye(data.n_coils) if mixing is None else mixing)
        data = compressed(data, combined)
        directions = None if directions is None else combined.directions(directions)
    scan = replace(scan, data=data, mixing=mixing)
    if growing and estimates_own_maps(data):
        from mri_design.calibration.maps import OwnMaps

        lines = min(lines, data.grid_shape[0])
        own, data = (
            OwnMaps(recipe.coils.maps, data.noise_variance or 0.0),
            data.known(maps=MapsOrigin(source="growing")),
        )
        return replace(scan, data=data, own_maps=own, calibration_lines=lines, maps_from=0)
    return _with_maps(scan, data if measured is None else only_measured(data, measured), lines, recipe, directions)


def _with_maps(
    scan: PreparedScan,
    allowed: KSpaceData,
    lines: int,
    recipe: Recipe,
    directions: Array | None = None,
    *,
    centre: int | None = None,
) -> PreparedScan:
    """A scan of known noise with coil maps from what may be looked at, and what speaks against them.

    Where the data are one slice of a scan whose smallest ``centre`` is known, ESPIRiT's maps are not made.
    """
    data = cast(KSpaceData, scan.data)
    if takes_lines_with_gaps(allowed, lines, recipe, centre):
        data = with_estimates(data, maps_with_gaps(allowed, lines, recipe, directions))
        return replace(scan, data=data, calibration_lines=min(lines, gapless_centre(allowed)), maps_from=0)
    origin, looked_at = origin_of_maps(allowed, lines, centre)
    if looked_at and KINDS[recipe.design.encoding].square:  # a square, of which every sample has to be there
        looked_at = calibration_width(allowed, looked_at, centre)
    maps_from = None
    if data.n_coils > 1 and data.coil_maps is None:
        maps_from = calibration_width(allowed, lines, centre) if calibrates_itself(allowed) else 0
        if centre is None:
            data = replace(data, coil_maps=estimate_coil_maps(allowed, lines=lines, directions=directions).coil_maps)
    data = with_checked_maps(data, allowed, origin, maps_from or 0)
    return replace(scan, data=data, calibration_lines=looked_at, maps_from=maps_from)


def estimates_own_maps(data: KSpaceData) -> bool:
    """Whether coil maps have to be estimated from a scan's own lines: neither given nor of a calibration scan."""
    return data.n_coils > 1 and data.coil_maps is None and calibrates_itself(data)


def with_checked_maps(data: KSpaceData, looked_at: KSpaceData, origin: MapsOrigin, width: int) -> KSpaceData:
    """White data with the origin of their coil maps, and what the strongest slice says of them.

    Of maps from the scan's own lines that is how well its centre predicts coils of it, of maps that came with the scan,
    which nothing was held against yet (`with_given_maps`), how much of the samples they explain.

    Parameters
    ----------
    data : KSpaceData
        With coil maps, or with centre lines to estimate them from.
    looked_at : KSpaceData
        What may be looked at, with the maps that came with the scan.
    origin : MapsOrigin
        Of the maps (`origin_of_maps`).
    width : int
        Side of the measured centre that maps are estimated from; 0 where they are not.
    """
    if data.n_coils == 1:
        return data.known(maps=origin)
    from mri_design.calibration.maps import error_of_held_coils, is_bad
    from mri_design.scan.calibration import explained_by_maps

    number, came = _strongest(looked_at), looked_at.coil_maps
    if width:
        inner = np.zeros(data.grid_shape, dtype=bool)
        central(inner, width)[:] = True
        samples = looked_at.samplings[number].samples & inner
        missed = error_of_held_coils(looked_at.kspace[number], samples, data.noise_variance or 0.0)
        origin = replace(origin, error=missed, bad=is_bad(missed, data.n_coils))
    elif came is not None and origin.explained is None:
        if not came.any():
            cure = f"Leave them out, or give maps as {option('maps', 'FILE')}."
            raise InputError("coil_maps", "zeros only", "coil maps", cure)
        explained = explained_by_maps(looked_at.select_slice(number))
        origin = replace(origin, explained=explained, bad=explained < LEAST_EXPLAINED)
    return data.known(maps=origin)


def causes_of_bad_maps(data: Scan) -> tuple[str, ...]:
    """What may be wrong with coils that predict each other badly, as far as the samples leave it open.

    Where coils are predicted well once those of odd and of even lines count as different coils, it is alternate lines
    and nothing else; otherwise it is not those. The centre of k-space is a cause where the samples do not show it.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Of white coils.

    Returns
    -------
    tuple of {"alternate lines", "motion", "coils", "centre", "axes"}
    """
    from mri_design.calibration.maps import error_of_held_coils, is_bad

    if not isinstance(data, KSpaceData):
        return "motion", "coils"
    number, odd = _strongest(data), np.arange(data.grid_shape[0])[:, np.newaxis] % 2 == 1
    kspace, samples = data.kspace[number], data.samplings[number].samples
    apart = np.repeat([samples & odd, samples & ~odd], data.n_coils, axis=0)
    if not is_bad(error_of_held_coils(np.tile(kspace, (2, 1, 1)), apart, data.noise_variance or 0.0), data.n_coils):
        return ("alternate lines",)
    centre = ("centre",) if find_centre(kspace, samples).known_by == "assumed" else ()
    return "motion", "coils", *centre, "axes"


def _strongest(data: KSpaceData) -> int:
    """The slice with the most energy."""
    return int(np.argmax([np.linalg.norm(stack) for stack in data.kspace]))


def with_estimates(data: KSpaceData, estimates: Sequence[CoilMapEstimate]) -> KSpaceData:
    """The data with the coil maps of their slices, and the origin of those: of the first that predict badly, if any."""
    told = next((estimate for estimate in estimates if estimate.predicts_badly), estimates[0])
    maps = np.stack([estimate.maps for estimate in estimates])
    return replace(data, coil_maps=maps).known(maps=MapsOrigin.of_estimate(told))


def takes_lines_with_gaps(data: KSpaceData, lines: int, recipe: Recipe, centre: int | None = None) -> bool:
    """Whether coil maps are estimated from all lines measured near the centre, with their gaps, by NLINV.

    Parameters
    ----------
    data : KSpaceData
        What may be looked at.
    lines : int
        Gapless centre lines that may be used at most.
    recipe : Recipe
        Names the method.
    centre : int, optional
        Side of the gapless square of all slices (`gapless_square`), where the data are one of them.
    """
    from mri_design.calibration.maps import method_for

    centre = gapless_centre(data) if centre is None else centre
    return estimates_own_maps(data) and method_for(centre, lines, recipe.coils.maps) == "nlinv"


def maps_with_gaps(
    data: KSpaceData, lines: int, recipe: Recipe, directions: Array | None = None
) -> list[CoilMapEstimate]:
    """Coil maps of white slices by NLINV, from all samples that were measured.

    Where more gapless centre lines were measured than may be used, those that may be used are all that is looked at; of
    a plane, the square of as many samples.

    Raises
    ------
    InputError
        Where too few were measured around the centre.
    """
    from mri_design.calibration.maps import maps_from_lines

    looked_at = np.ones(data.grid_shape, dtype=bool)
    if gapless_centre(data) > lines:
        near = [np.abs(np.arange(n) - n // 2 + lines // 2 - (lines - 1) / 2) < lines / 2 for n in data.grid_shape]
        looked_at = np.logical_and.outer(near[0], near[1] | (not KINDS[recipe.design.encoding].square))
    return [
        maps_from_lines(
            stack,
            sampling.samples & looked_at,
            method="nlinv",
            directions=directions,
            noise_variance=data.noise_variance or 0.0,
        )
        for stack, sampling in zip(data.kspace, data.samplings, strict=True)
    ]


def origin_of_maps(data: KSpaceData, lines: int, measured: int | None = None) -> tuple[MapsOrigin, int]:
    """Origin of a scan's coil maps, and how many of its own centre lines at most they are estimated from.

    Parameters
    ----------
    data : KSpaceData
        The scan, or a slice of it.
    lines : int
        Centre lines at most.
    measured : int, optional
        Side of the measured centre that all slices have, see `calibration_width`.

    Raises
    ------
    InputError
        Where there is not enough data to estimate them.
    """
    if data.n_coils == 1 or data.coil_maps is not None:
        return _known_maps(data), 0
    width = calibration_width(data, lines, measured)
    own = calibrates_itself(data)
    return MapsOrigin(source="espirit" if own else "calibration scan", lines=width if own else 0), lines if own else 0


def _known_maps(data: Scan) -> MapsOrigin:
    """The origin of maps that need no estimate: those of one coil, or given ones."""
    if data.n_coils == 1:
        return MapsOrigin(source="one coil")
    known = data.provenance.maps
    return known if known.source == "given" else MapsOrigin(source="given")


def calibration_count(asked: int | None, recipe: Recipe, n_lines: int) -> int:
    """Number of ACS lines that coil maps are estimated from, on a grid of ``n_lines``: as asked, or the recipe's."""
    return asked or min(recipe.coils.most_lines, n_lines)


def with_known_noise(data: Scan, recipe: Recipe, *, ordinary: bool = False, used: Scan | None = None) -> PreparedScan:
    """A scan with its noise known: from recipe, scanner, file or data; coil maps are as they were.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        As read; noise is estimated from all of it.
    recipe : Recipe
        Its noise comes first.
    ordinary : bool
        As of `prepare`.
    used : KSpaceData or TrajectoryData, optional
        The part of the data that is returned; all by default.

    Raises
    ------
    InputError
        Where no receiver can have measured the samples, or no noise is left to measure.
    """
    require_dynamic_range(data.kspace)
    strongest, used = float(np.abs(data.kspace).max()), data if used is None else used
    far = ordinary and strongest > 0 and not 1 / ORDINARY < strongest < ORDINARY
    scale = 2.0 ** -round(np.log2(strongest)) if far else 1.0  # single precision could not hold the squares
    known = used if scale == 1 else used.scaled(scale)
    dead = tuple(coil for coil in range(known.n_coils) if not known.kspace[:, coil].any())
    given, covariance, origin = recipe.noise.variance, known.noise_covariance, known.provenance.noise
    variance = known.noise_variance if given is None else given * scale**2
    if known.on_grid and known.n_coils > 1 and (variance is not None or covariance is not None):
        refuse_copies(known.kspace)  # where noise is measured they are looked for, too
    # First, where the noise is from: what is given counts before what was measured, and that before estimates.
    if given is not None:
        covariance, origin = None, NoiseOrigin(source="given", given=given)
        if isinstance(known, KSpaceData):
            with suppress(InputError):  # where the data show no noise
                found = measure_noise(known).scaled(1 / scale**2)
                origin = replace(origin, estimate=found, doubt=found.against(given))
    elif covariance is not None:
        origin = replace(origin, source="readouts") if origin.source == "unknown" else origin
    elif variance is not None:
        origin = NoiseOrigin(source="file")
    elif isinstance(known, KSpaceData):
        measured = measure_noise(known)
        found, covariance = measured.scaled(1 / scale**2), measured.covariance
        doubt: Literal["", "signal"] = "signal" if found.reason else ""
        origin = replace(origin, source="scan", estimate=found, doubt=doubt)
    else:
        assert isinstance(data, TrajectoryData)
        estimate, signal = rim_noise(data.kspace, data.trajectory, data.grid_shape)
        variance, origin = estimate * scale**2, replace(origin, source="rim", doubt="falls" if signal else "")
    # Second, coils of independent noise.
    known = replace(
        known,
        noise_variance=None if covariance is not None else variance,
        noise_covariance=covariance,
    )
    mixing: Array | None = scale * np.eye(known.n_coils) if known.on_grid and scale != 1 else None
    unit = 1 / scale
    if covariance is not None and known.n_coils == 1:  # which keeps its units
        known = replace(known, noise_variance=float(covariance[0, 0].real), noise_covariance=None)
    elif covariance is not None:  # white coils are in units of the noise, whatever the scale
        known, unit, mixing = prewhiten(known), 1.0, scale * inverse_root(covariance)
    # Finally, at least as much as can be reckoned with.
    direct = known.n_coils == 1 and known.on_grid
    least, limit = least_noise(known.kspace, math.prod(known.readouts.grid), direct=direct)
    assert known.noise_variance is not None
    if known.noise_variance < least:
        origin = replace(origin, raised=float(np.sqrt(least / known.noise_variance)), limit=limit)
        known = replace(known, noise_variance=least)
    return PreparedScan(known.known(noise=origin, dead_coils=dead if len(dead) < known.n_coils else ()), unit, mixing)


def only_measured(data: KSpaceData, measured: Array) -> KSpaceData:
    """The data with every other line (or sample, of a mask with two axes) emptied, as if it had never been acquired."""
    keep = data.measured[:, None] & (measured if measured.ndim == 2 else measured[:, None])
    return replace(data, kspace=np.where(keep, data.kspace, 0), measured=np.asarray(keep.any(axis=1)))


def _prepared_samples(data: TrajectoryData, recipe: Recipe, used: TrajectoryData) -> PreparedScan:
    """Samples along a trajectory, ready for models: the part ``used``, with the noise of all.

    Coils are whitened by the covariance of the scanner's noise readouts. Without one they count as equally noisy and
    independent, as in scans of lines with holes: the outermost samples hold signal too, whose correlations would shade
    the image if they were taken for those of noise.
    """
    scan = with_known_noise(data, recipe, ordinary=True, used=used)
    origin, centre, lines = origin_of_sample_maps(cast(TrajectoryData, scan.data), recipe)
    known = scan.data.known(maps=origin)
    if centre is not None:
        known = replace(known, coil_maps=estimate_coil_maps(centre, lines=lines).coil_maps)
    return replace(scan, data=known)


def origin_of_sample_maps(data: TrajectoryData, recipe: Recipe) -> tuple[MapsOrigin, KSpaceData | None, int]:
    """Origin of the coil maps of white data; the gridded centre to estimate them from, and its side.

    Without a centre (None, 0) where nothing has to be estimated.

    Raises
    ------
    InputError
        Where there is not enough data to estimate them.
    """
    if data.n_coils == 1 or data.coil_maps is not None:
        return _known_maps(data), None, 0
    centre = gridded_centre(data, recipe.coils.most_lines)
    lines = int(centre.measured.sum())
    calibration_width(centre, lines)
    return MapsOrigin(source="gridded", lines=lines), centre, lines


def expected_calibration(
    part: Scan, recipe: Recipe, n_lines: int = 0, samplings: Sequence[Sampling] = ()
) -> PreparedScan:
    """A scan with its noise known, and the origin of the coil maps that `prepare` would make: few are made for it.

    Parameters
    ----------
    part : KSpaceData or TrajectoryData
        One slice of a scan on a grid, or a scan along a trajectory.
    recipe : Recipe
        Noise and calibration settings.
    n_lines : int
        Lines of the grid.
    samplings : sequence of Sampling
        Of all slices of the scan.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    scan = with_known_noise(part, recipe, ordinary=True)
    known = scan.data
    if isinstance(known, TrajectoryData):
        return replace(scan, data=known.known(maps=origin_of_sample_maps(known, recipe)[0]))
    assert isinstance(known, KSpaceData)
    lines = calibration_count(None, recipe, n_lines)
    return _with_maps(scan, known, lines, recipe, centre=gapless_square(samplings))

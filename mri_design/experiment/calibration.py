"""Calibration of scans: their noise, then their coil maps, on a grid and along a trajectory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mri_design.brief import briefly
from mri_design.calibration.centre import central
from mri_design.calibration.noise import least_noise, refuse_copies, rim_noise
from mri_design.calibration.whitening import (
    back_from,
    compression,
    image_units,
    inverse_root,
    maps_before_mixing,
    mix_coils,
)
from mri_design.errors import InputError, option, require_instance
from mri_design.experiment.recipe import Recipe, recipe_or_default
from mri_design.kinds import KINDS
from mri_design.operators.conventions import to_image
from mri_design.scan.calibration import (
    NOISE_FROM,
    calibrates_itself,
    calibration_width,
    coil_combined,
    compressed,
    estimate_coil_maps,
    gridded_centre,
    measure_noise,
    prewhiten,
)
from mri_design.scan.calibration import calibration_lines as gapless_centre
from mri_design.scan.data import KSpaceData, Scan, TrajectoryData
from mri_design.scan.kspace_centre import find_centre
from mri_design.scan.sampling import require_dynamic_range

if TYPE_CHECKING:  # models are imported where they are made: info needs none
    from mri_design.calibration.maps import CoilMapEstimate, OwnMaps
    from mri_design.model.slice import SliceModel
    from mri_design.operators.base import Array


AnyScan = TypeVar("AnyScan", bound=Scan)


ORDINARY = 1e10
"""Samples up to this and down to its inverse are calculated with as they are."""


LEAST_EXPLAINED = 0.95
"""Coil maps that explain less of the coil images than this belong to another scan, or lie otherwise."""


@dataclass(frozen=True)
class Calibrated:
    """A scan with known noise and coil maps, ready for models, on a grid or along a trajectory.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Calibrated (whitened where there are several coils of known covariance).
    noise_source, maps_source : str
        Where the noise and the coil maps are from, in words.
    unit : float
        What samples of these data are multiplied by to be in the input's units: 1, but for amplitudes far from 1, which
        are scaled to ordinary numbers; white coils stay in units of the noise. For images there is `image_unit`.
    mixing : complex array, shape (coil, coil), optional
        What samples as read were multiplied by over the coils, to be those of ``data``. None is the identity, or along
        a trajectory the factor 1 / ``unit``.
    own_maps : OwnMaps, optional
        Estimates the coil maps of a slice from those of its lines that have been measured, where maps are not known:
        ``data`` has none then, and images have no units before `PreparedScan.knowing`.
    """

    data: KSpaceData | TrajectoryData
    noise_source: str = ""
    maps_source: str = ""
    unit: float = 1.0
    mixing: Array | None = None
    own_maps: OwnMaps | None = None

    @property
    def noise_doubt(self) -> str:
        """Why the noise, estimated from the data, may be too large; empty where nothing says so."""
        return str(self.data.header.get(NOISE_DOUBT, ""))

    @property
    def noise_raised(self) -> str:
        """Why the noise is taken to be more than was given or estimated; empty where it is not."""
        return str(self.data.header.get(NOISE_RAISED, ""))

    @property
    def dead_coils(self) -> str:
        """Which coils measured nothing, in words; empty where all measured something."""
        return str(self.data.header.get(DEAD_COILS, ""))

    @property
    def maps_doubt(self) -> str:
        """What speaks against the coil maps that were estimated; empty where nothing does."""
        return str(self.data.header.get(MAPS_DOUBT, ""))

    @property
    def maps_as_read(self) -> Array | None:
        """Coil maps (slice, coil, ky, kx) of the coils that were read, not of white ones; None of one coil."""
        return maps_before_mixing(self.mixing, self.data.coil_maps)

    def slice_model(self, index: int = 0, recipe: Recipe | None = None) -> SliceModel:
        """One slice as the model takes it, by the default recipe where none is given."""
        recipe = recipe_or_default(recipe)
        made = (
            self.data.select_slice(index)
            .encoded(recipe.design.encoding)
            .slice_model(prior=recipe.blocks(), library=recipe.fft, phase=recipe.phase.prior(), own_maps=self.own_maps)
        )
        return replace(made, mixing=self.mixing, unit=self.unit)

    def image_unit(self, index: int) -> float | Array:
        """Factor that brings images of a slice to the input's units, pixel by pixel of white coils.

        Such images are as bright as the root-sum-of-squares of the coil images as read, whatever the noise of the coils
        (`image_units`).
        """
        if self.mixing is None:
            return self.unit
        return image_units(self.mixing, None if self.data.coil_maps is None else self.data.coil_maps[index])


@briefly
@dataclass(frozen=True)
class PreparedScan(Calibrated):
    """A scan on a grid with known noise and coil maps, ready for models.

    Parameters
    ----------
    data, noise_source, maps_source, unit, mixing, own_maps
        As `Calibrated` has them.
    calibration_lines : int
        Centre lines that the coil maps were estimated from, at most, or of a plane the side of the square; 0 where no
        calibration was needed. A design has to start with them.
    maps_from : int, optional
        Side of the scan's own centre that coil maps were estimated from, 0 where they are from other samples; None
        where they are given, or there is one coil.
    """

    data: KSpaceData
    calibration_lines: int = 0
    maps_from: int | None = None

    def knowing(self, estimate: CoilMapEstimate | None) -> PreparedScan:
        """The scan of one slice with the coil maps that were estimated from what was measured of it.

        Itself where there was nothing to estimate.
        """
        if estimate is None:
            return self
        data = with_estimates(self.data, [estimate])
        return replace(self, data=data, own_maps=None, maps_source=estimate.text, maps_from=0)

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
        if not self.data.fully_sampled:
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
    data: KSpaceData,
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
    data : KSpaceData
        As read.
    recipe : Recipe, optional
        Given noise and calibration settings; the default recipe without one.
    calibration_lines : int, optional
        Centre lines for the coil maps instead of the recipe's number.
    measured : bool array, shape (ky,) or (ky, kx), optional
        Lines or samples that coil calibration may look at (a mask's); all measured ones by default. The noise is the
        scanner's, not the mask's: it is always estimated from everything that was measured.
    ordinary : bool
        Whether amplitudes far from 1 (beyond 1e10 or its inverse) stay scaled to ordinary numbers, in which case images
        have to be multiplied by `PreparedScan.unit`. Otherwise the data keep their units; models of such data calculate
        in double precision.
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
    require_instance(KSpaceData, wanted="k-space data", cure="load(FILE).data has them.", data=data)
    recipe = recipe_or_default(recipe)
    data, noise, unit, mixing = with_known_noise(data, recipe, ordinary=ordinary)
    lines = calibration_count(calibration_lines, recipe, data.grid_shape[0])
    if recipe.coils.compress_coils is not None and recipe.coils.compress_coils < data.n_coils:
        looked = data if measured is None else only_measured(data, measured)
        combined = compression(looked.kspace, recipe.coils.compress_coils, lines)
        mixing = combined.matrix @ (np.eye(data.n_coils) if mixing is None else mixing)
        data = compressed(data, combined)
        directions = None if directions is None else combined.directions(directions)
    if growing and estimates_own_maps(data):
        from mri_design.calibration.maps import OwnMaps

        lines = min(lines, data.grid_shape[0])
        source, own = "estimated from the lines measured", OwnMaps(recipe.coils.maps, data.noise_variance or 0.0)
        return PreparedScan(data, noise, source, unit, mixing, own, calibration_lines=lines, maps_from=0)
    allowed = data if measured is None else only_measured(data, measured)
    if takes_lines_with_gaps(allowed, lines, recipe):
        estimates = maps_with_gaps(allowed, lines, recipe, directions)
        data, centre = with_estimates(data, estimates), min(lines, gapless_centre(allowed))
        return PreparedScan(data, noise, estimates[0].text, unit, mixing, calibration_lines=centre, maps_from=0)
    maps_source, looked_at = source_of_maps(allowed, lines)
    if looked_at and KINDS[recipe.design.encoding].square:  # a square, of which every sample has to be there
        looked_at = calibration_width(allowed, looked_at)
    maps_from = None
    if data.n_coils > 1 and data.coil_maps is None:
        maps_from = calibration_width(allowed, lines) if calibrates_itself(allowed) else 0
        data = replace(data, coil_maps=estimate_coil_maps(allowed, lines=lines, directions=directions).coil_maps)
    data, maps_source = with_checked_maps(data, allowed, maps_source, maps_from or 0)
    return PreparedScan(data, noise, maps_source, unit, mixing, calibration_lines=looked_at, maps_from=maps_from)


def estimates_own_maps(data: KSpaceData) -> bool:
    """Whether coil maps have to be estimated from a scan's own lines: neither given nor of a calibration scan."""
    return data.n_coils > 1 and data.coil_maps is None and calibrates_itself(data)


MAPS_DOUBT = "coil maps doubted because"
"""Entry of the header of prepared data: why coil maps may be wrong."""


def with_checked_maps(data: KSpaceData, looked_at: KSpaceData, source: str, width: int) -> tuple[KSpaceData, str]:
    """White data and the source of their coil maps, with what the strongest slice says of them.

    Of maps from the scan's own lines that is how well its centre predicts coils of it, of maps that came with the scan,
    which nothing was held against yet (`with_given_maps`), how much of the samples they explain.

    Parameters
    ----------
    data : KSpaceData
        With coil maps, or with centre lines to estimate them from.
    looked_at : KSpaceData
        What may be looked at, with the maps that came with the scan.
    source : str
        Of the maps, in words (`source_of_maps`).
    width : int
        Side of the measured centre that maps are estimated from; 0 where they are not.
    """
    if data.n_coils == 1:
        return data, source
    from mri_design.calibration.maps import error_of_held_coils, is_bad, words_of_check
    from mri_design.scan.calibration import explained_by_maps

    number, came = _strongest(looked_at), looked_at.coil_maps
    if width:
        inner = np.zeros(data.grid_shape, dtype=bool)
        central(inner, width)[:] = True
        samples = looked_at.samplings[number].samples & inner
        missed = error_of_held_coils(looked_at.kspace[number], samples, data.noise_variance or 0.0)
        source = f"{source}; {words_of_check(missed, data.n_coils)}"
        return _doubted(data, source if is_bad(missed, data.n_coils) else ""), source
    if came is None or "coil_maps_explain" in data.header:
        return data, source
    if not came.any():
        cure = f"Leave them out, or give maps as {option('maps', 'FILE')}."
        raise InputError("coil_maps", "zeros only", "coil maps", cure)
    explained = explained_by_maps(looked_at.select_slice(number))
    source = f"{source}; they explain {explained:.1%} of the central samples"
    if explained >= LEAST_EXPLAINED:
        return data, source
    source += ", which is bad: the right ones explain nearly all"
    return _doubted(data, source), source


def causes_of_bad_maps(data: KSpaceData | TrajectoryData) -> list[str]:
    """What may be wrong with coils that predict each other badly, as far as the samples leave it open.

    Where coils are predicted well once those of odd and of even lines count as different coils, it is alternate lines
    and nothing else; otherwise it is not those. The centre of k-space is a cause where the samples do not show it.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Of white coils.
    """
    from mri_design.calibration.maps import error_of_held_coils, is_bad

    causes = ["the object may have moved", "coils be mixed up"]
    if not isinstance(data, KSpaceData):
        return causes
    number, odd = _strongest(data), np.arange(data.grid_shape[0])[:, np.newaxis] % 2 == 1
    kspace, samples = data.kspace[number], data.samplings[number].samples
    apart = np.repeat([samples & odd, samples & ~odd], data.n_coils, axis=0)
    if not is_bad(error_of_held_coils(np.tile(kspace, (2, 1, 1)), apart, data.noise_variance or 0.0), data.n_coils):
        return [
            "odd lines do not fit even ones: are they readouts of opposite direction, or of coils in another order?"
        ]
    if find_centre(kspace, samples).known_by == "assumed":
        causes.append(f"the centre of k-space lie elsewhere ({option('input.centre')})")
    return [*causes, f"axes be others, as slices or frames taken for coils ({option('dims')})"]


def _strongest(data: KSpaceData) -> int:
    """The slice with the most energy."""
    return int(np.argmax([np.linalg.norm(stack) for stack in data.kspace]))


def _doubted(data: KSpaceData, doubt: str) -> KSpaceData:
    return replace(data, header={**data.header, MAPS_DOUBT: doubt}) if doubt else data


def with_estimates(data: KSpaceData, estimates: Sequence[CoilMapEstimate]) -> KSpaceData:
    """The data with the coil maps of their slices, and in their header what speaks against those."""
    known = replace(data, coil_maps=np.stack([estimate.maps for estimate in estimates]))
    doubt = next((estimate.text for estimate in estimates if estimate.predicts_badly), "")
    return _doubted(known, doubt)


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


def source_of_maps(data: KSpaceData, lines: int, measured: int | None = None) -> tuple[str, int]:
    """Source of a scan's coil maps in words, and how many of its own centre lines at most they are estimated from.

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
    if data.n_coils == 1:
        return "one coil", 0
    if data.coil_maps is not None:
        return f"given ({data.header.get('coil_maps_file', 'with the data')})", 0
    width = calibration_width(data, lines, measured)
    if calibrates_itself(data):
        return f"estimated by ESPIRiT from {width} gapless centre lines", lines
    return "estimated from the calibration scan", 0


def calibration_count(asked: int | None, recipe: Recipe, n_lines: int) -> int:
    """Number of ACS lines that coil maps are estimated from, on a grid of ``n_lines``: as asked, or the recipe's."""
    return asked or min(recipe.coils.most_lines, n_lines)


def with_known_noise(
    data: AnyScan, recipe: Recipe, *, ordinary: bool = False, used: AnyScan | None = None
) -> tuple[AnyScan, str, float, Array | None]:
    """A scan with its noise known, and where it is from: recipe, scanner, file or data.

    The third and fourth values are ``unit`` and ``mixing`` of `Calibrated`.

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
    known, given = naming_dead_coils(used if scale == 1 else used.scaled(scale)), recipe.noise.variance
    gridded, covariance, witnesses, doubt = isinstance(known, KSpaceData), known.noise_covariance, "", ""
    variance = known.noise_variance if given is None else given * scale**2
    if gridded and known.n_coils > 1 and (variance is not None or covariance is not None):
        refuse_copies(known.kspace)  # where noise is measured they are looked for, too
    if given is not None:
        source, covariance = GIVEN_NOISE, None
        if isinstance(known, KSpaceData):
            with suppress(InputError):  # where the data show no noise
                witnesses, doubt = measure_noise(known).scaled(1 / scale**2).against(given)
    elif covariance is not None:
        source = str(known.header.get("noise_covariance", _MEASURED)) if gridded else _MEASURED
        if NOISE_FROM in known.header:
            source = f"estimated from the data, {known.header[NOISE_FROM]}"
    elif variance is not None:
        source = "given with the data"
    elif isinstance(known, KSpaceData):
        measured = measure_noise(known)
        found, covariance = measured.scaled(1 / scale**2), measured.covariance
        witnesses, doubt = found.text, found.doubt
        readouts = str(known.header.get("noise_readouts", ""))
        unused = f" (noise readouts: {readouts})" if "not used" in readouts else ""
        source = f"estimated from the data {found.origin}{unused}"
    else:
        assert isinstance(data, TrajectoryData)
        estimate, signal = rim_noise(data.kspace, data.trajectory, data.grid_shape)
        falls = "power still falls with the distance from the centre there, as that of signal does: it may be too large"
        source, variance, doubt = "estimated from the outermost samples", estimate * scale**2, falls if signal else ""
    known = replace(
        with_witnesses(known, doubt, witnesses),
        noise_variance=None if covariance is not None else variance,
        noise_covariance=covariance,
    )
    mixing: Array | None = scale * np.eye(known.n_coils) if gridded and scale != 1 else None
    unit = 1 / scale
    if covariance is not None and known.n_coils == 1:  # which keeps its units
        known = replace(known, noise_variance=float(covariance[0, 0].real), noise_covariance=None)
    elif covariance is not None:  # white coils are in units of the noise, whatever the scale
        known, unit, mixing = prewhiten(known), 1.0, scale * inverse_root(covariance)
    return *with_least_noise(known, f"{source}{though(doubt)}"), unit, mixing


NOISE_RAISED = "noise raised because"
"""Entry of the header of prepared data: why their noise is taken to be more than was given or estimated."""


def with_least_noise(data: AnyScan, source: str) -> tuple[AnyScan, str]:
    """A scan of known noise with at least as much as can be reckoned with, and where the noise is from, in words."""
    direct = data.n_coils == 1 and data.on_grid
    least, why = least_noise(data.kspace, math.prod(data.readouts.grid), direct=direct)
    assert data.noise_variance is not None
    if data.noise_variance >= least:
        return data, source
    factor = float(np.sqrt(least / data.noise_variance))
    raised = replace(data, noise_variance=least, header={**data.header, NOISE_RAISED: why})
    return raised, f"{source}, its standard deviation raised {factor:.3g} times: {why}"


_MEASURED = "from the noise readouts"
GIVEN_NOISE = "given (as a standard deviation, or by a recipe)"
"""Where noise is from that somebody tells, in words."""


DEAD_COILS = "coils_without_samples"
"""Entry of the header of prepared data: which coils measured nothing."""


def naming_dead_coils(data: AnyScan) -> AnyScan:
    """The scan with the numbers of coils that measured nothing in its header, where there are some."""
    dead = [coil for coil in range(data.n_coils) if not data.kspace[:, coil].any()]
    if not 0 < len(dead) < data.n_coils:
        return data
    named = f"coil{'s' * (len(dead) > 1)} {', '.join(map(str, dead))} measured nothing"
    return replace(data, header={**data.header, DEAD_COILS: named})


NOISE_DOUBT = "noise doubted because"
"""Entry of the header of prepared data: why their noise may be wrong, and between what."""


NOISE_WITNESSES = "noise_witnesses"
"""Entry of the header of prepared data: what every place in the scan that holds noise says of it."""


def with_witnesses(data: AnyScan, doubt: str, witnesses: str = "") -> AnyScan:
    """The scan with what its noise was estimated from, and a doubt about it, in its header; no entry for neither."""
    told = {NOISE_DOUBT: doubt, NOISE_WITNESSES: witnesses}
    return replace(data, header={**data.header, **{entry: text for entry, text in told.items() if text}})


def though(doubt: str) -> str:
    """The end of a sentence on an estimate of the noise: what speaks against it, or nothing."""
    return f", though {doubt}" if doubt else ""


def only_measured(data: KSpaceData, measured: Array) -> KSpaceData:
    """The data with every other line (or sample, of a mask with two axes) emptied, as if it had never been acquired."""
    keep = data.measured[:, None] & (measured if measured.ndim == 2 else measured[:, None])
    return replace(data, kspace=np.where(keep, data.kspace, 0), measured=np.asarray(keep.any(axis=1)))


@briefly
@dataclass(frozen=True)
class PreparedSamples(Calibrated):
    """Samples along a trajectory with known noise and coil maps, ready for models; parameters as of `Calibrated`."""

    data: TrajectoryData

    def slice_model(self, index: int = 0, recipe: Recipe | None = None) -> SliceModel:
        """One slice as the model takes it; its candidates are the readouts, and one coil has no map."""
        one = super().slice_model(index, recipe)
        return replace(one, maps=None) if one.n_coils == 1 else one


def prepare_samples(
    data: TrajectoryData, recipe: Recipe | None = None, *, used: TrajectoryData | None = None
) -> PreparedSamples:
    """Estimate what is unknown: the noise, then the coil maps.

    Coils are whitened by the covariance of the scanner's noise readouts. Without one they count as equally noisy and
    independent, as in scans of lines with holes: the outermost samples hold signal too, whose correlations would shade
    the image if they were taken for those of noise.

    Parameters
    ----------
    data : TrajectoryData
        As read; the noise is estimated from all of it.
    recipe : Recipe, optional
        Given noise, and calibration settings; the default recipe without one.
    used : TrajectoryData, optional
        The part of the data that coil calibration may look at, and that is reconstructed; all by default.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    recipe = recipe_or_default(recipe)
    known, noise, unit, mixing = with_known_noise(data, recipe, ordinary=True, used=used)
    maps_source, centre, lines = source_of_sample_maps(known, recipe)
    if centre is not None:
        known = replace(known, coil_maps=estimate_coil_maps(centre, lines=lines).coil_maps)
    return PreparedSamples(known, noise, maps_source, unit, mixing)


def source_of_sample_maps(data: TrajectoryData, recipe: Recipe) -> tuple[str, KSpaceData | None, int]:
    """Source of the coil maps of white data in words; the gridded centre to estimate them from, and its side.

    Without a centre (None, 0) where nothing has to be estimated.

    Raises
    ------
    InputError
        Where there is not enough data to estimate them.
    """
    if data.n_coils == 1:
        return "one coil", None, 0
    if data.coil_maps is not None:
        return f"given ({data.header.get('coil_maps_file', 'with the data')})", None, 0
    centre = gridded_centre(data, recipe.coils.most_lines)
    lines = int(centre.measured.sum())
    calibration_width(centre, lines)
    return f"estimated from {lines} x {lines} samples that were gridded around DC", centre, lines

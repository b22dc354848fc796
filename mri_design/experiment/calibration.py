"""Calibration of scans: their noise, then their coil maps, on a grid and along a trajectory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from mri_design.calibration.coils import (
    MANY_COILS,
    central,
    compression,
    image_units,
    inverse_root,
    virtual_directions,
)
from mri_design.calibration.noise import least_noise, refuse_copies, rim_noise
from mri_design.errors import InputError, option, require_instance
from mri_design.experiment.recipe import Recipe, recipe_from
from mri_design.kinds import KINDS
from mri_design.operators.conventions import to_image
from mri_design.scan.calibration import (
    AnyScan,
    calibrates_itself,
    calibration_width,
    coil_combined,
    estimate_coil_maps,
    find_centre,
    gapless_square,
    gridded_centre,
    measure_noise,
    mixed_coils,
    prewhiten,
)
from mri_design.scan.calibration import calibration_lines as gapless_centre
from mri_design.scan.data import KSpaceData, Scan, TrajectoryData
from mri_design.scan.provenance import LEAST_EXPLAINED, MapsOrigin, NoiseOrigin
from mri_design.scan.sampling import Sampling, require_dynamic_range

if TYPE_CHECKING:  # models are imported where they are made: info needs none
    from mri_design.calibration.coils import CoilMapEstimate, MapMethod
    from mri_design.model.slice import SliceModel
    from mri_design.operators.base import Array


ORDINARY = 1e10
"""Samples up to this and down to its inverse are calculated with as they are."""


def calibrate(
    scan: AnyScan,
    recipe: Recipe | None = None,
    *,
    calibration_lines: int | None = None,
    measured: Array | None = None,
    ordinary: bool = False,
    directions: Array | None = None,
    growing: bool = False,
) -> AnyScan:
    """Estimate the noise of a scan (and whiten several coils), then its coil maps, unless they are known.

    Parameters
    ----------
    scan : KSpaceData or TrajectoryData
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
        have to be multiplied by `Scan.unit`, as they do along a trajectory. Otherwise the data keep their units; models
        of such data calculate in double precision.
    directions : complex array, shape (coil, coil), optional
        `coil_directions` of the white coils of a volume, of which the scan is one slice.
    growing : bool
        Whether coil maps that would be estimated from the lines of the scan, one slice, are left to be estimated from
        those that have been measured when they are requested (`Scan.own_maps`): the calibration lines of its provenance
        are then how many centre lines a design begins with.

    Returns
    -------
    KSpaceData or TrajectoryData
        With noise, coil maps and where both are from; coils are white where there are several of known covariance.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    require_instance(Scan, wanted="k-space data", cure="load(FILE).data has them.", scan=scan)
    recipe = recipe_from(recipe)
    used = scan if measured is None or scan.on_grid else scan.only(measured)
    known = with_known_noise(scan, recipe, ordinary=ordinary or not scan.on_grid, used=used)
    if isinstance(known, TrajectoryData):
        origin, centre, lines = origin_of_sample_maps(known, recipe)
        maps = known.coil_maps if centre is None else estimate_coil_maps(centre, lines=lines).coil_maps
        return replace(known, coil_maps=maps).known(maps=origin)
    made: Any = known  # on a grid, as the scan was
    if directions is not None and made.n_coils < len(directions):
        directions = virtual_directions(np.eye(len(directions), dtype=complex)[working_coils(scan)[0]], directions)
    lines, white = calibration_count(calibration_lines, recipe, made.grid_shape[0]), made.n_coils
    made, matrix = _compressed(made, made if measured is None else made.only(measured), recipe, scan.n_coils)
    if directions is not None and made.n_coils < white:
        directions = virtual_directions(matrix, directions)
    if growing and estimates_own_maps(made):
        from mri_design.calibration.coils import OwnMaps

        origin = MapsOrigin(source="growing", calibration_lines=min(lines, made.grid_shape[0]))
        return replace(made, own_maps=OwnMaps(recipe.coils.method, made.noise_variance or 0.0)).known(maps=origin)
    allowed = made if measured is None else made.only(measured)
    return cast(AnyScan, _with_maps(made, allowed, lines, recipe, directions))


def _compressed(scan: KSpaceData, used: KSpaceData, recipe: Recipe, n_coils: int) -> tuple[KSpaceData, Array]:
    """A scan of white coils with virtual coils by the recipe, and the matrix that combines them.

    Of a stated number samples of a calibration scan decide, if there is one, else those that are used; it leaves all
    coils where fewer would not tell two sets of maps apart. By noise those that are used decide, and all coils stay
    where these show no signal, or fewer leave out too much.

    Raises
    ------
    InputError
        For more virtual coils than the ``n_coils`` that were read.
    """
    stated, count = recipe.coils.coil_compression, scan.n_coils
    if not isinstance(stated, str) and stated > n_coils:
        raise InputError("coils.coil_compression", f"{stated} of {n_coils} coils", f"at most {n_coils}")
    if stated == "none" or (stated == "auto" and count <= MANY_COILS) or (stated != "auto" and stated >= count):
        return scan, np.eye(count)
    if stated != "auto" and recipe.coils.method != "espirit" and estimates_own_maps(scan) and folds(used):
        return scan.known(combined=(count, count, 0.0, 0.0)), np.eye(count)
    by_noise = stated == "auto"
    # A calibration scan has units of its own: it knows directions, not what is above the noise.
    decisive = used.kspace if by_noise or scan.calibration is None else scan.calibration
    wanted, square = None if isinstance(stated, str) else stated, KINDS[recipe.design.encoding].square
    try:
        found = compression(decisive, scan.noise_variance or 1.0, wanted, square=square, maps=scan.coil_maps)
    except InputError:
        if not by_noise:
            raise
        return scan, np.eye(count)
    if by_noise and len(found.matrix) == count:
        return scan, np.eye(count)
    made = replace(mixed_coils(scan, found.matrix), mixing=_after(found.matrix, scan))
    return made.known(combined=(count, len(found.matrix), found.lost, found.left_out)), found.matrix


def _with_maps(
    scan: KSpaceData,
    allowed: KSpaceData,
    lines: int,
    recipe: Recipe,
    directions: Array | None = None,
    *,
    centre: int | None = None,
) -> KSpaceData:
    """A scan of known noise with coil maps from the allowed data, and doubts about them.

    Where the data are one slice of a scan whose smallest ``centre`` is known, ESPIRiT's maps are not made.
    """
    if scan.n_coils == 1 or scan.coil_maps is not None:
        return scan.known(maps=_known_maps(allowed))
    if takes_lines_with_gaps(allowed, lines, recipe, centre):
        estimates = maps_with_gaps(allowed, lines, recipe, directions)
        return with_estimates(scan, estimates, min(lines, gapless_centre(allowed)))
    from mri_design.calibration.coils import held_back_coils, is_bad, of_whole_lines

    width, square = calibration_width(allowed, lines, centre), KINDS[recipe.design.encoding].square
    if not calibrates_itself(allowed):
        scan = _with_espirit(scan, allowed, lines, directions) if centre is None else scan
        return scan.known(maps=MapsOrigin(source="calibration scan"))
    number, inner = _strongest(allowed), np.zeros(scan.grid_shape, dtype=bool)
    central(inner, width)[:] = True
    samples, noise = allowed.samplings[number].samples, scan.noise_variance or 0.0
    lined = recipe.coils.method == "auto" and not square and of_whole_lines(samples)
    missed, sets = held_back_coils(allowed.kspace[number], samples & inner, noise, whole=lined)
    if sets > 1:
        return with_estimates(scan, maps_with_gaps(allowed, lines, recipe, directions, method="auto"), lines)
    scan = _with_espirit(scan, allowed, lines, directions) if centre is None else scan
    first = width if square else lines  # of a square every sample has to be there
    known = MapsOrigin(source="espirit", lines=width, calibration_lines=first, side=width)
    return scan.known(maps=replace(known, error=missed, bad=is_bad(missed, scan.n_coils)))


def _with_espirit(scan: KSpaceData, allowed: KSpaceData, lines: int, directions: Array | None) -> KSpaceData:
    return replace(scan, coil_maps=estimate_coil_maps(allowed, lines=lines, directions=directions).coil_maps)


def estimates_own_maps(data: KSpaceData) -> bool:
    """Whether coil maps have to be estimated from a scan's own lines: neither given nor of a calibration scan."""
    return data.n_coils > 1 and data.coil_maps is None and calibrates_itself(data)


def folds(data: KSpaceData) -> bool:
    """Whether coils that are held back show that the object reaches beyond its field of view (`held_back_coils`)."""
    from mri_design.calibration.coils import held_back_coils, of_whole_lines

    number = _strongest(data)
    samples, noise = data.samplings[number].samples, data.noise_variance or 0.0
    return held_back_coils(data.kspace[number], samples, noise, whole=of_whole_lines(samples))[1] > 1


def _known_maps(data: Scan) -> MapsOrigin:
    """The origin of maps that need no estimate; on a grid also the part of the strongest slice that they explain.

    What has been held against the scan before (`with_given_maps`) is not again.
    """
    from mri_design.scan.calibration import explained_by_maps

    if data.n_coils == 1:
        return MapsOrigin(source="one coil")
    origin = data.provenance.maps if data.provenance.maps.source == "given" else MapsOrigin(source="given")
    if not isinstance(data, KSpaceData) or data.coil_maps is None or origin.explained is not None:
        return origin
    if not data.coil_maps.any():
        cure = f"Leave them out, or give maps as {option('maps', 'FILE')}."
        raise InputError("coil_maps", "zeros only", "coil maps", cure)
    explained = explained_by_maps(data.select_slice(_strongest(data)))
    return replace(origin, explained=explained, bad=explained < LEAST_EXPLAINED)


def with_measured_maps(scan: KSpaceData, estimate: CoilMapEstimate | None) -> KSpaceData:
    """The scan of one slice with an estimate of its coil maps; unchanged without one."""
    if estimate is None:
        return scan
    return with_estimates(replace(scan, own_maps=None), [estimate], scan.provenance.maps.calibration_lines)


def truth_of(scan: Scan, index: int = 0) -> Array | None:
    """The image to compare with: the simulated truth, or a fully sampled scan's own; None where lines miss.

    The scan's own image is one per scan, whatever lines a run calibrates with: in the units that were read
    (`Scan.image_unit`) it has the modulus that maps of the 24 central lines combine from all lines. Its phase is that
    of images under the maps of this calibrated scan, with which it is compared.
    """
    if scan.reference is not None:
        return scan.reference[index]
    if not (isinstance(scan, KSpaceData) and scan.fully_sampled):
        return None
    if index not in scan.own_images:
        scan.own_images[index] = _own_image(scan.select_slice(index), scan.image_unit(index))
    return scan.own_images[index]


def _own_image(data: KSpaceData, unit: float | Array) -> Array:
    if data.second_maps is not None and (image := _own_image_of_two_sets(data.slice_model())) is not None:
        return image
    own, known = coil_combined(data)[0], data.provenance.maps
    estimated = known.source not in ("one coil", "given") and calibrates_itself(data)
    if not estimated or known.side == calibration_width(data):
        return np.asarray(own)
    maps = estimate_coil_maps(replace(data, coil_maps=None)).coil_maps
    assert maps is not None
    size = np.abs(np.sum(maps[0].conj() * to_image(data.kspace[0]), axis=0))
    if data.mixing is not None:
        size = size * image_units(data.mixing, maps[0]) / unit
    return _with_modulus(own, size)


def _own_image_of_two_sets(one: SliceModel) -> Array | None:
    """The scan's own image under two sets of maps; None where one set is enough.

    Its modulus is that of the maps from all central lines, whatever lines a run calibrates with, as in `_own_image`.
    """
    from mri_design.calibration.coils import maps_from_lines
    from mri_design.model.two_sets import TwoSets

    both, coil_images = TwoSets.of(one), to_image(one.kspace)
    if both is None:
        return None
    every = maps_from_lines(one.kspace, one.measured, method="nlinv", noise_variance=one.noise_variance)
    whole = replace(one, maps=every.maps, second_maps=every.second)
    of_all = TwoSets.of(whole)
    image = np.sum(every.maps.conj() * coil_images, axis=0) if of_all is None else of_all.combined(coil_images)
    size = np.abs(image) * (1.0 if one.mixing is None else whole.image_unit / one.image_unit)
    return _with_modulus(both.combined(coil_images), size)


def _with_modulus(image: Array, size: Array) -> Array:
    """The phase of an image, and another modulus."""
    modulus = np.abs(image)
    return np.asarray(np.where(modulus > 0, image / np.where(modulus > 0, modulus, 1), 1) * size, dtype=np.complex64)


def causes_of_bad_maps(data: Scan) -> tuple[str, ...]:
    """Possible causes of coils that predict each other badly, as far as the samples leave them open.

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
    from mri_design.calibration.coils import error_of_alternate_lines, is_bad

    if not isinstance(data, KSpaceData):
        return "motion", "coils"
    number = _strongest(data)
    kspace, samples = data.kspace[number], data.samplings[number].samples
    if not is_bad(error_of_alternate_lines(kspace, samples, data.noise_variance or 0.0), data.n_coils):
        return ("alternate lines",)
    centre = ("centre",) if find_centre(kspace, samples).known_by == "assumed" else ()
    return "motion", "coils", *centre, "axes"


def _strongest(data: KSpaceData) -> int:
    """The slice with the most energy."""
    return int(np.argmax([np.linalg.norm(stack) for stack in data.kspace]))


def with_estimates(data: KSpaceData, estimates: Sequence[CoilMapEstimate], calibration_lines: int) -> KSpaceData:
    """The data with the coil maps of their slices, and the origin of those: of the first that predict badly, if any."""
    shown = next((estimate for estimate in estimates if estimate.predicts_badly), estimates[0])
    maps, second = np.stack([estimate.maps for estimate in estimates]), None
    if any(estimate.second is not None for estimate in estimates):
        none = np.zeros_like(maps[0])
        second = np.stack([none if estimate.second is None else estimate.second for estimate in estimates])
    origin = replace(MapsOrigin.of_estimate(shown, calibration_lines), second=second is not None)
    return replace(data, coil_maps=maps, second_maps=second).known(maps=origin)


def takes_lines_with_gaps(data: KSpaceData, lines: int, recipe: Recipe, centre: int | None = None) -> bool:
    """Whether coil maps are estimated from all lines measured near the centre, with their gaps, by NLINV.

    Parameters
    ----------
    data : KSpaceData
        Samples that may be used.
    lines : int
        Gapless centre lines that may be used at most.
    recipe : Recipe
        Names the method.
    centre : int, optional
        Side of the gapless square of all slices (`gapless_square`), where the data are one of them.
    """
    from mri_design.calibration.coils import method_for

    centre = gapless_centre(data) if centre is None else centre
    return estimates_own_maps(data) and method_for(centre, lines, recipe.coils.method) == "nlinv"


def maps_with_gaps(
    data: KSpaceData,
    lines: int,
    recipe: Recipe,
    directions: Array | None = None,
    *,
    method: MapMethod = "nlinv",
) -> list[CoilMapEstimate]:
    """Coil maps of white slices, by default by NLINV, from all samples that were measured.

    Where more gapless centre lines were measured than may be used, only the allowed ones are used; of
    a plane, the square of as many samples.

    Raises
    ------
    InputError
        Where too few were measured around the centre.
    """
    from mri_design.calibration.coils import maps_from_lines

    allowed = np.ones(data.grid_shape, dtype=bool)
    if gapless_centre(data) > lines:
        near = [np.abs(np.arange(n) - n // 2 + lines // 2 - (lines - 1) / 2) < lines / 2 for n in data.grid_shape]
        allowed = np.logical_and.outer(near[0], near[1] | (not KINDS[recipe.design.encoding].square))
    return [
        maps_from_lines(
            stack,
            sampling.samples & allowed,
            method=method,
            directions=directions,
            noise_variance=data.noise_variance or 0.0,
        )
        for stack, sampling in zip(data.kspace, data.samplings, strict=True)
    ]


def calibration_count(asked: int | None, recipe: Recipe, n_lines: int) -> int:
    """Number of ACS lines for coil maps, on a grid of ``n_lines``: as requested, or the recipe's."""
    return asked or min(recipe.coils.most_lines, n_lines)


def with_known_noise(data: AnyScan, recipe: Recipe, *, ordinary: bool = False, used: AnyScan | None = None) -> AnyScan:
    """A scan with its noise known: from recipe, scanner, file or data; coil maps are as they were.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        As read; noise is estimated from all of it.
    recipe : Recipe
        Its noise comes first.
    ordinary : bool
        As of `calibrate`.
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
    live, silent = working_coils(known)
    given, covariance, origin = recipe.input.noise_variance, known.noise_covariance, known.provenance.noise
    variance = known.noise_variance if given is None else given * scale**2
    if known.on_grid and known.n_coils > 1 and (variance is not None or covariance is not None):
        refuse_copies(known.kspace)  # where noise is measured they are refused, too
    # First, where the noise is from: given values come before measured ones, and these before estimates.
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
        estimate, signal = rim_noise(data.kspace[:, live], data.trajectory, data.grid_shape)
        variance, origin = estimate * scale**2, replace(origin, source="rim", doubt="falls" if signal else "")
    # Second, coils that measured something, of independent noise.
    origins: dict[str, Any] = {"silent_lines": silent} if silent else {}
    if len(live) < known.n_coils:
        origins["dead_coils"] = tuple(np.setdiff1d(np.arange(known.n_coils), live).tolist())
        covariance = None if covariance is None else covariance[np.ix_(live, live)]
        known = _with_coils(known, live)
    known = replace(
        known,
        noise_variance=None if covariance is not None else variance,
        noise_covariance=covariance,
    )
    of_coils = known.on_grid or known.mixing is not None
    mixing = _after(scale * np.eye(known.n_coils), known) if of_coils and scale != 1 else known.mixing
    unit = known.unit / scale
    if covariance is not None and known.n_coils == 1:  # which keeps its units
        known = replace(known, noise_variance=float(covariance[0, 0].real), noise_covariance=None)
    elif covariance is not None:  # white coils are in units of the noise, whatever the scale
        known, unit, mixing = prewhiten(known), 1.0, _after(scale * inverse_root(covariance), known)
    # Finally, at least as much as can be reckoned with.
    direct = known.n_coils == 1 and known.on_grid
    least, limit = least_noise(known.kspace, math.prod(known.readouts.grid), direct=direct)
    assert known.noise_variance is not None
    if known.noise_variance < least:
        origin = replace(origin, raised=float(np.sqrt(least / known.noise_variance)), limit=limit)
        known = replace(known, noise_variance=least)
    known = replace(known, unit=unit, mixing=mixing)
    return known.known(noise=origin, **origins)


def working_coils(scan: Scan) -> tuple[Array, tuple[tuple[int, int], ...]]:
    """Numbers of the coils that measured something, and (coil, lines) where one is zero on lines of the others.

    All coils if every one is zero, which readers of the result refuse. Along a trajectory there are no lines.
    """
    held = np.any(scan.kspace, axis=-1)
    live = np.flatnonzero([held[:, coil].any() for coil in range(scan.n_coils)])
    if not (live.size and scan.on_grid):
        return (live if live.size else np.arange(scan.n_coils)), ()
    silent = np.sum(held.any(axis=1, keepdims=True) & ~held, axis=(0, 2))
    return live, tuple((int(coil), int(silent[coil])) for coil in live if silent[coil])


def _with_coils(scan: AnyScan, live: Array) -> AnyScan:
    """A scan with some of its coils, as its mixing says; a reference that no maps weigh stays."""
    chosen = np.eye(scan.n_coils, dtype=np.complex128)[live]
    made = replace(mixed_coils(replace(scan, noise_covariance=None), chosen), mixing=_after(chosen, scan))
    return made if scan.coil_maps is not None else replace(made, reference=scan.reference)


def _after(matrix: Array, scan: Scan) -> Array:
    """The mixing of samples as read, followed by another matrix."""
    return matrix if scan.mixing is None else matrix @ scan.mixing


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


def expected_calibration(part: AnyScan, recipe: Recipe, samplings: Sequence[Sampling] = ()) -> AnyScan:
    """A scan with its noise known, and the origin of the coil maps that `calibrate` would estimate.

    Parameters
    ----------
    part : KSpaceData or TrajectoryData
        One slice of a scan on a grid, or a scan along a trajectory.
    recipe : Recipe
        Noise and calibration settings.
    samplings : sequence of Sampling
        Of all slices of the scan.

    Raises
    ------
    InputError
        Where there is not enough data to calibrate.
    """
    known = with_known_noise(part, recipe, ordinary=True)
    if isinstance(known, TrajectoryData):
        return known.known(maps=origin_of_sample_maps(known, recipe)[0])
    made: Any = known
    lines = calibration_count(None, recipe, made.grid_shape[0])
    virtual, _ = _compressed(made, made, recipe, part.n_coils)
    origin = _with_maps(virtual, virtual, lines, recipe, centre=gapless_square(samplings)).provenance
    return cast(AnyScan, made.known(maps=origin.maps, combined=origin.combined))

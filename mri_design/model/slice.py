"""The model of one MR slice: Cartesian lines, coils, and sparsity blocks whose rates follow the data's own signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import CoilMapEstimate, OwnMaps, image_units
from mri_design.errors import InputError
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.sparsity import (
    DEFAULT_PRIOR,
    AlikePatches,
    Companion,
    ExpectedImage,
    ImageFacts,
    PhasePrior,
    SharedFrame,
    SparsityBlock,
    estimate_phase,
    find_alike,
    prior_blocks,
)
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CartesianSamples
from mri_design.operators.conventions import Chosen, chosen_numbers
from mri_design.readouts import LineReadouts, Readouts, Rows


def phase_variants(
    slice_model: SliceModel, image: Array, *, imaginary_ratios: Sequence[float] = (2.0,)
) -> list[SliceModel]:
    """The slice with moduli, then phase-aware, once for every imaginary ratio.

    Parameters
    ----------
    slice_model : SliceModel
        Its own phase prior, if any, is left out.
    image : complex array, shape (ky, kx)
        The image so far, to take the phase from: a posterior mean, or `SliceModel.central_image`.
    imaginary_ratios : sequence of float
        See `PhasePrior`.

    Returns
    -------
    list of SliceModel
        The modulus model alone where the image shows no phase.

    Raises
    ------
    InputError
        For a senseless ratio, or an image of another shape.
    """
    modulus = replace(slice_model, phase=None)
    priors = [PhasePrior(None, ratio) for ratio in imaginary_ratios]
    if image.shape != slice_model.shape:
        raise InputError("image", f"shape {image.shape}", f"{slice_model.shape}")
    try:
        phase = estimate_phase(image, slice_model.noise_variance)
    except InputError:
        return [modulus]
    return [modulus, *(replace(slice_model, phase=replace(prior, phase=phase)) for prior in priors)]


def phase_refined(slice_model: SliceModel, image: Array) -> SliceModel:
    """The slice with its phase estimated anew from the current image; unchanged if that shows none.

    Alternating this with inference refines image and phase together: each maximises, or nearly, for the other fixed.
    """
    if slice_model.phase is None:
        return slice_model
    try:
        return replace(slice_model, phase=slice_model.phase.seen_in(image, slice_model.noise_variance))
    except InputError:
        return slice_model


def non_locally_refined(slice_model: SliceModel, image: Array) -> SliceModel:
    """The slice with phase and similar patches found anew in the current image, as far as its prior uses them.

    Raises
    ------
    InputError
        Where a prior with a non-local block finds nothing alike in the image; see `find_alike`.
    """
    counts = [
        block.neighbours
        for block in slice_model.prior
        if isinstance(block, SparsityBlock) and block.kind == "non-local"
    ]
    refined, own = phase_refined(slice_model, image), np.sqrt(slice_model.noise_variance)
    if not counts or not slice_model.frames:
        return replace(refined, alike=find_alike(image, max(counts))) if counts else refined
    every = np.stack([image / own, *(frame.image / frame.noise_sd for frame in slice_model.frames)])
    return replace(refined, alike=find_alike(every, max(counts)).seen_in(image))


CENTRE = 8
"""Lines nearest to DC that have to hold a signal."""
NOISE_ONLY = 5.0
"""Standard deviations by which their energy has to exceed that of noise."""


@briefly
@dataclass(frozen=True)
class SliceModel:
    """One slice with known noise and coil maps, from which `model` makes the linear model of any set of its lines.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Fully or partially sampled k-space; where shots are measured one by one, their data (coil, shot, sample).
    measured : bool array, shape (ky,)
        Lines that hold data; one flag for each candidate of another ``readouts``.
    noise_variance : float
        Per real component.
    maps : complex64 array, shape (coil, ky, kx), optional
        Coil sensitivities; None for one coil, and where ``own_maps`` makes them of the lines at hand.
    prior : tuple of SparsityBlock and SiteBlock
        Sparsity blocks, whose rates follow the signal, and sites as they are.
    phase : PhasePrior, optional
        Knowledge of the image's phase: the phase-aware model. The unknown stays u. Without it sites act on moduli.
    samples : bool array, shape (ky, kx), optional
        Which samples of the measured lines hold data, where lines are not whole (partial echoes, masks over both
        directions); None where all do.
    alike : AlikePatches, optional
        Which pixels belong together. Without it non-local blocks of the prior are left out of the model: they are
        known from an image only, see `non_locally_refined`.
    companion : AlikePatches, optional
        Which pixels belong together in other images of the same object (`model.sparsity`). Without it companion blocks
        of the prior are left out of the model.
    expected : ExpectedImage, optional
        The image that a repeat of the scan makes expect. Without it repeat blocks of the prior are left out.
    companions : tuple of Companion
        Other images of the object that are there to choose from; what is chosen of them is ``companion``.
    frames : tuple of SharedFrame
        Other frames of its series, with which the prior's sites and similar patches are shared.
    readouts : Readouts, optional
        The candidates that are measured one by one: the lines of the grid by default, or the samples of a plane, or
        shots. Where this class speaks of lines, it means these candidates.
    own_maps : OwnMaps, optional
        Estimates the maps from what is measured, where they are not known: see `calibrated`. Everything that takes
        lines and looks at the image has maps from these lines, and from no other.
    second_maps : complex64 array, shape (coil, ky, kx), optional
        A second set of maps (`CoilMapEstimate.second`). The image is then made with both (`model.two_sets`); designs
        have the first.
    mixing : complex array, shape (coil, coil as read), optional
        What samples as read were multiplied by over the coils, to be independent and of equal noise (`Scan`).
    unit : float
        What images are multiplied by to be in the units of the samples as read, where coils were not mixed.

    Raises
    ------
    InputError
        On shapes that disagree, a non-positive variance, several coils without maps or a way to estimate them, or
        samples of lines where candidates are no lines.
    """

    kspace: Array
    measured: Array
    noise_variance: float
    maps: Array | None = None
    _: KW_ONLY
    prior: tuple[SparsityBlock | SiteBlock, ...] = DEFAULT_PRIOR
    phase: PhasePrior | None = None
    samples: Array | None = None
    alike: AlikePatches | None = None
    companion: AlikePatches | None = None
    expected: ExpectedImage | None = None
    companions: tuple[Companion, ...] = ()
    frames: tuple[SharedFrame, ...] = ()
    readouts: Readouts | None = None
    own_maps: OwnMaps | None = None
    second_maps: Array | None = None
    mixing: Array | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", prior_blocks(self.prior))
        if self.kspace.ndim != 3:
            raise InputError("kspace", f"shape {self.kspace.shape}", "(coil, ky, kx)")
        candidates = self.candidates
        laid_out = candidates.layout
        if self.kspace.shape[1:] != laid_out:
            raise InputError("kspace", f"shape {self.kspace.shape}", f"(coil, {laid_out[0]}, {laid_out[1]})")
        if self.measured.shape != (candidates.size,):
            raise InputError(
                "measured", f"shape {self.measured.shape}", f"one flag for each of {candidates.size} {candidates.unit}s"
            )
        if self.samples is not None and not candidates.kind.with_holes:
            raise InputError("samples", "given", "None where samples are measured one by one", "Use measured.")
        if self.samples is not None and (self.samples.shape != self.shape or self.samples.dtype != np.bool_):
            raise InputError("samples", f"{self.samples.dtype} {self.samples.shape}", f"bool {self.shape}")
        if not (np.isfinite(self.noise_variance) and self.noise_variance > 0):
            raise InputError("noise_variance", repr(self.noise_variance), "a positive finite number")
        if self.maps is not None and self.maps.shape[:-2] != (self.n_coils,):
            raise InputError("coil maps", f"shape {self.maps.shape}", f"{(self.n_coils, *self.shape)}")
        known = None if self.phase is None else self.phase.phase
        images = [("coil maps", self.maps), ("phase", None if known is None else known.rotation)]
        for name, patches in (("alike patches", self.alike), ("companion", self.companion)):
            images.append((name, None if patches is None else patches.neighbours))
        for name, array in (*images, *((f"companion {one.name}", one.image) for one in self.companions)):
            if array is not None and array.shape[-2:] != self.shape:
                raise InputError(name, f"shape {array.shape}", f"the grid {self.shape}")
        if self.maps is None and self.kspace.shape[0] > 1 and self.own_maps is None:
            raise InputError(
                "coil maps",
                f"none for {self.kspace.shape[0]} coils",
                "one sensitivity map per coil",
                "Estimate them from a fully sampled centre, or give them in the file.",
            )

    @cached_property
    def candidates(self) -> Readouts:
        """The candidates: all that may be measured one by one."""
        return LineReadouts(self.shape) if self.readouts is None else self.readouts

    @property
    def shape(self) -> tuple[int, int]:
        """Image grid (ky, kx)."""
        if self.readouts is not None:
            return self.readouts.grid
        return int(self.kspace.shape[-2]), int(self.kspace.shape[-1])

    @property
    def image_unit(self) -> float | Array:
        """Factor, pixel by pixel for whitened coils, that brings images of the model to the file's units."""
        return self.unit if self.mixing is None else image_units(self.mixing, self.maps)

    @property
    def coils_read(self) -> int:
        """Receive coils that were read, which may have been combined into fewer."""
        return self.n_coils if self.mixing is None else int(self.mixing.any(axis=0).sum())

    @property
    def n_coils(self) -> int:
        """Receive coils."""
        return int(self.kspace.shape[0])

    def coil_map_estimate(self, lines: Chosen, *, rough: bool = False) -> CoilMapEstimate | None:
        """The coil maps estimated from ``lines``; None if they are known.

        For ``rough`` see `OwnMaps.of`.

        Raises
        ------
        InputError
            For lines without data, or too few of them.
        """
        if self.own_maps is None:
            return None
        flags = self._flags(self._with_data(lines))
        flags = flags if self.samples is None else flags[:, None] & self.samples
        return self.own_maps.of(self.kspace, flags, rough=rough)

    def calibrated(self, lines: Chosen, *, rough: bool = False) -> SliceModel:
        """The slice with the coil maps that ``lines`` show (`coil_map_estimate`); itself where they are known.

        Maps on the way to those of an image may be ``rough``.
        """
        estimate = self.coil_map_estimate(lines, rough=rough)
        if estimate is None:
            return self
        return replace(self, maps=estimate.maps, second_maps=estimate.second, own_maps=None)

    def chosen(self, lines: Chosen) -> Sequence[int]:
        """Numbers of the lines that are chosen by number or by a mask, see `chosen_numbers`."""
        return chosen_numbers(lines, self.candidates.shape, self.candidates.unit)

    def encoding(self, lines: Chosen | None = None) -> Rows:
        """X for whole lines (all of the grid without an argument).

        Raises
        ------
        InputError
            Where the coil maps are not known: see `calibrated`.
        """
        if self.own_maps is not None:
            raise InputError("coil maps", "not known yet", "a calibrated slice", "Take calibrated(LINES) of it.")
        ids = range(self.candidates.size) if lines is None else self.chosen(lines)
        return self.candidates.rows(ids, self.maps)

    def measurement(self, lines: Chosen) -> Rows:
        """X for the samples that some lines hold: whole lines, or only the measured samples of lines with holes."""
        if self.samples is None or self.own_maps is not None:
            return self.encoding(lines)
        return CartesianSamples(self.grid_samples(lines), self.maps)

    def acquire(self, lines: Chosen) -> Array:
        """The data of some lines, as `measurement` orders them: (coil, line, kx), or (coil, sample) with holes.

        Raises
        ------
        InputError
            For lines that hold no data.
        """
        chosen = self._with_data(lines)
        if self.samples is None:
            return self.candidates.data(self.kspace, chosen.tolist())
        return np.ascontiguousarray(self.kspace[:, self.grid_samples(chosen)])

    def _with_data(self, lines: Chosen) -> NDArray[np.intp]:
        """Numbers of these lines, refused where one of them holds no data."""
        chosen = np.asarray(self.chosen(lines), dtype=np.intp)
        missing = chosen[~np.isin(chosen, np.flatnonzero(self.measured))]
        if missing.size:
            unit = self.candidates.unit
            shown = f"{missing.tolist()[:8]}" if unit == "sample" else f"{missing.tolist()}"
            raise InputError(f"{unit}s", f"{shown}, not measured", f"{unit}s with data")
        return chosen

    def grid_samples(self, lines: Chosen) -> Array:
        """Samples of the grid, bool (ky, kx), that some lines hold; shots have none on the grid."""
        flags = self._flags(lines)
        whole = np.broadcast_to(flags if flags.ndim == 2 else flags[:, None], self.shape)
        return np.array(whole if self.samples is None else whole & self.samples)

    def _flags(self, lines: Chosen) -> NDArray[np.bool_]:
        """True for these lines, in the shape of all candidates."""
        flags = np.zeros(self.candidates.size, dtype=bool)
        flags[list(self.chosen(lines))] = True
        return flags.reshape(self.candidates.shape)

    def central_image(self, lines: Chosen) -> Array:
        """The coil-combined image of the unbroken run of ``lines`` around DC, zeros elsewhere in k-space."""
        central = tuple(self.candidates.central_run(self.chosen(lines)))
        return self.calibrated(lines)._weighted_image(self.acquire(central), central, self.candidates.density(central))

    def centrally(self, image: Array, lines: Chosen) -> Array:
        """`central_image` as it would be if the scan showed this image, without noise."""
        own, central = self.calibrated(lines), tuple(self.candidates.central_run(self.chosen(lines)))
        return own._weighted_image(own.measurement(central)(image), central, self.candidates.density(central))

    def plain_image(self, lines: Chosen) -> Array:
        """The image of ``lines`` without a model, X^H diag(w) y: zero-filled, of shots gridded (`Readouts.density`)."""
        lines = tuple(self.chosen(lines))
        density = self.candidates.density(lines, given=True)
        return self.calibrated(lines)._weighted_image(self.acquire(lines), lines, density)

    def _weighted_image(self, data: Array, lines: Sequence[int], density: Array | float) -> Array:
        weighted = data if isinstance(density, float) else (density * data).astype(data.dtype, copy=False)
        return self.measurement(lines).adjoint(weighted)

    def signal_level(self, lines: Chosen) -> float:
        """99.5th percentile of the modulus of the image that the central block of ``lines`` shows.

        Only the unbroken run of lines around DC is used, so that all masks with the same centre agree on it.

        Raises
        ------
        InputError
            Where the lines nearest to DC hold no more energy than noise might: no image can be seen, nor its phase.
        """
        energy, noise = self._energy_and_noise(lines)
        if energy <= noise:
            raise InputError(
                "k-space centre",
                "noise only" if energy else "no signal",
                "more energy in the central lines than noise has",
                "Look at the scan; if its noise variance was given or estimated too large, give the right one.",
            )
        return self.level(lines)

    def level(self, lines: Chosen) -> float:
        """`signal_level`, also where it is that of noise: a slice of a volume may miss the object."""
        return float(np.percentile(np.abs(self.central_image(lines)), 99.5))

    def shows_signal(self, lines: Chosen) -> bool:
        """Whether the central block of ``lines`` holds more energy than noise, so that it has a `signal_level`."""
        energy, noise = self._energy_and_noise(lines)
        return energy > noise

    def _energy_and_noise(self, lines: Chosen) -> tuple[float, float]:
        """Energy of the lines nearest to DC, and the most that noise might have there."""
        central = self.candidates.central_run(self.chosen(lines))
        samples = self.acquire(tuple(self.candidates.nearest_to_centre(central, CENTRE)))
        energy = float(np.sum(np.abs(samples).astype(np.float64) ** 2))
        return energy, 2 * self.noise_variance * (samples.size + NOISE_ONLY * float(np.sqrt(samples.size)))

    def model(self, lines: Chosen | None = None, signal: float | None = None) -> GeneralizedLinearModel:
        """The model after measuring ``lines`` (in that order), by default all; ``signal`` defaults to `signal_level`.

        Raises
        ------
        InputError
            For lines without data; in the phase-aware model, where no phase is given and the centre shows none.
        """
        lines = self.chosen(self.measured if lines is None else lines)
        if self.own_maps is not None:
            return self.calibrated(lines).model(lines, signal)
        level = self.signal_level(lines) if signal is None else signal
        noise_sd = float(np.sqrt(self.noise_variance))
        phase = self.phase
        if phase is not None and phase.phase is None:
            phase = phase.seen_in(self.central_image(lines), self.noise_variance)
        facts = {"non-local": self.alike, "companion": self.companion, "repeat": self.expected}
        unknown = [kind for kind, found in facts.items() if found is None]
        prior = [block for block in cast(tuple[SparsityBlock, ...], self.prior) if block.kind not in unknown]
        if any(block.kind == "non-local" for block in prior):
            prior = [block.limited_for_non_local() for block in prior]
        image = ImageFacts(self.shape, level, self.alike, self.companion, self.expected, self.frames)
        blocks = tuple(block.sites(image, noise_sd, phase) for block in prior)
        return GeneralizedLinearModel(self.measurement(lines), self.acquire(lines), self.noise_variance, blocks)

"""Scans whose truth is known: trials of lines on them, and rules that choose by the truth.

A trial says how wrong the reconstruction from some lines is, and on which lines. Oracles look at the true image of the
scan itself: they are no designs, but references that designs are compared with. `TrainingResidual` looks at the truth
of training scans and makes one mask for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.maps import OwnMaps
from mri_design.design.fixed import SHARE, first_disc
from mri_design.design.greedy import (
    ChoosesByScore,
    Scores,
    actual_energies,
    block_by_gains,
    expected_energies,
    fewest_coils,
    mean_around,
    means_of,
    removed_share,
    unmeasured_around,
)
from mri_design.design.strategy import DesignView, LineCandidates, Strategy, best_line
from mri_design.design.trace import Choice
from mri_design.errors import InputError, sequence_of
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

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
    slice_model : SliceModel
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
        What images are multiplied by to be shown and judged (`Scan.image_unit`).
    noise_source, maps_source : str
        Where its noise and its coil maps are from.
    pixel : tuple of float, optional
        Size of a pixel along (ky, kx) in millimetres; None where nobody says.
    own_maps : OwnMaps, optional
        Estimates coil maps from what a mask measures, where they are not known; those of ``slice_model`` are then of
        all lines, which training scans and oracles may look at: see `as_measured`.

    Raises
    ------
    InputError
        Where the reference is empty.
    """

    name: str
    slice_model: SliceModel
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

    def __post_init__(self) -> None:
        if not np.any(self.reference):
            raise InputError(field=f"reference {self.name}", got="nothing but zeros", wanted="an image")

    @property
    def as_measured(self) -> SliceModel:
        """The slice as a scanner would measure it: nothing about it is known from lines that a mask leaves out."""
        if self.own_maps is None:
            return self.slice_model
        return replace(self.slice_model, maps=None, own_maps=self.own_maps)

    def unit_of(self, seen: SliceModel) -> float | Array:
        """What images under the maps of a calibrated slice are multiplied by to be shown and judged."""
        return self.unit if self.own_maps is None else seen.image_unit

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


def truth_or_none(slice_model: SliceModel, reference: Array | None) -> Array | None:
    """The reference where it is the noise-free image behind the slice's data, None where it is not.

    The reference counts as the truth if its misfit on the measured lines is between half and twice the noise. The
    scan's own image misfits less; a magnitude, another scale or an image with estimated coil maps misfits more.
    """
    if reference is None:
        return None
    lines = np.flatnonzero(slice_model.measured).tolist()
    encoding = slice_model.encoding(lines)
    misfit = np.sum(np.abs(slice_model.acquire(lines) - encoding(np.asarray(reference))) ** 2, dtype=np.float64)
    return reference if 0.5 < misfit / (slice_model.noise_variance * encoding.out_size) < 2 else None


def line_residual(mr_slice: SliceModel, image: Array, truth: Array) -> NDArray[np.float64]:
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


Reconstruct = Callable[[int, Sequence[int]], Array]
"""(number of the slice, lines) -> image (ky, kx)."""


@dataclass(frozen=True, kw_only=True)
class TrueImages:
    """The truth that an oracle looks at. It is no strategy: it chooses nothing.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The true images, one per slice; empty until `knowing` gives them.

    Raises
    ------
    InputError
        For truths that are no images.
    """

    truths: tuple[Array, ...] = ()
    start_lines: ClassVar[tuple[int, int] | None] = (4, 4)  # a mask that looks at the truth needs no larger centre

    def __post_init__(self) -> None:
        wanted = "the true image of every slice, a tuple of arrays (ky, kx)"
        for number, truth in enumerate(sequence_of(np.ndarray, "truths", self.truths, wanted=wanted)):
            if truth.ndim != 2:
                raise InputError(field=f"truths[{number}]", got=f"an array of shape {truth.shape}", wanted="(ky, kx)")

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Self:
        """This oracle with the truth; the reconstruction is the posterior mean."""
        return replace(self, truths=tuple(truths))


@briefly
@dataclass(frozen=True, kw_only=True)
class OracleResidual(TrueImages, ChoosesByScore):
    """Choose the candidates on which the posterior mean is most wrong, as the true image shows.

    It is cheaper than `OracleGreedy`. In a plane most of its lead is luck that no prediction can have.

    results/design-study/README.md compares strategies with it, results/design-study/measurements.md both oracles.
    Its setting is that of `TrueImages`.
    """

    name: str = "oracle-residual"

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Actual residual energies, summed over the slices.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        require_truths(self.name, self.truths, len(view.posteriors))
        return Scores(actual_energies(view.posteriors, view.readouts, self.truths))


REACH = 3.0
"""Candidates: standard deviation of the Gaussian window of `OracleHole`."""


@dataclass(frozen=True, kw_only=True)
class OracleHole(TrueImages, ChoosesByScore):
    """The candidates with the largest expected error, after the truth has corrected the expectation around them.

    `OracleResidual` knows the energy of every single line, which no prediction can. This leave-one-out oracle knows how
    wrong the posterior's expectations are around a candidate, but not on the candidate itself: it multiplies the
    expected energy by the geometric mean of actual over expected energies of the other unmeasured candidates, in a
    Gaussian window. A correction that is smooth over k-space, and learns from innovations as `Calibrated` does, cannot
    know more about energies.

    Parameters
    ----------
    truths : sequence of complex arrays
        As of `TrueImages`.
    draws : int, optional
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go. By
        default those of the readouts.
    """

    draws: int | None = None
    name: str = "oracle-hole"
    start_lines = (8, 4)  # as of strategies that predict

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Corrected energies; without any other candidate left, the expected ones.

        Raises
        ------
        InputError
            Without the truth of every slice.
        """
        require_truths(self.name, self.truths, len(view.posteriors))
        actual = actual_energies(view.posteriors, view.readouts, self.truths)
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        tiny = np.finfo(float).tiny
        wrong = np.log(np.maximum(actual, tiny) / np.maximum(expected, tiny))
        found = mean_around(wrong, ~view.candidates.mask, view.readouts.shape, REACH, without_own=True)
        return Scores(expected * np.exp(found))


@dataclass(frozen=True, kw_only=True)
class OracleGreedy(TrueImages, Strategy):
    """The line after which the error is least: every candidate is reconstructed at every step.

    Parameters
    ----------
    truths : sequence of complex arrays
        As of `TrueImages`.
    reconstruct : callable
        Makes the images; its errors are relative L2 of the magnitude, mean over slices.
    """

    reconstruct: Reconstruct | None = None
    name: str = "oracle-greedy"
    needs_posterior = False

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Self:
        """This oracle with the truth and the reconstruction."""
        return replace(self, truths=tuple(truths), reconstruct=reconstruct)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line that leaves the least error.

        Raises
        ------
        InputError
            Without the truth.
        """
        require_truths(self.name, self.truths, len(self.truths))
        if self.reconstruct is None:
            raise InputError(field=self.name, got="no reconstruction", wanted="one", cure=NO_TRUTH)
        candidates = view.candidates
        scores: NDArray[np.float64] = np.full(candidates.n_lines, np.nan)
        for line in np.flatnonzero(candidates.remaining):
            images = (self.reconstruct(i, (*candidates.acquired, int(line))) for i in range(len(self.truths)))
            scores[line] = -np.mean([relative_error(*pair) for pair in zip(images, self.truths, strict=True)])
        return best_line(scores, candidates)


@dataclass(frozen=True, kw_only=True)
class TrainingResidual(ChoosesByScore):
    """Choose the candidates on and around which reconstructions of the training scans are most wrong on average.

    The scans that one mask is designed on are fully sampled. What a posterior expects of a candidate can therefore be
    replaced by what it holds: the energy of the truth less the posterior mean, or less what another reconstruction
    makes of the lines so far, in units of the truth's energy, so that no scan counts more because it is brighter. A
    mask is at its best for the reconstruction whose errors it was made from. Other subjects have other details. So a
    line's neighbours count in part (results/design-study/README.md, "Thesis-figure"); and the energy on a single sample
    of a plane, which is mostly luck of the training subjects, is averaged with that of the other unmeasured samples
    around.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        The training slices with their true images, in the order of the design's slices; empty until `knowing` gives
        them.
    reconstruct : callable, optional
        (number of the slice, lines) -> image (ky, kx), in place of the posterior mean.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself.
    reach : float
        In a plane, standard deviation of the Gaussian window, in samples; 0 takes every sample for itself.
    """

    scans: tuple[ReferenceSlice, ...] = ()
    reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    neighbours: tuple[float, ...] = (0.25,)
    reach: float = 2.0
    name: str = "residual-greedy"
    start_lines = (8, 4)

    @property
    def needs_posterior(self) -> bool:  # type: ignore[override]
        """Whether the posterior mean is the reconstruction."""
        return self.reconstruct is None

    def knowing(
        self, scans: Sequence[ReferenceSlice], reconstruct: Callable[[int, Sequence[int]], Array] | None = None
    ) -> TrainingResidual:
        """This rule with the training scans; ``reconstruct``, if there is one, takes the posterior mean's place."""
        return replace(self, scans=tuple(scans), reconstruct=reconstruct)

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """In a plane with several coils, the start and the Poisson disc."""
        return round(SHARE * target) if readouts.thinned and n_coils > 1 and self.needs_posterior else 0

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The candidates with the largest residuals; in a plane with several coils see above."""
        of_plane = view.readouts.thinned and self.needs_posterior
        if of_plane and not view.posteriors:
            return first_disc(view.candidates, rng, count)
        if not of_plane or fewest_coils(view.posteriors) == 1:
            return super().choose_block(view, rng, count)
        return block_by_gains(self.scored(view, rng).values, view, count)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Residual energies around every candidate, mean over the scans.

        Raises
        ------
        InputError
            Without the training scan of every slice.
        """
        lines, scans = view.candidates.acquired, self.scans
        if not scans or (self.reconstruct is None and len(scans) != len(view.posteriors)):
            wanted, cure = "one per slice", "TrainingResidual().knowing(scans) takes them."
            raise InputError(self.name, f"{len(scans)} training scans for {len(view.posteriors)} slices", wanted, cure)
        again = self.reconstruct
        images = means_of(view.posteriors) if again is None else [again(i, lines) for i in range(len(scans))]
        pairs = zip(scans, images, strict=True)
        residual = np.mean([line_residual(scan.slice_model, image, scan.reference) for scan, image in pairs], axis=0)
        return Scores(self.scores(view.candidates, np.asarray(residual)))

    def scores(self, candidates: LineCandidates, residual: NDArray[np.float64], *_: object) -> NDArray[np.float64]:
        """The mean residual around every candidate, by which a training goes on, too (`training.TrainingRule`)."""
        return unmeasured_around(residual, candidates, self.neighbours, self.reach)

"""Scans whose truth is known: oracles, which look at it, and masks that are learnt from training scans.

A trial says how wrong the reconstruction from some lines is, and on which lines (`Outcome`). Oracles look at the true
image of the scan itself: they are references that designs are compared with, and no designs. `TrainingResidual` looks
at the truth of training scans and makes one mask for all others.

Two rules learn an order. Residual-greedy chooses the line, or the block of samples of a plane, on and around which the
reconstructions are most wrong on average: one reconstruction per scan and step. LBCS (Gozcu et al., Learning-based
compressive MRI, IEEE TMI 2018, algorithm 1) tries every line and chooses the one that leaves the least mean error; its
stochastic form (Sanchez et al., Scalable learning-based sampling optimization for compressive dynamic MRI, ICASSP 2020)
tries some lines on some scans at each step.

Exchanges improve a protocol at its end (`refine`): a scan cannot take back what it has measured, but a protocol that is
designed on replayed scans can. One exchange drops the line whose loss raises the error least, adds the line on which
the reconstructions without it are most wrong, and is kept only if the mean error over the training scans has fallen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.calibration.coils import OwnMaps
from mri_design.design.fixed import SHARE, first_disc
from mri_design.design.greedy import (
    ChoosesByScore,
    Scores,
    actual_energies,
    block_by_gains,
    covering,
    expected_energies,
    fewest_coils,
    mean_around,
    means_of,
    neighbourhood,
    plane_of,
    removed_share,
    thinned,
)
from mri_design.design.strategy import DesignView, LineCandidates, Strategy, best_line
from mri_design.design.trace import Choice, DesignStep, DesignTrace, Forecast
from mri_design.errors import InputError, option, require_counts, sequence_of
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Constraints, LineConstraints, Readouts
from mri_design.status import Status

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
        Size of a pixel along (ky, kx) in millimetres; None if it is not known.
    place : object, optional
        Where it lies, as its scan has it.
    number : tuple of int
        Its number in its scan, and how many slices that has.
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
    place: object = None
    number: tuple[int, int] = (0, 1)
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
        """Factor for images under the maps of a calibrated slice, before they are shown and judged."""
        return self.unit if self.own_maps is None else seen.image_unit

    @property
    def shown(self) -> Array:
        """The reference in the units in which it is shown and judged."""
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
    """The true images of an oracle; a base of strategies, which chooses nothing itself.

    Parameters
    ----------
    truths : sequence of complex arrays, shape (ky, kx)
        The true images, one per slice; empty until `knowing` gives them.
    reconstruct : callable, optional
        Makes the images, for oracles that try candidates.

    Raises
    ------
    InputError
        For truths that are no images.
    """

    truths: tuple[Array, ...] = ()
    reconstruct: Reconstruct | None = None
    start_lines: ClassVar[tuple[int, int] | None] = (4, 4)  # a mask that looks at the truth needs no larger centre

    def __post_init__(self) -> None:
        wanted = "the true image of every slice, a tuple of arrays (ky, kx)"
        for number, truth in enumerate(sequence_of(np.ndarray, "truths", self.truths, wanted=wanted)):
            if truth.ndim != 2:
                raise InputError(field=f"truths[{number}]", got=f"an array of shape {truth.shape}", wanted="(ky, kx)")

    def knowing(self, truths: Sequence[Array], reconstruct: Reconstruct) -> Self:
        """This oracle with the truth and the reconstruction."""
        return replace(self, truths=tuple(truths), reconstruct=reconstruct)

    def known_energies(self, name: str, view: DesignView) -> NDArray[np.float64]:
        """Energies of the posterior means' actual errors, (size,), summed over the slices.

        Raises
        ------
        InputError
            In the name of the oracle, without the truth of every slice.
        """
        require_truths(name, self.truths, len(view.posteriors))
        return actual_energies(view.posteriors, view.readouts, self.truths)


def require_truths(name: str, truths: Sequence[Array], wanted: int) -> None:
    """Refuse to run an oracle without the true image of each of ``wanted`` slices."""
    if not truths or len(truths) != wanted:
        raise InputError(field=name, got=f"{len(truths)} true images", wanted="one per slice", cure=NO_TRUTH)


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
        return self.known_energies(self.name, view), Forecast()


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
        actual = self.known_energies(self.name, view)
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        tiny = np.finfo(float).tiny
        wrong = np.log(np.maximum(actual, tiny) / np.maximum(expected, tiny))
        found = mean_around(wrong, ~view.candidates.mask, view.readouts.shape, REACH, without_own=True)
        return expected * np.exp(found), Forecast()


@dataclass(frozen=True, kw_only=True)
class OracleGreedy(TrueImages, Strategy):
    """The line after which the error is least: every candidate is reconstructed at every step.

    Its settings are those of `TrueImages`; errors of the images are relative L2 of the magnitude, mean over slices.
    """

    name: str = "oracle-greedy"
    needs_posterior = False

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
        (number of the slice, lines) -> image (ky, kx), instead of the posterior mean.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself.
    reach : float
        In a plane, standard deviation of the Gaussian window, in samples; 0 takes every sample for itself.
    """

    scans: tuple[ReferenceSlice, ...] = ()
    reconstruct: Reconstruct | None = None
    neighbours: tuple[float, ...] = (0.25,)
    reach: float = 2.0
    name: str = "residual-greedy"
    start_lines = (8, 4)

    @property
    def needs_posterior(self) -> bool:  # type: ignore[override]
        """Whether the posterior mean is the reconstruction."""
        return self.reconstruct is None

    def knowing(self, scans: Sequence[ReferenceSlice], reconstruct: Reconstruct | None = None) -> TrainingResidual:
        """This rule with the training scans; ``reconstruct``, if given, replaces the posterior mean."""
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
        return block_by_gains(self.scored(view, rng)[0], view, count)

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
        return self.scores(view.candidates, np.asarray(residual)), Forecast()

    def scores(self, candidates: LineCandidates, residual: NDArray[np.float64], *_: object) -> NDArray[np.float64]:
        """The mean residual around every candidate, by which a training goes on, too (`training.TrainingRule`)."""
        unmeasured = ~candidates.mask
        if candidates.readouts.thinned:
            return mean_around(residual, unmeasured, candidates.readouts.shape, self.reach)
        return neighbourhood(np.where(unmeasured, residual, 0.0), self.neighbours)


@dataclass(frozen=True, kw_only=True)
class TrainedDesign:
    """An order of lines, or of samples of a plane, with the residuals that training scans had along it.

    Parameters
    ----------
    grid : tuple of int
        (ky, kx) of the training scans, or (ky, kz) of the plane.
    lines : tuple of int
        In acquisition order, the start first.
    n_start : int
        Lines before the first decision.
    profile : float array, shape (rows, ky), or (rows, ky * kz) of a plane
        Mean residual energy of every line, in units of the image's energy, when n_start, n_start + 1, ... lines were
        measured; the last row is that of all lines.
    errors : float array, shape (rows,)
        Mean relative L2 error at the same times.
    rule : str
        What decided.
    reconstructions, unconverged : int
        How many it took, and how many of these did not converge.
    training : tuple of str
        Names of the training images.
    counts : tuple of int
        Samples of a plane that were measured at each row of ``profile``; empty for lines.
    settings : mapping
        Checksums of the input files, reconstruction, and everything else that the order depends on.

    Raises
    ------
    InputError
        Where these disagree with one another, or a residual is not a finite number of zero or more.
    """

    grid: tuple[int, int]
    lines: tuple[int, ...]
    n_start: int
    profile: NDArray[np.float64]
    errors: NDArray[np.float64]
    rule: str
    reconstructions: int = 0
    unconverged: int = 0
    training: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, rows, last = math.prod(self.shape), len(self.stages), len(self.lines)
        different = len(set(self.lines)) == last and all(0 <= line < n for line in self.lines)
        shapes, fitting = (self.profile.shape, self.errors.shape), ((rows, n), (rows,))
        ascending = list(self.stages) == sorted({self.n_start, *self.stages, last})
        for name, got, fine, wanted in (
            ("lines", self.lines, different, f"different lines, 0 to {n - 1}"),
            ("start lines", self.n_start, 1 <= self.n_start <= last, f"1 to {last}"),
            ("profile", f"shapes {shapes}", shapes == fitting, str(fitting)),
            ("counts", self.counts, ascending, f"ascending numbers from {self.n_start} to {last}"),
            ("profile", "other values", (self.profile >= 0).all() and np.isfinite(self.profile).all(), "zero or more"),
            ("errors", "other values", (self.errors >= 0).all() and np.isfinite(self.errors).all(), "zero or more"),
        ):
            if not fine:
                raise InputError(f"trained design: {name}", str(got), wanted)

    @property
    def status(self) -> str:
        """ "converged", or how many reconstructions did not."""
        text = f"{self.unconverged} of {self.reconstructions} reconstructions not converged"
        return text if self.unconverged else Status.CONVERGED.value

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,) where lines were chosen, (ky, kz) where samples of a plane were."""
        return self.grid if self.counts else self.grid[:1]

    @property
    def stages(self) -> Sequence[int]:
        """How many were measured at each row of ``profile``."""
        return self.counts or range(self.n_start, len(self.lines) + 1)

    def require_grid(self, shape: tuple[int, ...]) -> None:
        """Refuse a scan with other candidates: lines (ky,), or samples (ky, kz).

        Raises
        ------
        InputError
            Naming both.
        """
        if shape != self.shape:
            learnt, there = (
                f"{of[0]} phase-encode lines" if len(of) == 1 else f"a plane of {of[0]} x {of[1]}"
                for of in (self.shape, shape)
            )
            cure = "Train on scans of the same matrix size."
            wanted = "the scan's own grid"
            cure = f"Take {option('design.encoding', 'plane')}." if self.counts and len(shape) == 1 else cure
            raise InputError("trained design", f"an order of {learnt} for a scan with {there}", wanted, cure)

    def residuals(self, history: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Errors of the training scans on every line over their images' energy, (ky,), at each moment of a design.

        Scans of one kind have their energy in the same places, so their errors lie in the same places too: this is side
        information for another scan (`Calibrated`). The order of lines is not used.

        Parameters
        ----------
        history : sequence of tuples of int
            The lines measured at each moment, of which the number counts.
        """
        return [self.residual(len(lines)) for lines in history]

    def residual(self, n_acquired: int) -> NDArray[np.float64]:
        """Residual of every line, were it not measured, when ``n_acquired`` are, (ky,); of samples (ky * kz,).

        A line that training had measured by then has the residual that it had before, but no more than the largest
        of those that were left.
        """
        stages = np.array(self.stages)
        row = max(int(np.searchsorted(stages, n_acquired, "right")) - 1, 0)
        values = self.profile[row].copy()
        measured = np.array(self.lines[: stages[row]])
        left = np.ones(len(values), dtype=bool)
        left[measured] = False
        most = values[left].max() if left.any() else np.inf
        values[measured[: self.n_start]] = min(most, self.profile[0].max())
        later = measured[self.n_start :]
        before = np.searchsorted(stages, np.arange(self.n_start, len(measured)), "right") - 1
        values[later] = np.minimum(most, self.profile[before, later])
        return values


@dataclass(frozen=True)
class LBCS:
    """The line after which the mean error over the scans is least: one reconstruction per line and scan tried.

    Parameters
    ----------
    candidates : int or None
        Lines to try at each step, drawn anew; None tries all.
    scans : int or None
        Scans to try them on, drawn anew; None takes all.
    """

    candidates: int | None = None
    scans: int | None = None
    name: str = "lbcs"

    def __post_init__(self) -> None:
        given = {"candidates": self.candidates, "scans": self.scans}
        require_counts(least=1, **{name: value for name, value in given.items() if value is not None})

    def scores(
        self,
        candidates: LineCandidates,
        residual: NDArray[np.float64],
        n_scans: int,
        evaluate: Evaluate,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Minus the mean error with each line added."""
        tried = _some(np.flatnonzero(candidates.remaining), self.candidates, rng)
        scans = _some(np.arange(n_scans), self.scans, rng)
        trials = [(int(scan), (*candidates.acquired, int(line))) for line in tried for scan in scans]
        errors = np.array([outcome.error for outcome in evaluate(trials)]).reshape(len(tried), len(scans))
        scores = np.full(candidates.n_lines, np.nan)
        scores[tried] = -errors.mean(axis=1)
        return scores


TrainingRule = TrainingResidual | LBCS
"""Its scores are larger for better candidates, and NaN for those not tried, from the mean residual so far, (size,)."""


def _some(items: NDArray[np.int_], count: int | None, rng: np.random.Generator) -> NDArray[np.int_]:
    """``count`` of the items in their order; all if there are no more."""
    if count is None or count >= len(items):
        return items
    return np.sort(rng.choice(items, count, replace=False))


@dataclass(frozen=True)
class OrderTraining:
    """Training scans, the rule that learns an order of lines from them, and its settings.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        On one grid.
    rule : TrainingRule
        Decides which line comes next.
    target : int
        Lines in the end.
    evaluate : callable
        Reconstructs and judges trials.
    seed : int
        Each step has a generator of its own made from it.
    constraints : Constraints
        Constraints of the sequence on the lines.
    block : int
        Samples of a plane that are added after each look at the reconstructions; lines are added one by one.
    """

    scans: Sequence[ReferenceSlice]
    rule: TrainingRule
    target: int
    evaluate: Evaluate
    _: KW_ONLY
    seed: int = 0
    constraints: Constraints = field(default_factory=LineConstraints)
    block: int = 1


def begin_training(training: OrderTraining, start: Sequence[int]) -> TrainedDesign:
    """The start lines, and the errors that reconstructions from them have.

    Raises
    ------
    InputError
        For no scan, scans on different grids, a target that cannot be reached, or constraints that the start breaks.
    """
    candidates = _candidates(training, tuple(start), len(start))  # refuses what is impossible
    outcomes = list(training.evaluate([(i, tuple(start)) for i in range(len(training.scans))]))
    residual, error, _ = _means(outcomes)
    return TrainedDesign(
        grid=training.scans[0].slice_model.shape,
        lines=tuple(start),
        n_start=len(start),
        profile=residual[None],
        errors=np.array([error]),
        rule=training.rule.name,
        reconstructions=len(outcomes),
        unconverged=_unconverged(outcomes),
        training=tuple(scan.name for scan in training.scans),
        counts=(len(start),) if candidates.readouts.thinned else (),
    )


def train(
    training: OrderTraining, design: TrainedDesign, callback: Callable[[TrainedDesign], None] | None = None
) -> TrainedDesign:
    """Add lines, or blocks of samples, up to the target of the training.

    Parameters
    ----------
    training : OrderTraining
        Scans, rule and target.
    design : TrainedDesign
        From `begin_training`, or of an interrupted run: the order is the same.
    callback : callable, optional
        Sees the design after every line or block.

    Raises
    ------
    InputError
        As `begin_training`.
    """
    candidates = _candidates(training, design.lines, design.n_start)
    n_scans = len(training.scans)
    removed = None
    while len(candidates.acquired) < training.target:
        outcomes: list[Outcome] = []

        def noted(trials: Sequence[Trial], outcomes: list[Outcome] = outcomes) -> list[Outcome]:
            these = list(training.evaluate(trials))
            outcomes.extend(these)
            return these

        rng = np.random.default_rng([training.seed, len(candidates.acquired)])
        scores = training.rule.scores(candidates, design.profile[-1], n_scans, noted, rng)
        if candidates.readouts.thinned and removed is None:  # the design does not hold it: begun, or gone on with
            _, _, removed = _means(list(training.evaluate([(i, candidates.acquired) for i in range(n_scans)])))
        candidates = candidates.after(*_chosen(scores, candidates, removed, training, rng))
        residual, error, removed = _means(noted([(i, candidates.acquired) for i in range(n_scans)]))
        design = replace(
            design,
            lines=candidates.acquired,
            profile=np.concatenate([design.profile, residual[None]]),
            errors=np.append(design.errors, error),
            reconstructions=design.reconstructions + len(outcomes),
            unconverged=design.unconverged + _unconverged(outcomes),
            counts=design.counts and (*design.counts, len(candidates.acquired)),
        )
        if callback is not None:
            callback(design)
    return design


def _candidates(training: OrderTraining, lines: tuple[int, ...], n_start: int) -> LineCandidates:
    measurable, readouts = shared_lines(training.scans), training.scans[0].slice_model.candidates
    return LineCandidates(measurable, lines, training.target, n_start, training.constraints, readouts)


def _chosen(
    scores: NDArray[np.float64],
    candidates: LineCandidates,
    removed: NDArray[np.float64] | None,
    training: OrderTraining,
    rng: np.random.Generator,
) -> list[int]:
    """The best line, or a block of samples chosen by how much one sample reduces the error of others.

    With one coil they are thinned. With several the first part is a Poisson disc, and the others are `covering`.
    """
    if removed is None:
        return [best_line(scores, candidates).line]
    plane, measured = plane_of(candidates.readouts), len(candidates.acquired)
    count = min(training.block, training.target - measured)
    if min(scan.slice_model.n_coils for scan in training.scans) == 1:
        return thinned(np.where(candidates.remaining, scores, np.nan), removed, plane, count)
    if (disc := round(SHARE * training.target) - measured) > 0:
        return [choice.line for choice in first_disc(candidates, rng, disc)]
    return covering(np.where(candidates.mask, 0.0, scores), removed, plane, candidates.remaining, count)[0]


def _means(outcomes: Sequence[Outcome]) -> tuple[NDArray[np.float64], float, NDArray[np.float64] | None]:
    """Means over the scans for one set of lines: residual, error, and what a sample removes of others' error."""
    residual = np.asarray(np.mean([outcome.residual for outcome in outcomes], axis=0))
    shares = [outcome.removed for outcome in outcomes if outcome.removed is not None]
    return residual, _error(outcomes), np.asarray(scipy.fft.fftshift(np.mean(shares, axis=0))) if shares else None


def _error(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.error for outcome in outcomes]))


def _unconverged(outcomes: Sequence[Outcome]) -> int:
    return sum(not outcome.converged for outcome in outcomes)


@dataclass(frozen=True)
class Exchange:
    """An attempt to replace a line of a protocol by another.

    Parameters
    ----------
    removed, added : int
        Lines.
    error : float
        Mean error over the training scans with the exchange made.
    accepted : bool
        Whether it was kept.
    """

    removed: int
    added: int
    error: float
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class ExchangeRules:
    """Lines that may be exchanged, and how the line to drop is searched for.

    Parameters
    ----------
    keep : sequence of int
        Lines that stay (a forced centre).
    allowed : bool array, shape (ky,), optional
        Lines that may come in; all that hold data by default.
    importance : mapping of int to float
        How much each line added when it was chosen (`DesignTrace.innovation_energies`): the least important are tried
        first. Lines it does not name come last, the outermost before the others.
    shortlist : int
        The line to drop is the one of so many candidates whose loss leaves the least error. An attempt takes that many
        reconstructions per scan, and one more.
    """

    keep: Sequence[int] = ()
    allowed: NDArray[np.bool_] | None = None
    importance: Mapping[int, float] = field(default_factory=dict)
    shortlist: int = 6


@dataclass(frozen=True)
class Refinement:
    """A mask that is being improved.

    Parameters
    ----------
    lines : tuple of int
        In acquisition order; exchanged lines are at the end.
    error : float
        Mean error over the training scans.
    exchanges : tuple of Exchange
        Attempts so far.
    reconstructions, unconverged : int
        How many these took, and how many did not converge.
    """

    lines: tuple[int, ...]
    error: float
    exchanges: tuple[Exchange, ...] = ()
    reconstructions: int = 0
    unconverged: int = 0

    @property
    def settled(self) -> tuple[int, ...]:
        """Lines whose removal has been tried since the last exchange that was kept."""
        tried: list[int] = []
        for exchange in self.exchanges:
            tried = [] if exchange.accepted else [*tried, exchange.removed]
        return tuple(tried)


def begin_refinement(scans: Sequence[ReferenceSlice], lines: Sequence[int], evaluate: Evaluate) -> Refinement:
    """The mask before any exchange, with its error."""
    shared_lines(scans)
    outcomes = list(evaluate([(i, tuple(lines)) for i in range(len(scans))]))
    return Refinement(tuple(lines), _error(outcomes), (), len(outcomes), _unconverged(outcomes))


def refine(
    scans: Sequence[ReferenceSlice],
    state: Refinement,
    attempts: int,
    evaluate: Evaluate,
    rules: ExchangeRules = ExchangeRules(),
    callback: Callable[[Refinement], None] | None = None,
) -> Refinement:
    """Try exchanges until ``attempts`` have been made, or no line is left to try.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        On one grid.
    state : Refinement
        From `begin_refinement`, or of an interrupted run.
    attempts : int
        Exchanges to try in all.
    evaluate : callable
        Reconstructs and judges trials.
    rules : ExchangeRules
        Which lines may be exchanged.
    callback : callable, optional
        Sees the state after every attempt.

    Returns
    -------
    Refinement
        Its error is never above that of ``state``.

    Raises
    ------
    InputError
        For no scan, scans on different grids, or a line that is kept but not there.
    """
    measurable = shared_lines(scans)
    incoming = measurable if rules.allowed is None else measurable & rules.allowed
    every = range(len(scans))

    def rank(line: int) -> tuple[bool, float, int]:
        outer = -abs(line - len(measurable) // 2)
        return line not in rules.importance, rules.importance.get(line, outer), line

    while len(state.exchanges) < attempts:
        settled = {*rules.keep, *state.settled}
        movable = [line for line in state.lines if line not in settled]
        free = incoming.copy()
        free[list(state.lines)] = False
        if not movable or not free.any():
            return state
        shortlist = sorted(movable, key=rank)[: rules.shortlist]
        without = [tuple(line for line in state.lines if line != dropped) for dropped in shortlist]
        outcomes = list(evaluate([(i, lines) for lines in without for i in every]))
        groups = [outcomes[i : i + len(scans)] for i in range(0, len(outcomes), len(scans))]
        least = int(np.argmin([_error(group) for group in groups]))
        residual = np.mean([outcome.residual for outcome in groups[least]], axis=0)
        added = int(np.argmax(np.where(free, residual, -np.inf)))
        last = list(evaluate([(i, (*without[least], added)) for i in every]))
        error = _error(last)
        accepted = error < state.error
        state = replace(
            state,
            exchanges=(*state.exchanges, Exchange(shortlist[least], added, error, accepted)),
            reconstructions=state.reconstructions + len(outcomes) + len(last),
            unconverged=state.unconverged + _unconverged(outcomes) + _unconverged(last),
        )
        if accepted:
            state = replace(state, lines=(*without[least], added), error=error)
        if callback is not None:
            callback(state)
    return state


def with_exchanges(trace: DesignTrace, refined: Refinement) -> DesignTrace:
    """The design with its exchanges: steps of dropped lines are left out, added lines follow at the end, unpredicted.

    Where the first step of a block is removed, its forecast is copied to the steps of that block that remain.
    """
    added = {exchange.added for exchange in refined.exchanges if exchange.accepted}
    known = {}
    for i, step in enumerate(trace.steps):
        begun = trace.block_start(i).forecast
        forecast = replace(step.forecast, expected=begun.expected, corrected=begun.corrected)
        known[step.line] = replace(step, choice=replace(step.choice, pending=0, forecast=forecast))
    chosen = refined.lines[len(trace.start) :]
    return replace(trace, steps=tuple(DesignStep(Choice(line)) if line in added else known[line] for line in chosen))


@dataclass(frozen=True, kw_only=True)
class TrainedOrder(Strategy):
    """The learnt order of lines, or of samples of a plane, as training left it.

    Those that may not be measured are passed over. Where the order has come to its end, those with the largest
    residuals that training left are next.

    Parameters
    ----------
    design : TrainedDesign
        What training wrote.

    Raises
    ------
    InputError
        Where it is of another grid than the scan, once it is to choose.
    """

    design: TrainedDesign
    name: str = "trained"
    needs_posterior = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The number of candidates around DC that training began with."""
        self.design.require_grid(readouts.shape)
        return min(target, self.design.n_start)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The first ``count`` of the order that are left."""
        self.design.require_grid(view.readouts.shape)
        left = view.candidates.remaining.copy()
        chosen = [line for line in self.design.lines if left[line]][:count]
        left[chosen] = False
        more = np.argsort(-np.where(left, self.design.profile[-1], -np.inf), kind="stable")[: count - len(chosen)]
        return [Choice(line) for line in (*chosen, *more.tolist())]

"""Lines that are held back from a reconstruction, to compare models by how well the other lines predict them.

`held_back` chooses the lines, `HeldBack` infers from the others. Between models the first one is kept unless another
one is clearly better (`best_model`); so a modulus and a phase-aware model are compared (`choose_phase`).

The spectral correction is found in the same way. The mean of a sparse model shrinks what was not measured: near the
centre of k-space it is too small, and on the outermost lines, where little is left to find, too large. The bias is
alike in most images. One real factor for every band of (|ky|, |kx|) was learnt from random heads
(results/benchmarks/band-factors.md). How much of the correction a scan takes, from none to all, is found by least
squares on the lines held back (`strength`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.engine import found_energies
from mri_design.errors import InputError
from mri_design.inference.base import WarmStart, pooled_variances
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel, phase_variants
from mri_design.model.sparsity import IMAGINARY_RATIO, PhasePrior
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

Numbers = NDArray[np.float64]
FEWEST = 4
"""Lines that a choice between models takes."""
CLEARLY = 1.5
"""Standard errors of the mean by which a model has to predict the lines held back better than the first one does."""
NARROW_CENTRE = 8
"""Lines nearest to DC that replace the unbroken run where companions are judged and that run leaves fewer
than `FEWEST` to hold back, but half as many (results/companions/few-held-back.md)."""


def best_model(energies: Numbers) -> int:
    """The model with the smallest mean log innovation energy; the first one unless another is better by `CLEARLY`.

    Parameters
    ----------
    energies : float array, shape (lines, models)
        Sum of |measured - predicted|^2 over every measured line, under every model; the first model is the safe one.

    Returns
    -------
    int
        Index of the model; 0 on fewer than four lines.

    Raises
    ------
    InputError
        For energies that are not a table of positive finite numbers.
    """
    if energies.ndim != 2 or not energies.shape[1] or not (np.isfinite(energies).all() and (energies > 0).all()):
        raise InputError("innovation energies", f"shape {energies.shape}", "positive numbers (lines, models)")
    if len(energies) < FEWEST:
        return 0
    gains: Numbers = np.log(energies[:, :1]) - np.log(energies)
    mean, error = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(len(energies))
    eligible = np.where(mean > CLEARLY * error, mean, -np.inf)
    eligible[0] = 0
    return int(np.argmax(eligible))


ONE_IN = 3
"""Of the lines outside the centre one in so many is held back, from one edge to the other."""


def held_back(
    lines: Sequence[int], readouts: Readouts, centre: int | None = None, *, fold: int = 0
) -> tuple[list[int], list[int]]:
    """The lines to infer from, and those held back: a third of the lines outside the unbroken run around DC.

    Of other readouts they are a third of the candidates that it lets be predicted (`Readouts.predictable`). Which
    third does not depend on the order of ``lines``, so that a mask without one is treated like a design; no line is
    held back together with its mirror image, since each says much about the other. With fewer than 12 such lines it is
    a half of them. With ``centre`` that many lines nearest to DC replace the unbroken run. Another
    ``fold`` is another third, or the other half.
    """
    outer = readouts.predictable(lines)
    if centre is not None:
        outer = sorted(set(lines).difference(readouts.nearest_to_centre(lines, centre)))
    step = ONE_IN if len(outer) >= FEWEST * ONE_IN else 2
    count = len(outer) // step
    held: dict[int, None] = {}  # in their order
    for line in (line for first in range(step) for line in outer[(first + 1 + fold) % step :: step]):
        if len(held) < count and readouts.opposite_of(line) not in held:
            held[line] = None
    return [line for line in lines if line not in held], list(held)


@dataclass(frozen=True)
class HeldBack:
    """Lines that are held back, and the inference from the other lines.

    Parameters
    ----------
    slice_model : SliceModel
        The slice without non-local blocks.
    known, held : tuple of int
        The lines that are inferred from, and those that are held back.
    engine : DoubleLoop
        Infers on the first call, in one outer loop from ``start``.
    seed : int
        Of what it draws.
    signal : float
        Signal level that the prior's scales follow: that of all lines.
    start : WarmStart, optional
        An image that has not seen the lines held back, and variances of nearly the same model, which may have; by
        default what a loop with half the draws finds without these lines.
    """

    slice_model: SliceModel
    known: tuple[int, ...]
    held: tuple[int, ...]
    engine: DoubleLoop
    seed: int
    signal: float
    start: WarmStart | None = None

    @cached_property
    def model(self) -> GeneralizedLinearModel:
        """Model of the lines that are not held back."""
        return self.slice_model.model(self.known, self.signal)

    @cached_property
    def posterior(self) -> GaussianPosterior:
        """Posterior of the lines that are not held back."""
        rng = np.random.default_rng(self.seed)
        return self.engine.cut_short(1).infer(self.model, rng, warm_start=self._beginning)

    @cached_property
    def _beginning(self) -> WarmStart:
        if self.start is not None:
            return self.start
        first = self.engine.cut_short(1, half_the_draws=True).infer(self.model, np.random.default_rng(self.seed))
        return _start_at(first, self.model, first.mean)

    @cached_property
    def unpredicted(self) -> Numbers:
        """Energy of every line held back that the posterior leaves unpredicted."""
        return found_energies(self.slice_model, self.posterior.mean, self.held)

    def under(self, chosen: PhaseChoice) -> HeldBack:
        """A copy that predicts the lines held back under the model of the phase that was chosen by them."""
        if chosen.phase is self.slice_model.phase:
            return self
        other = replace(self, slice_model=replace(self.slice_model, phase=chosen.phase), start=None)
        if chosen.image is None:
            return other
        return replace(other, start=_start_at(self.posterior, other.model, chosen.image))

    def another(self) -> HeldBack | None:
        """Another third of the lines held back, or the other half; None where none are.

        Its inference begins at the variances that this one began at, which know these lines, but not at the image.
        """
        known, held = held_back((*self.known, *self.held), self.slice_model.candidates, fold=1)
        if not held:
            return None
        other = replace(self, known=tuple(known), held=tuple(held), start=None)
        return replace(other, start=replace(self._beginning, mean=other.model.back_projection()))


def hold_back(
    slice_model: SliceModel,
    lines: Sequence[int],
    engine: DoubleLoop,
    seed: int,
    signal: float | None = None,
    centre: int | None = None,
) -> HeldBack | None:
    """Hold back about a third of the lines outside the centre (`held_back`).

    In a plane these are samples, along trajectories readouts.

    Parameters
    ----------
    slice_model : SliceModel
        Its non-local blocks are left out: they are known from an image only.
    lines : sequence of int
        Measured lines.
    engine : DoubleLoop
        Infers from those that are left.
    seed : int
        Of what it draws.
    signal : float, optional
        As in `SliceModel.model`; by default that of all lines.
    centre : int, optional
        As `held_back`.

    Returns
    -------
    HeldBack or None
        None where none can be held back.
    """
    level = slice_model.signal_level(lines) if signal is None else signal
    known, held = held_back(lines, slice_model.candidates, centre)
    if not held:
        return None
    return HeldBack(replace(slice_model, alike=None), tuple(known), tuple(held), engine, seed, level)


@dataclass(frozen=True)
class PhaseChoice:
    """The model of a slice's phase that its own lines have chosen.

    Parameters
    ----------
    phase : PhasePrior, optional
        None for moduli.
    held_back : int
        Lines (or samples, shots, readouts) held back that it was judged by; 0 where there were too few, or no phase to
        see.
    gain : float
        By how much less energy than under moduli was left unpredicted on them, as a fraction (geometric mean).
    image : complex array, shape (ky, kx), optional
        The image that predicted them; None where nothing was compared.
    unit : str
        What was held back, in the singular (`Readouts.unit`).
    one_sided : bool
        Whether nothing was held back because one side of k-space is missing (`Readouts.one_sided`).
    """

    phase: PhasePrior | None = None
    held_back: int = 0
    gain: float = 0.0
    image: Array | None = field(default=None, compare=False, repr=False)
    unit: str = "line"
    one_sided: bool = False


def choose_phase(
    without: HeldBack | None, imaginary_ratios: Sequence[float] = (IMAGINARY_RATIO,), *, one_sided: bool = False
) -> PhaseChoice:
    """The candidate model that predicts the lines held back best from the others.

    Candidates are compared at the marginal variances of the modulus model, so that each takes no more than one inner
    problem.

    Parameters
    ----------
    without : HeldBack, optional
        The modulus model's prediction, whose engine solves the inner problems; None if no lines were held back.
    imaginary_ratios : sequence of float
        Of the phase-aware candidates (`PhasePrior`).
    one_sided : bool
        Whether one side of k-space is missing (`Readouts.one_sided`): then nothing is compared, and the first candidate
        is taken.

    Returns
    -------
    PhaseChoice
        Moduli where no other model is clearly better (`best_model`), where fewer than four lines are held back, or
        where the image shows no phase.
    """
    if one_sided:
        return PhaseChoice(PhasePrior(None, imaginary_ratios[0]), one_sided=True)
    if without is None or len(without.held) < FEWEST:
        return PhaseChoice()
    posterior = without.posterior
    candidates = phase_variants(without.slice_model, posterior.mean, imaginary_ratios=imaginary_ratios)
    if len(candidates) == 1:
        return PhaseChoice()
    images, energies, engine = [], [], without.engine.cut_short(1)
    for candidate in candidates:
        model = candidate.model(without.known, without.signal)
        images.append(engine.image_at(model, _start_at(posterior, model, posterior.mean)))
        energies.append(found_energies(without.slice_model, images[-1], without.held))
    table = np.transpose(energies)
    number = best_model(table)
    gain = 1 - float(np.exp(np.mean(np.log(table[:, number]) - np.log(table[:, 0]))))
    return PhaseChoice(
        candidates[number].phase, len(without.held), gain, images[number], without.slice_model.candidates.unit
    )


def _start_at(near: GaussianPosterior, model: GeneralizedLinearModel, image: Array) -> WarmStart:
    """Start of a model of the same slice at an image and the variances of a posterior.

    Those of moduli are shared between the parts of phased coefficients. The blocks are the same but for that.
    """
    shared: list[Array] = []
    for block, variance in zip(model.blocks, pooled_variances(near.model, near.marginals), strict=True):
        like = block.pooled(np.ones(block.analysis.out_shape, dtype=variance.dtype))
        if like.ndim == variance.ndim:
            shared.append(variance)
        else:
            shared.append(np.ascontiguousarray(np.broadcast_to(variance[..., None] / like.shape[-1], like.shape)))
    return WarmStart(image, tuple(shared))


ModelName = Literal["modulus", "phase-aware"]
MODELS: tuple[ModelName, ...] = ("modulus", "phase-aware")
"""Models whose means are biased differently."""
KY_EDGES = (0.0, 0.0625, 0.125, 0.25, 0.5, 0.75, 1.0)
KX_EDGES = (0.0, 0.125, 0.5, 1.0)
"""Edges of the bands, |k| in units of half the grid."""
SHARES = (1 / 8, 1 / 4, 1 / 2)
"""Fractions of the lines measured for which factors have been learnt."""


def band_factors(table: Numbers, shape: tuple[int, int], lines: int) -> Array:
    """The factor of every sample of a grid (ky, kx) of which so many lines were measured.

    Parameters
    ----------
    table : float array, shape (fractions, |ky| bands, |kx| bands)
        For `SHARES` of the lines measured; between them factors are interpolated in the logarithm of the fraction.
    shape : (int, int)
        Of the grid.
    lines : int
        How many were measured.
    """
    at = np.interp(np.log(lines / shape[0]), np.log(SHARES), np.arange(len(SHARES)))
    low = int(min(at, len(SHARES) - 2))
    factors = table[low] + (at - low) * (table[low + 1] - table[low])
    return np.asarray(factors.ravel()[bands(shape)])


def with_band_factors(
    table: Numbers, slice_model: SliceModel, lines: Sequence[int], image: Array, strength: float
) -> Array:
    """The image with the factors of a table (`band_factors`) on its lines that were not measured.

    Parameters
    ----------
    table : float array
        Of factors.
    slice_model : SliceModel
        The slice, of one coil.
    lines : sequence of int
        Measured lines, which stay as they are.
    image : complex array, shape (ky, kx)
        The posterior mean.
    strength : float
        Fraction of the correction, 0 to 1.
    """
    encoding, left = slice_model.encoding(), unmeasured(slice_model, lines)
    excess = strength * (band_factors(table, slice_model.shape, len(lines)) - 1)
    excess[~left] = 0
    correction = encoding.adjoint(encoding(image) * excess.astype(image.real.dtype))
    return np.asarray(image + correction)


def bands(shape: tuple[int, int]) -> NDArray[np.intp]:
    """Number of the band that each sample of a grid (ky, kx) is in, counted along |kx| first."""
    places = []
    for n, edges in zip(shape, (KY_EDGES, KX_EDGES), strict=True):
        k = np.abs(np.arange(n) - n // 2) / (n / 2)
        places.append(np.minimum(np.searchsorted(edges, k, side="right") - 1, len(edges) - 2))
    return np.asarray(places[0][:, None] * (len(KX_EDGES) - 1) + places[1])


def unmeasured(slice_model: SliceModel, lines: Sequence[int]) -> NDArray[np.bool_]:
    """Samples (ky, kx) on none of the lines."""
    left = np.ones(slice_model.shape, dtype=bool)
    left[list(lines)] = False
    return left


@cache
def shipped_band_factors(model: ModelName = "modulus") -> Numbers:
    """Factors for the mean under one model that ``benchmarks/band_factors.py`` learnt from random heads."""
    text = resources.files("mri_design.evidence").joinpath("spectral_correction.json").read_text("utf-8")
    return np.array(json.loads(text)[model], dtype=float)


def strength(without: HeldBack | None, table: Numbers, image: Array | None = None) -> float:
    """Fraction of the factors' correction that a scan takes, 0 to 1, by least squares on its lines held back.

    Parameters
    ----------
    without : HeldBack, optional
        The lines held back; None if there are none.
    table : float array
        Factors of the model in use (`band_factors`).
    image : complex array, shape (ky, kx), optional
        Predicts the lines held back; by default the posterior mean of ``without``.

    Notes
    -----
    The posterior that predicts them has seen fewer lines and is further off than the one to be corrected, so that
    fractions above 1 are common; scans whose bias is of another kind have negative ones. Both are cut off. Fewer than
    four lines held back, several coils and samples in holes are not corrected at all.
    """
    if without is None or len(without.held) < FEWEST:
        return 0.0
    one = without.slice_model
    if one.candidates.kind.axes != 1 or one.maps is not None or one.samples is not None:
        return 0.0
    excess = band_factors(table, one.shape, len(without.known) + len(without.held)) - 1
    image = without.posterior.mean if image is None else image
    asked = possible = 0.0
    for line in without.held:
        predicted = one.measurement([line])(image)
        change = predicted * excess[line]
        asked += float(np.sum((change.conj() * (one.acquire([line]) - predicted)).real, dtype=np.float64))
        possible += float(np.sum(np.abs(change) ** 2, dtype=np.float64))
    return float(np.clip(asked / possible, 0, 1)) if possible > 0 else 0.0

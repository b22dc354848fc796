"""Error bars that hold: the squared error of an image is predicted from its own scan, and gives one factor.

A posterior shows well where an image is uncertain, and badly by how much. The logarithm of the squared error over the
sum of the posterior's variances is regressed on a few logarithms that every scan has (`features`): how much more
energy than expected was found on readouts that were held back, how much the image lacks where nothing was measured,
how far it moved between its estimates. A straight line through them is corrected by what it left open of images alike:
kernel ridge regression, which far from all images is the straight line. It has been learnt from images whose truth is
known, of several anatomies, encodings, coils and noises (``benchmarks/error_bars.py learn``,
results/error-bars/README.md).

Draws of an image have the spectrum that its errors have, by which means of regions are as wrong as predicted.
The posterior of a sparse model spreads what is not known over k-space too evenly: the errors of its mean are far larger
than its draws near the centre and smaller far out. A map of standard deviations does not show that, but the mean of a
region does, which knows low frequencies only. So every sample of the draws is multiplied by the root of a factor. How
the squared error of samples that were not measured falls with their distance from the centre is alike in most images,
and how much larger it is in this one shows on the readouts that were held back: what was found there beyond the noise,
over what draws expect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.evidence.held_back import HeldBack
from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.readouts import radii
from mri_design.sites.priors import Laplace, SharedLaplace

LEAST_FOUND = 0.5
"""Energy found on readouts held back, its noise taken off, in standard deviations of that noise, at least."""
DRAWS = 8
"""Posterior draws behind what is expected of the readouts held back, where inference made none."""
RINGS = 16
"""Rings in which measured energies are compared with those of the image."""
LEAST_MISSING = 0.02
"""Share of the energy that is left missing at least."""
KNOWN_BLOCKS = {"pixels", "differences", "non-local", "companion", "repeat"}
"""Kinds of blocks under which predictions of the squared error have been learnt."""
EDGES = np.array([0.0, 0.06, 0.12, 0.2, 0.3, 0.45, 0.65, 0.85, np.inf])
"""Edges of the rings that samples are sorted into, |k| in units of half the grid."""
FEW = 8
"""Samples of a ring below which what is found there counts as it does everywhere."""


def energies_held_back(folds: Sequence[HeldBack], final: GaussianPosterior, seed: int) -> dict[str, Any]:
    """Energies on readouts held back by several folds, by their names in `ErrorEvidence`; ``final`` has the image."""
    if not folds:
        return {}
    found, expected, rings = (np.concatenate(parts, axis=-1) for parts in zip(*map(_energies, folds), strict=True))
    one = folds[0].slice_model
    noise = 2 * one.noise_variance
    over = _over(found, expected, noise)
    each = [
        _over(found[:, rings == n], expected[:, rings == n], noise) if np.sum(rings == n) >= FEW else over
        for n in range(len(EDGES) - 1)
    ]
    kspace = CentredFFT(one.shape)(final.own_deviations(np.random.default_rng(seed), DRAWS))
    power = np.mean(powers(kspace), axis=0)
    places = np.digitize(radii((one.shape[0], one.shape[1])), EDGES) - 1
    weights = np.bincount(places.ravel(), power.ravel(), minlength=len(each))
    return {
        "held_back": sum(len(fold.held) for fold in folds),
        "found": over * float(expected.sum()),
        "expected": float(expected.sum()),
        "surprise": float(np.mean(found / (expected + noise))),
        "by_ring": float(weights @ np.array(each) / weights.sum()),
    }


def _energies(fold: HeldBack) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Energy found and expected of every sample held back, (coil, sample) each, and the rings of the samples."""
    one, posterior = fold.slice_model, fold.posterior
    rows, draws = one.measurement(fold.held), posterior.own_deviations(np.random.default_rng(fold.seed), DRAWS)
    power = np.mean(np.stack([powers(rows(draw)) for draw in draws]), axis=0)
    found = powers(one.acquire(fold.held) - rows(posterior.mean))
    rings = np.digitize(one.candidates.sample_radii(fold.held, one.samples), EDGES).ravel() - 1
    return found.reshape(len(found), -1), one.noise_variance * power.reshape(len(power), -1), rings


def _over(found: NDArray[np.float64], expected: NDArray[np.float64], noise: float) -> float:
    """Measured energy, less noise, over expected energy of some samples, bounded below by the noise's fluctuations."""
    least = LEAST_FOUND * noise * np.sqrt(found.size)
    return float(max(found.sum() - noise * found.size, least) / expected.sum())


def energy_missing(slice_model: SliceModel, lines: Sequence[int], image: Array) -> float:
    """Energy that an image lacks on unmeasured candidates, compared with measured ones at the same distance.

    The error of a posterior mean is orthogonal to the mean, so its energy is that of the truth less that of the mean;
    and the truth has as much as was measured as far from DC. Along shots there are no such candidates: NaN.

    Parameters
    ----------
    slice_model : SliceModel
        Lines, or samples of a plane.
    lines : sequence of int
        Those measured.
    image : complex array, shape (ky, kx)
        The posterior mean.
    """
    readouts = slice_model.candidates
    if readouts.overlapping or slice_model.samples is not None:
        return float("nan")
    measured = np.isin(np.arange(readouts.size), lines)
    if measured.all():
        return 0.0
    values = readouts.values(image[None], slice_model.maps)
    own = np.sum(powers(values), axis=(0, 1, 3))
    data = readouts.energies(slice_model.acquire(sorted(lines)).astype(np.complex128), sorted(lines))
    noise = 2 * slice_model.noise_variance * slice_model.n_coils * values.shape[3]
    distance = np.linalg.norm(readouts.frequencies / (np.array(readouts.shape) / 2), axis=1)
    rings = np.minimum((distance * RINGS).astype(int), RINGS)
    count = np.bincount(rings[sorted(lines)], minlength=RINGS + 1)
    energy = np.bincount(rings[sorted(lines)], data - noise, minlength=RINGS + 1)
    known = count > 0
    level = np.maximum(energy[known] / count[known], LEAST_FOUND * noise / np.sqrt(values.shape[3] * count[known]))
    at = np.interp(rings[~measured], np.flatnonzero(known), np.log(level))
    truth = float(np.exp(at).sum())
    return max(truth - float(own[~measured].sum()), LEAST_MISSING * truth)


@dataclass(frozen=True)
class ErrorEvidence:
    """Energies and numbers of one image, from which the squared error of the image is predicted.

    Energies are sums over pixels of squared moduli, in the units of the calibrated data.

    Parameters
    ----------
    variance : float
        Sum of the posterior's variances, as inference has them.
    local_variance : float
        That of the posterior without non-local blocks and companions, where it was made; else the same.
    noise : float
        What the noise alone would leave in the image of one coil from all samples: 2 sigma^2 for each pixel.
    share : float
        Measured samples over pixels, at most 1.
    coils : int
        Number of coils.
    encoding : str
        "lines", "plane", or "shots".
    phase_aware : bool
        Whether the phase counts as known.
    held_back : int
        Readouts held back; the energies that follow are NaN if there are none.
    found : float
        Energy of their measured less predicted samples, the noise taken off.
    expected : float
        Energy of the posterior's error on them.
    surprise : float
        Mean over samples of found over expected energy, noise included in both: 1 where the posterior is right. Samples
        at high frequencies count as much as those of the centre, where the energy is.
    by_ring : float
        Found over expected energy, ring by ring of k-space, each weighted by what the posterior of the image expects of
        the whole ring.
    from_held : float
        Energy of the image less that of the readouts that are not held back; NaN without such.
    from_local : float
        Energy of the image less that without non-local blocks; 0 without such.
    from_alone : float
        Energy of the image less that without companions; 0 without such.
    missing : float
        See `energy_missing`; NaN along shots.
    gain : float
        Mean logarithm of the energy that companions take off what is held back; 0 without such.
    """

    variance: float
    _: KW_ONLY
    local_variance: float
    noise: float
    share: float
    coils: int
    encoding: str
    phase_aware: bool
    held_back: int = 0
    found: float = float("nan")
    expected: float = float("nan")
    surprise: float = float("nan")
    by_ring: float = float("nan")
    from_held: float = float("nan")
    from_local: float = 0.0
    from_alone: float = 0.0
    missing: float = float("nan")
    gain: float = 0.0


def of_known_blocks(final: GaussianPosterior) -> bool:
    """Whether all blocks of an image's prior are of this package, with Laplace sites."""
    blocks = final.model.blocks
    return all(block.name in KNOWN_BLOCKS and isinstance(block.potential, Laplace | SharedLaplace) for block in blocks)


def error_evidence(
    slice_model: SliceModel,
    lines: Sequence[int],
    final: GaussianPosterior,
    before: GaussianPosterior,
    std: Array,
    folds: Sequence[HeldBack],
    seed: int,
) -> ErrorEvidence:
    """Collect the energies that predict the squared error of an image, without non-local blocks and companions.

    Parameters
    ----------
    slice_model : SliceModel
        The slice without its companions.
    lines : sequence of int
        Readouts behind the image.
    final : GaussianPosterior
        Of the image.
    before : GaussianPosterior
        Without non-local blocks and companions, or of the first stage; ``final`` if the prior has none.
    std : float array, shape (ky, kx)
        Standard deviations of the image under its posterior.
    folds : sequence of HeldBack
        What is inferred without some readouts, and without others; empty where none could be held back.
    seed : int
        Of draws.
    """
    image, own = final.mean, energy_of(std)
    known = before.marginals.kind == "exact" or before.marginals.image is not None
    return ErrorEvidence(
        own,
        local_variance=own if before is final or not known else float(np.sum(before.image_variances)),
        noise=2 * slice_model.noise_variance * image.size,
        share=share_measured(slice_model, lines),
        coils=slice_model.coils_read,
        encoding=slice_model.candidates.kind.sort,
        phase_aware=slice_model.phase is not None,
        **energies_held_back(folds, final, seed),
        from_held=float(np.mean([energy_of(image - fold.posterior.mean) for fold in folds] or [np.nan])),
        missing=energy_missing(slice_model, lines, image),
    )


def energy_of(image: Array) -> float:
    """Sum over pixels of the squared modulus."""
    return float(np.sum(powers(image)))


def powers(samples: Array) -> NDArray[np.float64]:
    """Squared moduli in double precision, whatever the unit of the data."""
    double = np.complex128 if np.iscomplexobj(samples) else np.float64
    return np.asarray(squared_modulus(samples.astype(double)))


def share_measured(slice_model: SliceModel, lines: Sequence[int]) -> float:
    """Measured readouts over those of the whole grid; along trajectories samples over pixels, at most 1."""
    measured, whole = slice_model.candidates.part_of_grid(len(lines))
    return min(1.0, measured / whole)


FALLS = 0.6
"""How much of the logarithm of a companion's gain on readouts held back is found in the squared error, too."""
FEWEST = 2
"""Readouts held back that predict an error under blocks that were not in the training data."""
MARGIN = 0.25
"""Share of what a feature ranged over in learning by which it may lie outside."""
HALF = 1.0
"""Readouts held back at which what they say is trusted by half."""
_TINY = 1e-12
Numbers = NDArray[np.float64]


def _log(energy: float) -> float:
    return float(np.log(max(energy, _TINY)))


def features(known: ErrorEvidence) -> dict[str, float]:
    """Features of one image by name; energies are relative to the sum of the posterior's variances, or 0."""

    def relative(energy: float) -> float:
        return _log(energy / known.variance) if energy > 0 else 0.0

    trust = known.held_back / (known.held_back + HALF)  # weight of what readouts held back say, 0 to 1
    return {
        "constant": 1.0,
        "several coils": float(known.coils > 1),
        "log coils": _log(known.coils),
        **{sort: float(known.encoding == sort) for sort in ("plane", "shots")},
        "phase-aware": float(known.phase_aware),
        "log share measured": _log(known.share),
        "log noise": relative(known.noise),
        "few held back": 1 - trust,
        "log found over expected energy": trust * _log(known.found / known.expected),
        "log found over expected energy, ring by ring": trust * _log(known.by_ring),
        "log energy expected of what is held back": relative(known.expected),
        "log surprise": trust * _log(known.surprise),
        "log energy that the image lacks": relative(known.missing),
        "log change since readouts were held back": relative(known.from_held),
        "non-local": float(known.from_local > 0),
        "log change by non-local blocks": relative(known.from_local),
        "companions": float(known.from_alone > 0),
        "gain of companions": known.gain,
        "log change by companions": relative(known.from_alone),
    }


def kind_of(known: ErrorEvidence) -> str:
    """Kind of the scan: its encoding, and whether it has several coils."""
    return known.encoding + (", coils" if known.coils > 1 else "")


@dataclass(frozen=True, kw_only=True)
class SquaredErrorModel:
    """log(squared error / sum of variances) = features . weights + a correction from similar images, up to a spread.

    Each image whose truth is known pulls those alike up or down by what the straight line leaves open of it.

    Parameters
    ----------
    weights : float array, shape (features,)
        Of the `features`.
    images : float array, shape (image, features)
        Features of those that it has been learnt from.
    pulls : float array, shape (image,)
        How much an image like it is pulled by each, in nats.
    unit : float array, shape (features,)
        By which differences of features are divided.
    lowest, highest : float array, shape (features,)
        What the features ranged over in learning.
    reach : float
        Distance, in these units, at which the pull has fallen to exp(-1/2).
    spread : mapping of str to float
        By `kind_of`: standard deviation of what the features leave open, in nats, on subjects that were left out.
    """

    weights: Numbers
    images: Numbers
    pulls: Numbers
    unit: Numbers
    lowest: Numbers
    highest: Numbers
    reach: float
    spread: Mapping[str, float]

    def alike(self, found: Numbers) -> Numbers:
        """How much every image is like the one with these features, 0 to 1."""
        return np.asarray(np.exp(-np.sum(((self.images - found) / self.unit) ** 2, axis=1) / (2 * self.reach**2)))

    def pull(self, found: Numbers) -> float:
        """Correction that is added to the linear prediction at these features."""
        return float(self.alike(found) @ self.pulls)

    def unlike(self, known: ErrorEvidence) -> list[str]:
        """Names of the features that lie outside the range of the training images."""
        named = features(known)
        if np.isnan(known.missing) and not named["shots"]:
            return ["log energy that the image lacks"]
        found, room = np.array([*named.values()]), MARGIN * (self.highest - self.lowest)
        outside = (found < self.lowest - room - _TINY) | (found > self.highest + room + _TINY)
        return [name for name, far in zip(named, outside, strict=True) if far]

    def squared_error(self, known: ErrorEvidence) -> float:
        """Predicted squared error of an image, in the units of the evidence."""
        found = np.array([*features(known).values()])
        return known.variance * float(np.exp(found @ self.weights + self.pull(found)))


@cache
def shipped_squared_error_model() -> SquaredErrorModel:
    """The weights that ``benchmarks/error_bars.py learn`` has learnt."""
    text = resources.files("mri_design.evidence").joinpath("squared_error.json").read_text("utf-8")
    stored = {name: held for name, held in json.loads(text).items() if name not in ("made by", "features")}
    arrays = {name: np.array(held, dtype=float) for name, held in stored.items() if isinstance(held, list)}
    return SquaredErrorModel(**stored | arrays)


How = Literal["learnt", "held back"]


def predicted_error(known: ErrorEvidence, *, learnt: bool = True) -> tuple[float, How, float] | None:
    """Predict the squared error of an image.

    Parameters
    ----------
    known : ErrorEvidence
        What the scan says.
    learnt : bool
        Whether the blocks of the image's prior are of the kinds that the regression has seen.

    Returns
    -------
    squared : float
        Summed over pixels, in the units of the evidence.
    how : {"learnt", "held back"}
        By the regression, or by readouts held back alone, where it has seen nothing like the scan.
    spread : float
        Standard deviation of its logarithm; NaN where none is known. None instead of all three where nothing could be
        held back, or too little to go by alone.
    """
    model = shipped_squared_error_model()
    if not known.held_back:
        return None
    if learnt and not model.unlike(known):
        return model.squared_error(known), "learnt", model.spread[kind_of(known)]
    if known.held_back < FEWEST:
        return None
    squared = known.local_variance * known.found / known.expected * float(np.exp(-FALLS * known.gain))
    return squared, "held back", float("nan")


BOUNDS = (1 / 3, 30.0)
"""Bounds of the factor on variances: beyond them the prediction is trusted less than the posterior."""
BOUNDED = (BOUNDS[0] ** 0.5 * 1.001, BOUNDS[1] ** 0.5 * 0.999)
"""Factors on standard deviations that one of the bounds has set."""
BLUR = 1.5
"""Pixels: standard deviation of the Gaussian over which changes of the image are averaged."""
OWN = 0.5
"""Weight of the posterior's variances in the map, relative to the changes of the image."""


@dataclass(frozen=True)
class StdFactor:
    """The factor on the standard deviations of an image, and its origin.

    Parameters
    ----------
    factor : float
        On the root of the mean variance.
    held_back : int
        Readouts that were held back to learn it.
    unit : str
        What was held back, in the singular (`Readouts.unit`).
    how : {"learnt", "held back"}
        See `predicted_error`.
    spread : float
        Standard deviation of the logarithm of the squared error that is predicted; NaN where it is not known.
    scans : str
        `kind_of` the scans with which that was tested.
    evidence : ErrorEvidence, optional
        Behind the prediction.
    """

    factor: float
    held_back: int
    _: KW_ONLY
    unit: str = "line"
    how: How = "learnt"
    spread: float = float("nan")
    scans: str = ""
    evidence: ErrorEvidence | None = None

    @property
    def at_bound(self) -> str:
        """Which of the bounds has set the factor; empty where none has."""
        return "least" if self.factor <= BOUNDED[0] else "most" if self.factor >= BOUNDED[1] else ""

    @property
    def facts(self) -> dict[str, Any]:
        """Fields for a checkpoint, without the evidence, as JSON values."""
        known = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "evidence"}
        return {name: value for name, value in known.items() if value == value}  # NaN is the default

    @property
    def of_error(self) -> float:
        """Standard deviation of the predicted error, as a fraction of it."""
        return float(np.expm1(self.spread / 2))


def std_factor(predicted: tuple[float, How, float] | None, known: ErrorEvidence, unit: str) -> StdFactor | None:
    """The factor for which variances sum to the predicted squared error, within `BOUNDS`; None without a prediction."""
    if predicted is None:
        return None
    squared, how, spread = predicted
    factor = float(np.sqrt(np.clip(squared / known.variance, *BOUNDS)))
    return StdFactor(factor, known.held_back, unit=unit, how=how, spread=spread, scans=kind_of(known), evidence=known)


def shaped_std(std: Array, image: Array, others: Sequence[Array]) -> NDArray[np.float32]:
    """Standard deviations that are larger where the image has changed; the sum of their squares stays the same.

    A posterior treats its own choices as known. Where an image changes when readouts are held back, or when non-local
    blocks come in, it is less certain than the posterior holds: half of the map are the posterior's variances, half are
    the squared changes, averaged over the neighbourhood (results/error-bars/README.md has what else was tried).

    Parameters
    ----------
    std : float array, shape (ky, kx)
        As the posterior has them.
    image : complex array, shape (ky, kx)
        The image.
    others : sequence of complex array, shape (ky, kx)
        Estimates of it that were made on the way.
    """
    variances = powers(std)
    total, changes = variances.sum(), []
    for other in others:
        power = scipy.ndimage.gaussian_filter(powers(image - other), BLUR)
        if power.sum() > 0:
            changes.append(power * (total / power.sum()))
    if not changes:
        return np.asarray(std, dtype=np.float32)
    return np.asarray(np.sqrt(OWN * variances + (1 - OWN) * np.mean(changes, axis=0)), dtype=np.float32)


RING_EDGES = (0.0, 1 / 12, 1 / 6, 1 / 4, 3 / 8, 13 / 24, 3 / 4, 1.0, 1.5)
"""Edges of rings of k-space, |k| in units of half the grid."""
MIDDLES = tuple((low + high) / 2 for low, high in pairwise(RING_EDGES))
KNOWN = (2.34, 0.59, 0.35, 0.28, 0.16, 0.03, -0.11, -0.20)
"""Logarithm of the squared error over that of draws, of measured samples, by ring."""
USUAL = np.array((1.66, 1.66, 1.66, 1.35, 0.88, 0.34, -0.25, -0.39))
"""Logarithm of what is found on readouts held back over what draws expect, by ring, in the mean of training scans."""
OFFSETS = np.array((2.48, 2.48, 2.33, 1.63, 1.38, 1.08, 0.44, -0.42))
SLOPES = np.array((0.41, 0.41, 0.41, 0.49, 0.26, 0.21, 0.33, 0.37))
"""Logarithm of the squared error over that of draws, of samples that were not measured: the offset where as much is
found as is usual, and the slope times what is found beyond it (benchmarks/draw_spectrum.py at commit
e84cd693 learnt all of these)."""
BRIGHTNESS = 0.1
"""Standard deviation of an image's brightness, as a whole, over that of its pixels: a tenth, as on training scans."""
_LEARNT = 1 / 6
"""Radius from which on something is held back in scans that taught: nearer, what is found in the next ring holds."""
_FEWEST, _DRAWS, _LEAST = 9, 8, 0.05
_AT_ONCE = 8
"""Draws that are solved for together, to bound the memory."""
_SMOOTH, _ROUNDS = 2.0, 4
"""Pixels over which variances of draws are smoothed, and how often what is left of the difference is made up for."""
_TOLERANCE = 1e-3
"""Of the solver: less would leave out of the draws what varies slowly over the image, as means of regions do."""


def with_spectrum_of_errors(deviations: Array, noise_variance: float, found: Numbers | None) -> Array:
    """Draws of u - mean, (draw, ky, kx), whose power in k-space is that of errors.

    A sample counts as measured by as much of its power as is noise.

    Parameters
    ----------
    deviations : complex array, shape (draw, ky, kx)
        As the posterior has them, in the units of the data.
    noise_variance : float
        Per real component.
    found : float array, shape (ring,), or None
        See `found_ratios`.
    """
    samples = to_kspace(deviations)
    power = np.mean(np.abs(samples) ** 2, axis=0)
    noise = 2 * noise_variance * (1 + 2 / np.sqrt(len(samples)))  # the most that so few draws have of it
    known = np.minimum(noise / np.maximum(power, np.finfo(power.dtype).tiny), 1)
    places = radii((power.shape[0], power.shape[1]))
    of_noise, of_rest = (np.exp(np.interp(places, MIDDLES, ring)) for ring in (KNOWN, error_ratios(found)))
    factor = np.sqrt(known * of_noise + (1 - known) * of_rest)
    return np.asarray(to_image(samples * factor), dtype=deviations.dtype)


def with_brightness(deviations: Array, image: Array, rng: np.random.Generator) -> Array:
    """Draws of u - mean, (draw, ky, kx), between which the brightness of the image (ky, kx) varies, too.

    The modulus of a mean is too small wherever what is missing would have added to it, and so everywhere at once.
    """
    size = np.sqrt(np.sum(np.abs(image) ** 2, dtype=np.float64))
    if not size:
        return deviations
    spread = np.sqrt(np.mean(np.sum(np.abs(deviations) ** 2, axis=(1, 2), dtype=np.float64))) / size
    factors = BRIGHTNESS * spread * rng.normal(size=(len(deviations), 1, 1))
    return np.asarray(deviations + factors * image, dtype=deviations.dtype)


def error_ratios(found: Numbers | None) -> Numbers:
    """Logarithm of the squared error over that of draws, (ring,), of samples that were not measured."""
    beyond = np.zeros(len(USUAL)) if found is None else everywhere(found) - USUAL
    return np.asarray(OFFSETS + SLOPES * np.nan_to_num(beyond))


def everywhere(found: Numbers) -> Numbers:
    """Ratios by ring, with missing rings filled from the nearest one; NaN if nothing was held back."""
    there = np.flatnonzero(np.isfinite(found))
    if not there.size:
        return found
    return np.asarray(found[there[np.abs(there[:, None] - np.arange(len(found))).argmin(axis=0)]])


def found_ratios(without: HeldBack, seed: int) -> Numbers:
    """Logarithm of measured over expected energy on the readouts held back, by ring.

    Both are taken to k-space by the adjoint of these readouts, and what noise makes of it is taken off.

    Parameters
    ----------
    without : HeldBack
        The readouts, and what is inferred from the others.
    seed : int
        Of draws and noise.

    Returns
    -------
    float array, shape (ring,)
        NaN for rings in which hardly anything is held back, and near the centre.
    """
    rng = np.random.default_rng([seed, 3])
    posterior, model = without.posterior, without.slice_model
    measurement, data = model.measurement(without.held), model.acquire(without.held)
    sd = float(np.sqrt(model.noise_variance))

    def power(samples: Array) -> Numbers:
        return np.asarray(np.abs(to_kspace(measurement.adjoint(samples))) ** 2, dtype=np.float64)

    draws = posterior.draw(rng, _DRAWS)[0]
    parts = rng.normal(scale=sd, size=(2, _DRAWS, *data.shape))
    found = power(data - measurement(posterior.mean))
    expected = np.mean([power(sd * measurement(one)) for one in draws], axis=0)
    noise = np.mean([power((real + 1j * part).astype(data.dtype)) for real, part in zip(*parts, strict=True)], axis=0)
    places, ratios = radii((model.shape[0], model.shape[1])), []
    for low, high in pairwise(RING_EDGES):
        ring = (places >= low) & (places < high) & (noise > 1e-6 * noise.max())
        there, beyond = float(expected[ring].sum()), float(found[ring].sum() - noise[ring].sum())
        enough = low >= _LEARNT and np.count_nonzero(ring) >= _FEWEST and there > 0
        ratios.append(np.log(max(beyond / there, _LEAST)) if enough else np.nan)
    return np.array(ratios)


@briefly
@dataclass(frozen=True)
class PosteriorDraws:
    """Draws images from the posterior behind one: with the spectrum of its errors, and its standard deviations.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the image.
    image, std : array, shape (ky, kx)
        The image and the standard deviations of its pixels, in the units of the data.
    seed, number : int
        Of the run and of the image in it: draws of different images are independent.
    without : HeldBack, optional
        What other readouts say of those held back.
    unit : float or array, shape (ky, kx)
        What draws are multiplied by, see `Image.times`.
    folded : callable, optional
        Makes images of the draws, where the posterior is of two sets of coil maps (`model.two_sets`).
    """

    posterior: GaussianPosterior
    image: Array
    std: Array
    seed: int
    number: int
    without: HeldBack | None
    unit: float | Array = 1.0
    folded: Callable[[Array], Array] | None = None

    def __call__(self, count: int, seed: int | None = None) -> Array:
        """Posterior draws (draw, ky, kx); with the run's seed the same that ``reconstruct`` returns."""
        seed = self.seed if seed is None else seed
        rng = np.random.default_rng([seed, 2, self.number])
        drawn = posterior_deviations(self.posterior, count, rng)
        found = None if self.without is None else found_ratios(self.without, self.seed)
        drawn = with_spectrum_of_errors(drawn, self.posterior.model.noise_variance, found)
        drawn = scaled_deviations(with_brightness(drawn, self.posterior.mean, rng), self.std)
        images = self.image + drawn if self.folded is None else self.folded(self.image + drawn)
        return np.asarray(images * self.unit, dtype=self.image.dtype)

    def times(self, unit: float | Array) -> PosteriorDraws:
        """In other units: times a number, or a number for each pixel."""
        return replace(self, unit=self.unit * unit)


def pull_of_prior(posterior: GaussianPosterior) -> Array:
    """By how much sites on pixels make the moduli of an image too small where it is bright, (ky, kx), in its units.

    At the mode X^T (X u - y) / sigma^2 is what sites pull with, d log t / d|u|: of a Laplace site tau / sigma, however
    bright the pixel is. An image whose energy X sees d-fold loses sigma tau / d: with lines of a grid d is nearly one,
    and along spokes, which measure the centre of k-space many times, so much more that nothing is lost.
    """
    model, size = posterior.model, np.abs(posterior.mean)
    seen, energy = np.sum(np.abs(model.measurement(posterior.mean)) ** 2, dtype=np.float64), energy_of(size)
    if not seen:
        return np.zeros_like(size)
    sd = np.sqrt(model.noise_variance)
    slopes = [_slope(block, size / sd) for block in model.blocks if block.name == "pixels"]
    pulled = -sd * energy / seen * np.sum(slopes, axis=0)
    return np.asarray(np.minimum(np.broadcast_to(pulled, size.shape), size), dtype=size.dtype)


def _slope(block: SiteBlock, size: Array) -> Array:
    """d log t / d|s| of sites on pixels of a modulus (ky, kx), both in standard deviations of the noise."""
    at = size[..., np.newaxis] if block.group_axes else size
    found = block.potential.dlog_t(at)
    return found[..., 0] if block.group_axes else found


def posterior_deviations(posterior: GaussianPosterior, count: int, rng: np.random.Generator) -> Array:
    """Draws of u - mean in the units of the data, (draw, ky, kx).

    They are others than those behind the variances, to which the site precisions of the posterior were fitted.
    """
    counts = [min(_AT_ONCE, count - done) for done in range(0, count, _AT_ONCE)]
    drawn = np.concatenate([posterior.draw(rng, few, tolerance=_TOLERANCE)[0] for few in counts])
    return np.asarray(drawn * np.sqrt(posterior.model.noise_variance), dtype=posterior.mean.dtype)


def scaled_deviations(deviations: Array, std: Array) -> Array:
    """Deviations (draw, ky, kx) times a smooth map, so that their variances are those of a map (ky, kx) of deviations.

    Their own variances are those of few draws, and are known well enough as means over some pixels. In all they are
    those of the map.
    """
    power = np.mean(np.abs(deviations) ** 2, axis=0, dtype=np.float64)
    wanted, scale = scipy.ndimage.gaussian_filter(std.astype(np.float64) ** 2, _SMOOTH), np.ones(std.shape)
    for _ in range(_ROUNDS):
        near = scipy.ndimage.gaussian_filter(scale * power, _SMOOTH)
        scale *= np.divide(wanted, near, out=np.zeros_like(near), where=near > 0)
    total = np.sum(scale * power)
    scale *= np.sum(std**2, dtype=np.float64) / total if total else 1.0
    return np.asarray(deviations * np.sqrt(scale), dtype=deviations.dtype)

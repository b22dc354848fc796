"""What is known at the end of a scan of how large the squared error of its image is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.evidence.draw_spectrum import radii
from mri_design.evidence.prediction import HeldBack
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.potentials.priors import Laplace
from mri_design.readouts import LineReadouts, PlaneReadouts, ShotReadouts

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


@dataclass(frozen=True)
class Innovations:
    """Readouts held back, and what the posterior of the others expected of them.

    Parameters
    ----------
    count : int
        Readouts.
    found : float
        Energy of measured less predicted samples, the noise taken off, in the data's units squared.
    expected : float
        Energy of the posterior's error on them.
    surprise : float
        Mean over samples of found over expected energy, noise included in both: 1 where the posterior is right. Samples
        at high frequencies count as much as those of the centre, where the energy is.
    by_ring : float
        Found over expected energy, ring by ring of k-space, each weighted by what the posterior of the image expects of
        the whole ring.
    """

    count: int
    found: float
    expected: float
    surprise: float
    by_ring: float

    @classmethod
    def of(cls, folds: Sequence[HeldBack], final: GaussianPosterior, seed: int) -> Innovations | None:
        """From predictions of readouts held back, and the posterior of the image; None where there are none."""
        if not folds:
            return None
        found, expected, rings = (np.concatenate(parts, axis=-1) for parts in zip(*map(_energies, folds), strict=True))
        one = folds[0].slice_model
        noise, held = 2 * one.noise_variance, sum(len(fold.held) for fold in folds)
        over = _over(found, expected, noise)
        each = [
            _over(found[:, rings == n], expected[:, rings == n], noise) if np.sum(rings == n) >= FEW else over
            for n in range(len(EDGES) - 1)
        ]
        kspace = CentredFFT(one.shape)(final.own_deviations(np.random.default_rng(seed), DRAWS))
        power = np.mean(powers(kspace), axis=0)
        places = np.digitize(radii((one.shape[0], one.shape[1])), EDGES) - 1
        weights = np.bincount(places.ravel(), power.ravel(), minlength=len(each))
        return cls(
            held,
            over * float(expected.sum()),
            float(expected.sum()),
            float(np.mean(found / (expected + noise))),
            float(weights @ np.array(each) / weights.sum()),
        )


def _energies(fold: HeldBack) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Energy found and expected of every sample held back, (coil, sample) each, and the rings of the samples."""
    one, posterior = fold.slice_model, fold.posterior
    rows, draws = one.measurement(fold.held), posterior.own_deviations(np.random.default_rng(fold.seed), DRAWS)
    power = np.mean(np.stack([powers(rows(draw)) for draw in draws]), axis=0)
    found = powers(one.acquire(fold.held) - rows(posterior.mean))
    rings = np.digitize(sample_radii(one, fold.held), EDGES).ravel() - 1
    return found.reshape(len(found), -1), one.noise_variance * power.reshape(len(power), -1), rings


def sample_radii(slice_model: MRSlice, ids: Sequence[int]) -> NDArray[np.float64]:
    """|k| of every sample of some readouts as the data of one coil are ordered, 1 at the middle of the grid's edges."""
    readouts, half = slice_model.candidates, np.array(slice_model.shape) / 2
    if isinstance(readouts, ShotReadouts):
        return np.asarray(np.linalg.norm(readouts.shots[list(ids)] / half, axis=-1).ravel())
    if isinstance(readouts, PlaneReadouts):
        return np.asarray(readouts.radius[sorted(ids)])
    each = radii((slice_model.shape[0], slice_model.shape[1]))
    return each[slice_model.grid_samples(np.asarray(ids))] if slice_model.samples is not None else each[list(ids)]


def _over(found: NDArray[np.float64], expected: NDArray[np.float64], noise: float) -> float:
    """Found less noise over expected energy of some samples; at least what noise alone may show."""
    least = LEAST_FOUND * noise * np.sqrt(found.size)
    return float(max(found.sum() - noise * found.size, least) / expected.sum())


def energy_missing(slice_model: MRSlice, lines: Sequence[int], image: Array) -> float:
    """Energy that an image lacks on candidates that were not measured, beside those measured at the same distance.

    The error of a posterior mean is orthogonal to the mean, so its energy is that of the truth less that of the mean;
    and the truth has as much as was measured as far from DC. Along shots there are no such candidates: NaN.

    Parameters
    ----------
    slice_model : MRSlice
        Lines, or samples of a plane.
    lines : sequence of int
        Those measured.
    image : complex array, shape (ky, kx)
        The posterior mean.
    """
    readouts = slice_model.candidates
    if not isinstance(readouts, LineReadouts | PlaneReadouts) or slice_model.samples is not None:
        return float("nan")
    measured = np.zeros(readouts.size, dtype=bool)
    measured[list(lines)] = True
    if measured.all():
        return 0.0
    values = readouts.values(image[None], slice_model.maps, slice_model.library)
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
    innovations : Innovations, optional
        Of the readouts held back; None where there are none.
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
    innovations: Innovations | None = None
    from_held: float = float("nan")
    from_local: float = 0.0
    from_alone: float = 0.0
    missing: float = float("nan")
    gain: float = 0.0


@dataclass(frozen=True)
class Estimates:
    """Everything that was inferred on the way to an image with error bars.

    Parameters
    ----------
    slice_model : MRSlice
        The slice without its companions.
    lines : sequence of int
        Readouts behind the image.
    final : GaussianPosterior
        Of the image.
    before : GaussianPosterior
        Without non-local blocks and companions, or of the first stage; the same where there are none.
    local : complex array, shape (ky, kx), optional
        First estimate, before there were non-local blocks; None without such.
    alone : complex array, shape (ky, kx), optional
        Image without companions; None without such.
    folds : sequence of HeldBack
        What is inferred without some readouts, and without others; empty where none could be held back.
    gain : float
        As `ErrorEvidence.gain`.
    """

    slice_model: MRSlice
    lines: Sequence[int]
    final: GaussianPosterior
    before: GaussianPosterior
    _: KW_ONLY
    local: Array | None = None
    alone: Array | None = None
    folds: Sequence[HeldBack] = ()
    gain: float = 0.0

    @property
    def others(self) -> list[Array]:
        """Estimates from fewer readouts, and from fewer blocks."""
        return [fold.posterior.mean for fold in self.folds] + ([] if self.local is None else [self.local])

    @property
    def of_known_blocks(self) -> bool:
        """Whether all blocks of the image's prior are of this package, with Laplace sites."""
        blocks = self.final.model.blocks
        return {block.name for block in blocks} <= KNOWN_BLOCKS and all(
            isinstance(block.potential, Laplace) for block in blocks
        )

    def evidence(self, std: Array, seed: int) -> ErrorEvidence:
        """What they say of the squared error of the image, whose posterior has standard deviations ``std``."""
        one, image, before = self.slice_model, self.final.mean, self.before
        own = energy_of(std)
        known = before.marginals.kind == "exact" or before.marginals.image is not None
        return ErrorEvidence(
            own,
            local_variance=own if before is self.final or not known else float(np.sum(before.image_variances)),
            noise=2 * one.noise_variance * image.size,
            share=share_measured(one, self.lines),
            coils=one.n_coils,
            encoding="shots" if isinstance(one.candidates, ShotReadouts) else one.candidates.name,
            phase_aware=one.phase is not None,
            innovations=Innovations.of(self.folds, self.final, seed),
            from_held=float(np.mean([energy_of(image - fold.posterior.mean) for fold in self.folds] or [np.nan])),
            from_local=0.0 if self.local is None else energy_of(image - self.local),
            from_alone=0.0 if self.alone is None else energy_of(image - self.alone),
            missing=energy_missing(one, self.lines, image),
            gain=self.gain,
        )


def energy_of(image: Array) -> float:
    """Sum over pixels of the squared modulus."""
    return float(np.sum(powers(image)))


def powers(samples: Array) -> NDArray[np.float64]:
    """Squared moduli in double precision, whatever the unit of the data."""
    double = np.complex128 if np.iscomplexobj(samples) else np.float64
    return np.asarray(squared_modulus(samples.astype(double)))


def share_measured(slice_model: MRSlice, lines: Sequence[int]) -> float:
    """Measured readouts over those of the whole grid; along trajectories samples over pixels, at most 1."""
    if isinstance(slice_model.candidates, ShotReadouts):
        samples = slice_model.candidates.shots.shape[1]
        return min(1.0, len(lines) * samples / (slice_model.shape[0] * slice_model.shape[1]))
    return min(1.0, len(lines) / slice_model.candidates.size)

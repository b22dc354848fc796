"""What is known at the end of a scan of how large the squared error of its image is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from mri_design.experiment.held_back.of_lines import predicted_by_error_model
from mri_design.experiment.held_back.prediction import HeldBack
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.readouts import ShotReadouts
from mri_design.potentials.priors import Laplace

LEAST_FOUND = 0.5
"""Energy found on readouts held back, its noise taken off, in standard deviations of that noise, at least."""
DRAWS = 8
"""Posterior draws behind what is expected of the readouts held back, where inference made none."""
KNOWN_BLOCKS = {"pixels", "differences", "non-local", "companion", "repeat"}
"""Kinds of blocks under which predictions of the squared error have been learnt."""


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
    """

    count: int
    found: float
    expected: float
    surprise: float

    @classmethod
    def of(cls, without: HeldBack | None, seed: int) -> Innovations | None:
        """From a prediction of the readouts held back; None where there are none."""
        if without is None:
            return None
        one, posterior = without.slice_model, without.posterior
        rows = one.measurement(without.held)
        sigma2, draws = one.noise_variance, posterior.own_deviations(np.random.default_rng(seed), DRAWS)
        power = np.mean([squared_modulus(rows(draw)) for draw in draws], axis=0, dtype=np.float64)
        found = squared_modulus(one.acquire(without.held) - rows(posterior.mean)).astype(np.float64)
        noise = 2 * sigma2 * found.size
        least = LEAST_FOUND * noise / np.sqrt(found.size)
        surprise = float(np.mean(found / (sigma2 * power + 2 * sigma2)))
        energy = max(float(found.sum()) - noise, least)
        return cls(len(without.held), energy, float(sigma2 * power.sum()), surprise)


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
    image : float
        Energy of the image.
    share : float
        Measured samples over pixels, at most 1.
    coils : int
        Number of coils.
    encoding : str
        "lines", "plane", or "shots".
    phase_aware : bool
        Whether the phase counts as known.
    predicted : float
        Squared error that the error model of designs predicts; NaN where it has learnt nothing.
    innovations : Innovations, optional
        Of the readouts held back; None where there are none.
    from_held : float
        Energy of the image less that of the readouts that are not held back; NaN without such.
    from_local : float
        Energy of the image less that without non-local blocks; 0 without such.
    from_alone : float
        Energy of the image less that without companions; 0 without such.
    gain : float
        Mean logarithm of the energy that companions take off what is held back; 0 without such.
    """

    variance: float
    _: KW_ONLY
    local_variance: float
    noise: float
    image: float
    share: float
    coils: int
    encoding: str
    phase_aware: bool
    predicted: float = float("nan")
    innovations: Innovations | None = None
    from_held: float = float("nan")
    from_local: float = 0.0
    from_alone: float = 0.0
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
        Without non-local blocks and companions; the same where there are none.
    local : complex array, shape (ky, kx), optional
        First estimate, before there were non-local blocks; None without such.
    alone : complex array, shape (ky, kx), optional
        Image without companions; None without such.
    without : HeldBack, optional
        What is inferred without some readouts; None where none could be held back.
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
    without: HeldBack | None = None
    gain: float = 0.0

    @property
    def others(self) -> list[Array]:
        """Estimates from fewer readouts, and from fewer blocks."""
        held = [] if self.without is None else [self.without.posterior.mean]
        return held + ([] if self.local is None else [self.local])

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
            image=energy_of(image),
            share=share_measured(one, self.lines),
            coils=one.n_coils,
            encoding="shots" if isinstance(one.candidates, ShotReadouts) else one.candidates.name,
            phase_aware=one.phase is not None,
            predicted=predicted_by_error_model(one, self.lines, before, self.without, seed),
            innovations=Innovations.of(self.without, seed),
            from_held=float("nan") if self.without is None else energy_of(image - self.without.posterior.mean),
            from_local=0.0 if self.local is None else energy_of(image - self.local),
            from_alone=0.0 if self.alone is None else energy_of(image - self.alone),
            gain=self.gain,
        )


def energy_of(image: Array) -> float:
    """Sum over pixels of the squared modulus."""
    return float(np.sum(squared_modulus(image), dtype=np.float64))


def share_measured(slice_model: MRSlice, lines: Sequence[int]) -> float:
    """Measured readouts over those of the whole grid; along trajectories samples over pixels, at most 1."""
    if isinstance(slice_model.candidates, ShotReadouts):
        samples = slice_model.candidates.shots.shape[1]
        return min(1.0, len(lines) * samples / (slice_model.shape[0] * slice_model.shape[1]))
    return min(1.0, len(lines) / slice_model.candidates.size)

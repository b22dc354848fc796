"""What is known at the end of a scan of how large the squared error of its image is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from mri_design.experiment.held_back.prediction import HeldBack
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.readouts import ShotReadouts

LEAST_FOUND = 0.5
"""Energy found on readouts held back, its noise taken off, in standard deviations of that noise, at least."""
DRAWS = 8
"""Posterior draws behind what is expected of the readouts held back, where inference made none."""


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


def energy_of(image: Array) -> float:
    """Sum over pixels of the squared modulus."""
    return float(np.sum(squared_modulus(image), dtype=np.float64))


def share_measured(slice_model: MRSlice, lines: Sequence[int]) -> float:
    """Measured readouts over those of the whole grid; along trajectories samples over pixels, at most 1."""
    if isinstance(slice_model.candidates, ShotReadouts):
        samples = slice_model.candidates.shots.shape[1]
        return min(1.0, len(lines) * samples / (slice_model.shape[0] * slice_model.shape[1]))
    return min(1.0, len(lines) / slice_model.candidates.size)


def encoding_of(slice_model: MRSlice) -> str:
    """Lines, plane or shots."""
    return "shots" if isinstance(slice_model.candidates, ShotReadouts) else slice_model.candidates.name

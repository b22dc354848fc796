"""Shots by information gain, as the papers choose the angles of spiral interleaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.posteriors import generators, of_each
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError, require_counts
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.encodings import ShotEncoding
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.variances.information import gain_from_values


@dataclass(frozen=True, kw_only=True)
class InformationGainShots:
    """The shot with the largest information gain, log det(I + X_* A^-1 X_*^H), from draws of the posterior.

    It predicts no error of the image: shots overlap, so that errors on them do not add up to that of the image.

    Parameters
    ----------
    draws : int
        Posterior draws behind the scores; inference's own are used as far as they go.

    Raises
    ------
    InputError
        For no draw.

    Notes
    -----
    TR-175, equation (12). With fewer draws than a shot has samples the score is too small; the order of the candidates
    is what counts.
    """

    draws: int = 12
    name: str = "information-gain"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """A quarter of the target, four at least: fewer show too little of the image."""
        return min(target, max(4, target // 4))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining shot whose scores, half of which are nats, add up to most over the posteriors."""
        shots = view.candidates.encoding
        if not isinstance(shots, ShotEncoding):
            raise InputError(field="candidates", got="no shots", wanted="a design over shots: --encoding radial")
        own = generators(rng, len(view.posteriors))
        total = np.asarray(np.sum(of_each(view.posteriors, gain_of_shots, shots, own, self.draws), axis=0))
        best = best_line(total, view.candidates)
        return replace(best, forecast=Forecast(information=float(total[best.line]) / 2))


def gain_of_shots(
    posterior: GaussianPosterior, shots: ShotEncoding, rng: np.random.Generator, draws: int
) -> NDArray[np.float64]:
    """Scores of all shots under one posterior, (size,): twice the information in nats, estimated from draws.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of measurements along a trajectory, whose coil maps are taken.
    shots : ShotEncoding
        The candidates.
    rng : numpy Generator
        Of draws beyond those that inference made.
    draws : int
        At least this many.

    Raises
    ------
    InputError
        Where the measurement is not along a trajectory.
    """
    measured = posterior.model.measurement
    if not isinstance(measured, NonUniformFourier):
        raise InputError(field="posterior", got="one of samples on a grid", wanted="one of samples along a trajectory")
    deviations = posterior.deviations(rng, draws)
    values = np.moveaxis(shots.values(deviations, measured.maps), 2, 0).reshape(shots.size, len(deviations), -1)
    if not posterior.precision.complex_linear:  # i times a draw is no draw
        values = np.concatenate([values.real, values.imag], axis=-1)
    return gain_from_values(values.mT)

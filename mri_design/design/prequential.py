"""Which candidate model of a slice is right: how well each predicted the lines before they came.

No truth is needed: a line that was measured next was not in the posterior that predicts it. Dawid, "Statistical
theory: the prequential approach", JRSS A 147 (1984).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from mri_design.design.line_variances import line_values
from mri_design.errors import InputError
from mri_design.model import GaussianPosterior, MRSlice
from mri_design.operators import Array

__all__ = ["FEWEST", "LinePrediction", "best_model", "predict_line"]

FEWEST = 4
"""Lines that a choice between models takes."""


@dataclass(frozen=True)
class LinePrediction:
    """What a posterior said of a line, and what came.

    Parameters
    ----------
    mean : complex array, shape (coil, x)
        Predicted values, readouts transformed back to image columns.
    variance : float array, shape (coil, x)
        Of each value per real component, noise included, in the data's units squared.
    innovation : complex array, shape (coil, x)
        Measured minus predicted.
    noise_variance : float
        Per real component.
    """

    mean: Array
    variance: Array
    innovation: Array
    noise_variance: float

    @property
    def expected_energy(self) -> float:
        """Sum of |innovation|^2 that the posterior expects."""
        return 2 * float(np.sum(self.variance, dtype=np.float64))

    @property
    def energy(self) -> float:
        """Sum of |innovation|^2 found."""
        return float(np.sum(np.abs(self.innovation) ** 2, dtype=np.float64))

    @property
    def log_density(self) -> float:
        """Log density of the line, columns and coils taken as independent; in nats.

        Posteriors here are too sure of themselves: for a choice between models, compare energies (`best_model`).
        """
        v = self.variance.astype(np.float64)
        return -float(np.sum(np.abs(self.innovation) ** 2 / (2 * v) + np.log(2 * np.pi * v)))


def predict_line(one: MRSlice, posterior: GaussianPosterior, line: int, draws: Array) -> LinePrediction:
    """Hold a posterior of ``one`` against the data of a line that it has not seen.

    Parameters
    ----------
    one : MRSlice
        Where the line's data are.
    posterior : GaussianPosterior
        Of other lines.
    line : int
        The line.
    draws : array, shape (count, ky, kx)
        Of (u - mean) / sigma: the posterior's own (`GaussianPosterior.deviations`).

    Raises
    ------
    InputError
        For a line without data.
    """
    encoding, noise = one.encoding([line]), posterior.model.noise_variance
    columns = scipy.fft.ifft(one.acquire([line])[:, 0], axis=-1, norm="ortho")
    mean = line_values(posterior.mean[None], encoding)[0, :, 0]
    spread = np.mean(np.abs(line_values(draws, encoding)[:, :, 0]) ** 2, axis=0) / 2
    return LinePrediction(mean, noise * (1 + spread), columns - mean, noise)


def best_model(energies: ArrayLike, *, margin: float = 1.0) -> int:
    """The model with the smallest mean log innovation energy; the first one unless another is clearly better.

    Parameters
    ----------
    energies : float array, shape (lines, models)
        `LinePrediction.energy` of every line that came, under every model; the first model is the safe one.
    margin : float
        Standard errors of the mean paired difference by which another has to win.

    Returns
    -------
    int
        Index of the model; 0 on fewer than four lines.

    Raises
    ------
    InputError
        For energies that are not a table of positive finite numbers.
    """
    found = np.asarray(energies, dtype=np.float64)
    if found.ndim != 2 or not found.shape[1] or not (np.isfinite(found).all() and (found > 0).all()):
        raise InputError(
            field="innovation energies", got=f"shape {found.shape}", wanted="positive numbers (lines, models)"
        )
    if len(found) < FEWEST:
        return 0
    gains: NDArray[np.float64] = np.log(found[:, :1]) - np.log(found)
    mean, error = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(len(found))
    eligible = np.where(mean > margin * error, mean, -np.inf)
    eligible[0] = 0
    return int(np.argmax(eligible))

"""A linear model of what the error on a line really is, given what the posterior says and where the line lies.

log(energy of the error on a line) = features . weights + noise. The weights start from synthetic heads (their mean and
their spread between heads), and Bayesian linear regression corrects them with every line that is measured. How good
they are is measured in results/error-model/README.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategies.line_features import FEATURES
from mri_design.errors import InputError

Numbers = NDArray[np.float64]

LARGEST_DOUBT = 1.0
"""Nats squared: how uncertain a line's log energy may count as, as it is on the grids that the shipped model saw."""


@dataclass(frozen=True)
class ErrorModel:
    """log(energy of the error on a line / unit) = features . weights + N(0, spread^2), weights ~ N(mean, covariance).

    Parameters
    ----------
    mean : float array, shape (features,)
        Weights of the average scan.
    covariance : float array, shape (features, features)
        How scans differ.
    spread : float
        Standard deviation of what the features leave open, in nats.

    Raises
    ------
    InputError
        For shapes that do not fit `FEATURES`, values that are not finite, or a spread that is not positive.
    """

    mean: Numbers
    covariance: Numbers
    spread: float

    def __post_init__(self) -> None:
        n = len(FEATURES)
        if self.mean.shape != (n,) or self.covariance.shape != (n, n):
            raise InputError(
                field="error model",
                got=f"weights {self.mean.shape}, covariance {self.covariance.shape}",
                wanted=f"({n},) and ({n}, {n})",
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.covariance).all() and 0 < self.spread < np.inf):
            raise InputError(
                field="error model", got="values that are no numbers", wanted="finite ones, and a spread above zero"
            )

    def given(self, features: Numbers, log_energies: Numbers, variances: Numbers) -> ErrorModel:
        """The model after lines have been measured: Bayesian linear regression.

        Parameters
        ----------
        features : float array, shape (lines, features)
            As they were before the lines were measured.
        log_energies : float array, shape (lines,)
            log(measured energy of the error / unit).
        variances : float array, shape (lines,)
            Variance of each of them beyond ``spread``^2.
        """
        precision = np.linalg.inv(self.covariance)
        weighted = features / (self.spread**2 + variances)[:, None]
        covariance = np.linalg.inv(precision + features.T @ weighted)
        mean = covariance @ (precision @ self.mean + weighted.T @ log_energies)
        return replace(self, mean=mean, covariance=(covariance + covariance.T) / 2)

    def energies(self, features: Numbers) -> Numbers:
        """Energies at the mean weights, in units of the image's centre: what is predicted."""
        return np.asarray(np.exp(features @ self.mean + self.spread**2 / 2))

    def marginal_energies(self, features: Numbers) -> Numbers:
        """Energies averaged over the distribution of the weights: by these a line is chosen, by `energies` forecast.

        The mean of a log-normal distribution follows its tail, so lines about which the weights are uncertain get large
        energies: several times too large before the first line of a scan, less so with every line measured. The
        uncertainty counts up to `LARGEST_DOUBT`: where features lie far outside of what the model has learnt from, as
        at the edge of large grids, nothing is chosen because nothing is known of it.
        """
        variances = np.einsum("lf,fg,lg->l", features, self.covariance, features)
        return np.asarray(self.energies(features) * np.exp(np.minimum(variances, LARGEST_DOUBT) / 2))


ErrorModelName = Literal["one coil", "one coil, phase-aware", "several coils"]
"""Kinds of scan and model whose posteriors err differently."""


@cache
def shipped_error_model(name: ErrorModelName = "one coil") -> ErrorModel:
    """What ``benchmarks/error_model.py`` learnt from random heads; results/error-model/README.md says how well."""
    text = resources.files("mri_design.design.strategies").joinpath("error_model.json").read_text("utf-8")
    stored = json.loads(text)[name]
    if stored["features"] != list(FEATURES):
        raise InputError(field="error_model.json", got="other features", wanted="those of this version")
    return ErrorModel(np.array(stored["mean"]), np.array(stored["covariance"]), float(stored["spread"]))

"""Which candidate model of a slice a design uses: the one that predicted the lines so far best.

Everything is read from the steps of the trace, so that a resumed design is the same design. Models are compared on
paired lines only: those that every candidate predicted from the same lines before. The first candidate is the safe one:
it is used until another is clearly better (`best_model`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from mri_design.design.decision import DesignStep
from mri_design.design.line_variances import line_values
from mri_design.errors import InputError
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array

__all__ = [
    "FEWEST",
    "CandidateModels",
    "LinePrediction",
    "best_model",
    "model_in_use",
    "needs_another_loop",
    "paired_energies",
    "predict_line",
    "rivals_due",
]

FEWEST = 4
"""Lines that a choice between models takes."""


@dataclass(frozen=True)
class LinePrediction:
    """What a posterior predicted of a line, beside the line's data.

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
        """Sum of |innovation|^2 as measured."""
        return float(np.sum(np.abs(self.innovation) ** 2, dtype=np.float64))

    @property
    def log_density(self) -> float:
        """Log density of the line, columns and coils taken as independent; in nats.

        The posteriors of this package are overconfident: for a choice between models, compare energies (`best_model`).
        """
        v = self.variance.astype(np.float64)
        return -float(np.sum(np.abs(self.innovation) ** 2 / (2 * v) + np.log(2 * np.pi * v)))


def predict_line(mr_slice: MRSlice, posterior: GaussianPosterior, line: int, draws: Array) -> LinePrediction:
    """What a posterior of ``mr_slice`` predicts of a line that it has not seen, with the data of that line.

    Parameters
    ----------
    mr_slice : MRSlice
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
    encoding, noise = mr_slice.encoding([line]), posterior.model.noise_variance
    columns = scipy.fft.ifft(mr_slice.acquire([line])[:, 0], axis=-1, norm="ortho")
    mean = line_values(posterior.mean[None], encoding)[0, :, 0]
    spread = np.mean(np.abs(line_values(draws, encoding)[:, :, 0]) ** 2, axis=0) / 2
    return LinePrediction(mean, noise * (1 + spread), columns - mean, noise)


def best_model(energies: ArrayLike, *, margin: float = 1.0) -> int:
    """The model with the smallest mean log innovation energy; the first one unless another is clearly better.

    Parameters
    ----------
    energies : float array, shape (lines, models)
        `LinePrediction.energy` of every measured line, under every model; the first model is the safe one.
    margin : float
        Standard errors of the mean paired difference by which another model has to be better than the first.

    Returns
    -------
    int
        Index of the model; 0 on fewer than four lines.

    Raises
    ------
    InputError
        For energies that are not a table of positive finite numbers.
    """
    table = np.asarray(energies, dtype=np.float64)
    if table.ndim != 2 or not table.shape[1] or not (np.isfinite(table).all() and (table > 0).all()):
        raise InputError(
            field="innovation energies", got=f"shape {table.shape}", wanted="positive numbers (lines, models)"
        )
    if len(table) < FEWEST:
        return 0
    gains: NDArray[np.float64] = np.log(table[:, :1]) - np.log(table)
    mean, error = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(len(table))
    eligible = np.where(mean > margin * error, mean, -np.inf)
    eligible[0] = 0
    return int(np.argmax(eligible))


CandidateModels = Callable[[MRSlice, Array], Sequence[MRSlice]]
"""A slice and its image so far -> its candidate models, the safe one first, always in the same order; there may be
fewer where the image does not show what they need."""

FEWEST_PAIRED = 8
CLEAR = 2.0
"""Paired lines, and standard errors of the mean difference in log energy, from which a choice is no longer watched at
every inference."""


def paired_energies(steps: Sequence[DesignStep], index: int) -> NDArray[np.float64]:
    """Innovation energies (lines, models) of slice ``index`` on the lines that every candidate predicted."""
    rows = [s.outcome.model_energies[index] for s in steps if s.outcome.model_energies is not None]
    most = max((len(row) for row in rows), default=1)
    table = np.full((len(rows), most), np.nan)
    for row, energies in zip(table, rows, strict=True):
        row[: len(energies)] = energies
    return np.asarray(table[(np.isfinite(table) & (table > 0)).all(axis=1)])


def model_in_use(steps: Sequence[DesignStep], index: int, available: int) -> int:
    """Candidate that slice ``index`` is inferred with after ``steps``; 0 where that one is not ``available`` now."""
    best = best_model(paired_energies(steps, index))
    return best if best < available else 0


def rivals_due(steps: Sequence[DesignStep], index: int, every: int) -> bool:
    """Whether the models that are not in use are to predict the next lines too.

    They do at every inference until the evidence is clear, then at every ``every``-th, with one outer loop more
    (`needs_another_loop`). What this costs in accuracy is measured in results/design-study/measurements.md.
    """
    paired = paired_energies(steps, index)
    if every == 1 or len(paired) < FEWEST_PAIRED or not _clear(paired):
        return True
    rests = 0
    for step in reversed(steps):
        energies = None if step.outcome.model_energies is None else step.outcome.model_energies[index]
        if energies is not None and len(energies) == paired.shape[1] and np.isfinite(energies).all():
            break
        rests += step.choice.pending == 0
    return rests + 1 >= every


def needs_another_loop(steps: Sequence[DesignStep], index: int, model: int) -> bool:
    """Whether a candidate model of slice ``index`` was left out of the last inference.

    It then starts further from its posterior, and takes one outer loop more before its prediction counts.
    """
    last = steps[-1].outcome.model_energies if steps else None
    return last is not None and (model >= last.shape[1] or bool(np.isnan(last[index, model])))


def _clear(paired: NDArray[np.float64]) -> bool:
    """Whether the safe model is far from the best one, or the best one is the safe one and far from all others."""
    best = best_model(paired)
    logs = np.log(paired)
    others = [0] if best else list(range(1, paired.shape[1]))
    losses = logs[:, others] - logs[:, [best]]
    error = losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
    return bool((losses.mean(axis=0) > CLEAR * error).all())

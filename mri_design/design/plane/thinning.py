"""A block of samples from one map of scores: each sample that is taken lowers the scores of those that it tells of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.sample_variances import squared_correlation
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError
from mri_design.operators.encodings import PlaneEncoding


def candidates_plane(view: DesignView) -> PlaneEncoding:
    """The plane that a view's candidates are samples of.

    Raises
    ------
    InputError
        Where they are something else.
    """
    encoding = view.candidates.encoding
    if not isinstance(encoding, PlaneEncoding):
        raise InputError(
            field="candidates",
            got="phase-encode lines",
            wanted="samples of a plane",
            cure="Name a strategy for lines, or make the slices with encoding='plane'.",
        )
    return encoding


def block_by_scores(
    scores: NDArray[np.float64], view: DesignView, count: int, forecast: Forecast | None = None
) -> list[Choice]:
    """The ``count`` best remaining samples, thinned by the correlations that the view's posteriors have.

    Parameters
    ----------
    scores : float array, shape (size,)
        Of every sample, zero or more; only their ratios count.
    view : DesignView
        Candidates and posteriors.
    count : int
        How many samples; there must be as many left.
    forecast : Forecast, optional
        Of the block; it goes to the first choice, with the scores.

    Raises
    ------
    NoUsableScoreError
        Where no candidate has a finite score.
    """
    plane = candidates_plane(view)
    first = best_line(scores, view.candidates)
    squared = squared_correlation(view.posteriors)
    chosen = thinned(np.where(view.candidates.remaining, scores, np.nan), squared, plane, count)
    choices = [Choice(sample) for sample in chosen]
    choices[0] = Choice(chosen[0], first.scores, Forecast() if forecast is None else forecast)
    return choices


def thinned(scores: NDArray[np.float64], squared: NDArray[np.float64], plane: PlaneEncoding, count: int) -> list[int]:
    """Samples by their scores, one after another, each multiplying all scores by 1 - |rho|^2 around it.

    Parameters
    ----------
    scores : float array, shape (size,)
        NaN where a sample cannot be taken; then there may be fewer than ``count`` to return.
    squared : float array, shape (ky, kz)
        |rho|^2 by distance, DC at ``N // 2``: the share of `squared_correlation`.
    plane : PlaneEncoding
        The samples.
    count : int
        How many.

    Returns
    -------
    list of int
        Different samples; ties go to the lowest number.
    """
    left = np.where(np.isfinite(scores), scores, -np.inf).reshape(plane.grid)
    centre = plane.grid[0] // 2, plane.grid[1] // 2
    chosen: list[int] = []
    for _ in range(count):
        best = int(np.argmax(left))
        if not np.isfinite(left.flat[best]):
            break
        chosen.append(best)
        y, z = divmod(best, plane.grid[1])
        left *= 1 - np.minimum(np.roll(squared, (y - centre[0], z - centre[1]), axis=(0, 1)), 1)
        left.flat[best] = -np.inf
    return chosen

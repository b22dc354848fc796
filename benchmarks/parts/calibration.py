"""Does the posterior know its own error? Predicted against actual, per line and per pixel, before and after learning.

Truth is known: the embedded slices with simulated phase, and, where the file is given, head images with the phase that
the scanner left. Noise is added, a quarter of the lines measured, and the error of the posterior mean compared with the
posterior's own variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from parts.problem import quarter_of_the_lines, recipe_for
from scipy.stats import spearmanr

from mri_design.evaluation.tables import Row
from mri_design.experiment.inputs import load_input, prepare
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.inference.evidence.hyperparameters import learn_hyperparameters
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.sparsity import DEFAULT_PRIOR, SparsityBlock
from mri_design.operators.base import Array
from mri_design.operators.measurement import cartesian
from mri_design.variances.control_variate import ControlVariate

PRIORS: dict[str, tuple[SparsityBlock, ...]] = {
    "pixels + differences": DEFAULT_PRIOR,
    "wavelets": (SparsityBlock("wavelet", 10.0, levels=4),),
    "pixels + differences + wavelets": (*DEFAULT_PRIOR, SparsityBlock("wavelet", 10.0, levels=4)),
}
ENGINE = DoubleLoop(ControlVariate(8, 1e-2, control="circulant"), outer_iterations=10, tolerance=2e-2)
DRAWS = 64


def calibration_rows(
    grid: int, sources: list[tuple[str, int]], seed: int, priors: Sequence[str] = tuple(PRIORS)
) -> Iterator[Row]:
    """Rows for every (input, slice) and prior; ``learnt`` says which hyperparameters were learnt from the data.

    ``line ratio`` is predicted over actual energy of all unmeasured lines, ``line rank`` the rank correlation of the
    two for |k| < N/3; ``pixel ratio`` and ``pixel rank`` the same for squared errors of pixels; ``within 2 sd`` the
    share of pixels whose error is below twice the predicted standard deviation (98 % for a circular Gaussian).
    """
    for source, index in sources:
        recipe = recipe_for(grid, 1)
        scan = prepare(load_input(source, recipe, seed), recipe)
        truth = scan.reference(index)
        assert truth is not None
        one = scan.slice_model(index, recipe)
        lines = quarter_of_the_lines(grid, seed)
        for name in priors:
            prior = PRIORS[name]
            model = MRSlice(one.kspace, one.measured, one.noise_variance, one.maps, prior=prior).model(lines)
            about = {"scan": f"{Path(source).stem.removeprefix('phantom:')} {index}", "prior": name}
            posterior = ENGINE.infer(model, np.random.default_rng(seed))
            yield about | {"learnt": "nothing"} | _row(posterior, truth)
            for noise in (False, True) if prior is DEFAULT_PRIOR else (False,):
                learnt = learn_hyperparameters(model, ENGINE, np.random.default_rng(seed), noise=noise, tolerance=0.05)
                rates = ", ".join(f"{key} {rate:.2g}" for key, rate in learnt.trace[-1].rates.items())
                yield (
                    about
                    | {"learnt": "scales and noise" if noise else "scales"}
                    | _row(learnt.posterior, truth)
                    | {
                        "noise sd x": float(np.sqrt(learnt.model.noise_variance / model.noise_variance)),
                        "rates x": rates,
                        "rounds": learnt.convergence.iterations,
                        "converged": learnt.convergence.converged,
                    }
                )


def _row(posterior: GaussianPosterior, truth: Array) -> Row:
    model, grid = posterior.model, truth.shape[0]
    every = cartesian(range(grid), truth.shape)
    error = posterior.mean - truth
    draws = posterior.deviations(np.random.default_rng(0), DRAWS)
    predicted_lines = model.noise_variance * np.mean(np.sum(np.abs(every(draws)) ** 2, axis=(1, 3)), axis=0)
    actual_lines = np.sum(np.abs(every(error)) ** 2, axis=(0, 2))
    unmeasured = ~np.isin(np.arange(grid), model.measurement.lines)  # type: ignore[attr-defined]
    inner = unmeasured & (np.abs(np.arange(grid) - grid // 2) < grid / 3)
    predicted, actual = posterior.image_variances, np.abs(error) ** 2
    return {
        "relative L2": float(np.linalg.norm(error) / np.linalg.norm(truth)),
        "line ratio": float(predicted_lines[unmeasured].sum() / actual_lines[unmeasured].sum()),
        "line rank": float(spearmanr(predicted_lines[inner], actual_lines[inner])[0]),
        "pixel ratio": float(predicted.sum() / actual.sum()),
        "pixel rank": float(spearmanr(predicted.ravel(), actual.ravel())[0]),
        "within 2 sd": float(np.mean(actual <= 4 * predicted)),
    }

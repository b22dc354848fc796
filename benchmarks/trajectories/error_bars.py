"""Error bars along trajectories: beside dense algebra on small grids, and beside the actual error of every pixel."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from trajectories.sets import HALF, RECIPE, Scene, engine, model_of, spiral_sets

from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import InferenceOptions, reconstruct
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.posterior import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian_fourier import CartesianSamples
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.operators.trajectory import equispaced_angles, radial_spokes
from mri_design.scan.data import TrajectoryData
from mri_design.variances.control_variate import ControlVariate

COLUMNS = 256  # multiplied at a time, so that memory stays at a few matrices


@dataclass(frozen=True)
class DensePosterior:
    """A of a complex-linear model as a factorised matrix.

    Parameters
    ----------
    lower : complex array, shape (n, n)
        L with A = L L^H.
    shape : tuple of int
        Of the image.
    """

    lower: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> DensePosterior:
        """Build A column by column and factorise it."""
        if not precision.complex_linear:
            raise ValueError("dense complex algebra needs a complex-linear model")
        shape = precision.measurement.in_shape
        n = int(np.prod(shape))
        transposed = np.empty((n, n), dtype=np.complex128)
        for first in range(0, n, COLUMNS):
            unit = np.zeros((min(COLUMNS, n - first), n), dtype=np.complex128)
            unit[np.arange(len(unit)), np.arange(first, first + len(unit))] = 1
            transposed[first : first + len(unit)] = precision(unit.reshape(-1, *shape)).reshape(len(unit), n)
        lower = scipy.linalg.cholesky(transposed.T, lower=True, overwrite_a=True, check_finite=False)
        return cls(lower, shape)

    @cached_property
    def root(self) -> Array:
        """Images r_j, (n, *image shape), with A^-1 = sum_j r_j r_j^H."""
        inverse, failed = scipy.linalg.lapack.ztrtri(self.lower, lower=1)
        if failed:
            raise np.linalg.LinAlgError("A is singular")
        return np.conj(np.ascontiguousarray(inverse)).reshape(-1, *self.shape)

    def variances(self, analysis: LinearOperator) -> Array:
        """z = diag(B A^-1 B^H), real and imaginary part together."""
        z = np.zeros(analysis.out_shape)
        for first in range(0, len(self.root), COLUMNS):
            s = analysis(self.root[first : first + COLUMNS])
            z += 2 * np.sum(s.real**2 + s.imag**2, axis=0)
        return z


RECIPES = ("default", "local")
ARMS = "2 pi / (m + 1)"
"""The set of arms that the documents advise."""
DENSITY = 1.5
OBJECT = 0.1
"""Fraction of the signal: pixels of the truth above it count as the object."""
RIGHT = {1: 1 - np.exp(-1), 2: 1 - np.exp(-4)}
"""Fractions within one and two standard deviations of complex errors that are Gaussian with those variances."""
SHARES = ("within 1 sd", "within 2 sd", "within 1 sd, object", "within 2 sd, object")
RATIO = "variance / squared error"
RATIOS = (RATIO, "least", "largest")


def covered_sets(matrix: int, spokes: Sequence[int], interleaves: Sequence[int]) -> dict[str, Array]:
    """Name to shots (shot, sample, 2): equispaced spokes, and arms over the full turn with one left out."""
    radial = {f"{count} spokes": radial_spokes(matrix, equispaced_angles(count)) for count in spokes}
    spiral = {f"{count} spirals": spiral_sets(matrix, count, DENSITY)[ARMS] for count in interleaves}
    return radial | spiral


def shares_within(error: Array, std: Array, truth: Array) -> dict[str, float]:
    """Fractions of pixels whose error is at most one and two standard deviations, and the ratio of sums.

    Parameters
    ----------
    error : complex array, shape (ky, kx)
        Of the image.
    std : float array, shape (ky, kx)
        What the method says of it: sqrt(E|error|^2).
    truth : complex array, shape (ky, kx)
        The image without noise, its 99.5th percentile close to 1.

    Returns
    -------
    dict
        Columns of a row: fractions of all pixels and of those of the object; summed variance over summed squared error.
    """
    modulus, everywhere = np.abs(error), np.ones(error.shape, dtype=bool)
    found: dict[str, float] = {}
    for where, name in ((everywhere, ""), (np.abs(truth) > OBJECT, ", object")):
        for times in RIGHT:
            found[f"within {times} sd{name}"] = float(np.mean(modulus[where] <= times * std[where]))
    found[RATIO] = float(np.sum(std.astype(np.float64) ** 2) / np.sum(modulus.astype(np.float64) ** 2))
    return found


def covered_row(scene: Scene, shots: Array, coils: int, seed: int, recipe_name: str) -> Row:
    """One reconstruction as `recon` makes it, with noise and coil maps known."""
    began, recipe = time.process_time(), load_recipe(recipe_name)
    model = scene.along(shots, seed) if coils == 1 else scene.seen_by_coils(shots, coils, seed)
    X = model.measurement
    assert isinstance(X, NonUniformFourier)
    data = TrajectoryData(
        model.data.reshape(1, coils, -1),
        X.trajectory,
        scene.shape,
        n_readouts=len(shots),
        name=scene.name,
        noise_variance=model.noise_variance,
        coil_maps=None if X.maps is None else np.asarray(X.maps, dtype=np.complex64)[None],
    )
    prepared = calibrate(data, recipe)
    slice_model = prepared.slice_model(0, **recipe.slice_settings)
    options = InferenceOptions(signal=slice_model.signal_level(range(len(shots))))
    made = reconstruct(slice_model, None, "mean", recipe, np.random.default_rng([seed, 2]), options=options)
    assert made.std is not None
    image, std = made.image * prepared.unit, made.std * prepared.unit
    return {
        "recipe": recipe_name,
        "coils": coils,
        "image": scene.name,
        "seed": seed,
        "error": measure(image, scene.reference).relative_l2,
        **shares_within(image - scene.reference, std, scene.reference),
        "converged": made.convergence.converged,
        "CPU s": time.process_time() - began,
    }


def coverage_rows(
    scenes: Mapping[int, Sequence[Scene]],
    sets: Mapping[str, Array],
    seeds: Sequence[int],
    recipes: Sequence[str] = RECIPES,
) -> list[Row]:
    """Every set on every scene of every number of coils, with every seed of the noise, by every recipe."""
    cases = [(recipe, coils, scene) for recipe in recipes for coils, some in scenes.items() for scene in some]
    return [
        {"set": name} | dict(covered_row(scene, shots, coils, seed, recipe))
        for recipe, coils, scene in cases
        for seed in seeds
        for name, shots in sets.items()
    ]


def coverage_summary(rows: Sequence[Row]) -> list[Row]:
    """One row for each recipe, number of coils and set: means of fractions, median and range of the ratio."""
    table: list[Row] = []
    for key in dict.fromkeys((row["recipe"], row["coils"], row["set"]) for row in rows):
        of_set = [row for row in rows if (row["recipe"], row["coils"], row["set"]) == key]
        ratios = [float(str(row[RATIO])) for row in of_set]
        means = {name: float(np.mean([float(str(row[name])) for row in of_set])) for name in ("error", *SHARES)}
        table.append(
            {"recipe": key[0], "coils": key[1], "set": key[2], "images": len({row["image"] for row in of_set})}
            | {"runs": len(of_set), **means}
            | {RATIO: float(np.median(ratios)), "least": min(ratios), "largest": max(ratios)}
        )
    return table


DRAWS = 8
SHIPPED, CLOSE = RECIPE.inference.engine().variances.tolerance, 0.003
"""Tolerances to which draws are solved: what this leaves of the bias tells where it is from."""


def models(scene: Scene) -> dict[str, GeneralizedLinearModel]:
    """A quarter of the grid's samples, at random with variable density; a quarter of its spokes; spirals."""
    matrix = scene.shape[0]
    rng = np.random.default_rng(0)
    distance = np.hypot(*np.meshgrid(*2 * (np.arange(matrix) - matrix // 2,), indexing="ij")) / (matrix / 2)
    weights = np.maximum(1 - distance / np.sqrt(2), 0.02).ravel() ** 4
    chosen = rng.choice(matrix**2, matrix**2 // 4, replace=False, p=weights / weights.sum())
    mask = np.zeros(matrix**2, dtype=bool)
    mask[chosen] = True
    samples = CartesianSamples(mask.reshape(scene.shape))
    return {
        "masks": model_of(samples, samples(scene.reference.astype(np.complex128)), 0),
        "spokes": scene.along(radial_spokes(matrix, equispaced_angles(matrix // 4))),
        "spirals": scene.along(spiral_sets(matrix, matrix // 10, 1.5)[HALF]),
    }


def variance_rows(scene: Scene, repeats: int) -> list[Row]:
    """Per kind of measurement: errors of z over all coefficients, and of their sum, over seeds of the draws.

    ``bias`` is the mean over seeds of the relative error of the sum of z, ``its error`` the standard error of that
    mean, ``of one run`` the standard deviation of one run's sum: the standard error that eight draws leave. ``stated
    bias`` is what the estimate itself says that its solves may leave, of the sum, too.
    """
    rows: list[Row] = []
    for kind, model in models(scene).items():
        posterior = engine().infer(model, np.random.default_rng(0))
        precision = posterior.precision
        dense = DensePosterior.of(precision)
        analyses = [block.analysis for block in model.blocks]
        exact = np.concatenate([dense.variances(analysis).ravel() for analysis in analyses])
        for tolerance in (SHIPPED, CLOSE):
            estimator = ControlVariate(DRAWS, tolerance)  # the recipe's, which states its bias, too
            medians, sums, stated = [], [], []
            for seed in range(repeats):
                rng = np.random.default_rng([seed, 5])
                made = estimator(precision, analyses, rng, model.back_projection())
                z = np.concatenate([np.ravel(value).astype(float) for value in made.values])
                medians.append(np.median(np.abs(z / exact - 1)))
                sums.append(z.sum() / exact.sum() - 1)
                left = sum(
                    float(np.sum(np.broadcast_to(b, v.shape))) for b, v in zip(made.bias, made.values, strict=True)
                )
                stated.append(left / exact.sum())
            one = float(np.std(sums, ddof=1))
            bias = float(np.mean(sums))
            rows.append(
                {
                    "measured": kind,
                    "samples": int(np.prod(model.measurement.out_shape)),
                    "tolerance": tolerance,
                    "median error": float(np.mean(medians)),
                    "bias": bias,
                    "its error": one / np.sqrt(repeats),
                    "stated bias": float(np.mean(stated)),
                    "of one run": one,
                    "bias / of one run": abs(bias) / one,
                    "runs": repeats,
                }
            )
    return rows

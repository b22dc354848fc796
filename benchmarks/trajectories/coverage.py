"""How far error bars along trajectories hold: the actual error of every pixel beside its standard deviation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from trajectories.scenes import Scene
from trajectories.sets import spiral_sets

from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import InferenceOptions
from mri_design.experiment.trajectories.preparing import prepare_samples
from mri_design.experiment.trajectories.reconstructing import reconstruct_samples
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.scan.data import TrajectoryData
from mri_design.scan.trajectories.radial import equispaced_angles, radial_spokes

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
    prepared = prepare_samples(data, recipe)
    slice_model = prepared.slice_model(0, recipe)
    options = InferenceOptions(signal=slice_model.signal_level(range(len(shots))))
    made = reconstruct_samples(slice_model, "mean", recipe, np.random.default_rng([seed, 2]), options)
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

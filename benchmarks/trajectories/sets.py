"""Objects that are sampled along any trajectory, fixed sets of spokes and spirals, and errors of the posterior mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

import numpy as np
from study.scans import NOISE, simulated, simulating

from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row
from mri_design.experiment.recipe import load_recipe
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.sparsity import ImageFacts
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.operators.trajectory import (
    equispaced_angles,
    golden_angles,
    interleaf_angles,
    radial_spokes,
    turned,
)
from mri_design.scan.scenes import simulate_coil_maps
from mri_design.scan.simulation import load_phantom_shots
from mri_design.scan.trajectories import GradientLimits, conjugate_redundancy, nyquist_turns, spiral_readout

RECIPE = load_recipe("local")


@dataclass(frozen=True)
class Scene:
    """An object and what a scanner without noise would measure of it.

    Parameters
    ----------
    name : str
        For tables.
    reference : complex64 array, shape (ky, kx)
        The truth on the grid; the 99.5th percentile of its modulus is 1, or close to it.
    sampled : callable
        Trajectory (sample, 2) to samples (1, sample).
    """

    name: str
    reference: Array
    sampled: Callable[[Array], Array]

    @property
    def shape(self) -> tuple[int, int]:
        """Sides of the grid (ky, kx)."""
        return int(self.reference.shape[0]), int(self.reference.shape[1])

    def along(self, shots: Array, seed: int = 0) -> GeneralizedLinearModel:
        """The model of noisy samples along shots (..., 2).

        The rates of the prior are per unit of the true signal level, for every set of shots alike, so that sets differ
        in nothing but where they measure.
        """
        k = np.ascontiguousarray(shots.reshape(-1, 2))
        return model_of(NonUniformFourier(k, self.shape), self.sampled(k), seed)

    def seen_by_coils(self, shots: Array, coils: int, seed: int = 0) -> GeneralizedLinearModel:
        """The scene seen by simulated coils, whose maps are known; samples are those of the image on the grid."""
        maps = simulate_coil_maps(self.shape, coils, np.random.default_rng([seed, 4]))
        X = NonUniformFourier(np.ascontiguousarray(shots.reshape(-1, 2)), self.shape, maps)
        return model_of(X, X(self.reference.astype(np.complex128)), seed)


def model_of(measurement: LinearOperator, clean: Array, seed: int) -> GeneralizedLinearModel:
    """Samples with noise, and the prior of the recipe `local`."""
    rng = np.random.default_rng([seed, 1])
    data = clean + NOISE * (rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape))
    shape = (measurement.in_shape[0], measurement.in_shape[1])
    blocks = tuple(block.sites(ImageFacts(shape, 1.0), NOISE) for block in RECIPE.blocks())
    return GeneralizedLinearModel(measurement, data.astype(np.complex64), NOISE**2, blocks)


def engine() -> DoubleLoop:
    """Inference as the recipe has it."""
    return RECIPE.inference.engine()


def heads(source: str | Path, numbers: Sequence[int], matrix: int) -> list[Scene]:
    """Complex heads, band-limited to the grid: their samples are the transform of the grid's image."""
    scans = simulated(source, numbers, simulating(matrix))

    def scene(name: str, image: Array) -> Scene:
        exact = image.astype(np.complex128)
        return Scene(name, image.astype(np.complex64), lambda k: NonUniformFourier(k, image.shape)(exact))

    return [scene(scan.name, scan.reference) for scan in scans]


def ellipses(matrix: int) -> Scene:
    """The embedded brain of ellipses, its samples in closed form: no grid explains them exactly."""

    def scan(k: Array) -> tuple[Array, Array]:
        made = load_phantom_shots("brain", k, shape=matrix, noise=0.0, rng=np.random.default_rng(0))
        return made.kspace[0].astype(np.complex128), made.reference[0]

    return Scene("ellipses", scan(np.array([[2.0, 0.0]]))[1], lambda k: scan(k)[0])


ACCELERATION = 4
"""Factor of spirals: so many times the interleaves would leave no gap at the rim, or half the matrix."""
LIMITS = GradientLimits(amplitude=0.04, slew=150.0)
FIELD_OF_VIEW = 0.24
DENSITIES = (1.0, 1.5)
USUAL = "full turn, even"
HALF = "half turn"


def interleaf(matrix: int, interleaves: int, density: float) -> Array:
    """One spiral readout (sample, 2), as a whole-body gradient system plays it."""
    turns = nyquist_turns(matrix, min(ACCELERATION * interleaves, matrix // 2), density=density)
    return spiral_readout(matrix, turns, LIMITS, field_of_view=FIELD_OF_VIEW, density=density).samples


def spiral_sets(matrix: int, interleaves: int, density: float) -> dict[str, Array]:
    """Name to shots (shot, sample, 2): the same readout at different angles. ``interleaves`` is even."""
    angles = {
        USUAL: interleaf_angles(interleaves, "full-turn"),
        HALF: interleaf_angles(interleaves, "half-turn"),
        "2 pi / (m + 1)": interleaf_angles(interleaves, "one-missing"),
        "full turn, one fewer": interleaf_angles(interleaves - 1, "full-turn"),
        "full turn, one more": interleaf_angles(interleaves + 1, "full-turn"),
        "golden": golden_angles(interleaves, turn=2 * np.pi),
    }
    one = interleaf(matrix, interleaves, density)
    return {name: turned(one, each) for name, each in angles.items()}


def radial_sets(matrix: int, spokes: int) -> dict[str, Array]:
    """Name to shots: diameters with samples one cycle per field of view apart."""
    angles = {
        "uniform": equispaced_angles(spokes),
        "golden": golden_angles(spokes),
        "tiny golden (7)": golden_angles(spokes, tiny=7),
        "uniform over the full turn, even": equispaced_angles(spokes, turn=2 * np.pi),
    }
    return {name: radial_spokes(matrix, each) for name, each in angles.items()}


def error_row(scene: Scene, shots: Array, seed: int = 0) -> Row:
    """Error and time of the posterior mean of one set."""
    began = time.process_time()
    posterior = engine().infer(scene.along(shots, seed), np.random.default_rng(2))
    return {
        "shots": len(shots),
        "samples": shots.shape[0] * shots.shape[1],
        "k and -k": conjugate_redundancy(shots),
        "image": scene.name,
        "seed": seed,
        "error": measure(posterior.mean, scene.reference).relative_l2,
        "converged": posterior.convergence.converged,
        "CPU s": time.process_time() - began,
    }


def set_rows(
    sets: Mapping[tuple[str, float | None], Array], scenes: Sequence[Scene], seeds: Sequence[int]
) -> list[Row]:
    """Every set on every scene with the first seed of the noise, on the first scene with all of them."""
    rows: list[Row] = []
    for scene in scenes:
        for seed in seeds if scene is scenes[0] else seeds[:1]:
            for (name, density), shots in sets.items():
                rows.append({"set": name, "density": density} | dict(error_row(scene, shots, seed)))
    return rows


def spiral_rows(matrix: int, interleaves: int, scenes: Sequence[Scene], seeds: Sequence[int]) -> list[Row]:
    """All spiral sets of both densities."""
    sets = {
        (name, density): shots
        for density in DENSITIES
        for name, shots in spiral_sets(matrix, interleaves, density).items()
    }
    return set_rows(sets, scenes, seeds)


def radial_rows(matrix: int, spokes: int, scenes: Sequence[Scene], seeds: Sequence[int]) -> list[Row]:
    """All radial sets."""
    return set_rows({(name, None): shots for name, shots in radial_sets(matrix, spokes).items()}, scenes, seeds)


@dataclass(frozen=True)
class Against:
    """A competitor: the set whose errors others are compared with."""

    name: str
    density: float | None


def changes(rows: Sequence[Row], name: str, density: float | None, other: Against) -> list[float]:
    """Relative changes of the error against another set, for every (image, seed) that both have."""
    errors = _errors(rows)
    mine, theirs = errors.get((name, density), {}), errors.get((other.name, other.density), {})
    return [mine[key] / theirs[key] - 1 for key in mine if key in theirs]


def summary(rows: Sequence[Row], competitors: Mapping[str, Against]) -> list[Row]:
    """One row for each set: mean error over images, changes against competitors, spread over noise."""
    errors, table = _errors(rows), []
    for name, density in errors:
        of_set = [row for row in rows if (row["set"], row["density"]) == (name, density)]
        first = of_set[0]["image"]
        repeats = [float(str(row["error"])) for row in of_set if row["image"] == first]
        by_image = {row["image"]: float(str(row["error"])) for row in reversed(of_set)}
        row = {"set": name} | ({} if density is None else {"density": density})
        row |= {column: of_set[0][column] for column in ("shots", "samples")}
        row |= {"k and -k": float(str(of_set[0]["k and -k"])), "error": float(np.mean(list(by_image.values())))}
        for title, other in competitors.items():
            found = changes(rows, name, density, other)
            same = (name, density) == (other.name, other.density)
            row |= {title: None if same or not found else float(np.mean(found))}
            row |= {f"worst {title}": None if same or not found else max(found)}
        table.append(row | {"sd over noise": stdev(repeats) if len(repeats) > 1 else None})
    return table


def _errors(rows: Sequence[Row]) -> dict[tuple[str, float | None], dict[tuple[str, int], float]]:
    """(set, density) to (image, seed) to error."""
    found: dict[tuple[str, float | None], dict[tuple[str, int], float]] = {}
    for row in rows:
        density = None if row["density"] is None else float(str(row["density"]))
        key = str(row["image"]), int(float(str(row["seed"])))
        found.setdefault((str(row["set"]), density), {})[key] = float(str(row["error"]))
    return found

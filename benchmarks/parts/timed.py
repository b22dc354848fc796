"""Processor time of a design and of an image with error bars, by whichever checkout stands on PYTHONPATH.

    PYTHONPATH=CHECKOUT:benchmarks python benchmarks/parts/timed.py design GRID COILS START LINES SEED
    PYTHONPATH=CHECKOUT:benchmarks python benchmarks/parts/timed.py image CASE SEED DATA
    PYTHONPATH=CHECKOUT:benchmarks python benchmarks/parts/timed.py total CASE DRAWS DATA

prints as JSON what the design cost, its peak memory and its lines; and of the image, under the recipe `local`, under
the default one, and of MAP, seconds, products, error, and the total of the variances;
of a total how far it is from that of many plain draws.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mri_design.experiment.inputs import load_scan

if TYPE_CHECKING:
    from study.scans import Scan

    from mri_design.experiment.recipe import Recipe
    from mri_design.model.slice import SliceModel

PHANTOM = "phantom:t2w"
MIB_PER_UNIT = 1 / (1 << 20 if sys.platform == "darwin" else 1 << 10)
"""Mebibytes in a unit of what `getrusage` calls the largest resident size."""


HERE = Path(__file__).parents[1]
HEADS, LOW_FIELD, RAW = "img_3T_complex.npz", "lf_6B_gre.npy", "mc_brain_8a.npy"
CASES = {
    "head, 128": (f"{HEADS}:10", 128, 1, "lines"),
    "phantom, 128": ("phantom:t2w:0", 128, 1, "lines"),
    "head, 256": (f"{HEADS}:10", 256, 1, "lines"),
    "low field, 256": (f"{LOW_FIELD}:2", 256, 1, "lines"),
    "8 coils, 128": (f"{HEADS}:13", 128, 8, "lines"),
    "plane, 128": (f"{HEADS}:10", 128, 1, "plane"),
    "32 spokes, 128": (f"{HEADS}:10", 128, 1, "radial"),
    "12 spirals, 128": (f"{HEADS}:10", 128, 1, "spiral"),
    "8 coils, 256": (f"{HEADS}:13", 256, 8, "lines"),
    "16 coils, 256": (f"{HEADS}:6", 256, 16, "lines"),
    "32 coils, 256": (f"{HEADS}:9", 256, 32, "lines"),
    "raw head, 8 coils": (f"{RAW}:0", 0, 8, "lines"),
    "raw head, 8 coils, plane": (f"{RAW}:0", 0, 8, "plane"),
    "toy": ("phantom:t2w:0", 32, 1, "lines"),
}
"""By name: source and image, sides of the grid, coils, and what is measured."""
SHOTS = {"radial": 32, "spiral": 12}
AT_ONCE = 8
"""Draws solved side by side."""


def timed(checkout: Path, *words: object) -> dict[str, dict[str, object]]:
    """What a fresh process prints that runs `design` or `image` by the code of a checkout, on one thread.

    Parameters
    ----------
    checkout : Path
        Root of a working tree of this repository.
    words : objects
        ``design`` and its five numbers (sides of the grid, coils, lines at the start and in the end, seed), or
        ``image`` with case, seed and folder of the data.
    """
    path = os.pathsep.join((str(checkout.resolve()), str(HERE)))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, *map(str, words)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))


def peak_mib() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MIB_PER_UNIT


def design(grid: int, coils: int, start: int, lines: int, seed: int) -> None:
    """Design, after one line on a small grid that compiles or loads the loops, and print."""
    from threadpoolctl import threadpool_limits

    import mri_design as md

    def made(grid: int, start: int, lines: int) -> tuple[object, float, float]:
        recipe = md.load_recipe(None)
        recipe = recipe.replacing("input", matrix=grid).replacing("simulation", coils=coils)
        scan = md.calibrate(load_scan(PHANTOM, recipe, seed), recipe).slice_model(0, **recipe.slice_settings)
        used, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
        state = md.run_design([scan], md.make_strategy("calibrated"), lines, recipe, seed=seed, start=start)
        now = resource.getrusage(resource.RUSAGE_SELF)
        return state.trace, time.process_time() - began, now.ru_stime - used.ru_stime

    with threadpool_limits(1):
        for side in (32, 80):  # exact variances by columns, and samples
            made(side, 8, 10)
        before = peak_mib()
        trace, seconds, system = made(grid, start, lines)
    products = [step.matvecs for step in trace.steps]
    found = {
        "processor s": seconds,
        "of which system": system,
        "products": sum(products),
        "peak MiB": peak_mib(),
        "before the design": before,
        "lines": [int(line) for line in trace.lines],
    }
    print(json.dumps(found))


def scan_of(case: str, data: Path) -> Scan:
    """The scan of a case, calibrated, with the image that it is judged by."""
    from study.scans import denoised, raw, simulated, simulating

    source, matrix, coils, _ = CASES[case]
    name, _, image = source.rpartition(":")
    if name == LOW_FIELD:
        return denoised(data / name, int(image), matrix)
    if name == RAW:
        return raw(data / name, int(image))
    place = name if name.startswith("phantom") else data / name
    return simulated(place, [int(image)], simulating(matrix, coils=coils), label="scan")[0]


def slice_of(case: str, scan: Scan, recipe: Recipe) -> tuple[SliceModel, list[int]]:
    """The slice of a case, and a quarter of its lines, an eighth of its plane, at random with variable density.

    All shots of a set.
    """
    import numpy as np

    from mri_design.experiment.extent import shot_slice
    from mri_design.operators.trajectory import equispaced_angles, radial_spokes, turned
    from mri_design.readouts import ShotReadouts
    from mri_design.scan.trajectories import nyquist_turns, spiral_curve

    kind, grid, rng = CASES[case][3], scan.reference.shape, np.random.default_rng(1)
    if kind in SHOTS:
        angles = equispaced_angles(SHOTS[kind], turn=np.pi if kind == "radial" else 2 * np.pi)
        if kind == "radial":
            paths = radial_spokes(grid[0], angles)
        else:
            paths = turned(spiral_curve(grid[0], nyquist_turns(grid[0], 2 * len(angles)), points=1024), angles)
        shots = ShotReadouts(grid, paths, kind, tuple(angles.tolist()))
        one = scan.prepared.slice_model(0, **recipe.slice_settings)
        return shot_slice(one, shots, rng, truth=scan.reference), list(range(SHOTS[kind]))
    along_y, along_x = (np.abs(np.arange(n) - n // 2) / (n / 2) for n in grid)
    away = along_y if kind == "lines" else np.hypot(along_y[:, None], along_x).ravel()
    weights = np.maximum(1 - away, 1e-3) ** 4 * (away > 0.1)
    middle = np.flatnonzero(away <= 0.1)
    count = len(away) // (8 if kind == "plane" else 4) - len(middle)
    drawn = rng.choice(len(away), count, replace=False, p=weights / weights.sum())
    one = scan.prepared.slice_model(0, **recipe.replacing("design", encoding=kind).slice_settings)
    return one, sorted([*middle.tolist(), *drawn.tolist()])


def image(case: str, seed: int, data: Path) -> None:
    """Reconstruct twice, after something small that compiles or loads the loops, and print."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.reconstruction import reconstruct_prepared

    def measure(case: str) -> dict[str, dict[str, object]]:
        scan, found = scan_of(case, data), {}
        truth = np.abs(scan.reference)
        for name in ("local", "default", "map"):
            recipe, method = load_recipe("local" if name == "local" else None), "map" if name == "map" else "mean"
            one, lines = slice_of(case, scan, recipe)
            began = time.process_time()
            made = reconstruct_prepared(one, lines, method, recipe, np.random.default_rng(seed))
            seconds = time.process_time() - began
            choice = made.phase_choice
            found[name] = {
                "seconds": seconds,
                "error": float(np.linalg.norm(np.abs(made.image) - truth) / np.linalg.norm(truth)),
                "variance": 0.0 if made.std is None else float(np.sum(made.std.astype(np.float64) ** 2)),
                "products": made.convergence.matvecs,
                "model": "modulus" if choice is None or choice.phase is None else "phase-aware",
            }
        return found

    with threadpool_limits(1):
        _, matrix, coils, kind = CASES[case]
        alike = {"lines": "head, 128" if coils == 1 else "8 coils, 128", "plane": "plane, 128", "radial": case}
        measure(case if matrix == 32 else alike.get(kind, "32 spokes, 128"))
        print(json.dumps(measure(case)))


def total(case: str, draws: int, data: Path) -> None:
    """The sum of the variances behind an image over that of plain draws solved to 1e-6, less one, and its error."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.reconstruction import reconstruct_prepared

    with threadpool_limits(1):
        recipe, scan = load_recipe(None), scan_of(case, data)
        one, lines = slice_of(case, scan, recipe)
        made = reconstruct_prepared(one, lines, "mean", recipe, np.random.default_rng(0))
        assert made.sampler is not None
        posterior, rng = made.sampler.posterior, np.random.default_rng(1)
        powers = []
        for _ in range(0, draws, AT_ONCE):
            drawn, ended = posterior.draw(rng, AT_ONCE, tolerance=1e-6, max_iterations=10000)
            assert ended.converged or ended.residual < 1e-5  # single precision may end it earlier
            powers += np.sum(np.abs(drawn) ** 2, axis=(1, 2), dtype=np.float64).tolist()
        known = float(np.sum(posterior.image_variances, dtype=np.float64)) / posterior.model.noise_variance
    mean, scatter = float(np.mean(powers)), float(np.std(powers) / np.sqrt(len(powers)))
    print(json.dumps({"over": known / mean - 1, "scatter": scatter / mean, "products": made.convergence.matvecs}))


if __name__ == "__main__":
    if sys.argv[1] == "design":
        design(*map(int, sys.argv[2:]))
    else:
        {"image": image, "total": total}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))

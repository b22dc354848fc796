"""Processor time, products and peak memory of one design, by whichever checkout stands on PYTHONPATH.

    PYTHONPATH=CHECKOUT python benchmarks/parts/timed_design.py GRID COILS START LINES SEED

prints them as JSON. Only what the first release offered already is used, so that its code can be measured too.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

PHANTOM = "phantom:t2w"
MIB_PER_UNIT = 1 / (1 << 20 if sys.platform == "darwin" else 1 << 10)
"""Mebibytes in a unit of what `getrusage` calls the largest resident size."""


def timed_design(checkout: Path, case: tuple[int, int, int, int], seed: int) -> dict[str, object]:
    """Output of `main`, from a fresh process that runs the code of a checkout on one thread.

    Parameters
    ----------
    checkout : Path
        Root of a working tree of this repository.
    case : (int, int, int, int)
        Lines and columns of the square grid, coils, lines at the start and in the end.
    seed : int
        Of scan and design.
    """
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", __file__, *map(str, case), str(seed)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))


def peak_mib() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MIB_PER_UNIT


def main(grid: int, coils: int, start: int, lines: int, seed: int) -> None:
    """Design, after one line on a small grid that compiles or loads the loops, and print."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    import mri_design as md
    from mri_design.experiment import designing

    # The first release took a seed as it was.
    own = seed if hasattr(designing, "design_seed") else int(np.random.SeedSequence([seed, 0]).generate_state(1)[0])

    def design(grid: int, start: int, lines: int) -> tuple[object, float, float]:
        recipe = md.load_recipe(None)
        recipe = recipe.replacing("simulation", matrix=grid, coils=coils)
        scan = md.prepare(md.load_input(PHANTOM, recipe, seed), recipe).slice_model(0, recipe)
        used, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
        state = md.run_design([scan], md.make_strategy("calibrated"), lines, recipe, seed=own, start=start)
        now = resource.getrusage(resource.RUSAGE_SELF)
        return state.trace, time.process_time() - began, now.ru_stime - used.ru_stime

    with threadpool_limits(1):
        for side in (32, 80):  # exact variances by columns, and samples
            design(side, 8, 10)
        before = peak_mib()
        trace, seconds, system = design(grid, start, lines)
    products = [step.matvecs if hasattr(step, "matvecs") else step.cost.matvecs for step in trace.steps]
    found = {
        "processor s": seconds,
        "of which system": system,
        "products": sum(products),
        "peak MiB": peak_mib(),
        "before the design": before,
        "lines": [int(line) for line in trace.lines],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

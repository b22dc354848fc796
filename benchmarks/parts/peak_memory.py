"""Peak memory of a design, in a process of its own: ``python peak_memory.py STRATEGY GRID SEED STEPS [COILS]``."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file of its own, by `design_memory`
    sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.design_steps import design_row


def peak_mib() -> float:
    """Largest resident size of this process so far, MiB.

    Linux tells it exactly in ``VmHWM``; ``getrusage`` there also remembers the parent before the start.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def design_memory(strategy: str, grid: int, seed: int, steps: int = 6, coils: int = 1) -> dict[str, object]:
    """What `main` prints, from a fresh process."""
    command = [sys.executable, __file__, strategy, str(grid), str(seed), str(steps), str(coils)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(found.stdout))


def main(strategy: str, grid: int, seed: int, steps: int, coils: int = 1) -> None:
    """Design ``steps`` lines, 2 or more, and print the peak in MiB, also that of the imports alone."""
    imported = peak_mib()
    row = design_row(strategy, grid, steps - 1, seed, coils)
    found = {"peak MiB": peak_mib(), "of which before the design": imported, "converged": row["converged"]}
    print(json.dumps({"strategy": strategy, "grid": grid, "coils": coils, "steps": steps} | found))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

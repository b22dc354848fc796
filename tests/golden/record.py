"""Record the golden runs anew: ``OMP_NUM_THREADS=1 python -m tests.golden.record``, from the repository's root.

This replaces ``expected.json`` by what the program does now. Names of runs as arguments record only those.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.golden.outcomes import EXPECTED, carried_out, differences
from tests.golden.runs import RUNS


def main(chosen: list[str]) -> None:
    unknown = [name for name in chosen if name not in RUNS]
    if unknown:
        sys.exit(f"no golden run {unknown[0]}; there are {', '.join(RUNS)}")
    before = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    outcomes = {name: before[name] for name in RUNS if name in before}
    with tempfile.TemporaryDirectory() as folder:
        for name, run in RUNS.items():
            needed = any(RUNS[other].after == name for other in chosen)
            if chosen and name not in chosen and not needed:
                continue
            outcome = carried_out(name, Path(folder))
            if not chosen or name in chosen:
                changes = len(list(differences(before.get(name), outcome, run.tolerance)))
                print(f"{name}: {changes or 'no'} differences ({run.words.split()[0]})")
                outcomes[name] = outcome
    EXPECTED.write_text(json.dumps(outcomes, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

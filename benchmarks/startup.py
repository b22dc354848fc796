"""How long the command line takes before it does anything, and how much of the package each verb loads.

    OMP_NUM_THREADS=1 python benchmarks/startup.py

writes results/benchmarks/startup.md; startup.csv, of `--help` of every verb and `info` of a small file: seconds
(processor time and wall time, medians over processes) and the number of modules that a process has loaded when it ends,
all of them and those of this package; and startup-modules.csv, of every verb on a small input: the modules alone.
With ``--counts`` the seconds in startup.csv stay as they are: on a machine with other work they would tell little.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from parts.pages import put_table

from mri_design.evaluation.tables import Row, read_csv, write_csv

OUT = Path(__file__).parents[1] / "results/benchmarks"
VERBS = ("demo", "info", "design", "recon", "compare", "protocol")
RECIPE = "[input]\nmatrix = 32\n[reconstruction]\n"
TINY = {
    "info": "phantom:brain",
    "design": "phantom:brain --lines 10",
    "recon": "phantom:brain",
    "compare": "phantom:brain --train phantom:t1w --lines 10 --seeds 1 --jobs 1 --strategies calibrated,low-pass",
    "protocol": "phantom:brain --lines 10 --jobs 1",
}
"""Arguments of the verbs at 32 x 32; `demo` is a comparison and a design."""
NOT_CONVERGED = 4
"""The exit code of a run that finished without converging everywhere."""
COUNTED = """
import atexit, json, sys
def tell():
    names = list(sys.modules)
    print(json.dumps([len(names), sum(n.split(".")[0] == "mri_design" for n in names)]), file=sys.stderr)
atexit.register(tell)
sys.argv = ["mri-design", *sys.argv[1:]]
if sys.argv[1:] in (["import"], ["load"]):
    import mri_design
    mri_design.load("phantom:t2w") if sys.argv[1:] == ["load"] else None
else:
    from mri_design.cli.main import main
    main()
"""


def measured(words: list[str], repeats: int) -> Row:
    """One row: medians over processes; where they are several, after one that fills the caches of the file system.

    Modules are compiled once and read from Python's cache afterwards, as in an environment that a person uses.
    """
    walls, processor, modules = [], [], [0, 0]
    warm_ups = int(repeats > 1)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for i in range(repeats + warm_ups):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", COUNTED, *words]
        done = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        modules = json.loads(done.stderr.splitlines()[-1])
        if i >= warm_ups:
            walls.append(time.perf_counter() - began)
            processor.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    return {
        "processor s": statistics.median(processor),
        "wall s": statistics.median(walls),
        "modules": modules[0],
        "of this package": modules[1],
    }


def rows_of(repeats: int) -> list[Row]:
    """The package alone, a first scan, every ``--help``, and ``info`` of a small file."""
    rows: list[Row] = [{"what": "import mri_design", **measured(["import"], repeats)}]
    rows.append({"what": "md.load of a phantom, first", **measured(["load"], repeats)})
    rows.append({"what": "mri-design info phantom:t2w", **measured(["info", "phantom:t2w"], repeats)})
    for words in (["--help"], *([verb, "--help"] for verb in VERBS)):
        rows.append({"what": f"mri-design {' '.join(words)}", **measured(words, repeats)})
    with tempfile.TemporaryDirectory() as folder:
        scan = Path(folder) / "small.npy"
        rng = np.random.default_rng(0)
        np.save(scan, (rng.standard_normal((64, 64)) + 1j * rng.standard_normal((64, 64))).astype(np.complex64))
        rows.append({"what": "mri-design info small.npy (64 x 64)", **measured(["info", str(scan)], repeats)})
    return rows


def counts_of(verbs: list[str]) -> list[Row]:
    """Modules that each verb has loaded when it ends, on a small input."""
    rows: list[Row] = []
    for verb in verbs:
        with tempfile.TemporaryDirectory() as folder:
            recipe, out = Path(folder) / "small.toml", Path(folder) / "run"
            recipe.write_text(RECIPE, encoding="utf-8")
            words = [verb, *TINY[verb].split(), "--recipe", str(recipe)]
            words += [] if verb == "info" else ["--out", str(out)]
            done = subprocess.run([sys.executable, "-c", COUNTED, *words], capture_output=True, text=True, check=False)
            if done.returncode not in {0, NOT_CONVERGED}:
                raise RuntimeError(f"mri-design {verb} failed: {done.stderr}")
            modules = json.loads(done.stderr.splitlines()[-1])
        rows.append({"what": f"mri-design {verb}", "modules": modules[0], "of this package": modules[1]})
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=7, help="processes per row")
    parser.add_argument("--counts", action="store_true", help="keep the seconds of startup.csv, and count alone")
    parser.add_argument("--verbs", nargs="+", choices=TINY, default=list(TINY), help="verbs whose modules are counted")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = list(read_csv(chosen.out / "startup.csv")) if chosen.counts else rows_of(chosen.repeats)
    counts = counts_of(chosen.verbs)
    write_csv(chosen.out / "startup.csv", rows)
    write_csv(chosen.out / "startup-modules.csv", counts)
    put_table(chosen.out / "startup.md", "Seconds", rows, None, {"processor s": ".2f", "wall s": ".2f"})
    put_table(chosen.out / "startup.md", "Modules of a whole run", counts)


if __name__ == "__main__":
    main()

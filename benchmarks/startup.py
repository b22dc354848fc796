"""How long the command line takes before it does anything: `--help` of every verb, and `info` of a small file.

    OMP_NUM_THREADS=1 python benchmarks/startup.py

writes results/benchmarks/startup.md and startup.csv: seconds (processor time and wall time, medians over processes) and
the number of modules that a process has loaded when it ends, all of them and those of this package.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mri_design.evaluation.output.tables import Row, csv_text, markdown_text
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/benchmarks"
VERBS = ("demo", "info", "design", "recon", "compare", "protocol", "train")
HELP_LIMIT, INFO_LIMIT = 0.5, 1.5
COUNTED = """
import atexit, json, sys
def tell():
    names = list(sys.modules)
    print(json.dumps([len(names), sum(n.split(".")[0] == "mri_design" for n in names)]), file=sys.stderr)
atexit.register(tell)
sys.argv = ["mri-design", *sys.argv[1:]]
if sys.argv[1:] == ["import"]:
    import mri_design
else:
    from mri_design.cli.main import main
    main()
"""


def measured(words: list[str], repeats: int) -> Row:
    """One row: medians over processes, after one that fills the caches of the file system."""
    walls, processor, modules = [], [], [0, 0]
    for i in range(repeats + 1):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([sys.executable, "-c", COUNTED, *words], capture_output=True, text=True, check=True)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        modules = json.loads(done.stderr.splitlines()[-1])
        if i:
            walls.append(time.perf_counter() - began)
            processor.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    return {
        "processor s": statistics.median(processor),
        "wall s": statistics.median(walls),
        "modules": modules[0],
        "of this package": modules[1],
    }


def rows_of(repeats: int) -> list[Row]:
    """The package alone, every ``--help``, and ``info`` of a small file."""
    rows: list[Row] = [{"what": "import mri_design", **measured(["import"], repeats)}]
    for words in (["--help"], *([verb, "--help"] for verb in VERBS)):
        rows.append({"what": f"mri-design {' '.join(words)}", **measured(words, repeats)})
    with tempfile.TemporaryDirectory() as folder:
        scan = Path(folder) / "small.npy"
        rng = np.random.default_rng(0)
        np.save(scan, (rng.standard_normal((64, 64)) + 1j * rng.standard_normal((64, 64))).astype(np.complex64))
        rows.append({"what": "mri-design info small.npy (64 x 64)", **measured(["info", str(scan)], repeats)})
    return rows


def text_of(rows: list[Row]) -> str:
    """The page: targets, then the table."""
    helps = max(float(str(row["processor s"])) for row in rows if str(row["what"]).endswith("--help"))
    info = float(str(rows[-1]["processor s"]))
    table = markdown_text(rows, None, {"processor s": ".2f", "wall s": ".2f"})
    return f"""# Start of the command line

    OMP_NUM_THREADS=1 python benchmarks/startup.py

Processor time is what an idle core takes; wall time depends on what else the machine does. Medians over processes, all
with compiled bytecode. Asked for: `--help` within {HELP_LIMIT:g} s (the slowest verb takes {helps:.2f} s of processor
time: {"met" if helps <= HELP_LIMIT else "missed"}), `info` of a small file within {INFO_LIMIT:g} s ({info:.2f} s:
{"met" if info <= INFO_LIMIT else "missed"}).

{table}
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=7, help="processes per row")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = rows_of(chosen.repeats)
    write_text(chosen.out / "startup.csv", csv_text(rows))
    write_text(chosen.out / "startup.md", text_of(rows))
    sys.stdout.write(text_of(rows))


if __name__ == "__main__":
    main()

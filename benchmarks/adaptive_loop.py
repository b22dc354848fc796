"""The loop at the scanner: are its decisions those of the replayed design, and how long does each take?

    OMP_NUM_THREADS=1 python benchmarks/adaptive_loop.py

A simulated scanner (tests/simulated_scanner.py), a process of its own that speaks MRD through the ismrmrd package,
measures what `mri-design adapt` asks it for. The same scan as a complete MRD file goes through `mri-design design`.
Both have the same options, seed and noise readouts. Writes results/reliability/adaptive-loop.md, adaptive-loop.csv and
adaptive-loop-targets.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.scan.io.atomic import write_text
from mri_design.scan.simulation.phantoms import load_phantom

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results/reliability"
SCANNER = ROOT / "tests/simulated_scanner.py"
LIMIT = 0.5
NOISE_READOUTS = 4
WITH_FAULTS = ("--shuffle", "--ahead", "5,90", "--twice", "--lose")
"""Of the simulated scanner; the lines to lose are known from the replay."""


@dataclass(frozen=True)
class Case:
    """One scan and what happens to it."""

    phantom: str
    coils: int = 1
    faults: bool = False


CASES = (
    Case("t2w"),
    Case("t1w"),
    Case("brain"),
    Case("t2w", faults=True),
    Case("t2w", coils=4),
)


def program(*words: object) -> list[str]:
    return [sys.executable, "-m", "mri_design.cli.main", *map(str, words)]


def order_of(folder: Path) -> list[int]:
    with (folder / "lines.csv").open(newline="") as stream:
        return [int(row["line"]) for row in csv.DictReader(stream)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def finished(process: subprocess.Popen[bytes]) -> None:
    code = process.wait()
    if code not in (0, 4):
        raise RuntimeError(f"exit code {code}: {process.args!r}")


def row_of(case: Case, matrix: int, lines: int, folder: Path) -> Row:
    """Replay, measure, compare."""
    data = load_phantom(case.phantom, shape=(matrix, matrix), n_coils=case.coils, rng=np.random.default_rng(0))
    scan, file = folder / "scan.npz", folder / "scan.h5"
    np.savez(scan, kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    noise = ("--noise", str(NOISE_READOUTS))
    finished(subprocess.Popen([sys.executable, str(SCANNER), str(scan), "0", "--file", str(file), *noise]))
    options = ("--lines", lines, "--seed", 0, "--quiet")
    finished(subprocess.Popen(program("design", file, *options, "--out", folder / "replayed")))
    replayed = order_of(folder / "replayed")
    lost = ",".join(map(str, replayed[3::8]))
    faults = (*WITH_FAULTS, lost) if case.faults else ()
    port = free_port()
    scanner = subprocess.Popen([sys.executable, str(SCANNER), str(scan), str(port), *noise, *faults])
    words = ("--listen", port, "--timeout", 2, *options, "--out", folder / "measured")
    finished(subprocess.Popen(program("adapt", *words)))
    finished(scanner)
    with (folder / "measured" / "latency.csv").open(newline="") as stream:
        decisions = [row for row in csv.DictReader(stream) if int(row["order"]) > 0]
    processor = [float(row["processor_seconds"]) for row in decisions]
    wall = [float(row["deciding_seconds"]) for row in decisions]
    images = [np.load(folder / name / "recon.npy") for name in ("replayed", "measured")]
    settings = json.loads((folder / "measured" / "manifest.json").read_text())["settings"]
    return {
        "scan": case.phantom,
        "coils": case.coils,
        "the scanner": f"out of order, {settings['requests_repeated']} readouts lost, all sent twice"
        if case.faults
        else "in order",
        "decisions": len(decisions),
        "identical": "yes" if order_of(folder / "measured") == replayed else "no",
        "image differs by": float(np.abs(images[0] - images[1]).max() / np.abs(images[0]).max()),
        "processor s, median": statistics.median(processor),
        "processor s, most": max(processor[1:]),
        "first decision": processor[0],
        "wall s, median": statistics.median(wall),
    }


def text_of(rows: list[Row], matrix: int, lines: int) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "ismrmrd"))
    formats = dict.fromkeys(("processor s, median", "processor s, most", "first decision", "wall s, median"), ".3f")
    return f"""# The loop at the scanner

    OMP_NUM_THREADS=1 python benchmarks/adaptive_loop.py

A simulated scanner, a process of its own that speaks MRD through the ismrmrd package over the loopback address,
measures the lines that `mri-design adapt` asks for, one after another: {lines} of {matrix} lines, {matrix} x {matrix}
samples, the default recipe, seed 0, {NOISE_READOUTS} noise readouts, coil maps of several coils from the centre lines.
The same scan as a complete MRD file is replayed by `mri-design design` with the same options. "Identical" compares
every line in its order; the image differs relative to its brightest pixel.

A decision lasts from the moment when the last readout that was asked for has arrived to the moment when the next
request goes out: inference, choice, and a checkpoint on the disk. Processor time is what it takes on an idle core; wall
time depends on what else the machine does. The first decision comes apart: it calibrates, loads the compiled loops and
infers from nothing. "Most" is of the others.

{markdown_text(rows, None, {**formats, "image differs by": ".1e"})}

- versions: python {sys.version.split()[0]}, {packages}
- machine: {os.cpu_count()} cores in use, one thread per process
"""


def targets_of(rows: list[Row], matrix: int) -> list[Row]:
    one = [row for row in rows if row["coils"] == 1]
    identical = sum(row["identical"] == "yes" for row in rows)
    slowest = max(float(str(row["processor s, median"])) for row in one)
    return [
        {
            "name": f"adaptive loop {matrix}x{matrix}: runs whose decisions are those of the replayed design",
            "target": f"{len(rows)} of {len(rows)}",
            "measured": f"{identical} of {len(rows)}",
            "unit": "runs",
            "met": "yes" if identical == len(rows) else "no",
        },
        {
            "name": f"adaptive loop {matrix}x{matrix}, one coil: processor time per line, the largest median",
            "target": f"<= {LIMIT:g}",
            "measured": f"{slowest:.6g}",
            "unit": "s",
            "met": "yes" if slowest <= LIMIT else "no",
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrix", type=int, default=128)
    parser.add_argument("--lines", type=int, default=48)
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first so many")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    rows: list[Row] = []
    for case in CASES[: given.cases]:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row_of(case, given.matrix, given.lines, Path(folder)))
        print(rows[-1], flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    write_text(given.out / "adaptive-loop.csv", csv_text(rows))
    write_text(given.out / "adaptive-loop.md", text_of(rows, given.matrix, given.lines))
    write_text(given.out / "adaptive-loop-targets.csv", csv_text(targets_of(rows, given.matrix)))


if __name__ == "__main__":
    main()

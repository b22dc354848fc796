"""The same work by one process, by two, and by a dask cluster of this machine: wall-clock time and results."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import Row
from mri_design.scan.simulation.phantoms import load_phantom

TABLES = ("comparison.csv", "masks.csv", "metrics.csv", "protocol.csv", "lines.csv")
"""Files whose bytes have to be the same, where a run writes them."""
WAYS = {
    "serial": ("--jobs", "1"),
    "two jobs": ("--jobs", "2"),
    "dask, two workers": ("--jobs", "2", "--executor", "dask"),
}


def stack(path: Path, count: int, matrix: int) -> Path:
    """So many slices of one head, each with its own noise and shift, fully sampled."""
    rng = np.random.default_rng(0)
    slices = []
    for number in range(count):
        data = load_phantom("t2w", shape=(matrix, matrix), rng=rng)
        turns = np.exp(2j * np.pi * (number % 5 - 2) * np.arange(matrix) / matrix)
        slices.append(data.kspace[0] * turns[:, None])
    np.save(path, np.array(slices).astype(np.complex64))
    path.with_suffix(".json").write_text('{"dims": ["slice", "coil", "ky", "kx"], "noise_variance": 4.9e-5}')
    return path


def job_rows(what: str, words: Sequence[str], ways: Sequence[str], folder: Path) -> list[Row]:
    """One row per way: seconds on the clock, how many times faster than serial, and whether the results are the same.

    Parameters
    ----------
    what : str
        Name of the work.
    words : sequence of str
        Verb and options of the command line, without folder and jobs.
    ways : sequence of str
        Of `WAYS`, serial first.
    folder : Path
        For the runs' folders; every run is one of its own.
    """
    rows: list[Row] = []
    for way in ways:
        out = folder / f"{what}-{way}".replace(" ", "-").replace(",", "")
        seconds = _run(words, WAYS[way], out)
        rows.append({"work": what, "way": way, "s": seconds, "same results": results(out)})
    first = rows[0]
    return [
        {
            **row,
            "times as fast": float(str(first["s"])) / float(str(row["s"])),
            "same results": row["same results"] == first["same results"],
        }
        for row in rows
    ]


def compile_loops(words: Sequence[str], folder: Path) -> None:
    """Run a command once in one process, so that no way that is timed compiles what the others find compiled."""
    _run(words, WAYS["serial"], folder / "compiled")


def _run(words: Sequence[str], way: Sequence[str], out: Path) -> float:
    """Seconds on the clock of one command."""
    program = [sys.executable, "-m", "mri_design.cli.main"]
    command = [*program, *words, *way, "--out", str(out), "--no-report", "--quiet"]
    began = time.perf_counter()
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if found.returncode not in (0, 4):
        raise RuntimeError(f"{' '.join(command)}: {found.stderr}")
    return seconds


def results(folder: Path) -> dict[str, bytes]:
    """The tables and masks of a run."""
    kept = {path.name: path.read_bytes() for path in folder.rglob("*") if path.name in TABLES or path.suffix == ".npy"}
    if not kept:
        raise RuntimeError(f"{folder} has no table to compare")
    return kept

"""What `mri-design info` of a file of 100 MB takes: processor time and memory.

    OMP_NUM_THREADS=1 python benchmarks/info.py

writes results/benchmarks/info.md and info.csv. Files of 16 coils are made in a temporary folder: ISMRMRD as converters
write it (readouts appended one by one, a noise readout first), fastMRI and an array. Every row is a median over
processes. Processor time is that of `info` and of the process in which it reads HDF5; memory is the peak of either,
added.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from raw.writing import Encoding, RawFile, Space

from mri_design.evaluation.output.tables import Row, csv_text, markdown_text
from mri_design.operators.base import Array
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/benchmarks"
SECONDS, MEBIBYTES = 2.0, 250.0
COILS, NOISE_FLAG = 16, 19
MEASURED = """
import atexit, json, resource, sys
def tell():
    status = open("/proc/self/status").read().splitlines()
    own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(json.dumps([own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]), file=sys.stderr)
atexit.register(tell)
sys.argv = ["mri-design", "info", *sys.argv[1:]]
from mri_design.cli.main import main
main()
"""


@dataclass(frozen=True)
class Case:
    """A file to be described.

    Parameters
    ----------
    name : str
        File name.
    what : str
        What it holds, for the table.
    write : callable
        Takes the path, and a number by which the number of lines is divided.
    """

    name: str
    what: str
    write: Callable[[Path, int], None]


def samples(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Noise of variance 1 per component under a peak at the centre of the last two axes."""
    noise = rng.standard_normal((*shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
    peaks = (np.exp(-np.abs(np.arange(side) - side // 2) / 10, dtype=np.float32) for side in shape[-2:])
    rows, columns = peaks
    return np.asarray(noise + 1000 * rows[:, np.newaxis] * columns)


def write_slices(path: Path, smaller: int) -> None:
    """Six slices of 256 x 256, readouts of twice the samples."""
    rng, lines = np.random.default_rng(0), 256 // smaller
    space = Space((512, lines, 1), (440.0, 220.0, 5.0))
    raw = RawFile([Encoding(space, Space((256, lines, 1), (220.0, 220.0, 5.0)), {1: lines // 2})])
    raw.add(samples((COILS, 512), rng), flags=[NOISE_FLAG])
    for number in range(6):
        raw.add_lines(samples((1, COILS, lines, 512), rng), slice=number)
    raw.write(path)


def write_volume(path: Path, smaller: int) -> None:
    """One volume of 96 x 48 lines, readouts of 192 samples."""
    rng, lines = np.random.default_rng(0), 96 // smaller
    raw = RawFile([Encoding(Space((192, lines, 48), (220.0, 200.0, 96.0)), None, {1: lines // 2, 2: 24})])
    raw.add(samples((COILS, 192), rng), flags=[NOISE_FLAG])
    for partition in range(48):
        raw.add_lines(samples((1, COILS, lines, 192), rng), kspace_encode_step_2=partition)
    raw.write(path)


def write_fastmri(path: Path, smaller: int) -> None:
    """Nine slices of 320 x 288, phase encoding along the columns."""
    shape = (9, COILS, 320 // smaller, 288)
    with h5py.File(path, "w") as file:
        file["kspace"] = samples(shape, np.random.default_rng(0))


def write_array(path: Path, smaller: int) -> None:
    """Twelve slices of 256 x 256."""
    np.save(path, samples((12, COILS, 256 // smaller, 256), np.random.default_rng(0)))


CASES = (
    Case("slices.h5", "ISMRMRD, 6 slices, oversampled readouts", write_slices),
    Case("volume.h5", "ISMRMRD, a volume", write_volume),
    Case("fastmri.h5", "fastMRI, 9 slices", write_fastmri),
    Case("array.npy", "array, 12 slices", write_array),
)


def row_of(case: Case, folder: Path, repeats: int, smaller: int) -> Row:
    """One row: medians over processes; where they are several, after one that fills the caches of the file system."""
    path = folder / case.name
    case.write(path, smaller)
    walls, processor, both = [], [], []
    warm_ups = int(repeats > 1)
    for i in range(repeats + warm_ups):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", MEASURED, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        if i >= warm_ups:
            walls.append(time.perf_counter() - began)
            processor.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
            both.append(sum(json.loads(done.stderr.splitlines()[-1])) / 1024)
    row: Row = {
        "file": case.what,
        "MB": path.stat().st_size / 1e6,
        "coils": COILS,
        "processor s": statistics.median(processor),
        "wall s": statistics.median(walls),
        "peak MiB": statistics.median(both),
        "load": os.getloadavg()[0],
    }
    row["met"] = float(str(row["processor s"])) <= SECONDS and float(str(row["peak MiB"])) <= MEBIBYTES
    path.unlink()
    return row


def text_of(rows: list[Row], repeats: int) -> str:
    """The page."""
    formats = {"MB": ".0f", "processor s": ".2f", "wall s": ".2f", "peak MiB": ".0f", "load": ".1f"}
    return f"""# What `info` of a large file takes

    OMP_NUM_THREADS=1 python benchmarks/info.py

Asked for, of a file of 100 MB: {SECONDS:g} s of processor time and {MEBIBYTES:g} MiB. Processor time is what an idle
core takes, starting Python included; wall time depends on what else the machine does, which the load says (processes
that want to run, on {os.cpu_count()} cores). The peak is that of `mri-design info` and that of the process in which it
reads HDF5, added, though they need not come at one time. Medians over {repeats} processes, after one that fills the
caches of the file system.

{markdown_text(rows, None, formats)}
Of ISMRMRD files the headers of all readouts are read, from where the file has them (HDF5 would load the samples beside
them), and the samples of one slice. One plane of a volume takes something of every readout, so that all samples are
loaded, a bounded number at a time: there time grows with the file, and memory does not. Of fastMRI files and of arrays
of slices every slice is looked at, and one is held at a time.
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=3, help="processes per row")
    parser.add_argument("--smaller", type=int, default=1, help="divide the number of lines, for a quick look")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(case, Path(folder), chosen.repeats, chosen.smaller) for case in CASES]
    write_text(chosen.out / "info.csv", csv_text(rows))
    write_text(chosen.out / "info.md", text_of(rows, chosen.repeats))
    sys.stdout.write(text_of(rows, chosen.repeats))


if __name__ == "__main__":
    main()

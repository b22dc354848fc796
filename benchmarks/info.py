"""What `mri-design info` of a file of 100 MB takes: processor time and memory.

    OMP_NUM_THREADS=1 python benchmarks/info.py

writes results/benchmarks/info.md and info.csv; it needs nibabel and pydicom (the extra ``export``). Files are made in a
temporary folder: of 16 coils ISMRMRD as converters write it (readouts appended one by one, a noise readout first),
fastMRI, an array, an archive and a BART pair; images of 16 bits as NIfTI, compressed and not, and as DICOM of many
frames, each with a scaling and a place of its own. Every row is a median over processes. Processor time is that of
`info` and of the process in which it reads HDF5; memory is the peak of either, added.
"""

from __future__ import annotations

import argparse
import io
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
import nibabel
import numpy as np
import pydicom
from raw.writing import Encoding, RawFile, Space

from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.operators.base import Array
from mri_design.scan.io.atomic import write_text
from mri_design.scan.writing.dicom import DicomLabels, dicom_bytes

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
    coils : int, optional
        That it holds; None for images.
    """

    name: str
    what: str
    write: Callable[[Path, int], None]
    coils: int | None = COILS


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


def write_archive(path: Path, smaller: int) -> None:
    """The same in an archive."""
    np.savez(path, kspace=samples((12, COILS, 256 // smaller, 256), np.random.default_rng(0)))


def write_pair(path: Path, smaller: int) -> None:
    """The same as BART has it."""
    stored = samples((12, COILS, 256 // smaller, 256), np.random.default_rng(0))
    path.with_suffix(".hdr").write_text(f"# Dimensions\n256 {256 // smaller} 1 {COILS}{' 1' * 9} 12\n")
    path.write_bytes(stored.astype("<c8", copy=False).tobytes())


def counts(frames: int, smaller: int) -> Array:
    """Images of 512 x 512 as scanners store them: noise of some counts over a peak in the middle."""
    rng, shape = np.random.default_rng(0), (512 // smaller, 512)
    rows, columns = (np.exp(-(((np.arange(side) - side / 2) / (side / 4)) ** 2)) for side in shape)
    noise = rng.normal(20.0, 6.0, (frames, *shape)).astype(np.float32)
    return np.asarray(np.clip(noise + 1000 * rows[:, np.newaxis] * columns, 0, None).astype(np.uint16))


def write_nifti(path: Path, smaller: int) -> None:
    """190 slices; compressed, as many more as make a file of that size."""
    frames = 336 if path.suffix == ".gz" else 190
    nibabel.save(nibabel.Nifti1Image(counts(frames, smaller).astype(np.int16).T, np.diag([0.5, 0.5, 1, 1])), path)


def write_dicom(path: Path, smaller: int) -> None:
    """190 frames."""
    frames = counts(190, smaller)
    small = dicom_bytes(np.ones((4, 4)), None, DicomLabels("image", "made up", "benchmark"))
    file = pydicom.dcmread(io.BytesIO(small))
    file.NumberOfFrames, file.Rows, file.Columns = frames.shape
    file.PixelData = frames.tobytes()
    del file.RescaleSlope, file.RescaleIntercept
    groups = []
    for number in range(len(frames)):
        group, values, place = pydicom.Dataset(), pydicom.Dataset(), pydicom.Dataset()
        values.RescaleSlope, values.RescaleIntercept = 1 + number, 0
        place.ImagePositionPatient = [0, 0, number]
        group.PixelValueTransformationSequence, group.PlanePositionSequence = [values], [place]
        groups.append(group)
    shared, sizes, ways = pydicom.Dataset(), pydicom.Dataset(), pydicom.Dataset()
    sizes.PixelSpacing, sizes.SliceThickness, ways.ImageOrientationPatient = [0.5, 0.5], 1, [1, 0, 0, 0, 1, 0]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [sizes], [ways]
    file.PerFrameFunctionalGroupsSequence, file.SharedFunctionalGroupsSequence = groups, [shared]
    file.save_as(path)


CASES = (
    Case("slices.h5", "ISMRMRD, 6 slices, oversampled readouts", write_slices),
    Case("volume.h5", "ISMRMRD, a volume", write_volume),
    Case("fastmri.h5", "fastMRI, 9 slices", write_fastmri),
    Case("array.npy", "array, 12 slices", write_array),
    Case("archive.npz", "archive, 12 slices", write_archive),
    Case("pair.cfl", "BART, 12 slices", write_pair),
    Case("head.nii", "NIfTI, 190 slices", write_nifti, None),
    Case("head.nii.gz", "NIfTI, 336 slices compressed", write_nifti, None),
    Case("head.dcm", "DICOM, 190 frames", write_dicom, None),
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
        "coils": case.coils,
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
loaded, a bounded number at a time: there time grows with the file, and memory does not. Of fastMRI files, arrays,
archives and BART pairs of slices every slice is looked at, and two are held at most; of images one, but of DICOM beside
the bytes of all frames. One slice or volume as large as the file is held as a whole.
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

"""Files that other programs and scanners write, read here; files that are written here, read by another program.

    OMP_NUM_THREADS=1 python benchmarks/foreign_files.py

makes foreign-files.md and foreign-files.csv in results/interoperation. MRpro (`pip install mrpro`) writes scans of its
phantom, with a marker, as a Siemens scanner and as others would, and says where the marker lies in the DICOM files that
it makes of them; it reads what `convert` and `export` write, too. The generator of the ISMRMRD package
(`ismrmrd_generate_cartesian_shepp_logan`, in Debian's ismrmrd-tools) writes a scan with noise readouts. Raw data of a
GE and of a Siemens scanner are those of a folder `shared/data` beside the checkout (``--data``), with the samples that
others read from them. What is not installed or not there is a row that says so.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray
from parts.mrpro_peer import brightest_by_mrpro, kspace_by_mrpro, lines_by_mrpro, write_by_mrpro
from parts.pages import put_conditions, put_table

from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.runs.export import convert_file
from mri_design.runs.stored_run import write_made_files
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.formats import read
from mri_design.scan.writing import mrd_skeleton_bytes

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results/interoperation"
COLUMNS = ["file", "written by", "read by", "outcome", "compared with", "largest difference", "unit", "right"]
CLOSE_MM, CLOSE = 0.01, 1e-6
GENERATOR = "ismrmrd_generate_cartesian_shepp_logan"
Rows = Iterator[Row]


def brightest(scan: KSpaceData) -> NDArray[np.float64]:
    """Where the brightest pixel of the first slice is, by its geometry, in millimetres to the left, back and head."""
    shifted = np.fft.ifft2(np.fft.ifftshift(scan.kspace[0, 0]))
    image = np.abs(np.fft.fftshift(shifted))
    row, column = np.unravel_index(image.argmax(), image.shape)
    assert scan.geometry is not None
    place = scan.geometry[0].affine(scan.grid_shape) @ [column, row, 0, 1]
    return np.asarray(place[:3] * (-1, -1, 1), dtype=np.float64)


def mrpro_rows(folder: Path, turns: int) -> Rows:
    """Files of MRpro read here, and files that are written here read by MRpro."""
    if importlib.util.find_spec("mrpro") is None:
        yield _missing("MRpro's own and those written here", "MRpro", "MRpro is not installed")
        return
    named = f"MRpro {importlib.metadata.version('mrpro')}"
    for turn in range(turns):
        axes, _ = np.linalg.qr(np.random.default_rng(turn).standard_normal((3, 3)))
        axes *= np.linalg.det(axes)
        centre = np.array([10.0, -30.0, 50.0]) + turn
        for vendor in ("SIEMENS", "SOMEBODY"):
            path = folder / f"{vendor.lower()}-{turn}.h5"
            write_by_mrpro(path, vendor, axes, centre)
            theirs = brightest_by_mrpro(path, folder / "dicom")
            scan = read(path)
            assert isinstance(scan, KSpaceData) and scan.geometry is not None
            name = f"phantom with a marker, vendor {vendor}, oblique slice {turn + 1}"
            if vendor == "SOMEBODY":
                right = not scan.geometry[0].placed and "SOMEBODY" in scan.geometry[0].unplaced
                outcome = "read, without a place, because the file does not settle the sign of its samples"
                yield _row(name, named, "this package", outcome, "-", "-", "-", right)
                continue
            off = float(np.abs(brightest(scan) - theirs).max())
            compared = "place of the marker in MRpro's DICOM file"
            yield _row(name, named, "this package", "read", compared, off, "mm", off <= CLOSE_MM)
            again = folder / f"again-{turn}.h5"
            write_made_files(convert_file(str(path), again, Recipe()), overwrite=True)
            moved = float(np.abs(brightest_by_mrpro(again, folder / "dicom") - theirs).max())
            name = f"the same written by convert (again.h5), oblique slice {turn + 1}"
            yield _row(name, "this package", named, "read", compared, moved, "mm", moved <= CLOSE_MM)
            unlike = _unlike(kspace_by_mrpro(again), scan.kspace)
            yield _row(name, "this package", named, "read", "k-space", unlike, "of the largest", unlike <= CLOSE)
    yield from _unplaced_by_mrpro(folder, named)


def _unplaced_by_mrpro(folder: Path, named: str) -> Rows:
    """A scan and a design that know no place: MRpro refuses files with directions of length zero."""
    kspace = np.random.default_rng(0).standard_normal((2, 1, 2, 16, 12)).astype(np.float32)
    samples = (kspace[0] + 1j * kspace[1]).astype(np.complex64)
    np.savez(folder / "bare.npz", kspace=samples)
    made = folder / "bare.h5"
    write_made_files(convert_file(str(folder / "bare.npz"), made, Recipe()), overwrite=True)
    unlike = _unlike(kspace_by_mrpro(made), samples)
    name = "a scan without sizes or a place, written by convert"
    yield _row(name, "this package", named, "read", "k-space", unlike, "of the largest", unlike <= CLOSE)
    path = folder / "labels.h5"
    lines = list(range(0, 16, 2))
    path.write_bytes(mrd_skeleton_bytes([lines], (16, 12), None))
    name, wrong = "labels of 8 lines without a place, as of export --to mrd", set(lines) ^ set(lines_by_mrpro(path))
    yield _row(name, "this package", named, "read", "the lines", len(wrong), "lines", not wrong)


def generator_rows(folder: Path) -> Rows:
    """The generator of the ISMRMRD package."""
    tool = shutil.which(GENERATOR)
    if tool is None:
        yield _missing("Shepp-Logan phantom", GENERATOR, "not on the search path")
        return
    path = folder / "generated.h5"
    subprocess.run([tool, "-m", "64", "-c", "4", "-C", "-o", path], check=True, stdout=subprocess.DEVNULL)
    scan = read(path)
    assert isinstance(scan, KSpaceData)
    with h5py.File(path) as file:
        stored = file["dataset/data"][:]
    lines = [row for row in stored if not int(row["head"]["flags"]) >> 18 & 1]
    rows = {
        int(row["head"]["idx"]["kspace_encode_step_1"]): row["data"].view(np.complex64).reshape(4, -1) for row in lines
    }
    raw = np.stack([rows[number] for number in sorted(rows)], axis=1)
    image = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(raw, axes=-1), axis=-1, norm="ortho"), axes=-1)
    middle = image[..., image.shape[-1] // 4 : 3 * image.shape[-1] // 4]
    wanted = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(middle, axes=-1), axis=-1, norm="ortho"), axes=-1)
    off = _unlike(scan.kspace[0], wanted.astype(np.complex64))
    measured = scan.provenance.noise.measured
    outcome = (
        "read" if measured is None else f"read, noise from {measured.readouts}, {measured.samples} samples a channel"
    )
    right = off <= 10 * CLOSE and scan.geometry is not None and not scan.geometry[0].placed
    compared = "k-space, oversampling removed from what h5py reads"
    yield _row("Shepp-Logan phantom, 64 x 64, 4 coils", GENERATOR, "this package", outcome, compared, off,
               "of the largest", right)  # fmt: skip


def scanner_rows(data: Path) -> Rows:
    """Raw data of scanners, with what others read from them."""
    for name, known, said in (("raw/twix_gre.dat", "mri/mc_phantom_skyra_gre2.npy", "scanner, Siemens Skyra"),):
        path, array = data / name, data / known
        if not path.exists() or not array.exists():
            yield _missing(path.name, said, "not beside the checkout")
            continue
        scan = read(path)
        assert isinstance(scan, KSpaceData)
        wanted = np.load(array).swapaxes(-1, -2)
        wanted = wanted if wanted.shape == scan.kspace.shape else _cropped(wanted, scan.kspace.shape[-1])
        off = _unlike(scan.kspace, wanted)
        placed = scan.geometry is not None and scan.geometry[0].placed
        outcome = f"read, {'placed' if placed else 'without a place'}"
        right = off <= 10 * CLOSE and placed == path.name.endswith(".dat")
        compared = "k-space that twixtools read" if placed else "k-space that others read"
        yield _row(path.name, said, "this package", outcome, compared, off, "of the largest", right)


def _cropped(kspace: NDArray[np.complex64], keep: int) -> NDArray[np.complex64]:
    """Readouts over a larger field of view cut to ``keep`` positions in the image domain."""
    extra = (kspace.shape[-1] - keep) // 2
    lines = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(kspace, axes=-1), axis=-1, norm="ortho"), axes=-1)
    lines = np.fft.ifftshift(lines[..., extra : extra + keep], axes=-1)
    return np.fft.fftshift(np.fft.fft(lines, axis=-1, norm="ortho"), axes=-1).astype(np.complex64)


def _unlike(found: NDArray[np.complexfloating], wanted: NDArray[np.complexfloating]) -> float:
    """Largest difference over the largest value; infinite for other shapes."""
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _row(*values: object) -> Row:
    return dict(zip(COLUMNS, values, strict=True))


def _missing(file: str, by: str, why: str) -> Row:
    return _row(file, by, "-", f"not tried: {why}", "-", "-", "-", False)


def main(arguments: list[str] | None = None) -> None:
    """Write the page and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--turns", type=int, default=4, help="oblique slices of MRpro's phantom")
    asked = parser.parse_args(arguments)
    parts: list[Callable[[Path], Rows]] = [lambda folder: mrpro_rows(folder, asked.turns), generator_rows]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for part in parts for row in part(Path(folder))]
    rows += scanner_rows(asked.data)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(asked.out / "foreign-files.csv", rows, COLUMNS)
    put_table(asked.out / "foreign-files.md", "Foreign files", rows, COLUMNS)
    put_conditions(asked.out / "foreign-files.md", "mri-design", "numpy", "h5py", "ismrmrd")
    for row in rows:
        print("right" if row["right"] else "WRONG", *(row[name] for name in COLUMNS[:-1]), sep=" | ")


if __name__ == "__main__":
    main()

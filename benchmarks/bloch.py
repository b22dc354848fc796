"""Exported sequences read by other programs, simulated with the Bloch equations, and reconstructed to the phantom.

    pip install MRzeroCore pypulseqpp finufft
    OMP_NUM_THREADS=1 python benchmarks/bloch.py

writes readers.csv, bloch.csv, bloch.png and the tables of bloch.md into results/interoperation; a few minutes.
MRzeroCore needs PyTorch: install its CPU build first
(``pip install torch --index-url https://download.pytorch.org/whl/cpu``). The
package, its extras and its continuous integration need none of these. ``--quick`` is the same at a small size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import MRzeroCore
import numpy as np
import torch
from numpy.typing import NDArray
from parts.pages import put_conditions, put_section, put_table
from parts.pulseq_text import played
from parts.second_reader import read_by_pypulseqpp

import mri_design as md
from mri_design.evaluation.plots.images import image_grid
from mri_design.evaluation.plots.pictures import ImagePanel, png_bytes
from mri_design.evaluation.tables import Row, markdown_text, write_csv
from mri_design.scan.io.atomic import write_bytes
from mri_design.scan.simulation import load_phantom
from mri_design.sequences.events import largest_bandwidth
from mri_design.sequences.orders import GridOrder, Order, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import SequenceSettings, load_scanner

OUT = Path(__file__).parents[1] / "results/interoperation"
SEED, MATRIX, PLANE, SIDE, SLAB = 0, 64, 16, 0.22, 0.16
SCANNER = load_scanner("generic")
Image = NDArray[np.complexfloating] | NDArray[np.floating]


@dataclass(frozen=True)
class Case:
    """One exported sequence and what it shall show.

    Parameters
    ----------
    name : str
        Of the kind.
    order, settings
        What is played.
    density : float array, shape (x, y, z)
        Proton density of the phantom.
    t1, t2 : float
        Its relaxation times everywhere, seconds.
    reconstruct : callable
        Takes the signal (readout, sample) and gives the image with the axes of ``density``.
    """

    name: str
    order: Order
    settings: SequenceSettings
    density: NDArray[np.float64]
    t1: float
    t2: float
    reconstruct: Callable[[NDArray[np.complex128]], Image]


def cases(matrix: int, plane: int) -> list[Case]:
    """Every kind: lines in random order, all samples of a plane in random order, spokes and arms."""
    rng = np.random.default_rng(SEED)
    flat = np.abs(_reference("brain", matrix)[0]).T[:, :, np.newaxis]
    solid = np.abs(_reference("head-3d", plane)).transpose(0, 1, 2)
    common = SequenceSettings(
        kind="gre",
        field_of_view=(SIDE, SIDE),
        samples=matrix,
        echo_time=0.010,
        repetition_time=0.030,
        flip_angle=15.0,
        bandwidth=250.0,
        dummies=60,
    )
    lines = tuple(rng.permutation(matrix).tolist())
    one_by_one = GridOrder.in_trains(lines, 1, matrix)
    trains = GridOrder.in_trains(lines, 8, matrix)
    echoes = replace(common, kind="tse", echo_time=0.016, repetition_time=3.0, flip_angle=180.0, dummies=1)
    grid = GridOrder.in_trains(rng.permutation(plane * plane).tolist(), 1, plane, plane)
    slab = replace(common, samples=plane, slice_thickness=SLAB)
    spokes = SpokeOrder(tuple(md.operators.equispaced_angles(round(1.6 * matrix)).tolist()))
    limits = md.scan.GradientLimits(amplitude=0.02, slew=80.0)
    arm = md.scan.spiral_readout(matrix, md.scan.nyquist_turns(matrix, 12), limits, field_of_view=SIDE).samples
    arms = SpiralOrder(md.operators.turned(arm, md.operators.interleaf_angles(13, "one-missing")), (matrix, matrix))
    fastest = largest_bandwidth(arms, (SIDE, SIDE), SCANNER)
    swirl = replace(common, samples=arms.samples, bandwidth=fastest, repetition_time=0.05)
    return [
        Case("lines, gre", one_by_one, common, flat, 1.0, 0.1, lambda signal: _from_lines(signal, one_by_one)),
        Case("lines, tse", trains, echoes, flat, 4.0, 2.0, lambda signal: _from_lines(signal, trains)),
        Case("plane, gre", grid, slab, solid, 1.0, 0.1, lambda signal: _from_plane(signal, grid)),
        Case("spokes, gre", spokes, common, flat, 1.0, 0.1, lambda signal: _from_shots(signal, spokes, matrix)),
        Case("spirals, gre", arms, swirl, flat, 1.0, 0.1, lambda signal: _from_shots(signal, arms, matrix)),
    ]


def _reference(name: str, side: int) -> NDArray[np.complex64]:
    reference = load_phantom(name, shape=(side, side), rng=np.random.default_rng(SEED)).reference
    assert reference is not None
    return reference


def _from_lines(signal: NDArray[np.complex128], order: GridOrder) -> Image:
    kspace = np.zeros((order.rows, signal.shape[1]), dtype=complex)
    kspace[list(order.labels["LIN"])] = signal
    return _image_of(kspace).T[:, :, np.newaxis]


def _from_plane(signal: NDArray[np.complex128], order: GridOrder) -> Image:
    kspace = np.zeros((*order.matrix, signal.shape[1]), dtype=complex)
    kspace[list(order.labels["LIN"]), list(order.labels["PAR"])] = signal
    return _image_of(kspace).transpose(2, 0, 1)


def _image_of(kspace: NDArray[np.complex128]) -> NDArray[np.complex128]:
    return np.asarray(np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(kspace))))


def _from_shots(signal: NDArray[np.complex128], order: SpokeOrder | SpiralOrder, matrix: int) -> Image:
    """Least squares along the trajectory of the design."""
    places = order.places(signal.shape[1])[[1, 0]].transpose(1, 2, 0)
    noise_variance = float((1e-3 * np.abs(signal).max()) ** 2)
    scan = md.TrajectoryData(
        signal.reshape(1, 1, -1).astype(np.complex64),
        places.reshape(-1, 2),
        (matrix, matrix),
        n_readouts=len(signal),
        noise_variance=noise_variance,
    )
    recipe = md.load_recipe("local")
    model = md.calibrate(scan, recipe).slice_model(0, **recipe.slice_settings)
    made = md.reconstruct(model, None, "least-squares", recipe, np.random.default_rng(SEED))
    return np.asarray(made.image).T[:, :, np.newaxis]


def readers(case: Case, path: Path) -> list[Row]:
    """Finds of each program in the file: labels, and the largest distance from the design, cycles a field of view."""
    made = pulseq_file(case.order, case.settings, SCANNER)
    write_bytes(path, made[0])
    wanted = case.order.places(case.settings.samples)
    along_y, along_x = case.settings.field_of_view
    scale = np.array([along_x, along_y, case.settings.slice_thickness])[:, np.newaxis, np.newaxis]
    text = played(path.read_text(encoding="utf-8"))
    second, labels = read_by_pypulseqpp(path)
    third = MRzeroCore.Sequence.import_file(str(path)).get_kspace().numpy()[:, :3].T
    designed = {name: list(values) for name, values in case.order.labels.items()}
    found: dict[str, tuple[float, str]] = {"pypulseq": (made[1].largest_error, "yes")}
    for name, places, told in (
        ("the text alone", text.places.transpose(2, 0, 1), text.labels),
        ("pypulseqpp", second.reshape(wanted.shape), labels),
        ("MRzeroCore", third.reshape(wanted.shape), None),
    ):
        same = None if told is None else all(list(told[label]) == values for label, values in designed.items())
        said = "not read" if same is None else "yes" if same else "no"
        found[name] = (float(np.abs(places * scale - wanted).max()), said)
    return [
        {
            "sequence": case.name,
            "readouts": case.order.count,
            "reader": name,
            "largest error": error,
            "labels exact": said,
        }
        for name, (error, said) in found.items()
    ]


def simulated(case: Case, path: Path) -> tuple[Row, Image]:
    """The signal of the file by MRzeroCore's phase distribution graphs, and the image of it, scaled to the phantom."""
    began, shape = time.perf_counter(), case.density.shape
    along_y, along_x = case.settings.field_of_view
    thick = case.settings.slice_thickness / shape[2]
    sizes = torch.diag(1e3 * torch.tensor([along_x / shape[0], along_y / shape[1], thick, 1e-3]))
    ones = torch.ones(shape)
    density = torch.as_tensor(case.density.copy(), dtype=torch.float32)
    phantom = MRzeroCore.VoxelGridPhantom(
        *(density, case.t1 * ones, case.t2 * ones, 1e3 * ones, 0 * ones, 0 * ones, ones[np.newaxis], ones[np.newaxis]),
        affine=sizes,
    )
    data, sequence = phantom.build(), MRzeroCore.Sequence.import_file(str(path))
    graph = MRzeroCore.compute_graph(sequence, data, 200, 3e-4)
    signal = MRzeroCore.execute_graph(graph, sequence, data, print_progress=False).numpy()
    image, error = _scaled(case, signal.reshape(case.order.count, case.settings.samples).astype(complex))
    row: Row = {
        "sequence": case.name,
        "grid": " x ".join(str(side) for side in shape if side > 1),
        "readouts": case.order.count,
        "T1, s": case.t1,
        "T2, s": case.t2,
        "relative error": error,
        "of exact samples": _scaled(case, _exact_samples(case))[1],
        "with an axis reversed": min(_error(case, np.flip(image, axis)) for axis, side in enumerate(shape) if side > 1),
        "seconds": time.perf_counter() - began,
    }
    return row, image


def _scaled(case: Case, signal: NDArray[np.complex128]) -> tuple[Image, float]:
    """The image of a signal, scaled to the phantom, and its relative error."""
    image = np.asarray(case.reconstruct(signal))
    image = image * (np.vdot(image, case.density) / np.vdot(image, image))
    return image, _error(case, image)


def _error(case: Case, image: Image) -> float:
    return float(np.linalg.norm(image - case.density) / np.linalg.norm(case.density))


def _exact_samples(case: Case) -> NDArray[np.complex128]:
    """K-space of the phantom's voxels at the designed places, (readout, sample), by its defining sum."""
    places = case.order.places(case.settings.samples)
    waves = [
        np.exp(-2j * np.pi * k[..., np.newaxis] * (np.arange(side) - side // 2) / side)
        for k, side in zip(places, case.density.shape, strict=True)
    ]
    return np.asarray(np.einsum("rsx,rsy,rsz,xyz->rs", *waves, case.density, optimize=True))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    found: list[Row] = []
    rows: list[Row] = []
    panels: list[ImagePanel] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequence.seq"
        for case in cases(*((24, 8) if asked.quick else (MATRIX, PLANE))):
            found += readers(case, path)
            row, image = simulated(case, path)
            rows.append(row)
            shown, true = (_middle(pixels) for pixels in (image, case.density))
            if panels and panels[0].image.shape != true.shape:  # a grid of pictures has one shape
                shown, true = (_enlarged(pixels, panels[0].image.shape[0]) for pixels in (shown, true))
            said = f"error {100 * float(str(row['relative error'])):.2f} %"
            panels += [
                ImagePanel(true, f"{case.name}: phantom"),
                ImagePanel(shown, "reconstruction", said),
                ImagePanel(10 * (shown - true), "10 x difference"),
            ]
            print(row)
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(asked.out / "readers.csv", found)
    write_csv(asked.out / "bloch.csv", rows)
    put_table(asked.out / "bloch.md", "Readers", found)
    table = markdown_text(rows)
    picture = "![phantom, reconstruction and ten times their difference of every sequence](bloch.png)"
    put_section(asked.out / "bloch.md", "Bloch simulation", f"{table}\n{picture}")
    put_conditions(asked.out / "bloch.md", "mri-design", "numpy", "pypulseq", "pypulseqpp", "MRzeroCore", "torch")
    write_bytes(asked.out / "bloch.png", png_bytes(image_grid(panels)))


def _middle(volume: Image) -> Image:
    """Rows y and columns x of the middle slice, scaled to 1."""
    slice_ = volume[:, :, volume.shape[2] // 2].T
    return slice_ / np.abs(volume).max()


def _enlarged(pixels: Image, side: int) -> Image:
    """A square picture with more pixels, each the nearest one of the old."""
    at = np.arange(side) * len(pixels) // side
    return pixels[np.ix_(at, at)]


if __name__ == "__main__":
    main()

"""One designed mask, the same data and coil maps: the same image in BART, SigPy, PyLops and SciPy.

    OMP_NUM_THREADS=1 python benchmarks/same_image.py

designs lines of a scene of ellipses with 1 and with 8 coils, writes mask, data and maps as BART's pairs of files by
the package's own `export` and `convert`, and has the image that minimises |X u - y|^2 + weight |u|^2 computed four
times: by `bart pics` and by SigPy's SenseRecon from the same files, and with the package's operators by PyLops's CGLS
and by SciPy's conjugate gradients. It writes same-image.csv and the table of same-image.md into results/interoperation.
Without BART on the search path its rows are missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.bart_solver import bart_version
from parts.pages import put_conditions, put_table
from scipy.sparse import linalg as sparse_linalg

from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.designing import run_design
from mri_design.experiment.inputs import prepare
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.operators.cartesian_fourier import CartesianLines
from mri_design.runs.convert import convert_file
from mri_design.runs.export import ExportRequest, export_run
from mri_design.runs.made_files import write_made_files
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.io.bart import read_pair
from mri_design.scan.simulation.phantoms import load_phantom

OUT = Path(__file__).parents[1] / "results/interoperation"
COILS, MATRIX, WEIGHT, ITERATIONS = (1, 8), 128, 0.05, 60


def written(folder: Path, coils: int, matrix: int) -> tuple[KSpaceData, list[int]]:
    """A scan on designed lines as scan.cfl, its maps as scan_maps.cfl, the run's mask as mask.cfl; scan and lines."""
    scan = load_phantom("brain", shape=(matrix, matrix), n_coils=coils, rng=np.random.default_rng(0))
    recipe = load_recipe("local")
    model = prepare(scan, recipe, ordinary=True).slice_model(0, recipe)
    state = run_design([model], make_strategy("calibrated"), matrix // 4, recipe, seed=0, start=8)
    measured = state.trace.mask()
    scan = replace(scan, kspace=np.where(measured[:, np.newaxis], scan.kspace, 0), measured=measured)
    maps = np.ones_like(scan.kspace) if scan.coil_maps is None else scan.coil_maps
    write_npz(folder / "scan.npz", {"kspace": scan.kspace, "coil_maps": maps})
    write_made_files(convert_file(str(folder / "scan.npz"), folder / "scan.cfl", Recipe()))
    run = folder / "run"
    run.mkdir()
    np.save(run / "mask.npy", measured)
    np.save(run / "recon.npy", np.zeros((matrix, matrix), np.complex64))
    manifest = {"lines": list(state.trace.lines), "settings": {}}
    (run / "manifest.json").write_text(json.dumps(manifest, default=int))
    write_made_files(export_run(ExportRequest(run, "cfl", folder / "mask.cfl")))
    return replace(scan, coil_maps=maps), sorted(int(line) for line in state.trace.lines)


def by_scipy(scan: KSpaceData, lines: list[int]) -> np.ndarray:
    """With the package's X inside SciPy's conjugate gradients."""
    assert scan.coil_maps is not None
    encoding = CartesianLines(lines, scan.grid_shape, scan.coil_maps[0])
    X = encoding.as_scipy()
    normal = sparse_linalg.LinearOperator(
        (X.shape[1], X.shape[1]), matvec=lambda u: X.rmatvec(X.matvec(u)) + WEIGHT * u, dtype=np.complex128
    )
    data = np.ascontiguousarray(scan.kspace[0][:, lines]).ravel()
    solved, ended = sparse_linalg.cg(normal, X.rmatvec(data), rtol=1e-10, maxiter=1000)
    assert ended == 0, "SciPy's conjugate gradients did not converge"
    return np.asarray(solved).reshape(scan.grid_shape)


def by_pylops(scan: KSpaceData, lines: list[int]) -> np.ndarray:
    """With the package's X inside PyLops's CGLS."""
    import pylops

    assert scan.coil_maps is not None
    X = pylops.aslinearoperator(CartesianLines(lines, scan.grid_shape, scan.coil_maps[0]).as_scipy())
    data = scan.kspace[0][:, lines].astype(np.complex128).ravel()
    solved = pylops.cgls(X, data, niter=1000, damp=np.sqrt(WEIGHT), tol=1e-16)[0]
    return np.asarray(solved).reshape(scan.grid_shape)


def by_bart(folder: Path) -> np.ndarray:
    """`bart pics` with an l2 penalty, from the written files."""
    options = ["-d0", "-S", "-l2", "-r", str(WEIGHT), "-i", str(ITERATIONS), "-p", "mask"]
    command = ["bart", "pics", *options, "scan", "scan_maps", "image"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return read_pair(folder / "image").squeeze().T


def by_sigpy(folder: Path) -> np.ndarray:
    """SigPy's SenseRecon, from the written files."""
    from sigpy.mri.app import SenseRecon

    mask = read_pair(folder / "mask").squeeze().T
    scan, maps = (
        np.moveaxis(read_pair(folder / name)[:, :, 0, :, 0].squeeze(axis=tuple(range(3, 14))), -1, 0)
        for name in ("scan", "scan_maps")
    )
    scan, maps = scan.swapaxes(1, 2), maps.swapaxes(1, 2)
    solver = SenseRecon(scan, maps, lamda=WEIGHT, weights=mask.real, max_iter=ITERATIONS, show_pbar=False)
    return np.asarray(solver.run())


def rows_of(coils: int, matrix: int) -> list[Row]:
    """The images of the other programs against ours: difference, and objective over the least one, minus 1."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        scan, lines = written(folder, coils, matrix)
        ours = by_scipy(scan, lines)
        images = {
            "SciPy with our X": ours,
            "PyLops with our X": by_pylops(scan, lines),
            "SigPy SenseRecon": by_sigpy(folder),
        }
        if shutil.which("bart"):
            images["BART pics"] = by_bart(folder)
    objectives = {name: _objective(scan, lines, image) for name, image in images.items()}
    least = min(objectives.values())
    return [
        {
            "coils": coils,
            "matrix": matrix,
            "lines": len(lines),
            "solver": name,
            "difference": float(np.linalg.norm(image - ours) / np.linalg.norm(ours)),
            "objective over the least, minus 1": objectives[name] / least - 1,
        }
        for name, image in images.items()
    ]


def _objective(scan: KSpaceData, lines: list[int], image: np.ndarray) -> float:
    assert scan.coil_maps is not None
    misfit = CartesianLines(lines, scan.grid_shape, scan.coil_maps[0])(image.astype(np.complex128))
    misfit = misfit - scan.kspace[0][:, lines]
    return float(np.sum(np.abs(misfit) ** 2) + WEIGHT * np.sum(np.abs(image) ** 2))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=int, default=MATRIX, help="lines, and samples of each")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    options = parser.parse_args()
    rows = [row for coils in COILS for row in rows_of(coils, options.matrix)]
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(options.out / "same-image.csv", rows)
    put_table(options.out / "same-image.md", "The same image in other programs", rows)
    also = f"; BART {bart_version()}"
    put_conditions(options.out / "same-image.md", "numpy", "scipy", "sigpy", "pylops", also=also)


if __name__ == "__main__":
    main()

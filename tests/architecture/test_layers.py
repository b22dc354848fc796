"""The layers of the architecture: imports go down only, and packages of one layer never import each other.

The layers stand below as tables. Every file's imports are read with `ast` (also those inside functions and
under ``TYPE_CHECKING``: a type is knowledge too) and held against them. `draw_layers` draws them for CONTRIBUTING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "mri_design"

LAYERS = {
    "cli": 10,
    "interactive": 10,
    "runs": 9,
    "evaluation": 8,
    "experiment": 7,
    "design": 6,
    "active_learning": 6,
    "sequences": 6,
    "inference": 5,
    "variances": 4,
    "estimation": 4,
    "model": 3,
    "krylov": 2,
    "scan": 2,
    "operators": 1,
    "potentials": 1,
    "status": 1,
    "brief": 1,
    "errors": 1,
    "whole_numbers": 1,
    "notices": 1,
    "kinds": 1,
    "priors": 1,
    "registry": 1,
}
# Inside every package its modules and packages have layers too, at any depth, and the same rule holds: an import goes
# to a lower layer, never to a sibling. "*" is the layer of modules that are not named: leaves, such as operators and
# strategies, none of which knows another. "" is that of modules that are not named and may import each other: what the
# whole package shares. Packages are always named.
INSIDE: dict[str, dict[str, int]] = {
    "active_learning": {"*": 1},
    "cli": {"flags": 1, "sequence_flags": 2, "terminal": 2, "*": 3, "main": 4, "start": 5},
    "design": {"": 1, "strategies": 3, "training": 3},
    "design/strategies": {"error_model": 1, "*": 3},
    "design/training": {"*": 1},
    "estimation": {"penalised": 1, "*": 2, "admm": 3, "automatic": 4, "map_estimate": 5},
    "evaluation": {"": 1, "plots": 2, "predictions": 2, "account": 3, "run_status": 2, "run_folder": 3, "page": 4},
    "evaluation/plots": {"panels": 1, "style": 2, "*": 3},
    "experiment": {
        "": 1,
        "held_back": 2,
        "posterior_draws": 3,
        "reconstruction": 4,
        "around": 5,
        "image_error": 5,
        "trajectories": 5,
        "fixed_masks": 6,
        "companion_images": 6,
        "region_masks": 7,
    },
    "experiment/held_back": {
        "choosing": 1,
        "prediction": 2,
        "*": 3,
        "evidence": 4,
        "companion": 5,
        "squared_error": 5,
        "error_bars": 6,
    },
    "experiment/trajectories": {"preparing": 1, "reconstructing": 1, "shots": 1, "description": 2},
    "inference": {"base": 1, "criterion": 1, "dense_model": 1, "messages": 2, "site_gaussians": 2, "*": 3}
    | {"hyperparameters": 4, "references": 4},
    "interactive": {"running": 1, "shown": 1, "comparison": 2, "image": 2, "design": 3, "scan": 4},
    "krylov": {"*": 1},
    "model": {
        "*": 1,
        "circulant_inverse": 2,
        "companion": 2,
        "sparsity": 2,
        "sums": 2,
        "precision": 3,
        "mr_image": 3,
        "posterior": 4,
    },
    "operators": {
        "kernels": 1,
        "trajectory": 1,
        "base": 2,
        "*": 3,
        "cartesian_fourier": 4,
        "nonuniform": 4,
        "readouts": 5,
    },
    "operators/readouts": {"base": 1, "*": 2, "named": 3},
    "operators/kernels": {"compiling": 1, "suitable": 1, "*": 2},
    "potentials": {"base": 1, "requirements": 2, "priors": 3, "mixture": 4, "likelihoods": 5, "*": 4},
    "runs": {"": 1, "study": 2, "methods": 3}
    | dict.fromkeys(("compare", "convert", "design", "export", "info", "protocol", "recon", "train"), 4)
    | {"adapt": 5, "demo": 5, "mask": 5, "warm_process": 5},  # a design; two runs; an export; loads what verbs need
    "runs/adapt": {"run": 1, "report": 2},
    "runs/design": {"earlier": 1, "within": 1, "run": 2, "report": 3},
    "runs/recon": {"stages": 1, "beginning": 1, "one_slice": 2, "calibrated_on": 3, "volume": 4}
    | {"run": 5, "volume_report": 5, "report": 6},
    "scan": {"": 1, "trajectories": 2, "calibration": 3, "simulation": 3, "io": 4, "streaming": 5, "writing": 5},
    "scan/calibration": {"espirit": 1, "noise": 1, "*": 2, "growing_maps": 3},
    "scan/calibration/noise": {"least": 1, "regions": 1, "image_air": 2, "witnesses": 3, "covariance": 4}
    | {"volume": 5, "whitening": 5},
    "scan/io": {"": 1, "stored_arrays": 2, "mrd_acquisitions": 2, "nifti": 2, "pfile": 2, "twix_protocol": 2}
    | dict.fromkeys(("bart", "dicom", "fastmri", "isolated", "mrd_cartesian", "numpy_files"), 3)
    | {"ismrmrd": 4, "twix": 5, "formats": 6, "companions": 7},
    "scan/writing": {"*": 1},
    "scan/simulation": {"settings": 1, "ellipses": 2, "phase": 2, "*": 3, "scanner": 4, "phantoms": 5},
    "scan/streaming": {"messages": 1, "*": 2, "scanner": 3},
    "scan/trajectories": {"*": 1, "spiral": 2},
    "sequences": {"scanner": 1, "settings": 1, "orders": 1, "arms": 2, "events": 3, "verification": 4}
    | {"gradient_echo": 4, "turbo_spin_echo": 4, "pulseq_file": 5},
    "variances": {"base": 1, "*": 2, "control_variate": 3},
}
EVERYONE_MAY_IMPORT = {"brief", "errors", "kinds", "notices", "priors", "registry", "status"}
# Packages that know less than their layer would allow: krylov knows callables, potentials know arrays.
KNOW_LESS = {
    "krylov": EVERYONE_MAY_IMPORT,
    "potentials": EVERYONE_MAY_IMPORT,
    "status": {"errors"},
    "brief": {"errors"},
    "errors": set[str](),
    "notices": set[str](),
}
DATA_FOLDERS = {"phantoms", "recipes"}

# Outside libraries with one door each (paths without suffix, relative to the package); () is nowhere.
DOORS = {
    "matplotlib": ("evaluation/plots",),
    "dask": ("runs/workers",),
    "distributed": ("runs/workers",),
    "finufft": ("operators/nonuniform",),
    "sigpy": ("estimation/textbook", "experiment/outside_masks"),
    "nibabel": ("scan/writing/nifti", "scan/io/nifti"),
    "pydicom": ("scan/writing/dicom", "scan/io/dicom"),
    "pypulseq": ("sequences/",),
    "twixtools": ("scan/io/twix",),
    "random": (),  # the standard library's global generator
}
# What numpy.random offers without global state.
GENERATORS = {
    "BitGenerator",
    "Generator",
    "MT19937",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "SFC64",
    "SeedSequence",
    "default_rng",
}
BANNED_NAMES = {"common", "core", "helper", "helpers", "util", "utils"}


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, which several tests read."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def violations(package: Path) -> list[str]:
    """Every breach of the tables in ``package``, as ``path:line: what``."""
    found = list(_unknown_parts(package))
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        found += [f"{inside}: {what}" for what in _shape_breaches(inside)]
        tree = parsed(path)
        dotted = [package.name, *inside.with_suffix("").parts]
        for line, target in imports(tree, dotted):
            found += [f"{inside}:{line}: {what}" for what in _import_breaches(inside, target, package.name)]
        found += [f"{inside}:{line}: {what}" for line, what in _global_randomness(tree)]
    return found


def _unknown_parts(package: Path) -> Iterator[str]:
    for entry in sorted(package.iterdir()):
        name = entry.stem if entry.suffix == ".py" else entry.name
        is_part = entry.suffix == ".py" or (entry.is_dir() and (name in DATA_FOLDERS or any(entry.rglob("*.py"))))
        if is_part and name not in {"__init__", *LAYERS, *DATA_FOLDERS}:
            yield f"{entry.name}: unknown package; give it a layer in tests/architecture/test_layers.py"
        if name in DATA_FOLDERS and any(entry.rglob("*.py")):
            yield f"{entry.name}: holds data, but has Python files in it"
    for folder in sorted(path for path in package.rglob("*") if path.is_dir() and any(path.rglob("*.py"))):
        inside = folder.relative_to(package).as_posix()
        known = INSIDE.get(inside)
        if known is None:
            if _is_named(inside):
                yield f"{inside}: give its modules layers in tests/architecture/test_layers.py"
            continue
        files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        packages = {inner.name for inner in folder.iterdir() if inner.is_dir() and any(inner.rglob("*.py"))}
        unknown = packages - set(known) if {"*", ""} & set(known) else (packages | files) - set(known)
        for entry in sorted(unknown - BANNED_NAMES):
            yield f"{inside}/{entry}: unknown package; give it a layer in tests/architecture/test_layers.py"


def _is_named(inside: str) -> bool:
    """Whether the tables name the folder among the parts of the folder above."""
    above, _, name = inside.rpartition("/")
    return name in (INSIDE.get(above, {}) if above else LAYERS)


def _shape_breaches(inside: Path) -> Iterator[str]:
    for name in sorted(BANNED_NAMES.intersection(inside.with_suffix("").parts)):
        yield f"named '{name}'; a second use earns a function its own named file"


def imports(tree: ast.Module, dotted: list[str]) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported; ``dotted`` is the importing file's own name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(dotted[: -node.level]) if node.level else ""
            source = ".".join(part for part in (start, node.module) if part)
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"__import__", "import_module", "optional_package"}:
                yield node.lineno, str(node.args[0].value)


def _import_breaches(inside: Path, target: str, package: str) -> Iterator[str]:
    top, *rest = target.split(".")
    if top in DOORS and not inside.as_posix().startswith(DOORS[top]):
        allowed = " or ".join(DOORS[top]) or "nothing in the package"
        yield f"imports {top}; only {allowed} may"
    if top != package or inside == Path("__init__.py"):
        return
    here = inside.with_suffix("").parts[0]
    other = rest[0] if rest else ""
    if other.startswith("__"):
        return  # mri_design.__version__ and its like
    if other not in LAYERS:
        yield f"imports '{target}', which is no package; import from the package itself"
    elif other == here:
        yield from _inner_breaches(inside, rest)
    elif here in KNOW_LESS and other not in KNOW_LESS[here]:
        yield f"{here} may import only {', '.join(sorted(KNOW_LESS[here])) or 'nothing of ours'}, not {other}"
    elif here in LAYERS and other not in EVERYONE_MAY_IMPORT and LAYERS[other] >= LAYERS[here]:
        relation = "a sibling" if LAYERS[other] == LAYERS[here] else "above"
        yield f"{here} (layer {LAYERS[here]}) imports {other} (layer {LAYERS[other]}), which is {relation}"


def _inner_breaches(inside: Path, target: list[str]) -> Iterator[str]:
    """Within a package: what imports and what is imported are compared in the folder where their ways part.

    ``target`` begins with the package. `__init__`, which hands names on, may import all that is beside it.
    """
    ways = zip(inside.with_suffix("").parts, target, strict=False)
    parted = next((depth for depth, (here, there) in enumerate(ways) if here != there), None)
    if parted is None or inside.with_suffix("").parts[parted] == "__init__":
        return
    folder, here, there = "/".join(target[:parted]), inside.with_suffix("").parts[parted], target[parted]
    layers = INSIDE.get(folder, {})
    if here not in layers and there not in layers and "" in layers:
        return  # what the whole package shares
    low, high = (layers.get(name, layers.get("*", layers.get("", 0))) for name in (there, here))
    if low >= high:
        relation = "a sibling" if low == high else "above"
        yield f"{folder}/{here} imports {folder}/{there}, which is {relation}"


def _global_randomness(tree: ast.Module) -> Iterator[tuple[int, str]]:
    meaning = dict(_names_bound_by_imports(tree))
    for node in ast.walk(tree):
        used: list[str] = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            used = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            used = [_spelled_out(node, meaning)]
        elif isinstance(node, ast.Call):
            fresh = _spelled_out(node.func, meaning) == "numpy.random.default_rng"
            if fresh and not (node.args or node.keywords):
                yield node.lineno, "makes a generator without a seed; take rng as an argument"
        for name in used:
            if name.startswith("numpy.random.") and name.split(".")[2] not in GENERATORS:
                yield node.lineno, f"uses {name}, which is global state; take rng as an argument"


def _names_bound_by_imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _spelled_out(node: ast.expr, meaning: dict[str, str]) -> str:
    """``np.random.seed`` as ``numpy.random.seed``; the empty string where no import bound the first name."""
    if isinstance(node, ast.Name):
        return meaning.get(node.id, "")
    if isinstance(node, ast.Attribute):
        start = _spelled_out(node.value, meaning)
        return f"{start}.{node.attr}" if start else ""
    return ""


def test_the_package_keeps_its_layers() -> None:
    found = violations(PACKAGE)
    assert not found, "\n".join(["the architecture is broken:", *found])


def test_files_do_not_import_in_a_circle() -> None:
    files = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    arrows = {
        name: {source for _, target in imports(parsed(path), name.split(".")) for source in _file(target)}
        & (set(files) - {name})
        for name, path in files.items()
    }
    assert sum(map(len, arrows.values())) > len(files)
    TopologicalSorter(arrows).prepare()  # refuses circles


def _file(target: str) -> Iterator[str]:
    """What may be the file behind an imported name: the name itself, or what it was imported from."""
    yield target
    yield target.rpartition(".")[0]


def test_the_tables_name_nothing_that_is_gone() -> None:
    gone = {folder for folder in INSIDE if not (PACKAGE / folder).is_dir()}
    for folder, layers in INSIDE.items():
        there = {path.stem for path in (PACKAGE / folder).iterdir()} | {"", "*"}
        gone |= {f"{folder}/{name}" for name in layers if name not in there}
    assert not gone


def test_the_checker_reads_the_real_package() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert PACKAGE / "errors.py" in files
    seen = {target for path in files for _, target in imports(parsed(path), ["mri_design"])}
    assert "mri_design.errors.InputError" in seen


@pytest.mark.parametrize(
    ("path", "code", "complaint"),
    [
        ("model/mr_image.py", "from mri_design.design import engine", "design (layer 6), which is above"),
        ("model/mr_image.py", "import mri_design.cli.main", "cli (layer 10), which is above"),
        ("model/mr_image.py", "from ..inference.base import State", "inference (layer 5), which is above"),
        ("model/mr_image.py", "def f():\n    from mri_design import design", "design (layer 6)"),
        ("model/mr_image.py", "import importlib as i\ni.import_module('mri_design.cli')", "cli (layer 10)"),
        ("model/mr_image.py", "from mri_design import KSpaceData", "is no package"),
        ("variances/exact.py", "from mri_design.estimation import irls", "a sibling"),
        ("potentials/priors.py", "from mri_design.scan import data", "potentials may import only"),
        ("active_learning/labels.py", "from mri_design.design.engine import DesignEngine", "a sibling"),
        ("active_learning/labels.py", "from mri_design.active_learning.infomax import x", "a sibling"),
        (
            "runs/design/run.py",
            "from mri_design.runs.compare import compare_strategies",
            "runs/compare, which is a sibling",
        ),
        ("runs/scans.py", "from mri_design.runs.study import design_mask", "runs/study, which is above"),
        ("inference/decoupled.py", "from mri_design.inference.double_loop import DoubleLoop", "a sibling"),
        ("inference/newest/a.py", "", "inference/newest: unknown package"),
        ("scan/io/newest/tags.py", "", "scan/io/newest: unknown package"),
        ("design/strategies/newest/a.py", "", "design/strategies/newest: unknown package"),
        ("sequences/a.py", "", "sequences/a: unknown package"),
        ("scan/io/bart.py", "from mri_design.scan.io.numpy_files import opened", "io/numpy_files, which is a sibling"),
        ("scan/io/mrd_header.py", "from ..io.fastmri import read", "scan/io/fastmri, which is above"),
        (
            "scan/calibration/a.py",
            "from mri_design.scan.simulation.phase import x",
            "scan/simulation, which is a sibling",
        ),
        ("scan/io/safe.py", "from mri_design.scan.io.ismrmrd import read", "scan/io/ismrmrd, which is above"),
        ("model/phase.py", "from mri_design.model.posterior import x", "model/posterior, which is above"),
        ("estimation/lbfgs.py", "from mri_design.estimation.irls import IRLS", "estimation/irls, which is a sibling"),
        ("variances/lanczos.py", "from mri_design.variances.exact import Exact", "variances/exact, which is a sibling"),
        ("variances/base.py", "from mri_design.variances import Exact", "variances/Exact, which is above"),
        ("operators/kernels/differences.py", "from . import pointwise", "kernels/pointwise, which is a sibling"),
        ("operators/kernels/compiling.py", "from ..base import Array", "operators/base, which is above"),
        ("krylov/lanczos.py", "from mri_design.krylov.conjugate_gradients import a", "which is a sibling"),
        ("runs/design/run.py", "from mri_design.runs.design.report import a", "design/report, which is above"),
        ("design/engine.py", "from mri_design.design.strategies.regular import Regular", "strategies, which is above"),
        ("design/strategies/a.py", "from mri_design.design.strategies.b import B", "strategies/b, which is a sibling"),
        (
            "krylov/lanczos.py",
            "from mri_design.operators.base import LinearOperator",
            "krylov may import only",
        ),
        ("errors.py", "from mri_design.status import Status", "nothing of ours"),
        ("operators/coils.py", "from mri_design.operators.elementary import Diagonal", "which is a sibling"),
        ("operators/coils.py", "from mri_design.operators import Diagonal", "which is a sibling"),
        ("operators/coils.py", "from . import elementary", "which is a sibling"),
        ("design/engine.py", "import matplotlib.pyplot as plt", "only evaluation/plots may"),
        ("evaluation/report.py", "from matplotlib import pyplot", "only evaluation/plots may"),
        (
            "scan/simulation/coil_maps.py",
            "from sigpy.mri import app",
            "only estimation/textbook or experiment/outside_masks may",
        ),
        ("runs/a.py", "from mri_design import errors\nerrors.optional_package('pypulseq', 'x')", "only sequences/ may"),
        ("design/engine.py", "import random", "nothing in the package may"),
        ("design/engine.py", "import numpy as np\nnp.random.seed(0)", "uses numpy.random.seed"),
        ("design/engine.py", "import numpy\nx = numpy.random.rand(3)", "uses numpy.random.rand"),
        ("design/engine.py", "from numpy import random as r\nr.shuffle([1])", "uses numpy.random.shuffle"),
        ("design/engine.py", "import numpy.random as r\nr.choice([1])", "uses numpy.random.choice"),
        ("design/engine.py", "from numpy.random import randn", "uses numpy.random.randn"),
        ("design/engine.py", "import numpy as np\nnp.random.default_rng()", "without a seed"),
        ("design/utils.py", "", "named 'utils'"),
        ("krylov/common/lines.py", "", "named 'common'"),
        ("plumbing/__init__.py", "", "plumbing: unknown package; give it a layer"),
        ("plumbing.py", "", "plumbing.py: unknown package; give it a layer"),
        ("recipes/brain.py", "", "holds data"),
    ],
)
def test_a_planted_breach_is_caught(tmp_path: Path, path: str, code: str, complaint: str) -> None:
    found = violations(_planted(tmp_path, path, code))
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("cli/main.py", "from mri_design import __version__\nfrom mri_design.scan.data import KSpaceData"),
        ("krylov/lanczos.py", "from mri_design.status import Convergence"),
        ("status.py", "from .errors import InputError"),
        ("operators/coils.py", "from mri_design.operators.base import LinearOperator"),
        ("operators/cartesian_fourier.py", "from mri_design.operators.coils import Coils"),
        ("operators/__init__.py", "from mri_design.operators.coils import Coils"),
        ("potentials/grouped.py", "from mri_design.potentials.priors import Laplace"),
        ("evaluation/plots.py", "import matplotlib.pyplot as plt"),
        ("evaluation/plots/masks.py", "import matplotlib.pyplot as plt"),
        ("estimation/textbook.py", "from sigpy.mri.app import L1WaveletRecon"),
        ("design/engine.py", "import numpy as np\ndef f(rng: np.random.Generator): return rng.normal()"),
        ("experiment.py", "from numpy.random import default_rng\nrng = default_rng(7)"),
        ("design/engine.py", "\n" * 1000),  # one idea may be long
        ("recipes/brain.toml", ""),
        ("scan/io/ismrmrd.py", "from mri_design.scan.io.hdf5 import opened\nfrom .mrd_header import Header"),
        ("scan/io/formats.py", "from mri_design.scan.io import ismrmrd"),
        ("model/precision.py", "from mri_design.model.circulant_inverse import PhaseFilter"),
        ("evaluation/metrics.py", "from mri_design.evaluation.pictures import COLOURS"),
        ("runs/design/run.py", "from mri_design.runs.image_sections import save_images"),
        ("design/strategies/a.py", "from mri_design.design.strategies.error_model import FEATURES"),
        ("inference/references.py", "from mri_design.inference.decoupled import DecoupledGaussian"),
    ],
)
def test_what_the_tables_allow_passes(tmp_path: Path, path: str, code: str) -> None:
    assert violations(_planted(tmp_path, path, code)) == []


def _planted(folder: Path, path: str, code: str) -> Path:
    package = folder / "mri_design"
    file = package / path
    file.parent.mkdir(parents=True)
    file.write_text(code)
    return package

"""The floors of the architecture: import arrows go down only, and siblings on a floor never meet.

The picture stands below as data. Every file's imports are read with `ast` (also those inside functions and
under ``TYPE_CHECKING``: a type is knowledge too) and held against it. To change the picture, change the data
here and the picture in CONTRIBUTING in the same commit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "mri_design"

FLOORS = {
    "cli": 10,
    "runs": 9,
    "evaluation": 8,
    "experiment": 7,
    "design": 6,
    "active_learning": 6,
    "inference": 5,
    "variances": 4,
    "estimation": 4,
    "model": 3,
    "krylov": 2,
    "scan": 2,
    "operators": 1,
    "potentials": 1,
    "status": 1,
    "errors": 1,
}
# Inside a room its own rooms have floors too; "" is the files beside them, which all of them may share.
INSIDE = {
    "active_learning": {"labels": 1, "queries": 1},
    "design": {"": 1, "strategies": 2, "training": 2},
    "evaluation": {"": 1, "output": 2, "plots": 2, "predictions": 3},
    "inference": {"": 1, "double_loop": 2, "evidence": 2, "propagation": 2, "variational": 2, "references": 3},
    "runs": {
        "": 1,
        "held_out": 2,
        "sections": 2,
        **dict.fromkeys(("compare", "design", "protocol", "recon", "train"), 3),
        "demo": 4,  # a comparison and a design
    },
    "scan": {"": 1, "calibration": 2, "io": 2, "simulation": 2},
}
MOST_FILES = 15
"""In one folder, its `__init__` not counted."""
EVERYONE_MAY_IMPORT = {"errors", "status"}
# Rooms that know less than their floor would allow: krylov knows callables, potentials know arrays.
HERMITS = {
    "krylov": EVERYONE_MAY_IMPORT,
    "potentials": EVERYONE_MAY_IMPORT,
    "status": {"errors"},
    "errors": set[str](),
}
DATA_FOLDERS = {"phantoms", "recipes"}

# Folders whose files are leaves: one file is one operator, one strategy. A leaf knows the ground of its folder, and no
# other leaf; composers put leaves together by name.
GROUND = {
    "operators": {"base", "kernels"},
    "design/strategies": {"densities", "line_features"},
}
COMPOSERS = {"operators": {"__init__", "measurement"}, "design/strategies": {"__init__"}}

# Outside libraries with one door each (paths without suffix, relative to the package); () is nowhere.
DOORS = {
    "matplotlib": ("evaluation/plots",),
    "sigpy": ("scan/calibration/",),
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


def violations(package: Path) -> list[str]:
    """Every breach of the picture in ``package``, as ``path:line: what``."""
    found = list(_unknown_rooms(package))
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        text = path.read_text(encoding="utf-8")
        found += [f"{inside}: {what}" for what in _shape_breaches(inside)]
        tree = ast.parse(text, filename=str(path))
        dotted = [package.name, *inside.with_suffix("").parts]
        for line, target in _imports(tree, dotted):
            found += [f"{inside}:{line}: {what}" for what in _import_breaches(inside, target, package.name)]
        found += [f"{inside}:{line}: {what}" for line, what in _global_randomness(tree)]
    return found


def _unknown_rooms(package: Path) -> Iterator[str]:
    for entry in sorted(package.iterdir()):
        name = entry.stem if entry.suffix == ".py" else entry.name
        is_room = entry.suffix == ".py" or (entry.is_dir() and (name in DATA_FOLDERS or any(entry.rglob("*.py"))))
        if is_room and name not in {"__init__", *FLOORS, *DATA_FOLDERS}:
            yield f"{entry.name}: unknown room; give it a floor in tests/architecture/test_layers.py"
        if name in DATA_FOLDERS and any(entry.rglob("*.py")):
            yield f"{entry.name}: holds data, but has Python files in it"
        if name in INSIDE:
            rooms = {inner.name for inner in entry.iterdir() if inner.is_dir() and any(inner.glob("*.py"))}
            for unknown in sorted(rooms - set(INSIDE[name])):
                yield f"{name}/{unknown}: unknown room; give it a floor in tests/architecture/test_layers.py"
    for folder in sorted(path for path in package.rglob("*") if path.is_dir()):
        count = len([path for path in folder.glob("*.py") if path.stem != "__init__"])
        if count > MOST_FILES:
            yield f"{folder.relative_to(package)}: {count} files side by side, more than {MOST_FILES}"


def _shape_breaches(inside: Path) -> Iterator[str]:
    for name in sorted(BANNED_NAMES.intersection(inside.with_suffix("").parts)):
        yield f"named '{name}'; a second use earns a function its own named file"


def _imports(tree: ast.Module, dotted: list[str]) -> Iterator[tuple[int, str]]:
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
            if called in {"__import__", "import_module"}:
                yield node.lineno, str(node.args[0].value)


def _import_breaches(inside: Path, target: str, package: str) -> Iterator[str]:
    top, *rest = target.split(".")
    if top in DOORS and not inside.as_posix().startswith(DOORS[top]):
        allowed = " or ".join(DOORS[top]) or "nothing in the package"
        yield f"imports {top}; only {allowed} may"
    if top != package or inside == Path("__init__.py"):
        return
    room = inside.with_suffix("").parts[0]
    other = rest[0] if rest else ""
    if other.startswith("__"):
        return  # mri_design.__version__ and its like
    if other not in FLOORS:
        yield f"imports '{target}', which is no room; import from the room itself"
    elif other == room:
        yield from _inner_breaches(inside, rest)
    elif room in HERMITS and other not in HERMITS[room]:
        yield f"{room} may import only {', '.join(sorted(HERMITS[room])) or 'nothing of ours'}, not {other}"
    elif room in FLOORS and other not in EVERYONE_MAY_IMPORT and FLOORS[other] >= FLOORS[room]:
        relation = "a sibling" if FLOORS[other] == FLOORS[room] else "above"
        yield f"{room} (floor {FLOORS[room]}) imports {other} (floor {FLOORS[other]}), which is {relation}"


# Engines that stand beside one another in a room of inference.
ENGINES = {
    "inference/propagation": {"laplace_propagation", "filter"},
    "inference/variational": {"decoupled", "natural_gradient"},
}


def _inner_breaches(inside: Path, target: list[str]) -> Iterator[str]:
    """Between the rooms of one room, and between the leaves of one folder; ``target`` begins with the room."""
    room = inside.parts[0]
    floors = INSIDE.get(room, {})
    here = inside.parts[1] if len(inside.parts) > 2 else ""
    there = target[1] if len(target) > 1 and target[1] in floors else ""
    if floors and here != there and floors.get(there, 0) >= floors.get(here, 0):
        relation = "a sibling" if floors.get(there, 0) == floors.get(here, 0) else "above"
        yield f"{room}/{here} imports {room}/{there}, which is {relation}"
    folder, leaf = inside.parent.as_posix(), inside.stem
    engines = ENGINES.get(folder, set())
    if leaf in engines and "/".join(target[:2]) == folder and set(target[2:3]) & engines - {leaf}:
        yield f"engine '{leaf}' imports engine '{target[2]}'"
    depth = len(inside.parent.parts)
    if folder in GROUND and "/".join(target[:depth]) == folder and leaf not in COMPOSERS[folder]:
        other = target[depth] if len(target) > depth else ""
        if other not in GROUND[folder] and other != leaf:
            yield f"leaf '{leaf}' of {folder} imports '{other}'; a leaf may import only {sorted(GROUND[folder])}"


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


def test_the_package_keeps_the_picture() -> None:
    found = violations(PACKAGE)
    assert not found, "\n".join(["the architecture is broken:", *found])


def test_the_checker_reads_the_real_package() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert PACKAGE / "errors.py" in files
    seen = {target for path in files for _, target in _imports(ast.parse(path.read_text()), ["mri_design"])}
    assert "mri_design.errors.InputError" in seen


@pytest.mark.parametrize(
    ("path", "code", "complaint"),
    [
        ("model/mr_image.py", "from mri_design.design import engine", "design (floor 6), which is above"),
        ("model/mr_image.py", "import mri_design.cli.main", "cli (floor 10), which is above"),
        ("model/mr_image.py", "from ..inference.base import State", "inference (floor 5), which is above"),
        ("model/mr_image.py", "def f():\n    from mri_design import design", "design (floor 6)"),
        ("model/mr_image.py", "import importlib as i\ni.import_module('mri_design.cli')", "cli (floor 10)"),
        ("model/mr_image.py", "from mri_design import KSpaceData", "is no room"),
        ("variances/exact.py", "from mri_design.estimation import irls", "a sibling"),
        ("potentials/laplace.py", "from mri_design.scan import data", "potentials may import only"),
        ("active_learning/labels/pool.py", "from mri_design.design.engine import DesignEngine", "a sibling"),
        ("active_learning/labels/pool.py", "from mri_design.active_learning.queries import infomax", "a sibling"),
        (
            "runs/design/run.py",
            "from mri_design.runs.compare.run import compare_strategies",
            "runs/compare, which is a sibling",
        ),
        ("runs/scans.py", "from mri_design.runs.held_out.jobs import mask_error", "runs/held_out, which is above"),
        ("inference/variational/a.py", "from mri_design.inference.double_loop.loop import DoubleLoop", "a sibling"),
        ("inference/newest/a.py", "", "inference/newest: unknown room"),
        (
            "inference/variational/decoupled.py",
            "from mri_design.inference.variational.natural_gradient import VariationalGaussian",
            "engine 'decoupled' imports engine",
        ),
        ("design/engine.py", "from mri_design.design.strategies.regular import Regular", "strategies, which is above"),
        ("design/strategies/a.py", "from mri_design.design.strategies.b import B", "leaf 'a' of design/strategies"),
        (
            "krylov/lanczos.py",
            "from mri_design.operators.base import LinearOperator",
            "krylov may import only",
        ),
        ("potentials/laplace.py", "from mri_design.scan import data", "potentials may import only"),
        ("errors.py", "from mri_design.status import Status", "nothing of ours"),
        ("operators/coils.py", "from mri_design.operators.diagonal import Diagonal", "leaf 'coils' of operators"),
        ("operators/coils.py", "from mri_design.operators import Diagonal", "leaf 'coils' of operators"),
        ("operators/coils.py", "from . import diagonal", "leaf 'coils' of operators"),
        ("design/engine.py", "import matplotlib.pyplot as plt", "only evaluation/plots may"),
        ("evaluation/report.py", "from matplotlib import pyplot", "only evaluation/plots may"),
        ("scan/simulation/coil_maps.py", "from sigpy.mri import app", "only scan/calibration/ may"),
        ("design/engine.py", "import random", "nothing in the package may"),
        ("design/engine.py", "import numpy as np\nnp.random.seed(0)", "uses numpy.random.seed"),
        ("design/engine.py", "import numpy\nx = numpy.random.rand(3)", "uses numpy.random.rand"),
        ("design/engine.py", "from numpy import random as r\nr.shuffle([1])", "uses numpy.random.shuffle"),
        ("design/engine.py", "import numpy.random as r\nr.choice([1])", "uses numpy.random.choice"),
        ("design/engine.py", "from numpy.random import randn", "uses numpy.random.randn"),
        ("design/engine.py", "import numpy as np\nnp.random.default_rng()", "without a seed"),
        ("design/utils.py", "", "named 'utils'"),
        ("krylov/common/lines.py", "", "named 'common'"),
        ("plumbing/__init__.py", "", "plumbing: unknown room; give it a floor"),
        ("plumbing.py", "", "plumbing.py: unknown room; give it a floor"),
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
        ("operators/measurement.py", "from mri_design.operators.coils import Coils"),
        ("operators/__init__.py", "from mri_design.operators.coils import Coils"),
        ("potentials/grouped.py", "from mri_design.potentials.laplace import Laplace"),
        ("evaluation/plots.py", "import matplotlib.pyplot as plt"),
        ("evaluation/plots/masks.py", "import matplotlib.pyplot as plt"),
        ("scan/calibration/espirit.py", "from sigpy.mri.app import EspiritCalib"),
        ("design/engine.py", "import numpy as np\ndef f(rng: np.random.Generator): return rng.normal()"),
        ("experiment.py", "from numpy.random import default_rng\nrng = default_rng(7)"),
        ("design/engine.py", "\n" * 1000),  # one idea may be long
        ("recipes/brain.toml", ""),
        ("runs/design/run.py", "from mri_design.runs.sections.images import save_images"),
        ("design/strategies/a.py", "from mri_design.design.strategies.line_features import FEATURES"),
        ("inference/references/a.py", "from mri_design.inference.variational.decoupled import DecoupledGaussian"),
    ],
)
def test_what_the_picture_allows_passes(tmp_path: Path, path: str, code: str) -> None:
    assert violations(_planted(tmp_path, path, code)) == []


def _planted(folder: Path, path: str, code: str) -> Path:
    package = folder / "mri_design"
    file = package / path
    file.parent.mkdir(parents=True)
    file.write_text(code)
    return package

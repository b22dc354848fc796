"""No package asks a site for its class, no engine knows another, and refusals name engines by what these need."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import mri_design as md
from mri_design.glm import DecoupledGaussian
from mri_design.sites import ENGINES

NAMED = ("DecoupledGaussian", "DoubleLoop", "LaplaceFilter", "LaplacePropagation", "VariationalGaussian")
PACKAGE = Path(__file__).parents[2] / "mri_design"
ABOVE = ("model", "estimation", "variances", "inference", "glm")


def site_classes() -> set[str]:
    """Every class that the files of sites define."""
    files = set((PACKAGE / "sites").rglob("*.py")) - {PACKAGE / "sites" / "base.py"}
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files)
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def asked_classes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in {"isinstance", "issubclass"}:
            assert isinstance(node, ast.Call)
            yield from ((node.lineno, name.id) for name in ast.walk(node.args[1]) if isinstance(name, ast.Name))


def test_no_package_above_the_sites_branches_on_their_classes() -> None:
    sites = site_classes()
    assert {"Laplace", "Poisson", "Hinge", "PositiveMixture"} <= sites
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for package in ABOVE
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for line, name in asked_classes(ast.parse(path.read_text(encoding="utf-8")))
        if name in sites
    ]
    assert not found, "\n".join(found)


def engine_files() -> dict[str, ast.Module]:
    """Every file of `inference` and `glm` that defines engines, by its dotted name."""
    paths = sorted({*PACKAGE.glob("inference/*.py"), *PACKAGE.glob("glm/*.py")} - {PACKAGE / "inference" / "base.py"})
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): tree
        for path, tree in trees.items()
        if list(engine_classes(tree))
    }


def engine_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for node in tree.body:
        bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and any(base.startswith(("LoopEngine[", "Engine")) for base in bases):
            yield node


def test_engines_do_not_import_one_another() -> None:
    engines = engine_files()
    assert "mri_design.inference.double_loop" in engines
    for name, tree in engines.items():
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & (set(engines) - {name}), name


def test_every_engine_is_known_to_refusals() -> None:
    """Except those that say ``named=False``: bases."""
    found = set()
    for name, tree in engine_files().items():
        importlib.import_module(name)
        found |= {node.name for node in engine_classes(tree) if "named" not in {key.arg for key in node.keywords}}
    assert set(NAMED) <= found <= set(ENGINES)


@pytest.mark.parametrize("name", NAMED)
def test_refusals_name_engines_by_what_they_need_by_default(name: str) -> None:
    assert getattr(md.inference if name == "DoubleLoop" else md.glm, name)().needs == ENGINES[name]


def test_settings_change_what_is_needed() -> None:
    assert md.DoubleLoop(algorithm="first").needs == {"bound", "g"}
    assert "log_concave" not in DecoupledGaussian(delta=1.0).needs

"""A release: wheel and source archive install and run, and the files around them name the same things."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES_ON_CONDA = {"ismrmrd": "ismrmrd-python", "matplotlib": "matplotlib-base"}
"""Package to its name on conda-forge, where that is another one."""


def _build(source: Path, into: Path, *options: str) -> Path:
    """Build what `options` name, all by default, from a folder: the wheel."""
    pytest.importorskip("hatchling")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(into), *options], cwd=source, check=True)
    return next(into.glob("*.whl"))


def _contents(wheel: Path) -> dict[str, int]:
    """Files of the package in a wheel, each with the checksum of its contents."""
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: one.CRC for one in archive.infolist() if ".dist-info/" not in one.filename}


@pytest.mark.slow
def test_wheel_and_source_archive_install_and_run(tmp_path: Path) -> None:
    wheel = _build(REPOSITORY, tmp_path / "dist")
    files = [path for path in (REPOSITORY / "mri_design").rglob("*") if path.is_file()]
    wanted = {path.relative_to(REPOSITORY).as_posix() for path in files if path.parent.name != "__pycache__"}
    wanted |= {f"mri_design/phantoms/{path.name}" for path in (REPOSITORY / "phantoms").iterdir()}
    assert {*_contents(wheel)} == wanted

    archive = next((tmp_path / "dist").glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert _contents(_build(unpacked, tmp_path / "again", "-t", "wheel")) == _contents(wheel)

    own = tmp_path / "environment"  # the dependencies are those of this process; the package is the wheel's alone
    venv.create(own, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(own), "platbase": str(own)}))
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = [sys.executable, "-m", "pip", "--python", str(own / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([own / "bin" / "mri-design", "info", "phantom:lf-gre"], cwd=tmp_path, env=alone, check=True)
    which = [own / "bin" / "python", "-c", "import mri_design; print(mri_design.__file__)"]
    assert subprocess.check_output(which, cwd=tmp_path, env=alone, text=True).startswith(str(site))


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = yaml.safe_load((REPOSITORY / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    python = f"python {PROJECT['requires-python']}"
    split = [re.fullmatch(r"([\w-]+)(\S*)", one) for one in PROJECT["dependencies"]]
    wanted = {f"{NAMES_ON_CONDA.get(one[1], one[1]).lower()} {one[2]}" for one in split if one}
    assert {*recipe["requirements"]["run"]} == {python, *wanted}
    assert python in recipe["requirements"]["host"]
    assert recipe["about"]["license"] == PROJECT["license"] and recipe["about"]["summary"] == PROJECT["description"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script == "mri-design = " + PROJECT["scripts"]["mri-design"]


def test_all_files_name_the_same_version() -> None:
    recipe = yaml.safe_load((REPOSITORY / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert {recipe["context"]["version"], citation["version"]} == {PROJECT["version"]}
    assert citation["license"] == PROJECT["license"]


def test_the_paper_cites_what_its_bibliography_holds() -> None:
    paper, references = (
        (REPOSITORY / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib")
    )
    head, body = paper.split("\n---\n", 1)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= {*yaml.safe_load(head)}
    assert {*re.findall(r"@([\w:-]+)", body)} == {*re.findall(r"^@\w+\{([\w:-]+),", references, re.M)}


def test_the_map_of_the_documents_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", (REPOSITORY / "llms.txt").read_text(encoding="utf-8"))
    assert links and all((REPOSITORY / link).is_file() for link in links)

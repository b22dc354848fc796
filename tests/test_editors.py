"""What type checkers and editors see of the public names, which are looked up when first used."""

import json
import subprocess
import sys
from pathlib import Path

import jedi
import pytest

PACKAGE = Path(__file__).parents[1] / "mri_design"

SCRIPT = """import mri_design as md

scan = md.load("x")
image = scan.design(lines=20).reconstruct()
reveal_type(scan)
reveal_type(image.std)
reveal_type(md.operators.Dense)
scan.no_such_method()
"""
REPOSITORY = PACKAGE.parent


def _asked(*words: str) -> str:
    """What a checker of types, which stands beside this Python, prints about `SCRIPT`."""
    program, *rest = words
    told = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *rest],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return told.stdout


def test_mypy_sees_a_scan(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    found = _asked("mypy", "--cache-dir", str(REPOSITORY / ".mypy_cache"), str(tmp_path / "script.py"))
    revealed = [line.rpartition('type is "')[2].rstrip('"') for line in found.splitlines() if "Revealed" in line]
    assert revealed[0] == "mri_design.interactive.scan.LoadedScan"
    assert revealed[1].startswith("numpy.ndarray") and "mri_design.operators.dense.Dense" in revealed[2]
    assert '"LoadedScan" has no attribute "no_such_method"' in found


@pytest.mark.slow
def test_pyright_sees_a_scan(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(REPOSITORY)]}))
    words = ["--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    told = json.loads(_asked("basedpyright", *words))["generalDiagnostics"]
    revealed = [one["message"] for one in told if one["severity"] == "information"]
    scan, std, dense = [message.rpartition(' is "')[2].rstrip('"') for message in revealed]
    assert (scan, dense) == ("LoadedScan", "type[Dense]") and "floating" in std
    assert [one["range"]["start"]["line"] for one in told if one["severity"] == "error"] == [7]


def test_jedi_sees_a_scan_and_completes_it() -> None:
    script = jedi.Script(SCRIPT + "image.to_ni\nmd.lo\n", project=jedi.Project(REPOSITORY))
    (scan,) = script.infer(3, 2)
    assert scan.full_name == "mri_design.interactive.scan.LoadedScan"
    assert [one.name for one in script.complete(9, 11)] == ["to_nifti"]
    assert "load" in [one.name for one in script.complete(10, 5)]

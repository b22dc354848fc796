"""Shell completion, as typer installs it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

REPOSITORY = Path(__file__).parents[2]


def completed(
    *words: str, environment: dict[str, str] | None = None, within: str = ""
) -> subprocess.CompletedProcess[str]:
    inherited = os.environ | {"PYTHONPATH": str(REPOSITORY)} | (environment or {})
    code = "import sys; sys.argv[0] = 'mri-design'; from mri_design.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words]
    if within:  # a shell that stays, for typer looks which one started it
        command = [within, "-c", f"{shlex.join(command)}; exit $?"]
    return subprocess.run(command, env=inherited, capture_output=True, text=True, timeout=60, check=False)


def test_bash_is_offered_options_of_a_verb() -> None:
    typed = {"COMP_WORDS": "mri-design recon --ma", "COMP_CWORD": "2", "_MRI_DESIGN_COMPLETE": "complete_bash"}
    found = completed(environment=typed)
    assert sorted(found.stdout.split()) == ["--maps", "--maps-from", "--mask", "--matrix"], found.stderr


@pytest.mark.skipif(which("bash") is None, reason="needs bash")
def test_it_installs_itself(tmp_path: Path) -> None:
    found = completed("--install-completion", environment={"HOME": str(tmp_path)}, within="bash")
    assert found.returncode == 0, found.stderr
    assert "bash completion installed" in found.stdout
    scripts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_MRI_DESIGN_COMPLETE=complete_bash" in text for text in scripts)

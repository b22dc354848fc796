"""Shell completion, as typer installs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def completed(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    inherited = os.environ | {"PYTHONPATH": str(REPOSITORY)} | (environment or {})
    code = "import sys; sys.argv[0] = 'mri-design'; from mri_design.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env=inherited, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("typed", "offered"), [("mri-design de", ["demo", "design"]), ("mri-design recon --ma", ["--mask", "--maps"])]
)
def test_bash_is_offered_verbs_and_options(typed: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_MRI_DESIGN_COMPLETE": "complete_bash"}
    found = completed(environment=words)
    assert sorted(found.stdout.split()) == sorted(offered), found.stderr


def test_it_installs_itself(tmp_path: Path) -> None:
    found = completed("--install-completion", "bash", environment={"HOME": str(tmp_path)})
    assert found.returncode == 0, found.stderr
    assert "bash completion installed" in found.stdout
    scripts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_MRI_DESIGN_COMPLETE=complete_bash" in text for text in scripts)

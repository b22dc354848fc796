"""The package hands its names on without loading anything until they are asked for."""

import subprocess
import sys

import mri_design


def test_every_public_name_exists() -> None:
    missing = [name for name in mri_design.__all__ if not hasattr(mri_design, name)]
    assert not missing


def test_unknown_names_raise_as_usual() -> None:
    assert not hasattr(mri_design, "no_such_name")


def test_importing_the_package_loads_no_numerics() -> None:
    code = "import sys, mri_design; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

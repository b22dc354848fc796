"""A family of trajectories that a script registers is designed, reconstructed and reported by its name."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, register_trajectory
from mri_design.kinds import KINDS
from tests.command_line import called


def petal(settings: object, matrix: int, count: int) -> np.ndarray:
    """One petal that begins and ends at DC."""
    turn = np.linspace(0, np.pi, 2 * matrix, endpoint=False)
    radius = matrix / 2 * np.sin(turn)
    return np.stack([radius * np.sin(turn / 2), radius * np.cos(turn / 2)], axis=1)


@pytest.mark.slow
def test_a_registered_trajectory_is_designed_reconstructed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("finufft")
    monkeypatch.setitem(KINDS, "rosette", KINDS["spiral"])  # taken away again after the test
    register_trajectory("rosette", petal, unit="petal")
    recipe = tmp_path / "small.toml"
    recipe.write_text("[simulation]\nmatrix = 16\n[inference]\nsamples = 4\n")
    for words, out in (
        (["design", "phantom:brain", "--encoding", "rosette", "--shots", "5", "--angles", "10"], "petals"),
        (["recon", tmp_path / "petals" / "trajectory.npz"], "image"),
    ):
        ended = called([*words, "--recipe", recipe, "--out", tmp_path / out])
        assert ended.exit_code == 0, ended.output
        assert (tmp_path / out / "report.html").exists()
    assert "petal" in (tmp_path / "petals" / "report.html").read_text()
    for name, unit in (("lines", "petal"), ("two words", "petal"), ("Rosette", "petal"), ("rosette", "")):
        with pytest.raises(InputError):
            register_trajectory(name, petal, unit=unit)
    register_trajectory("my-rosette", petal, unit="petal")
    KINDS.pop("my-rosette")

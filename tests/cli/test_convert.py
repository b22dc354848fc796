"""The verb `convert`: files are written, said and protected, and refusals name what is wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design.scan.data import KSpaceData
from mri_design.scan.io.formats import read

Run = Callable[..., Result]


def test_a_scan_becomes_a_pair_for_bart(run: Run, work: Path, tmp_path: Path) -> None:
    result = run("convert", "scan.npz", tmp_path / "a.cfl")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cfl", "a.hdr", "a.json"]
    assert f"1 slice, 1 coil, 24 lines of a grid of 24 x 20 (ky x kx): {tmp_path / 'a'}\n" in result.stdout
    assert "Not in this file: the true image." in result.stdout
    before, after = read(work / "scan.npz"), read(tmp_path / "a.cfl")
    assert isinstance(before, KSpaceData) and isinstance(after, KSpaceData)
    np.testing.assert_array_equal(after.kspace, before.kspace)
    assert after.noise_variance == before.noise_variance


def test_a_phantom_is_simulated_by_the_recipe(run: Run, tmp_path: Path) -> None:
    words = ("--fov", "0.24", "--recipe", "quick.toml", "--quiet")
    result = run("convert", "phantom:brain", tmp_path / "a.mrd", *words)
    assert (result.exit_code, result.stdout) == (0, "")
    after = read(tmp_path / "a.mrd", isolated=False)
    assert isinstance(after, KSpaceData) and after.grid_shape == (16, 16)
    assert after.geometry is not None and after.geometry[0].pixel == pytest.approx((15.0, 15.0))


def test_files_that_are_there_stay_unless_they_may_go(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_text("somebody's")
    result = run("convert", "scan.npz", tmp_path / "a.npy")
    assert result.exit_code == 2 and "a.npy is there already; take another name, or add --overwrite" in result.stderr
    assert (tmp_path / "a.npy").read_text() == "somebody's"
    assert run("convert", "scan.npz", tmp_path / "a.npy", "--overwrite").exit_code == 0
    assert np.load(tmp_path / "a.npy").shape == (1, 1, 24, 20)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["scan.npz", "a.tiff"], 2, "a.tiff has no ending that says a format"),
        (["scan.npz", "a.nii"], 2, "holds k-space: reconstruct it"),
        (["scan.npz", "a.h5", "--fov", "240"], 2, "--fov 240: wanted one or two lengths in metres"),
        (["scan.npz", "a.npy", "--fov", "0.24"], 2, "--fov is for files with sizes of pixels"),
        (["nowhere.npz", "a.npy"], 3, "nowhere.npz"),
        (["quick.toml", "a.npy"], 3, "wanted NumPy .npy or .npz"),
    ],
)
def test_refusals_name_what_is_wrong_and_nothing_is_written(
    run: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    source, name, *options = words
    result = run("convert", source, tmp_path / name, *options)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []

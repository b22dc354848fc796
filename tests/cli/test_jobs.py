"""Results do not depend on who computes them: one process, several, or the workers of a dask cluster."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design import load_phantom
from mri_design.runs import study

Run = Callable[..., Result]
QUICK = ("--recipe", "quick-local.toml")
PLANE = """
[simulation]
matrix = 16
[inference]
samples = 2
loops = 2
tolerance = 0.1
[reconstruction]
method = "zero-filled"
[design]
encoding = "plane"
"""


@pytest.fixture(scope="module")
def commands(work: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    folder = tmp_path_factory.mktemp("volume")
    kspace = [load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(seed)).kspace[0] for seed in (0, 1)]
    np.save(folder / "volume.npy", np.stack(kspace))
    (folder / "plane.toml").write_text(PLANE)
    plane = ("--positions", "all", "--samples", 50, "--block", 20, "--recipe", folder / "plane.toml")
    chosen = ("--strategies", "information-gain,vd-polynomial,low-pass", "--seeds", 2, "--method", "zero-filled")
    tested = ("--test", "head.npz", "--against", "low-pass", "--strategy", "expected-error", "--no-report")
    return {
        "design": ("design", folder / "volume.npy", *plane, "--no-report"),
        "compare": ("compare", "scan.npz", "--train", "head.npz", "--lines", "10,12", *chosen, *QUICK, "--no-report"),
        "protocol": ("protocol", "scan.npz", "--lines", 8, *tested, *QUICK, "--method", "zero-filled"),
        "train": ("train", "scan.npz", "head.npz", "--lines", 8, "--method", "zero-filled", *QUICK),
    }


def contents(out: Path) -> dict[str, bytes]:
    if out.is_file():
        return {"order": out.read_bytes()}
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return {name: file for name, file in files.items() if name != "manifest.json"}


@pytest.fixture(scope="module")
def alone(run: Run, commands: dict[str, tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    for verb, command in commands.items():
        told = run(*command, "--jobs", 1, "--out", folder / f"{verb}.npz")
        assert told.exit_code in (0, 4), told.output
    return folder


@pytest.mark.parametrize("verb", ["design", "compare"])  # the others have such tests of their own
def test_two_processes_give_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, tmp_path: Path, verb: str
) -> None:
    assert run(*commands[verb], "--jobs", 2, "--out", tmp_path / "two").exit_code in (0, 4)
    assert contents(tmp_path / "two") == contents(alone / f"{verb}.npz") != {}


@pytest.mark.parametrize("verb", ["design", "compare", "protocol", "train"])
def test_a_dask_cluster_gives_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, address: str, tmp_path: Path, verb: str
) -> None:
    told = run(*commands[verb], "--executor", address, "--out", tmp_path / "far")
    assert told.exit_code in (0, 4), told.output
    made = tmp_path / "far"
    assert contents(made) == contents(alone / f"{verb}.npz") != {}


def test_a_piece_that_fails_keeps_the_others_for_the_same_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("compare", "scan.npz", "--lines", "8,9,10", "--strategies", "low-pass", "--method", "zero-filled")
    command = (*command, *QUICK, "--jobs", 1, "--no-report", "--out", tmp_path / "a")
    real, calls = study.cell_error, []

    def fails_once(material: object, job: tuple[int, str, tuple[int, ...]]) -> object:
        calls.append(len(job[2]))
        if len(job[2]) == 9:
            raise FloatingPointError("an image of zeros")
        return real(material, job)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(study, "cell_error", fails_once)
        told = run(*command)
    assert told.exit_code == 1 and "1 of 3 pieces failed" in told.stderr and "an image of zeros" in told.stderr
    assert calls == [8, 9, 10]
    calls.clear()
    monkeypatch.setattr(study, "cell_error", lambda m, job: (calls.append(len(job[2])), real(m, job))[1])
    assert run(*command).exit_code == 0
    assert calls == [9]


def test_an_executor_that_there_is_not_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    for verb in ("compare", "design", "protocol", "train"):
        told = run(verb, "scan.npz", "--lines", 8, *QUICK, "--executor", "slurm", "--out", tmp_path / "x")
        assert told.exit_code == 2 and "wanted local, dask, or dask:ADDRESS" in told.stderr
    assert not (tmp_path / "x").exists()

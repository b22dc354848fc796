"""Results depend neither on who computes them, nor on a report, nor on the verb that makes a mask."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.conftest import COARSE
from tests.cli.folders import Run, files, manifest

QUICK = ("--recipe", "quick-local.toml")
PLANE = """
[input]
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
    plane = ("--slices", "all", "--samples", 50, "--block", 20, "--recipe", folder / "plane.toml")
    tested = ("--test", "head.npz", "--against", "low-pass", "--strategy", "expected-error", "--no-report")
    return {
        "design": ("design", folder / "volume.npy", *plane, "--no-report"),
        "protocol": ("protocol", "scan.npz", "--lines", 8, *tested, *QUICK, "--method", "zero-filled"),
    }


@pytest.fixture(scope="module")
def alone(run: Run, commands: dict[str, tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    for verb, command in commands.items():
        run(*command, "--jobs", 1, "--out", folder / verb, code=(0, 4))
    return folder


@pytest.mark.parametrize("verb", ["design", "protocol"])
def test_two_processes_give_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, tmp_path: Path, verb: str
) -> None:
    run(*commands[verb], "--jobs", 2, "--out", tmp_path / "two", code=(0, 4))
    assert files(tmp_path / "two") == files(alone / verb) != {}


def test_a_dask_cluster_gives_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, address: str, tmp_path: Path
) -> None:
    run(*commands["protocol"], "--executor", address, "--out", tmp_path / "far", code=(0, 4))
    assert files(tmp_path / "far") == files(alone / "protocol") != {}


def test_without_a_report_the_results_are_the_same_and_nothing_is_drawn(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("scan.npz", "--lines", "8,10", "--strategies", "low-pass,random", "--seeds", 2, "--jobs", 1)
    command = ("compare", *words, "--recipe", "fast.toml")
    run(*command, "--png", "--out", tmp_path / "a", code=(0, 4))
    run(*command, "--png", "--no-report", "--out", tmp_path / "b", code=2)
    with monkeypatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.__init__", None)  # whoever draws would stop here
        run(*command, "--no-report", "--out", tmp_path / "b", code=(0, 4))
    drawn, plain = (files(tmp_path / name) for name in "ab")
    assert (tmp_path / "b" / "manifest.json").exists() and {"figures/masks.svg", "figures/masks.png"} <= drawn.keys()
    assert drawn.keys() - plain.keys() == {name for name in drawn if name.startswith(("report", "figures"))}
    same = plain.keys() - {".mri-design.json"}
    assert {name: drawn[name] for name in same} == {name: plain[name] for name in same} != {}


COUNT = ("--lines", "11")


@pytest.mark.parametrize(
    ("scan", "names", "count", "recipe"),
    [
        ("scan.npz", ("information-gain", "vd-polynomial:3"), COUNT, "[constraints]\nmax_jump = 6\n"),
        ("coils.npy", ("calibrated",), COUNT, "[design]\nstart = 8\nblock = 2\n"),
        ("scan.npz", ("calibrated", "caipi:2x2"), ("--samples", "80"), "[design]\nencoding = 'plane'\nblock = 20\n"),
        ("phantom:brain", ("information-gain", "half-turn"), ("--shots", "6"), "[design]\nencoding = 'radial'\n"),
    ],
    ids=["short jumps", "coils and blocks", "plane", "spokes"],
)
def test_the_first_draw_of_a_comparison_is_the_design(
    run: Run, work: Path, tmp_path: Path, scan: str, names: tuple[str, ...], count: tuple[str, str], recipe: str
) -> None:
    """Also where noise and maps of three coils are unknown, or training scans and other counts come with it."""
    np.save(work / "coils.npy", load_phantom("brain", shape=(24, 20), n_coils=3, rng=np.random.default_rng(2)).kspace)
    (tmp_path / "recipe.toml").write_text(COARSE + recipe)
    common = ("--recipe", tmp_path / "recipe.toml", "--seed", 3)
    option, number = count[0], int(count[1])
    words = (option, f"{number},{number + 1}", "--strategies", ",".join(names), "--seeds", 2, "--jobs", 1)
    run("compare", scan, *words, *common, "--out", tmp_path / "study", code=(0, 4))
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    unit = option.removeprefix("--")
    for name in names:
        out = tmp_path / name.replace(":", "-")
        run("design", scan, "--strategy", name, *count, *common, "--out", out, code=(0, 4))
        first = [
            mask["order"] for mask in masks if (mask["strategy"], mask[unit], mask["draw"]) == (name, int(number), 0)
        ]
        assert first == [manifest(out)["lines"]], name

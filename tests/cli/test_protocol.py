from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_recipe, make_strategy, prepare, run_design, zero_filled
from mri_design.design import ReferenceSlice, TrainingResidual
from mri_design.design import engine as keeping
from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.experiment import load_input
from mri_design.runs import protocol as protocol_run
from mri_design.runs import study as comparison_pieces
from tests.cli.folders import Designed, Run, manifest, order, rows, settings
from tests.interruptions import stopping

COMMAND = (
    *("protocol", "scan.npz", "head.npz", "--lines", 10, "--start", 5, "--method", "zero-filled"),
    *("--recipe", "fast.toml", "--seeds", 2),
)
SWAPPED = (*COMMAND, "--strategy", "calibrated", "--swaps", 3, "--test", "other.npz", "--jobs", 1)


@pytest.fixture(scope="module", autouse=True)
def other(work: Path) -> None:
    """A third scan, to test on."""
    with np.load(work / "scan.npz") as scan:
        arrays = dict(scan)
    arrays["reference"] = arrays["reference"][:, :, ::-1]
    arrays["kspace"] = np.roll(arrays["kspace"][..., ::-1], 1, axis=-1)
    np.savez(work / "other.npz", **arrays)


@pytest.fixture(scope="module")
def done(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Designed:
    out = tmp_path_factory.mktemp("protocol") / "run"
    return out, run(*SWAPPED, "--out", out)


def test_the_folder_is_complete(done: Designed) -> None:
    out, result = done
    assert result.exit_code == 0, result.output
    names = {path.name for path in out.iterdir() if path.is_file()}
    assert names <= OUTPUTS.keys() | {".mri-design.json"}
    assert not {"checkpoint.npz", "exchanges.json", "test-progress.json"} & names
    assert manifest(out)["lines"] == order(out)


def test_scores_are_added_over_the_slices(run: Run, work: Path, tmp_path: Path) -> None:
    words = ("--strategy", "calibrated", "--jobs", 1)
    run(*COMMAND, *words, "--out", tmp_path / "run", code=0)
    recipe = load_recipe(work / "fast.toml")
    slices = [
        prepare(load_input(str(work / f), recipe), recipe).slice_model(0, recipe) for f in ("scan.npz", "head.npz")
    ]
    alone = run_design(slices, make_strategy("calibrated"), 10, recipe, seed=0, start=5)
    assert order(tmp_path / "run") == list(alone.trace.lines)
    assert not (tmp_path / "run" / "summary.csv").exists()


@pytest.mark.parametrize("method", ["mean", "zero-filled"])
def test_by_default_lines_come_next_where_the_training_reconstructions_are_most_wrong(
    method: str, run: Run, work: Path, tmp_path: Path
) -> None:
    run(*COMMAND, "--method", method, "--jobs", 1, "--out", tmp_path / "run", code=0)
    recipe = load_recipe(work / "fast.toml")
    loaded = [prepare(load_input(str(work / f), recipe), recipe) for f in ("scan.npz", "head.npz")]
    slices = [scan.slice_model(0, recipe) for scan in loaded]
    training = [
        ReferenceSlice(str(i), one, np.asarray(scan.reference(0)))
        for i, (one, scan) in enumerate(zip(slices, loaded, strict=True))
    ]

    def filled(index: int, lines: Sequence[int]) -> np.ndarray:
        return zero_filled(slices[index].model(lines))

    rule = TrainingResidual().knowing(training, None if method == "mean" else filled)
    alone = run_design(slices, rule, 10, recipe, seed=0, start=5)
    assert order(tmp_path / "run") == list(alone.trace.lines)
    assert settings(tmp_path / "run")["design"]["strategy"] == "residual-greedy"


def test_exchanges_only_lower_the_training_error(done: Designed) -> None:
    errors = [float(row["error"]) for row in rows(done[0] / "exchanges.csv") if row["accepted"] == "yes"]
    assert errors == sorted(errors, reverse=True)
    assert len(rows(done[0] / "exchanges.csv")) == 3


@pytest.mark.parametrize(
    ("module", "piece", "calls"),
    [
        (keeping, "infer_slice", 5),
        (protocol_run, "trial_outcome", 20),
        (comparison_pieces, "reconstruct_by_recipe", 30),
    ],
)
def test_an_interrupted_protocol_goes_on(
    done: Designed, run: Run, tmp_path: Path, module: object, piece: str, calls: int
) -> None:
    with stopping(module, piece, calls):
        run(*SWAPPED, "--out", tmp_path / "run", code=130)
    run(*SWAPPED, "--out", tmp_path / "run", code=2)
    run(*SWAPPED, "--seed", 1, "--resume", "--out", tmp_path / "run", code=2)
    run(*SWAPPED, "--resume", "--out", tmp_path / "run", code=0)
    for name in ("lines.csv", "exchanges.csv", "metrics.csv"):
        assert (tmp_path / "run" / name).read_text() == (done[0] / name).read_text()
    run(*SWAPPED, "--resume", "--out", tmp_path / "run", code=0)

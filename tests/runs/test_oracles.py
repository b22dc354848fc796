from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design import Recipe, make_strategy, reconstruct, run_design
from mri_design.design import ReferenceSlice, TrainedDesign
from mri_design.evaluation import RunFolder
from mri_design.experiment import save_trained
from mri_design.runs.compare import ComparisonResult, report_comparison
from mri_design.runs.design import design_scan
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.known_slice import knowing_oracle
from mri_design.runs.study import Study
from mri_design.runs.work import Keep, Work
from tests.refusals import refused

ImageMaker = Callable[..., ReferenceSlice]


@pytest.fixture
def order(tmp_path: Path) -> Path:
    lines = (8, 7, 9, 6, 1, 14, 3, 11)
    path = tmp_path / "a folder" / "order.npz"
    path.parent.mkdir()
    known = {"grid": (16, 16), "lines": lines, "n_start": 4, "profile": np.ones((5, 16)), "errors": np.ones(5)}
    save_trained(path, TrainedDesign(**known, rule="lbcs"))
    return path


@pytest.fixture
def study(make_image: ImageMaker, tiny: Recipe, order: Path) -> Study:
    tests = [make_image("brain"), make_image("shepp-logan")]
    names = [f"trained:{order}", f"calibrated:{order}", "oracle-residual", "oracle-greedy", "random"]
    return Study(tests=tests, strategies=names, lines=[7], recipe=tiny, training=[make_image("t2w")], seeds=2)


def test_the_greedy_oracle_sees_the_recipe_s_reconstruction(make_image: ImageMaker, tiny: Recipe) -> None:
    image = make_image()
    rule = knowing_oracle(make_strategy("oracle-greedy"), [image.slice_model], [image.reference], tiny, 0)
    lines = run_design([image.slice_model], rule, 5, tiny, seed=0, start=4).trace.lines

    def error(line: int) -> float:
        found = reconstruct(image.slice_model, [*lines[:4], line], "zero-filled", tiny, np.random.default_rng(0)).image
        return float(np.linalg.norm(np.abs(found) - np.abs(image.reference)))

    assert lines[4] == min(set(range(16)) - set(lines[:4]), key=error)


@pytest.mark.slow
def test_oracles_look_at_the_test_image_and_are_no_competitors(study: Study, tmp_path: Path) -> None:
    study.run(Work(), Keep())
    assert [name for name in study.expanded if name.startswith("oracle")] == ["oracle-residual", "oracle-greedy"]
    for name in ("oracle-residual", "oracle-greedy"):
        assert study.mask_lines(name, 7, 0, 0) != study.mask_lines(name, 7, 0, 1)
    trained = [study.mask_lines(study.strategies[0], 7, 0, image) for image in (0, 1)]
    assert trained == [(8, 7, 9, 6, 1, 14, 3)] * 2
    with RunFolder(tmp_path / "out") as folder:
        report_comparison(folder, ComparisonResult(study=study, orientation="ky-rows"))
    for name in ("winners", "paired"):
        assert "oracle" not in (tmp_path / "out" / f"{name}.csv").read_text()
    for path in (tmp_path / "out").glob("*.*"):
        assert "a folder" not in path.read_text(), path.name
    summary = (tmp_path / "out" / "summary.csv").read_text()
    assert all(name in summary for name in ("oracle-greedy", "trained:order.npz", "calibrated:order.npz@train"))


def test_a_design_on_a_gappy_scan_refuses_an_oracle(tmp_path: Path, tiny: Recipe) -> None:
    rng = np.random.default_rng(0)
    kspace = rng.standard_normal((1, 1, 16, 16)) + 1j * rng.standard_normal((1, 1, 16, 16))
    kspace[:, :, [5, 11]] = 0
    np.savez(tmp_path / "gaps.npz", kspace=kspace.astype(np.complex64), noise_variance=np.float64(0.01))
    recipe = tiny.replacing("design", strategy="oracle-residual")
    with refused("strategy oracle-residual"):
        request = DesignRequest(str(tmp_path / "gaps.npz"), recipe, 8)
        design_scan(request, Work(), Keep())

"""The inference benchmark runs and writes its three files; its references are right. No time is asserted."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import Exact
from mri_design.design.strategies.information_gain import exact_gains
from mri_design.inference.references import exact_criterion
from mri_design.model.precision import PosteriorPrecision
from tests.benchmarks.conftest import rows_of

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SECTIONS = [
    *("variances", "criterion", "operators", "design", "regret", "design step"),
    *("TV MAP", "inner solvers", "calibration", "memory", "growth"),
]

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def run(*arguments: str) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(BENCHMARKS / "inference.py"), "--quick", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a smoke run has left its files."""
    out = tmp_path_factory.mktemp("benchmarks") / "new"
    run("--out", str(out))
    return out


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch):
    """The benchmark's modules by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"parts.{name}")


def test_every_target_stands_in_the_table_with_a_verdict_that_follows_from_its_numbers(results):
    assert (results / "targets.csv").read_text(encoding="utf-8").splitlines()[0] == "name,target,measured,unit,met"
    targets = rows_of(results / "targets.csv")
    assert len(targets) == 19 and len({row["name"] for row in targets}) == 19
    for row in targets:
        sign, bound = row["target"].split()
        if not row["measured"]:
            assert row["met"] == "no"
            continue
        measured = float(row["measured"])
        good = measured >= float(bound) if sign == ">=" else measured <= float(bound)
        assert row["met"] == ("yes" if good else "no")
    unmeasured = {row["name"] for row in targets if not row["measured"]}
    # The smoke run leaves out the larger design; a peer that is not installed has no number.
    assert {name for name in unmeasured if "BART" not in name} == {"peak memory of an 8-coil design, 64x64"}
    assert shutil.which("bart") is None or not any("BART" in name and "one coil" in name for name in unmeasured)


def test_every_section_has_rows_and_a_heading_and_names_no_machine(results):
    tables = {row["table"] for row in rows_of(results / "inference.csv")}
    assert tables == set(SECTIONS)
    text = (results / "inference.md").read_text(encoding="utf-8")
    for title in ["Targets", *SECTIONS]:
        assert f"## {title[0].upper()}{title[1:]}\n" in text
    assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b|\bhome\b", text) and str(results.parent) not in text
    assert (results / "inference-growth.png").read_bytes().startswith(b"\x89PNG")


def test_one_section_can_be_measured_again_and_the_others_stay(results, tmp_path):
    out = tmp_path / "copy"
    shutil.copytree(results, out)
    before = rows_of(out / "inference.csv")
    text = (out / "inference.md").read_text(encoding="utf-8")
    run("--out", str(out), "--only", "regret")
    after = rows_of(out / "inference.csv")
    assert [row for row in after if row["table"] != "regret"] == [row for row in before if row["table"] != "regret"]
    assert after == before  # regret is no time: the same numbers again
    assert (out / "inference.md").read_text(encoding="utf-8").count("\n") == text.count("\n")


def test_dense_complex_algebra_agrees_with_the_real_reference(parts):
    dense, problem = parts("dense_posterior"), parts("problem")
    for coils in (1, 2):
        scan = problem.scan_of(16, coils, 0)
        model = dense.in_double(scan.model(range(4, 12)))
        rng = np.random.default_rng(coils)
        pi = tuple(rng.uniform(0.1, 3.0, block.site_shape) for block in model.blocks)
        precision = PosteriorPrecision(model.measurement, model.blocks, pi)
        exact = Exact()(precision, [block.analysis for block in model.blocks], rng, model.back_projection())
        ours = dense.DensePosterior.of(precision)
        for block, z in zip(model.blocks, exact.values, strict=True):
            np.testing.assert_allclose(ours.variances(block.analysis), z, rtol=1e-9)
        np.testing.assert_allclose(ours.log_determinant, exact.log_determinant, rtol=1e-12)
        np.testing.assert_allclose(ours.gains(scan.encoding()), exact_gains(precision, scan.candidates), rtol=1e-9)
        np.testing.assert_allclose(dense.exact_phi(model, pi), exact_criterion(model, pi), rtol=1e-9)


def test_the_papers_algorithm_is_exact_where_lanczos_is(parts):
    """With k = n its variances, scores and posterior mean are those of the dense double loop."""
    dense, problem = parts("dense_posterior"), parts("problem")
    paper, design = parts("paper_algorithm"), parts("paper_design")
    scan = problem.scan_of(16, 1, 0)
    model = scan.model(range(4, 12))
    plain = design.paper_model(model)
    far = dense.converged_posterior(model, tolerance=1e-8)
    z = design.stacked(far.marginals.values)
    tight = paper.PaperSettings(256, 1e-12, 100, 2000, 1e-6)
    step = paper.paper_step(plain, model.back_projection().astype(complex), z, tight, np.random.default_rng(0))
    np.testing.assert_allclose(step.u, far.mean, atol=1e-5 * np.abs(far.mean).max())
    np.testing.assert_allclose(step.z, z, rtol=1e-4)
    gains = dense.DensePosterior.of(far.precision).gains(scan.encoding())
    left = [line for line in range(16) if line not in range(4, 12)]
    assert step.line == left[int(np.argmax(gains[left]))]


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART, a system package")
@pytest.mark.parametrize("isotropic", [False, True])
def test_bart_minimises_our_objective(parts, tmp_path, isotropic):
    peers, bart, problem = parts("tv_peers"), parts("bart_solver"), parts("problem")
    one = problem.Problem.of(problem.scan_of(32, 1, 0), 0, peers.FiniteDifferences)
    tv = peers.TotalVariationProblem(one, isotropic)
    lowest, drift = peers.smallest_value(tv, 4000)
    found = bart.BartTotalVariation(one, isotropic, tmp_path).run(8000, 0.01)
    assert drift < 1e-6
    assert -1e-5 < tv.value(found.image) / lowest - 1 < 2e-5

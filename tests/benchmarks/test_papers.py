"""Every experiment of the papers runs at its smallest size, and its claims become rows that name how to have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design.errors import InputError
from mri_design.evaluation.tables import read_csv_texts
from mri_design.glm.labels import PoolDesign
from mri_design.inference.double_loop import DoubleLoop
from mri_design.variances.base import Exact
from tests.benchmarks.conftest import BENCHMARKS

Module = Callable[[str], ModuleType]
PAPERS = ("tr175", "icml", "khan", "smola", "lewi")
NAMES = [path.stem for paper in PAPERS for path in sorted((BENCHMARKS / "papers").glob(f"{paper}_*.py"))]
IDENTITIES = ("tr175_theorem1", "icml_theorems", "icml_updates", "smola_graph")
"""Experiments all of whose claims hold to rounding at every size."""
CLAIMS = BENCHMARKS.parent / "results" / "papers" / "claims.csv"


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_at_its_smallest_size(module: Module, tmp_path: Path, name: str) -> None:
    runner = module("papers.runner")
    one = runner.experiments()[name]
    assert set(one.module.SIZES) == set(runner.SIZES)
    outcome = one.run("tiny", None)
    assert outcome.claims and all(outcome.tables.values())
    assert name not in IDENTITIES or all(claim.holds for claim in outcome.claims)
    assert not one.needs or all(claim.holds is None for claim in outcome.claims)
    runner.keep(one, outcome, "tiny", 0.0, tmp_path)
    rows = read_csv_texts(tmp_path / "claims.csv")
    assert [row["part"] for row in rows] == [name] * len(outcome.claims)


@pytest.mark.skipif(not CLAIMS.is_file(), reason="no results here")
def test_every_claim_is_of_an_experiment_that_is_there_and_has_a_verdict() -> None:
    rows = read_csv_texts(CLAIMS)
    assert {row["part"] for row in rows} == set(NAMES)
    assert {row["verdict"] for row in rows} <= {"reproduced", "contradicted", "not decidable"}
    assert all(row["where they differ"] for row in rows if row["verdict"] != "reproduced")


def test_claims_are_kept_for_each_experiment_in_the_order_of_the_papers(module: Module, tmp_path: Path) -> None:
    runner = module("papers.runner")
    found = list(runner.experiments().values())
    one, other = found[0], found[-1]
    claim = runner.Claim("1", "two and two make four", "4", "4", True)
    for experiment in (other, one, other):
        runner.keep(experiment, runner.Outcome({"T": [{"a": 1}]}, [claim]), "tiny", 0.0, tmp_path)
    assert [row["part"] for row in read_csv_texts(tmp_path / "claims.csv")] == list(
        dict.fromkeys([one.name, other.name])
    )


def test_what_does_not_hold_needs_a_reason(module: Module) -> None:
    claim = module("papers.runner").Claim
    for holds in (False, None):
        with pytest.raises(InputError) as caught:
            claim("1", "two and two make five", "5", "4", holds)
        assert caught.value.field == "because"


def test_data_sets_are_what_they_are_taken_for(module: Module, tmp_path: Path) -> None:
    data = module("papers.data")
    with pytest.raises(InputError) as missing:
        data.require(tmp_path, "a9a")
    assert missing.value.field == "DATA"
    (tmp_path / "a9a").write_text("+1 3:1\n")
    with pytest.raises(InputError) as other:
        data.require(tmp_path, "a9a")
    assert other.value.field == "a9a"
    bad = {"2 3:1\n": "labels, line 1", "+1 3:1\n-1 124:1\n": "labels", "+1 3:1\n+1 4:1\n": "labels", "": "labels"}
    bad |= {"+1 3:1\n\n": "labels, line 2", "+1 three:1\n": "labels, line 1", "+1 3:\u00e9\n": "labels, line 1"}
    for text, field in bad.items():
        (tmp_path / "labels").write_text(text)
        with pytest.raises(InputError) as caught:
            data.read_libsvm(tmp_path / "labels", 123)
        assert caught.value.field == field
    (tmp_path / "labels").write_text("+1 3:1 5:0.5\n-1 123:1\n")
    rows, labels = data.read_libsvm(tmp_path / "labels", 123)
    assert labels.tolist() == [1, -1] and rows.toarray()[0, [2, 4]].tolist() == [1, 0.5] and rows.shape == (2, 123)


def test_stand_ins_have_the_shape_that_was_asked_for(module: Module) -> None:
    data = module("papers.data")
    rows, labels = data.words_like(400, 2000, 20.0, np.random.default_rng(0), positive=0.3)
    assert rows.shape == (400, 2000) and abs(np.mean(labels > 0) - 0.3) < 0.01
    np.testing.assert_allclose((rows * rows).sum(1), 1)
    with pytest.raises(InputError):
        data.nested((10, 500), 400, np.random.default_rng(0))


def test_full_size_wants_the_data_sets_themselves(module: Module, tmp_path: Path) -> None:
    runner = module("papers.runner")
    for folder in (None, tmp_path):
        with pytest.raises(InputError) as caught:
            runner.experiments()["tr175_designs_for_map"].run("full", folder)
        assert caught.value.field == "DATA"


def test_a_data_set_is_found_below_the_folder(module: Module, tmp_path: Path) -> None:
    (tmp_path / "below" / "a9a").mkdir(parents=True)
    assert module("papers.data").at_hand(tmp_path, "a9a") is None
    (tmp_path / "below" / "w8a").touch()
    assert module("papers.data").at_hand(tmp_path, "w8a") == tmp_path / "below" / "w8a"


def test_an_unknown_part_is_refused(module: Module) -> None:
    with pytest.raises(InputError) as caught:
        module("papers.runner").chosen(["nobody"])
    assert caught.value.field == "PART"


def test_a_data_set_without_a_known_checksum_is_read(module: Module, tmp_path: Path) -> None:
    data = module("papers.data")
    (tmp_path / "real-sim").write_text("+1 20958:1\n-1 1:2\n")
    rows, labels = data.data_set(tmp_path, "real-sim")
    assert rows.shape == (2, 20958) and labels.tolist() == [1, -1]


def test_scores_of_few_candidates_choose_as_those_of_all_do(module: Module) -> None:
    pools, labels = module("papers.pools"), np.where(np.random.default_rng(1).random(300) < 0.4, -1.0, 1.0)
    pool = pools.with_prior(np.random.default_rng(0).normal(size=(300, 8)), 1.5)
    kept = pools.KeptLanczos(8)
    some, every = (
        kind("uncertainty", 4, DoubleLoop(kept, outer_iterations=1), kept) for kind in (pools.BlockDesign, PoolDesign)
    )
    rng = np.random.default_rng(2)
    state = some.begin(pool, np.arange(10), labels[:10], rng)
    for _ in range(6):
        index, scores = some.propose(state, rng)
        assert index == every.propose(state, rng)[0] and np.isfinite(scores).sum() < 200
        state = some.update(state, index, labels[index], rng)
    before = kept.runs
    exact = Exact()(state.posterior.precision, [pool.rows], rng, state.mean).values[0]
    found = kept(state.posterior.precision, [pool.rows], rng, state.mean).values[0]
    assert kept.runs == before  # the same A: no new run
    np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_twenty_pieces_bound_the_logarithm_and_its_averages(module: Module) -> None:
    bound = module("papers.khan_bound")
    ends, pieces, largest = bound.bound()
    assert len(pieces) == 20 and largest < 2e-4
    mean, spread = np.array([-3.0, 0.4, 7.0]), np.array([0.5, 2.0, 30.0])
    nodes = np.linspace(-12, 12, 200_001)
    weights = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    for m, s, found in zip(mean, spread, bound.piecewise_softplus(mean, spread).value, strict=True):
        x = m + s * nodes
        c, b, a = pieces[np.clip(np.searchsorted(ends, x, side="right") - 1, 0, 19)].T
        assert abs(weights @ ((a * x + b) * x + c) - found) < 1e-5
        assert -1e-9 < found - weights @ np.logaddexp(0, x) < 1.01 * largest

"""The command line does what it did when the golden runs were recorded.

Each run goes through the command line alone, so that files may move and classes may change while what a user gets does
not: the lines and their order, tables, arrays, the files that are left and the headings of the report. Figures are not
drawn. What was recorded lies in ``expected.json``; a change of behaviour that is meant is recorded with

    OMP_NUM_THREADS=1 python -m tests.golden.record

and goes into a commit that says what changed and why.
"""

import json
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mri_design import Calibrated
from tests.golden.outcomes import EXPECTED, carried_out, differences
from tests.golden.runs import RUNS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Callable[[str], dict[str, Any]]:
    """The outcome of a run by its name; what it needs is run before it, and nothing twice."""

    @cache
    def call(name: str) -> dict[str, Any]:
        if RUNS[name].after:
            call(RUNS[name].after)
        return carried_out(name, folder)

    return call


@pytest.mark.parametrize("name", RUNS)
def test_a_run_leaves_what_was_recorded(outcome: Callable[[str], dict[str, Any]], name: str) -> None:
    expected = json.loads(EXPECTED.read_text())[name]
    found = list(differences(expected, outcome(name), RUNS[name].tolerance))
    assert not found, "\n".join([f"{len(found)} differences; the first ones:", *found[:20]])


def test_an_interrupted_design_is_resumed_to_what_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chooses, calls = Calibrated.choose, count()

    def interrupted(strategy: Calibrated, *arguments: Any) -> Any:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return chooses(strategy, *arguments)

    monkeypatch.setattr(Calibrated, "choose", interrupted)
    with pytest.raises(RuntimeError, match="ended with 130"):
        carried_out("design-calibrated", tmp_path)
    resumed = carried_out("design-calibrated", tmp_path, "--resume")
    assert next(calls) < 13  # what was decided before is not decided again
    expected = json.loads(EXPECTED.read_text())["design-calibrated"]
    assert not list(differences(expected, resumed, RUNS["design-calibrated"].tolerance))


def test_every_recorded_run_is_still_run() -> None:
    assert set(json.loads(EXPECTED.read_text())) == set(RUNS)


@pytest.mark.parametrize(
    ("expected", "found", "agree"),
    [
        ("mean,14,0.1546,yes,127", "mean,14,0.154592,yes,127", True),
        ("mean,14,0.1546,yes,127", "mean,14,0.1551,yes,127", False),
        ("mean,14,0.1546,yes,127", "mean,14,0.1546,yes,128", False),
        ("mean,14,0.1546,yes,127", "mean,14,0.1546,no,127", False),
        ("mean,14,0.1546,yes,127", "mean,14,,yes,127", False),
        ("mean,14,0.1546,yes,~127", "mean,14,0.1546,yes,~128", True),
        ("mean,14,0.1546,yes,~127", "mean,14,0.1546,yes,~129", False),
        ("0.50,1151.0", "0.5,1151", True),
        ("1.5e-05", "1.6e-05", False),
        ("16 15 17", "16 17 15", False),
        ("ky=-16,ky=-15", "ky=-15,ky=-16", False),
        ("score -1.5", "score 1.5", False),
        ("+3.2%", "-3.2%", False),
        (["a"], ["a", "b"], False),
        ({"mask": "#."}, {}, False),
        (0, 4, False),
    ],
)
def test_what_counts_as_the_same(expected: object, found: object, agree: bool) -> None:
    assert (list(differences(expected, found, 2e-3)) == []) == agree

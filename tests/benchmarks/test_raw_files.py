"""The table of raw-data files: every variant is read right or refused with its reason, and what is not is noticed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of
from tests.slow_cases import slow_case

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture
def raw_files(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark's module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import raw_files

    return raw_files


def quick(case: object, module: ModuleType) -> object:
    """The same variant written by h5py at once, which takes a tenth of the time."""
    own = case.write is not module.RawFile.write  # type: ignore[attr-defined]
    return case if own else replace(case, write=module.RawFile.write_by_hand)  # type: ignore[type-var]


@pytest.mark.parametrize("kind", ["SLICES", "VOLUMES", "TRAJECTORIES"])
@pytest.mark.parametrize("step", [slow_case(1), 6])
def test_variants_are_read_right_or_refused(raw_files: ModuleType, tmp_path: Path, kind: str, step: int) -> None:
    writing = sys.modules["raw.writing"]
    cases = [quick(case, writing) for case in getattr(raw_files, kind)[::-step]]
    rows = [case.outcome(tmp_path, number, isolated=False) for number, case in enumerate(cases)]  # type: ignore[attr-defined]
    assert [row for row in rows if not row["right"]] == []
    assert {row["outcome"] for row in rows} == {"read", "refused"}


def test_names_are_single_and_files_are_many(raw_files: ModuleType) -> None:
    names = [(case.kind, case.name) for case in raw_files.CASES]
    assert len(set(names)) == len(names) >= raw_files.LEAST
    assert all(name for _, name in names)


def test_headers_are_those_of_the_standard(raw_files: ModuleType) -> None:
    from ismrmrd import xsd

    file, _ = raw_files.SLICES[0].build()
    header = xsd.CreateFromDocument(file.header)
    assert header.encoding[0].encodedSpace.matrixSize.y == 24
    assert header.encoding[0].trajectory == xsd.trajectoryType.CARTESIAN


@pytest.mark.parametrize("wrong", ["value", "shape", "card", "not refused", "refused"])
def test_what_is_not_right_is_noticed(raw_files: ModuleType, tmp_path: Path, wrong: str) -> None:
    case = raw_files.SLICES[0]
    file, expected = case.build()
    spoilt = {
        "value": replace(expected, kspace=expected.kspace + 1e-3 * np.eye(24, 32)),
        "shape": replace(expected, kspace=expected.kspace[:, :2]),
        "card": replace(expected, card={"slices": "present"}),
        "not refused": replace(expected, refused="kspace"),
        "refused": expected,
    }[wrong]
    if wrong == "refused":
        file.acquisitions[0].idx.kspace_encode_step_1 = 99
    row = replace(case, build=lambda: (file, spoilt)).outcome(tmp_path, 0, isolated=False)
    assert row["right"] is False


def test_the_page_counts_every_kind_and_quotes_refusals(raw_files: ModuleType) -> None:
    read = {"variant": "plain", "kind": "slices", "outcome": "read", "right": True, "largest difference": 2e-7}
    refused = {"variant": "bad", "kind": "slices", "outcome": "refused", "right": True, "what the reader says": "why"}
    rows = [read, refused, read | {"kind": "volume", "right": False, "largest difference": 1.0}]
    text = raw_files.page(rows, raw_files.targets(rows))
    assert "| slices | 2 | 1 | 1 | 2e-07 |" in text and "| volume | 1 | 0 | 0 | 1 |" in text
    assert "| bad | slices | why |" in text and "plain | slices" not in text


def test_targets_stand_beside_those_of_others(raw_files: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"outcome": "read", "right": True, "largest difference": 1e-7},
        {"outcome": "refused", "right": False},
    ]
    path = tmp_path / "targets.csv"
    path.write_text(f"name,target,measured,unit,met\nfuzz,none,0,crashes,yes\n{raw_files.NAME}: old,1,1,files,yes\n")
    path.write_text(raw_files.with_targets(path, raw_files.targets(rows)))
    found = rows_of(path)
    assert [row["name"] for row in found][:2] == ["fuzz", f"{raw_files.NAME}: variants"]
    assert [row["met"] for row in found] == ["yes", "no", "no", "yes"]
    assert found[2]["measured"] == "1 of 2"

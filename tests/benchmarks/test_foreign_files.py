"""The table of foreign files: what is not there says so, and what is there is read right."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from mri_design.evaluation.tables import read_csv_texts
from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")
RESULTS = BENCHMARKS.parent / "results/interoperation"


@pytest.fixture
def foreign_files(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark's module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import foreign_files

    return foreign_files


def test_what_is_not_there_is_a_row_that_says_so(foreign_files: ModuleType, tmp_path: Path) -> None:
    rows = list(foreign_files.scanner_rows(tmp_path))
    assert [row["right"] for row in rows] == [False, False]
    assert all("not beside the checkout" in str(row["outcome"]) for row in rows)


def test_raw_data_of_scanners_are_read_as_others_read_them(foreign_files: ModuleType) -> None:
    data = BENCHMARKS.parents[1] / "shared/data"
    if not (data / "raw").is_dir():
        pytest.skip("no shared data beside the checkout")
    pytest.importorskip("twixtools")
    rows = list(foreign_files.scanner_rows(data))
    assert len(rows) == 5 and all(row["right"] for row in rows), rows


@pytest.mark.slow
def test_mrpro_and_this_package_agree_where_a_marker_is(foreign_files: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("mrpro")
    rows = list(foreign_files.mrpro_rows(tmp_path, 1))
    assert len(rows) == 6 and all(row["right"] for row in rows), rows


def test_the_kept_table_has_every_kind_of_file_and_all_are_right() -> None:
    rows = read_csv_texts(RESULTS / "foreign-files.csv")
    assert {row["right"] for row in rows} == {"yes"}
    makers = " ".join(row["written by"] for row in rows)
    assert all(name in makers for name in ("MRpro", "ismrmrd_generate", "GE", "Siemens", "this package"))

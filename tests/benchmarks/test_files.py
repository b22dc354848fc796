"""Files of others and for others, damaged files and killed runs: every script runs at its smallest size."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design.evaluation.tables import read_csv_texts
from mri_design.sequences.orders import LineOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import load_scanner
from mri_design.sequences.settings import SequenceSettings
from tests.benchmarks.conftest import BENCHMARKS, Tables

pytestmark = pytest.mark.thorough

Module = Callable[[str], ModuleType]


@pytest.mark.slow
@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("MRzeroCore", "pypulseqpp", "finufft")),
    reason="needs MRzeroCore, pypulseqpp and finufft",
)
def test_other_programs_find_every_sample_and_the_phantom(tables_of: Callable[..., Tables]) -> None:
    tables = tables_of("bloch", "--quick")
    assert len(tables["readers"]) == 20 and max(float(row["largest error"]) for row in tables["readers"]) < 1e-3
    assert {row["labels exact"] for row in tables["readers"]} == {"yes", "not read"}
    for row in tables["bloch"]:
        assert float(row["relative error"]) < float(row["of exact samples"]) + 0.03, row


@pytest.mark.slow
def test_sequences_are_exact_and_impossible_ones_refused(tables_of: Callable[..., Tables]) -> None:
    pytest.importorskip("pypulseq")
    tables = tables_of("sequences", "--quick")
    assert {row["exact"] for row in tables["sequences"]} == {row["refused"] for row in tables["refusals"]} == {"yes"}


@pytest.mark.parametrize("kind", ["gre", "tse"])
def test_the_reader_of_the_text_finds_the_lines_and_what_is_changed(module: Module, kind: str) -> None:
    pytest.importorskip("pypulseq")
    settings = SequenceSettings(
        kind=kind,  # type: ignore[arg-type]
        field_of_view=(0.24, 0.2),
        samples=9,
        echo_time=0.02,
        repetition_time=0.1,
        flip_angle=70.0,
        bandwidth=300.0,
    )
    order = LineOrder(((8, 3, 12), (9, 0)), 16)
    text = pulseq_file(order, settings, load_scanner("generic")).content.decode()
    found = module("parts.pulseq_text").played(text)
    assert found.labels == {"LIN": list(order.lines)}
    ky = found.places[..., 1] * 0.24
    np.testing.assert_allclose(ky, np.repeat(np.array(order.lines) - 8, 9).reshape(-1, 9), atol=1e-4)
    shifted = module("parts.random_sequences")._scaled(1, 1.01)(text)  # the prephaser
    assert np.abs(module("parts.pulseq_text").played(shifted).places - found.places).max() > 0.1


@pytest.mark.slow
def test_every_program_that_is_there_makes_the_same_image(tables_of: Callable[..., Tables]) -> None:
    for package in ("sigpy", "pylops"):
        pytest.importorskip(package)
    rows = tables_of("same_image", "--matrix", "32")["same-image"]
    assert {row["coils"] for row in rows} == {"1", "8"}
    assert {"SciPy with our X", "PyLops with our X", "SigPy SenseRecon"} <= {row["solver"] for row in rows}
    assert all(float(row["difference"]) < 1e-3 for row in rows)


def test_foreign_files_that_are_not_there_are_rows_that_say_so(module: Module, tmp_path: Path) -> None:
    rows = list(module("foreign_files").scanner_rows(tmp_path))
    assert [row["right"] for row in rows] == [False, False]
    kept = read_csv_texts(BENCHMARKS.parent / "results/interoperation/foreign-files.csv")
    assert {row["right"] for row in kept} == {"yes"}


@pytest.mark.slow
def test_foreign_files_that_are_there_are_read_right(module: Module, tmp_path: Path) -> None:
    foreign_files, data = module("foreign_files"), BENCHMARKS.parents[1] / "shared/data"
    if (data / "raw").is_dir() and find_spec("twixtools"):
        assert all(row["right"] for row in foreign_files.scanner_rows(data))
    if find_spec("mrpro"):
        assert all(row["right"] for row in foreign_files.mrpro_rows(tmp_path, 1))


@pytest.mark.slow
def test_every_reader_refuses_or_reads_what_was_there(tables_of: Callable[..., Tables]) -> None:
    for package in ("nibabel", "pydicom", "twixtools"):
        pytest.importorskip(package)
    rows = {row["kind"]: row for row in tables_of("fuzz_readers", "--cases", "128", "--seed", "2")["fuzz"]}
    assert rows["all"]["cases"] == "128" and int(rows["all"]["refused"]) > 25
    for never in ("crashed", "stalled", "another error", "other files changed"):
        assert rows["all"][never] == "0", rows


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_killed_verbs_go_on_to_identical_results(tables_of: Callable[..., Tables]) -> None:
    (row,) = tables_of("kills", "--verbs", "export", "--kills", "2", "--matrix", "16")["kills"]
    assert row["kills"] == row["identical"] == "2" and row["not compared"] == "" and row["files"] == "1"


@pytest.mark.slow
def test_a_client_leads_to_the_lines_of_the_replayed_file(
    module: Module, tables_of: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONPATH"):  # which the script sets, for processes of its own
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(module("stream_clients"), "STREAMS", {"calibration": "acs"})
    (row,) = tables_of("stream_clients", "--matrix", "48", "--lines", "26", "--clients", "1")["clients"]
    assert row["lines"] == "26" and row["same lines as design"] == "yes", row
    assert row["told that it is done, then closed"] == "yes"


@pytest.mark.slow
def test_the_error_does_not_rise_where_the_noise_falls(module: Module) -> None:
    little_noise = module("little_noise")
    found = [
        little_noise.outcome(little_noise.Job("t2w", 1, "local", "mean", ratio, 0)) for ratio in little_noise.RATIOS
    ]
    (row,) = little_noise.table(found)
    assert row["rise %"] <= 1 and row["not converged"] == f"0 of {len(found)}"


@pytest.mark.parametrize("kind", ["SLICES", "VOLUMES", "TRAJECTORIES"])
def test_variants_of_raw_files_are_read_right_or_refused(module: Module, tmp_path: Path, kind: str) -> None:
    raw_files, written = module("raw_files"), module("raw.writing").RawFile
    cases = [  # written by h5py at once, which takes a tenth of the time
        case if case.write is not written.write else replace(case, write=written.write_by_hand)
        for case in getattr(raw_files, kind)
    ]
    rows = [case.outcome(tmp_path, number, isolated=False) for number, case in enumerate(cases)]
    assert [row for row in rows if not row["right"]] == []
    assert {row["outcome"] for row in rows} == {"read", "refused"}
    assert raw_files.kinds(rows)[0]["files"] == len(rows) == len({case.name for case in cases})


@pytest.mark.parametrize("wrong", ["value", "shape", "header", "not refused", "refused"])
def test_a_raw_file_that_is_not_read_right_is_noticed(module: Module, tmp_path: Path, wrong: str) -> None:
    case = module("raw_files").SLICES[0]
    file, expected = case.build()
    spoilt = {
        "value": replace(expected, kspace=expected.kspace + 1e-3 * np.eye(24, 32)),
        "shape": replace(expected, kspace=expected.kspace[:, :2]),
        "header": replace(expected, header={"slices": "present"}),
        "not refused": replace(expected, refused="kspace"),
        "refused": expected,
    }[wrong]
    if wrong == "refused":
        file.acquisitions[0].idx.kspace_encode_step_1 = 99
    row = replace(case, build=lambda: (file, spoilt)).outcome(tmp_path, 0, isolated=False)
    assert row["right"] is False

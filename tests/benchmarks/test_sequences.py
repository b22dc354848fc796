"""The benchmark of sequences: a smoke run writes its files, and its own reader of Pulseq files sees what is wrong."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design.sequences.orders import LineOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import load_scanner
from mri_design.sequences.settings import SequenceSettings
from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """The benchmark's modules by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"parts.{name}")


@pytest.mark.slow
def test_a_smoke_run_writes_its_files_and_keeps_the_targets_of_others(tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    (tmp_path / "targets.csv").write_text("name,target,measured,unit,met\nanother,<= 1,0.5,s,yes\n")
    command = [sys.executable, str(BENCHMARKS / "sequences.py"), "--quick", "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    targets = rows_of(tmp_path / "targets.csv")
    assert targets[0]["name"] == "another" and len(targets) == 5
    assert [row["met"] for row in targets] == ["yes"] * 5
    assert {row["exact"] for row in rows_of(tmp_path / "sequences.csv")} == {"yes"}
    assert {row["refused"] for row in rows_of(tmp_path / "refusals.csv")} == {"yes"}
    assert "## Round trips\n" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("kind", ["gre", "tse"])
def test_the_reader_of_the_text_finds_the_lines_and_what_is_changed(
    parts: Callable[[str], ModuleType], kind: str
) -> None:
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
    found = parts("pulseq_text").played(text)
    assert found.labels == {"LIN": list(order.lines)}
    ky = found.places[..., 1] * 0.24
    np.testing.assert_allclose(ky, np.repeat(np.array(order.lines) - 8, 9).reshape(-1, 9), atol=1e-4)
    shifted = parts("random_sequences")._scaled(1, 1.01)(text)  # the prephaser
    assert np.abs(parts("pulseq_text").played(shifted).places - found.places).max() > 0.1

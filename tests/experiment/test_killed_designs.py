"""A design killed at any moment goes on from its checkpoint to the same lines."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mri_design import Checkpoint, DesignOptions, Recipe, SliceModel, make_strategy, run_design
from mri_design.experiment import stored_designs as checkpoint
from mri_design.scan.io import remove_stale_temporaries

KILLS, LINES, START = 8, 14, 4


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")
def test_kills_change_nothing(one: SliceModel, small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills come while a state is written, and between two that are."""
    strategy = make_strategy("information-gain")

    def design(folder: Path) -> tuple[int, ...]:
        options = DesignOptions(checkpoint=Checkpoint(folder / "checkpoint.npz", "it"))
        return run_design([one], strategy, LINES, small, seed=3, start=START, options=options).trace.lines

    whole = tmp_path / "whole"
    whole.mkdir()
    began = time.perf_counter()
    expected = design(whole)
    duration = time.perf_counter() - began
    monkeypatch.setattr(checkpoint, "EVERY", duration / 8)  # some lines apart
    moments = np.random.default_rng(10).uniform(0, duration / 3, KILLS)
    kills = finished = 0
    folder = tmp_path / "run0"
    folder.mkdir()
    while kills < KILLS:
        child = os.fork()
        if child == 0:
            try:
                design(folder)
                os._exit(0)
            except BaseException:
                os._exit(1)
        time.sleep(moments[kills])
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a resumed design failed"
        kills += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):  # it was done before the signal came: look, then begin another
            assert design(folder) == expected
            finished += 1
            folder = tmp_path / f"run{finished}"
            folder.mkdir()
    remove_stale_temporaries(folder)
    assert {path.name for path in folder.iterdir()} <= {"checkpoint.npz"}
    assert design(folder) == expected

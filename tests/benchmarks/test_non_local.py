"""The page of the benchmark of non-local differences says what was run and what came out."""

import sys

import numpy as np
import pytest

from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_one_small_scan_makes_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("non_local", None)
    import non_local
    from study.scans import simulated, simulating

    scan = simulated("phantom:t2w", [0], simulating(48))[0]
    mask, lines = next(non_local.masks(scan, False))
    both = [non_local.outcome(scan, lines, recipe) for recipe in (non_local.LOCAL, non_local.NON_LOCAL)]
    pair = non_local.Pair(scan.name, mask, len(lines), *both)
    assert np.isfinite(pair.change) and pair.times > 0 and pair.local.variance_ratio > 0
    text = non_local.document([pair], "the command")
    assert f"| {scan.name} | random, variable density | 6 |" in text and "the command" in text

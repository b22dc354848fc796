"""The page of the benchmark of the model's choice says what was run and what came out."""

import sys

import numpy as np
import pytest

from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_one_small_scan_makes_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("phase_choice", "non_local"):
        sys.modules.pop(name, None)
    import phase_choice
    from study.scans import simulated, simulating

    scan = simulated("phantom:t2w", [0], simulating(48))[0]
    mask, lines = list(phase_choice.masks(scan, False))[-1]
    made = {name: phase_choice.judged(scan, lines, recipe) for name, recipe in phase_choice.RECIPES.items()}
    case = phase_choice.Case(scan.name, mask, len(lines), made)
    assert case.change("modulus") == 0 and np.isfinite(case.complex_change("default"))
    chosen = made["phase-aware" if case.took_phase else "modulus"]
    assert abs(made["chosen"].error / chosen.error - 1) < 0.05
    text = phase_choice.document([case], "the command", "training")
    assert f"| {scan.name} | {mask} | {len(lines)} |" in text and "the command" in text
    assert f"| {'yes' if case.took_phase else 'no'} |" in text


def test_band_factors_are_learnt_from_what_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("band_factors", None)
    import band_factors
    from study.scans import simulated, simulating

    from mri_design import load_recipe

    scan = simulated("phantom:t2w", [0], simulating(32))[0]
    one = scan.prepared.slice_model(0, load_recipe("local"))
    lines = tuple(range(10, 22))
    small = (scan.reference / 2).astype(np.complex64)
    head = [
        band_factors.case(model, share, one, lines, small, scan.reference)
        for model in band_factors.MODELS
        for share in band_factors.SHARES
    ]
    factors = band_factors.learnt([head], "modulus")
    inner, outer = factors.table[:, 0], factors.table[:, 3:]
    np.testing.assert_array_equal(inner, 1)  # these lines were measured
    np.testing.assert_allclose(outer, 2, rtol=1e-3)
    text = band_factors.document({"modulus": factors}, {"modulus": [{"share of lines": 0.25, "change, %": -1.0}]})
    assert "Factors where 0.5 of the lines are measured" in text

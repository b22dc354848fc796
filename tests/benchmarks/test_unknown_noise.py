"""The page of the benchmark of undeclared noise says what was run and what came out."""

import sys

import numpy as np
import pytest

from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_scan_of_few_samples_makes_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("unknown_noise", "non_local"):
        sys.modules.pop(name, None)
    import unknown_noise
    from study.scans import simulated, simulating

    fine = simulated("phantom:t2w", [0], simulating(128, noise=0.001))[0]
    scan = unknown_noise.anew("coarse", unknown_noise.cut(fine.reference, 40))
    monkeypatch.setattr(unknown_noise, "masks", lambda scan: [("random", list(range(8, 32)))])
    cases = list(unknown_noise.cases(scan))
    assert [case.file for case in cases] == ["all lines", "the mask's"]
    for case in cases:
        assert case.sd["true"] == 1
        assert 1 < case.sd["now"] < 5
        assert case.against("now") == 0
        assert np.isfinite(case.against_local("true"))
    text = unknown_noise.document(cases)
    assert f"| coarse | random | 24 | all lines | {cases[0].sd['before']:.2f} |" in text


def test_both_rules_agree_where_noise_is_all_there_is_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import unknown_noise

    from mri_design import KSpaceData, estimate_noise_variance

    rng = np.random.default_rng(0)
    noise = 0.1 * (rng.standard_normal((1, 1, 64, 64)) + 1j * rng.standard_normal((1, 1, 64, 64)))
    data = KSpaceData(noise.astype(np.complex64), np.ones(64, dtype=bool))
    assert unknown_noise.noise_before(data) == pytest.approx(estimate_noise_variance(data), rel=1e-5)
    assert unknown_noise.noise_before(data) == pytest.approx(0.1**2, rel=0.1)


def test_an_image_of_fewer_samples_is_the_same_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import unknown_noise

    rows, columns = np.mgrid[:32, :32]
    image = np.exp(2j * np.pi * (2 * rows + 3 * columns) / 32).astype(np.complex64)
    small = unknown_noise.cut(image, 16)
    np.testing.assert_allclose(small / small[0, 0], image[::2, ::2], atol=1e-5)

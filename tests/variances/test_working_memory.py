"""Draws that are worked on some at a time give the same variances, by as many products, in less memory."""

import tracemalloc

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision, Variances, draws_at_once, least_memory

DRAWS = 9


def narrow_memory(precision: PosteriorPrecision, count: int) -> float:
    """MiB that have draws made one by one."""
    real = precision.site_precisions[0].dtype
    return least_memory(count, precision.measurement, [b.analysis for b in precision.blocks], real)


def precision_of(n: int, *, wavelet: bool = True, real: type = np.float64) -> PosteriorPrecision:
    rng = np.random.default_rng(0)
    operators = [md.FiniteDifferences((n, n)), *([md.Wavelet((n, n), "db4", 2)] if wavelet else [])]
    blocks = tuple(md.SiteBlock(f"block {i}", B, md.Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(rng.uniform(0.1, 3, B.out_shape).astype(real) for B in operators)
    return PosteriorPrecision(
        md.cartesian(sorted({*range(n // 2 - 3, n // 2 + 3), *range(0, n, 3)}), (n, n)), blocks, pi
    )


def variances(
    estimator: md.ControlVariate | md.MonteCarlo, precision: PosteriorPrecision, previous: Variances | None = None
) -> Variances:
    like = np.zeros((precision.measurement.in_shape), np.result_type(precision.site_precisions[0].dtype, np.complex64))
    return estimator(precision, [b.analysis for b in precision.blocks], np.random.default_rng(1), like, previous)


@pytest.mark.parametrize(
    ("kind", "wavelet"), [(md.ControlVariate, True), (md.ControlVariate, False), (md.MonteCarlo, True)]
)
def test_the_variances_are_the_same_by_as_many_products(kind: type, wavelet: bool) -> None:
    precision = precision_of(24, wavelet=wavelet)
    little = narrow_memory(precision, DRAWS)
    previous: Variances | None = None
    for _ in range(2):  # cold, then from the draws of before
        roomy, narrow = (variances(kind(DRAWS, 1e-3, memory=memory), precision, previous) for memory in (1e6, little))
        assert roomy.convergence.matvecs == narrow.convergence.matvecs
        assert roomy.convergence.status is narrow.convergence.status and roomy.kind == narrow.kind
        for name in ("values", "std_error", "bias", "samples"):
            for one, other in zip(getattr(roomy, name), getattr(narrow, name), strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
        previous = roomy


def test_a_small_limit_is_kept_to_in_single_precision_too() -> None:
    precision = precision_of(96, real=np.float32)
    peaks = []
    for memory in (1e6, narrow_memory(precision, 24)):
        variances(md.ControlVariate(2, 0.1, memory=memory), precision)  # what is made once is there
        tracemalloc.start()
        try:
            variances(md.ControlVariate(24, 0.1, memory=memory), precision)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 0.6 * peaks[0]


def test_more_memory_works_on_more_draws() -> None:
    X, analyses, single = md.cartesian(range(64), (256, 256)), [md.FiniteDifferences((256, 256))], np.dtype(np.float32)
    found = [draws_at_once(memory, 16, X, analyses, single) for memory in (275, 280, 300, 500, 2000)]
    assert found[-1] is None
    counts = [16 if count is None else count for count in found]
    assert counts == sorted(counts) and len(set(counts)) > 2


def test_a_limit_that_single_draws_exceed_is_stated(capfd: pytest.CaptureFixture[str]) -> None:
    precision = precision_of(24)
    real, analyses = precision.site_precisions[0].dtype, [b.analysis for b in precision.blocks]
    assert draws_at_once(0.5, 7, precision.measurement, analyses, real) == 1
    assert "inference.memory" in capfd.readouterr().err

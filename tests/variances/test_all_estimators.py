"""Every estimator of variances against dense algebra: by draws, by columns, in little memory; and wrong settings."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision, draws_at_once
from mri_design.model.posterior import MIB, PROGRAM
from mri_design.operators import CartesianSamples, Dense, FiniteDifferences, Identity, Wavelet
from mri_design.sites import Laplace
from mri_design.variances import (
    ColumnControl,
    ColumnFactors,
    ControlVariate,
    Exact,
    ExactByColumns,
    Lanczos,
    MonteCarlo,
)
from mri_design.variances.columns import column_memory
from tests.arrays import noise, smooth_maps
from tests.refusals import refused
from tests.slow_cases import slow_case
from tests.variances.running import narrow_memory, run, run_on, together

PLAIN = MonteCarlo(samples=400, tolerance=1e-6, max_iterations=300)
CONTROLLED = ControlVariate(samples=120, tolerance=1e-6, max_iterations=300)


@pytest.mark.parametrize(
    "estimator", [Exact(), Lanczos(30), MonteCarlo(3), ControlVariate(20)], ids=lambda e: type(e).__name__
)
def test_single_precision_stays_single(estimator, tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 5))
    made = run_on(estimator, model, pi)
    assert all(v.dtype == np.float32 for v in (*made.values, *(made.std_error or ()), *(made.bias or ())))
    images = [v for v in (made.samples, made.factors and made.factors.basis) if v is not None]
    assert all(image.dtype == np.complex64 for image in images)
    assert (made.bias is None) == isinstance(estimator, Exact | Lanczos)
    if made.kind != "unbiased":
        np.testing.assert_allclose(made.values[0], run_on(Exact(), model, pi).values[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("estimator", "model_name"),
    [
        (PLAIN, "coils"),
        (PLAIN, "parts"),
        slow_case(PLAIN, "matrix"),
        (CONTROLLED, "groups"),
        (CONTROLLED, "coils"),
        (CONTROLLED, "wavelet"),
        slow_case(CONTROLLED, "matrix"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_unbiased_within_the_standard_error(estimator, model_name, tiny_model, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    exact = together(run_on(Exact(), model, pi).values)
    results = [run_on(estimator, model, pi, seed) for seed in range(8)]
    assert all(r.convergence.converged for r in results)
    if estimator is CONTROLLED and model_name == "coils":  # columns leave nothing to sample
        assert all(r.kind == "exact" for r in results)
        np.testing.assert_allclose(together(results[0].values), exact, rtol=1e-10)
        return
    assert all(r.kind == "unbiased" for r in results)
    values = np.array([together(r.values) for r in results])
    errors = np.array([together(r.std_error) for r in results])
    # Every run: z-scores of unit size. They are correlated within a run, hence the generous limits.
    scores = (values - exact) / errors
    assert np.abs(scores).max() < 6
    assert 0.8 < np.sqrt(np.mean(scores**2)) < 1.2
    # All runs together, so that a bias of a few percent would show.
    pooled = (values.mean(axis=0) - exact) / np.sqrt((errors**2).mean(axis=0) / len(results))
    assert np.abs(pooled).max() < 4.5
    assert abs(np.mean(values / exact) - 1) < 0.02


def test_draws_for_a_nearby_precision_are_a_start_and_no_more(tiny_model, random_precisions):
    """Same noise, sites 5 % stronger: the same values as from zero, for fewer multiplications."""
    model = tiny_model("coils")
    pi = random_precisions(model, 7)
    estimator = MonteCarlo(50, tolerance=1e-4, max_iterations=200)
    before = run_on(estimator, model, pi, seed=8)
    cold, warm = (run_on(estimator, model, tuple(1.05 * p for p in pi), 8, previous) for previous in (None, before))
    assert warm.convergence.converged and warm.convergence.matvecs < 0.9 * cold.convergence.matvecs
    np.testing.assert_allclose(together(warm.values), together(cold.values), rtol=2e-3)
    assert np.abs(together(warm.values) / together(before.values) - 1).max() > 0.01


def test_samples_are_handed_on_seeds_repeat_and_short_solves_are_flagged(tiny_model, random_precisions):
    model = tiny_model("coils")
    pi = random_precisions(model, 4)
    first, again, other = (run_on(MonteCarlo(5), model, pi, seed) for seed in (1, 1, 2))
    assert first.samples.shape == (5, *model.image_shape)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - other.samples).max() > 0.01
    power = np.abs(model.blocks[1].analysis(first.samples)) ** 2
    np.testing.assert_allclose(first.values[1], power.mean(axis=0))
    assert first.log_determinant is None
    model = tiny_model("moduli")
    result = run_on(MonteCarlo(3, tolerance=1e-8, max_iterations=2), model, random_precisions(model, 6))
    assert result.convergence.status is md.Status.MAX_ITERATIONS
    assert result.convergence.matvecs == 6 + 2  # one draw goes on, to tell the bias


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {}) for name in ("coils", "wavelet", "real image", "matrix")),
        ("coils", {"preconditioned": True}),
        ("groups", {"preconditioned": True, "reorthogonalisation": "selective"}),
    ],
)
def test_they_rise_to_the_exact_values(name, settings, tiny_model, random_precisions):
    model = tiny_model(name)
    pi = random_precisions(model, 1)
    exact = run_on(Exact(), model, pi)
    n = int(np.prod(model.image_shape))
    last = tuple(np.zeros(b.analysis.out_shape) for b in model.blocks)
    for steps in sorted({1, 2, 3, 5, n // 4, n // 2, n - 1, n}):
        result = run_on(Lanczos(steps, **settings), model, pi)
        assert result.kind == "lower_bound" and result.convergence.matvecs == steps
        for low, value, high in zip(last, result.values, exact.values, strict=True):
            assert (value >= low - 1e-9).all()
            assert (value <= high + 1e-9).all()
        last = result.values
    for value, high in zip(last, exact.values, strict=True):
        np.testing.assert_allclose(value, high, rtol=1e-6)
    assert result.log_determinant == pytest.approx(exact.log_determinant, abs=1e-7)
    assert result.factors is not None and len(result.factors.basis) == n


def test_they_are_the_diagonal_of_the_dense_covariance(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    result = run_on(Exact(), model, pi)
    covariance = np.linalg.inv(PosteriorPrecision(model.measurement, model.blocks, pi).dense_real())
    assert result.kind == "exact" and result.convergence.converged and result.std_error is None
    assert result.log_determinant == pytest.approx(-np.linalg.slogdet(covariance)[1], rel=1e-12)
    for block, values in zip(model.blocks, result.values, strict=True):
        B = block.analysis.to_dense_real()
        diagonal = np.einsum("ij,jk,ik->i", B, covariance, B)
        if block.analysis.out_complex:
            diagonal = diagonal.reshape(2, -1).sum(axis=0)
        np.testing.assert_allclose(values, diagonal.reshape(block.analysis.out_shape), rtol=1e-9)


@pytest.mark.parametrize("model_name", ["groups", "parts", "matrix"])
def test_pooled_they_are_the_gradient_of_the_log_determinant(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 2)
    result, step = run_on(Exact(), model, pi), 1e-5
    rng = np.random.default_rng(3)
    for number, block in enumerate(model.blocks):
        z = block.pooled(result.values[number])
        assert z.shape == block.site_shape
        for _ in range(4):
            site = tuple(int(rng.integers(n)) for n in block.site_shape)
            ends = []
            for sign in (1, -1):
                moved = tuple(p.copy() for p in pi)
                moved[number][site] += sign * step
                ends.append(run_on(Exact(), model, moved).log_determinant)
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(z[site], rel=1e-6)


def test_site_precisions_over_twelve_decades_are_legitimate(tiny_model):
    model = tiny_model("matrix")
    pi = tuple(np.geomspace(1e-6, 1e6, int(np.prod(b.site_shape))).reshape(b.site_shape) for b in model.blocks)
    assert all((z > 0).all() for z in run_on(Exact(), model, pi).values)


def ring(count: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A positive definite ring of blocks, and the same as one matrix (column by column)."""
    below, diagonal = noise((2, count, n, n), seed=seed)
    diagonal = diagonal @ np.conj(np.swapaxes(diagonal, -1, -2)) + 8 * n * np.eye(n)
    matrix = np.zeros((count, n, count, n), dtype=complex)
    for k in range(count):
        after = (k + 1) % count
        matrix[k, :, k] += diagonal[k]
        matrix[after, :, k] += below[k]
        matrix[k, :, after] += below[k].conj().T
    return diagonal, below, matrix.reshape(count * n, count * n)


@pytest.mark.parametrize(("count", "n"), [(3, 4), (4, 1), (7, 5)])
def test_factors_are_those_of_the_whole_matrix(count, n):
    diagonal, below, matrix = ring(count, n)
    factors = ColumnFactors.of(diagonal, below)
    inverse = np.linalg.inv(matrix).reshape(count, n, count, n).transpose(0, 2, 1, 3)
    own, following = factors.neighbours
    k = np.arange(count)
    np.testing.assert_allclose(own, inverse[k, k], atol=1e-13)
    np.testing.assert_allclose(following, inverse[(k + 1) % count, k], atol=1e-13)
    np.testing.assert_allclose(factors.inverse(), inverse, atol=1e-7)
    assert factors.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12)
    b = np.random.default_rng(1).standard_normal((2, 3, n, count)) + 0j
    flat = np.moveaxis(b, -1, -2).reshape(6, -1)
    expected = np.moveaxis(np.linalg.solve(matrix, flat.T).T.reshape(2, 3, count, n), -1, -2)
    np.testing.assert_allclose(factors.solve(b), expected, atol=1e-13)
    assert factors.solve(b.astype(np.complex64)).dtype == np.complex64


def test_indefinite_matrices_have_no_factors():
    diagonal, below, _ = ring(4, 3)
    diagonal[2] -= 100 * np.eye(3)
    assert ColumnFactors.of(diagonal, below) is None


def coils_and_sites(shape, coils, operators, seed=0):
    rng, maps = np.random.default_rng(seed), noise((coils, *shape), seed=seed)
    maps /= np.sqrt((np.abs(maps) ** 2).sum(axis=0))
    lines = rng.choice(shape[0], shape[0] // 2, replace=False).tolist()
    blocks = tuple(md.SiteBlock(f"block {i}", B, Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(10 ** rng.uniform(-2, 0.5, B.out_shape) for B in operators)
    return PosteriorPrecision(md.operators.cartesian(lines, shape, maps if coils > 1 else None), blocks, pi)


@pytest.mark.parametrize(("shape", "coils"), [((8, 7), 4), ((5, 3), 1), ((6, 10), 4)])
def test_pixels_and_differences_are_exact(shape, coils):
    operators = [Identity(shape), FiniteDifferences(shape)]
    precision = coils_and_sites(shape, coils, operators)
    control = ControlVariate(control="columns")
    exact, fast, control = (run(one, precision) for one in (Exact(), ExactByColumns(), control))
    for made in (fast, control):
        assert made.kind == "exact" and made.convergence.matvecs == 0
        assert made.log_determinant == pytest.approx(exact.log_determinant, rel=1e-12)
        for value, reference in zip(made.values, exact.values, strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-10)
    np.testing.assert_allclose(control.image, exact.values[0], rtol=1e-10)
    b = precision.perturbations(np.random.default_rng(0), 8, np.zeros(shape, complex))
    np.testing.assert_allclose(precision(control.samples), b, atol=1e-11)


def test_what_had_to_be_sampled_beside_exact_columns_is_not_called_exact(monkeypatch):
    shape = (16, 16)
    operators = [Identity(shape), FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 2, operators)
    wanted = [*operators, Wavelet(shape, "db2", 2)]
    like = np.zeros(shape, complex)
    made = ControlVariate()(precision, wanted, np.random.default_rng(0), like)
    assert made.kind == "exact" and not any(bias.any() for bias in made.bias)
    assert ExactByColumns()(precision, operators, np.random.default_rng(0), like).bias is None
    monkeypatch.setattr("mri_design.variances.columns.WIDE_LIMIT", 0)  # as for a large image
    made = ControlVariate(samples=50)(precision, wanted, np.random.default_rng(0), like)
    assert made.kind == "unbiased" and not any(bias.any() for bias in made.bias)
    assert (made.std_error[2] > 0).all()
    assert made.std_error[1].max() < 1e-6 * made.values[1].min()
    assert made.log_determinant is not None


def test_wavelets_beside_differences_are_unbiased_with_many_coils():
    shape = (16, 16)
    operators = [Wavelet(shape, "db2", 2), FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 4, operators)
    exact = run(Exact(), precision)
    results = [run(ControlVariate(samples=100, tolerance=1e-5), precision, seed) for seed in range(5)]
    for block, reference in enumerate(exact.values):
        values = np.array([r.values[block] for r in results])
        errors = np.array([r.std_error[block] for r in results])
        scores = (values - reference) / errors
        assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.15
        assert np.abs(scores.mean(axis=0)).max() < 2.5
        assert np.median(errors / values) < 0.2 * np.sqrt(1 / 100)  # of plain sampling's
    assert all(r.kind == "unbiased" and r.log_determinant is None for r in results)


def test_the_draws_have_the_posterior_covariance_with_any_control():
    """Same right-hand sides, same solutions."""
    shape = (16, 16)
    operators = [Wavelet(shape, "db2", 2), FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 1, operators)
    controls = [ControlVariate(4, tolerance=1e-7, control=name) for name in ("columns", "circulant", "none")]
    draws = [run(estimator, precision, 3).samples for estimator in controls]
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-5)
    np.testing.assert_allclose(draws[1], draws[2], atol=1e-5)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("variance samples", lambda: MonteCarlo(1)),
        ("variance samples", lambda: ControlVariate(samples=1)),
        ("control", lambda: ControlVariate(control="rows")),
        ("Lanczos steps", lambda: Lanczos(0)),
    ],
)
def test_settings_that_cannot_be_are_refused(field, make):
    with refused(field):
        make()


@pytest.mark.parametrize(
    ("field", "estimator", "name"),
    [
        ("dense matrix", Exact(limit=11), "moduli"),
        ("Lanczos", Lanczos(5), "parts"),
        ("Lanczos: preconditioned", Lanczos(5, preconditioned=True), "matrix"),
        ("exact variances by columns", ExactByColumns(), "parts"),
    ],
)
def test_models_that_an_estimator_cannot_take_are_refused(field, estimator, name, tiny_model, random_precisions):
    model = tiny_model(name)
    with refused(field):
        run_on(estimator, model, random_precisions(model, 7))


def test_wavelets_alone_are_no_matter_of_columns():
    wavelet = Wavelet((16, 16), "db2", 1)
    blocks = (md.SiteBlock("wavelet", wavelet, Laplace(1.0)),)
    precision = PosteriorPrecision(md.operators.cartesian(range(8), (16, 16)), blocks, (np.ones(wavelet.out_shape),))
    assert not ColumnControl.of(precision).exact
    with refused("exact variances by columns"):
        run(ExactByColumns(), precision)


@pytest.mark.parametrize(
    "estimator",
    [
        *(Exact(), ExactByColumns(), Lanczos(500), MonteCarlo(4)),
        *(ControlVariate(4), ControlVariate(4, control="columns")),
    ],
    ids=lambda e: f"{type(e).__name__} {getattr(e, 'control', '')}",
)
def test_a_direction_that_nothing_measures_is_refused(estimator):
    """Differences and lines without DC both leave the mean of the image open."""
    D = FiniteDifferences((9, 7))
    pi = np.random.default_rng(8).uniform(0.5, 2, D.out_shape)
    blocks = (md.SiteBlock("differences", D, Laplace(1.0)),)
    with refused("posterior precision"):
        run(estimator, PosteriorPrecision(md.operators.cartesian([0, 1], (9, 7)), blocks, (pi,)), seed=9)


def test_null_spaces_that_rounding_hides_are_found():
    """Cholesky succeeds on about half of these matrices of rank n - 1."""
    rng = np.random.default_rng(10)
    for _ in range(30):
        null = rng.standard_normal(12)
        null /= np.linalg.norm(null)
        X, B = (Dense(M - np.outer(M @ null, null)) for M in rng.standard_normal((2, 9, 12)))
        precision = PosteriorPrecision(X, (md.SiteBlock("rows", B, Laplace(1.0)),), (rng.uniform(0.1, 10, 9),))
        with refused("posterior precision"):
            Exact()(precision, [B], rng, np.zeros(12))


DRAWS = 9


def precision_of(n: int, *, wavelet: bool = True, real: type = np.float64) -> PosteriorPrecision:
    rng = np.random.default_rng(0)
    operators = [FiniteDifferences((n, n)), *([Wavelet((n, n), "db4", 2)] if wavelet else [])]
    blocks = tuple(md.SiteBlock(f"block {i}", B, Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(rng.uniform(0.1, 3, B.out_shape).astype(real) for B in operators)
    lines = sorted({*range(n // 2 - 3, n // 2 + 3), *range(0, n, 3)})
    return PosteriorPrecision(md.operators.cartesian(lines, (n, n)), blocks, pi)


@pytest.mark.parametrize(("kind", "wavelet"), [(ControlVariate, True), (ControlVariate, False), (MonteCarlo, True)])
def test_the_variances_are_the_same_by_as_many_products(kind: type, wavelet: bool) -> None:
    precision = precision_of(24, wavelet=wavelet)
    little = narrow_memory(precision, DRAWS)
    previous = None
    for _ in range(2):  # cold, then from the draws of before
        roomy, narrow = (
            run(kind(DRAWS, 1e-3, memory=memory), precision, 1, None, previous) for memory in (1e6, little)
        )
        assert roomy.convergence.matvecs == narrow.convergence.matvecs
        assert roomy.convergence.status is narrow.convergence.status and roomy.kind == narrow.kind
        for name in ("values", "std_error", "bias", "samples"):
            for one, other in zip(getattr(roomy, name), getattr(narrow, name), strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
        previous = roomy


def peak_of(estimator, precision: PosteriorPrecision) -> float:
    """MiB that a run of an estimator takes at most, without what is made once."""
    run(replace(estimator, samples=2), precision, 1)
    tracemalloc.start()
    try:
        run(estimator, precision, 1)
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def test_a_small_limit_is_kept_to_in_single_precision_too() -> None:
    precision = precision_of(96, real=np.float32)
    narrow = narrow_memory(precision, 24)
    roomy, little = (peak_of(ControlVariate(24, 0.1, memory=memory), precision) for memory in (1e6, narrow))
    assert little < min(0.6 * roomy, narrow - PROGRAM / MIB)


@pytest.mark.parametrize("sampled", ["lines", "plane"])
def test_a_limit_counts_coils_their_noise_and_their_maps(sampled: str) -> None:
    n, coils = 64, 12
    one = precision_of(n, wavelet=False, real=np.float32)
    maps = smooth_maps((n, n), coils).astype(np.complex64)
    mask = np.zeros((n, n), dtype=bool)
    mask[:, ::2] = one.measurement.mask[:, None]
    X = (
        md.operators.cartesian(one.measurement.lines, (n, n), maps)
        if sampled == "lines"
        else CartesianSamples(mask, maps)
    )
    precision = replace(one, measurement=X)
    limit = narrow_memory(precision, 8)
    peak = peak_of(ControlVariate(8, 0.1, control="circulant", memory=limit), precision)
    assert limit > narrow_memory(one, 8)
    assert peak < limit - PROGRAM / MIB < 4 * peak


def test_columns_are_not_chosen_where_their_factors_do_not_fit() -> None:
    n = 24
    precision = precision_of(n, wavelet=False)
    lines = md.operators.cartesian(precision.measurement.lines, (n, n), smooth_maps((n, n), 2))
    precision = replace(precision, measurement=lines)
    factors = column_memory((n, n)) / MIB
    kinds = [run(ControlVariate(4, memory=PROGRAM / MIB + share * factors), precision).kind for share in (0.9, 1.1)]
    assert kinds == ["unbiased", "exact"]
    assert (
        peak_of(ControlVariate(4, memory=1e6), precision) < 1.2 * factors + narrow_memory(precision, 4) - PROGRAM / MIB
    )


def test_more_memory_works_on_more_draws() -> None:
    X, analyses, single = (
        md.operators.cartesian(range(64), (256, 256)),
        [FiniteDifferences((256, 256))],
        np.dtype(np.float32),
    )
    found = [draws_at_once(memory, 16, X, analyses, single) for memory in (275, 280, 300, 500, 2000)]
    assert found[-1] is None
    counts = [16 if count is None else count for count in found]
    assert counts == sorted(counts) and len(set(counts)) > 2


def test_a_limit_that_single_draws_exceed_is_stated(capfd: pytest.CaptureFixture[str]) -> None:
    precision = precision_of(24)
    real, analyses = precision.site_precisions[0].dtype, [b.analysis for b in precision.blocks]
    assert draws_at_once(0.5, 7, precision.measurement, analyses, real) == 1
    assert "memory" in capfd.readouterr().err

"""A = X^H X + B^H diag(pi) B: products, draws, perturbations and their noise, circulants and preconditioners."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.krylov import conjugate_gradients
from mri_design.model import (
    GaussianPosterior,
    PosteriorPrecision,
    Variances,
    add_weighted_grams,
    circulant_inverse,
    noise_memory,
    pooled_products,
)
from mri_design.model import posterior as module
from mri_design.operators import (
    CartesianLines,
    FiniteDifferences,
    GraphDifferences,
    Identity,
    LinearOperator,
    PhasedParts,
    Wavelet,
)
from mri_design.sites import Laplace
from mri_design.variances import ControlVariate, Exact, Lanczos, MonteCarlo
from tests.arrays import as_real, noise
from tests.slow_cases import slow_case


def precision_of(model: md.GeneralizedLinearModel, pi) -> PosteriorPrecision:
    return PosteriorPrecision(model.measurement, model.blocks, pi)


def test_products_are_those_of_the_dense_matrix(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A = precision_of(model, random_precisions(model, 1))
    is_complex = model.measurement.in_complex
    u = noise((3, *model.image_shape), "D" if is_complex else "d", 2)
    matrix = A.dense_real()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(as_real(A(u), is_complex, 1), as_real(u, is_complex, 1) @ matrix, atol=1e-11)
    np.testing.assert_allclose(A(u[0]), A(u)[0], atol=1e-12)
    assert A.complex_linear == (model_name in ("moduli", "groups", "coils", "wavelet"))
    assert not is_complex or A.complex_linear == np.allclose(A(1j * u), 1j * A(u))
    blocks, u = (md.SiteBlock("pixels", Identity((3, 2)), Laplace(1.0)),), np.ones((3, 2), complex)
    A = PosteriorPrecision(Identity((3, 2)), blocks, (np.full((3, 2), 2.0),))
    np.testing.assert_allclose(A(u), 3)
    assert (u == 1).all()


def test_single_precision_stays_single(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name, real=np.float32)
    if model_name in ("coils", "matrix"):
        pytest.skip("the operator's own arrays are double")
    A = precision_of(model, tuple(p.astype(np.float32) for p in random_precisions(model, 5)))
    like = model.back_projection()
    assert like.dtype in (np.float32, np.complex64)
    assert A(like).dtype == A.perturbations(np.random.default_rng(0), 2, like).dtype == like.dtype


def check_covariance(draws, covariance):
    """The standard error of an empirical covariance entry is sqrt((C_ii C_jj + C_ij^2) / count)."""
    variances, count = covariance.diagonal(), len(draws)
    z = (draws.T @ draws / count - covariance) / np.sqrt((np.outer(variances, variances) + covariance**2) / count)
    assert np.abs(z).max() < 5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25


@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix", slow_case("parts"), slow_case("wavelet")])
def test_perturbations_have_covariance_a_and_are_the_same_when_made_again(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A, count, like = precision_of(model, random_precisions(model, 6)), 8_000, model.back_projection()
    b, *more = (A.perturbations(np.random.default_rng(7), count, like, again=again) for again in (False, True, True))
    assert b.shape == (count, *model.image_shape) and all((one == b).all() for one in more)
    flat, matrix = as_real(b, model.measurement.in_complex, 1), A.dense_real()
    check_covariance(flat, matrix)
    assert np.abs(flat.mean(axis=0) * np.sqrt(count / matrix.diagonal())).max() < 5


@pytest.mark.parametrize("model_name", ["coils", "groups", "matrix"])
def test_noise_of_the_measured_lines_alone_has_covariance_a(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A, count, like = precision_of(model, random_precisions(model, 6)), 8_000, model.back_projection()
    made = [
        A.perturbations(np.random.default_rng(7), count, like, again=again, of_all=of_all)
        for again, of_all in ((False, False), (True, True), (True, False), (True, False))
    ]
    assert all((made[0] == one).all() for one in made[2:])  # of all lines is kept apart
    check_covariance(as_real(made[0], model.measurement.in_complex, 1), A.dense_real())


def test_circulant_spectrum_where_every_block_knows_its_own(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A = precision_of(model, random_precisions(model, 8))
    if model_name in ("parts", "real image", "matrix"):
        assert A.circulant_spectrum is None and A.preconditioner is None
        return
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in model.image_shape))
    unit = np.eye(len(fourier), dtype=complex).reshape(-1, *model.image_shape)
    dense = A(unit).reshape(len(fourier), -1).T
    exact = np.einsum("ki,ij,kj->k", fourier, dense, fourier.conj()).real.reshape(model.image_shape)
    tolerance = 0.3 if model_name == "wavelet" else 1e-12  # a padded wavelet knows it only nearly
    np.testing.assert_allclose(A.circulant_spectrum, exact, rtol=tolerance)


DONE = md.Convergence(md.Status.CONVERGED, 1, 0.0)


def posterior_of(model: md.GeneralizedLinearModel, pi: tuple[np.ndarray, ...], samples=None) -> GaussianPosterior:
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    return GaussianPosterior(
        model, model.back_projection(), precision, Variances((), "exact", DONE, samples=samples), convergence=DONE
    )


@pytest.mark.parametrize("model_name", ["groups", "matrix", slow_case("parts")])
def test_draws_have_covariance_inverse_A(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    posterior = posterior_of(model, random_precisions(model, 1))
    count = 4_000
    draws, convergence = posterior.draw(np.random.default_rng(2), count, tolerance=1e-6, max_iterations=500)
    assert convergence.converged and draws.shape == (count, *model.image_shape)
    covariance = np.linalg.inv(posterior.precision.dense_real())
    check_covariance(as_real(draws, model.measurement.in_complex, 1), covariance)


@pytest.mark.parametrize("estimator", [Exact(), Lanczos(60), ControlVariate(), MonteCarlo(20)], ids=str)
def test_variances_of_pixels_are_those_of_what_the_estimator_left(estimator, tiny_model, random_precisions):
    model = tiny_model("coils")
    posterior = posterior_of(model, random_precisions(model, 1))
    made = estimator(posterior.precision, (), np.random.default_rng(0), model.back_projection())
    found = replace(posterior, marginals=made).image_variances
    covariance = np.diag(np.linalg.inv(posterior.precision.dense_real())).reshape(2, *model.image_shape).sum(axis=0)
    drawn = made.image is None and made.samples is not None
    expected = np.mean(np.abs(made.samples) ** 2, axis=0) if drawn else covariance
    np.testing.assert_allclose(found, model.noise_variance * expected, rtol=1e-6)


def test_draws_keep_their_precision_repeat_with_the_seed_and_say_if_they_stopped_short(tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    posterior = posterior_of(model, tuple(p.astype(np.float32) for p in random_precisions(model, 3)))
    first, again, other = (posterior.draw(np.random.default_rng(seed), 3)[0] for seed in (4, 4, 5))
    assert first.dtype == np.complex64
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    model = tiny_model("moduli")
    posterior = posterior_of(model, random_precisions(model, 6))
    assert posterior.draw(np.random.default_rng(7), 2, max_iterations=1)[1].status is md.Status.MAX_ITERATIONS


@pytest.mark.parametrize(("made", "wanted", "given"), [(None, 5, 5), (8, 5, 8), (3, 5, 5)])
def test_deviations_reuse_the_draws_of_inference(made, wanted, given, tiny_model, random_precisions):
    model = tiny_model("moduli")
    samples = None if made is None else np.full((made, *model.image_shape), 7 + 1j)
    posterior = posterior_of(model, random_precisions(model, 8), samples)
    own = posterior.own_deviations(np.random.default_rng(9), wanted)
    assert len(own) == wanted if made is None else own is samples
    deviations = posterior.deviations(np.random.default_rng(9), wanted)
    assert len(deviations) == given
    if made is not None:
        np.testing.assert_array_equal(deviations[:made], samples)
        assert not np.any(deviations[made:] == 7 + 1j)


def test_on_real_vectors_it_is_the_real_part_and_positive_definite():
    shape = (5, 4)
    rng = np.random.default_rng(3)
    spectrum = rng.uniform(0.1, 10, shape)
    precondition = circulant_inverse(spectrum)
    n = shape[0] * shape[1]
    matrix = precondition(np.eye(n).reshape(n, *shape)).reshape(n, n)
    expected = np.fft.ifft2(np.fft.fft2(np.eye(n).reshape(n, *shape)) / spectrum).real.reshape(n, n)
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > 0


SHAPE = (32, 32)
LINES = [0, 5, 11, *range(13, 20), 23, 28]


def precision(strength: float) -> PosteriorPrecision:
    """Site precisions that vary tenfold around ``strength``, beside a smooth phase; parts differ by 1.5^2."""
    rows, columns = np.mgrid[:32, :32] / 32
    rotation = np.exp(1j * (2 * np.sin(2 * np.pi * rows) + np.cos(2 * np.pi * columns)))
    blocks = tuple(
        md.SiteBlock(name, PhasedParts(analysis, rotation, 1.5), Laplace(1.0))
        for name, analysis in (("pixels", Identity(SHAPE)), ("differences", FiniteDifferences(SHAPE)))
    )
    rng = np.random.default_rng(0)
    spread = (rng.uniform(-0.5, 0.5, block.analysis.out_shape[:-1])[..., None] for block in blocks)
    weights = tuple(strength * 10**logs for logs in spread)
    return PosteriorPrecision(md.operators.cartesian(LINES, SHAPE), blocks, weights)


@pytest.mark.parametrize("strength", [1.0, 1e-5, 1e-9])
def test_products_do_not_depend_on_the_noise(strength: float) -> None:
    """Power that the phase spreads from measured to other frequencies must not hold these where sites do not."""
    A = precision(strength)
    truth = np.random.default_rng(1).standard_normal((1, *SHAPE, 2)) @ [1, 1j]
    rhs = A(truth)
    settings = {"preconditioner": A.preconditioner, "tolerance": 1e-8, "max_iterations": 150}
    found, convergence = conjugate_gradients(A, rhs, n_axes=2, **settings)
    assert convergence.converged
    np.testing.assert_allclose(found, truth, atol=1e-3)


def test_the_parts_have_circulants_of_their_own_where_sites_are_strong() -> None:
    strong, weak = precision(1.0).preconditioner, precision(1e-5).preconditioner
    assert strong.other is not None and strong.scale is not None
    assert weak.other is None and weak.scale is None


KEPT_SHAPE = (8, 6)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class Counted(FiniteDifferences):
    """Counts how often it makes noise."""

    made = 0

    def shared_noise(self, rng, count, real):
        self.made += 1
        return super().shared_noise(rng, count, real)


@pytest.mark.parametrize("numbers", [np.random.PCG64, np.random.MT19937])
def test_equal_generators_get_the_same_noise_and_go_on_alike(numbers):
    kept, operator = noise_memory(1 << 20), Counted(KEPT_SHAPE)
    anew = np.random.Generator(numbers(3))
    expected, following = operator.shared_noise(anew, 2, SINGLE), anew.standard_normal(4)
    for _ in range(3):
        rng = np.random.Generator(numbers(3))
        np.testing.assert_array_equal(kept(operator, rng, 2, SINGLE), expected)
        np.testing.assert_array_equal(rng.standard_normal(4), following)
    assert operator.made == 2


def test_other_generators_kinds_counts_or_precisions_are_other_noise_added_lines_are_not():
    kept = noise_memory(1 << 20)
    asked = [
        (FiniteDifferences(KEPT_SHAPE), 0, 2, SINGLE),
        (FiniteDifferences(KEPT_SHAPE), 1, 2, SINGLE),
        (FiniteDifferences(KEPT_SHAPE), 0, 3, SINGLE),
        (FiniteDifferences(KEPT_SHAPE), 0, 2, DOUBLE),
        (Identity(KEPT_SHAPE), 0, 2, SINGLE),
        (Identity(KEPT_SHAPE, is_complex=False), 0, 2, SINGLE),
        (CartesianLines([1, 2], KEPT_SHAPE), 0, 2, SINGLE),
    ]
    for _ in range(2):
        for operator, seed, count, real in asked:
            found = kept(operator, np.random.default_rng(seed), count, real)
            expected = operator.shared_noise(np.random.default_rng(seed), count, real)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    kept = noise_memory(1 << 20)
    few, more = CartesianLines([1, 2], KEPT_SHAPE), CartesianLines([1, 2, 5], KEPT_SHAPE)
    assert kept(few, np.random.default_rng(0), 2, SINGLE) is kept(more, np.random.default_rng(0), 2, SINGLE)


def test_what_was_not_used_for_longest_is_given_up_at_the_limit():
    operator = Counted(KEPT_SHAPE)
    size = operator.shared_noise(np.random.default_rng(0), 1, SINGLE).nbytes
    kept, operator.made = noise_memory(2 * size), 0
    for seed in (0, 1, 0, 2, 0, 1):  # the noise of 1 gives way to that of 2
        kept(operator, np.random.default_rng(seed), 1, SINGLE)
    assert operator.made == 4
    kept(operator, np.random.default_rng(5), 3, SINGLE)
    kept(operator, np.random.default_rng(5), 3, SINGLE)  # never fits
    assert operator.made == 6


N = (9, 13)
GRAPH = GraphDifferences(np.random.default_rng(0).integers(N[0] * N[1], size=(3, *N)))


def images(dtype: type) -> tuple[np.ndarray, ...]:
    return tuple(noise(N, dtype, seed) for seed in (1, 2))


def behind(operator: LinearOperator, factors: np.ndarray | float) -> PhasedParts:
    return PhasedParts(operator, np.exp(1j * np.linspace(0, 3, N[0] * N[1]).reshape(N)), factors)


FACTORS = np.random.default_rng(2).uniform(0.5, 2, N)
CASES = [
    (operator, factors, axes)
    for operator, groups in ((Identity(N), [()]), (FiniteDifferences(N), [(), (-3,)]), (GRAPH, [(), (-3,)]))
    for axes in groups
    for factors in (None, 1.5, FACTORS)
]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("operator", "factors", "axes"), CASES)
def test_products_are_those_of_the_coefficients(operator, factors, axes, dtype):
    a, b = images(dtype)
    if factors is None:
        block = md.SiteBlock("block", operator, Laplace(1.0), axes)
    else:
        block = md.SiteBlock("block", behind(operator, factors), Laplace(1.0), (-1, *(n - 1 for n in axes)))
    s, d = block.analysis(a), block.analysis(b)
    exact = 1e-5 if dtype is np.complex64 else 1e-12
    for second, of_second in ((b, d), (a, s)):
        ((cross, power),) = pooled_products([block], a, second)
        assert cross.shape == power.shape == block.site_shape
        assert cross.dtype == np.dtype(dtype).type(0).real.dtype
        wanted = block.pooled(np.real(np.conj(s) * of_second))
        np.testing.assert_allclose(cross, wanted, atol=exact * np.abs(wanted).max())
        np.testing.assert_allclose(power, block.site_power(of_second), rtol=10 * exact, atol=exact)


def test_blocks_whose_coefficients_have_to_be_made_are_named():
    a, b = images(np.complex128)
    apart = md.SiteBlock("apart", behind(Identity(N), 1.5), Laplace(1.0))
    wavelet = md.SiteBlock("wavelet", Wavelet((8, 8), "db2", 1), Laplace(1.0))
    known = md.SiteBlock("known", Identity(N), Laplace(1.0))
    found = pooled_products([apart, wavelet, known], a, b)
    assert found[0] is None and found[1] is None and found[2] is not None
    real = md.SiteBlock("real", Identity(N, is_complex=False), Laplace(1.0))
    assert pooled_products([real], a.real.copy(), b.real.copy()) == (None,)


def test_weights_before_the_adjoint_are_those_of_the_parts():
    rng = np.random.default_rng(3)
    for operator in (Identity(N), FiniteDifferences(N), GRAPH):
        parts = behind(operator, FACTORS)
        v = rng.standard_normal((2, *parts.out_shape))
        for weights in (rng.uniform(1, 2, parts.out_shape), rng.uniform(1, 2, (*parts.out_shape[:-1], 1))):
            np.testing.assert_allclose(parts.weighted_adjoint(weights, v), parts.adjoint(weights * v), atol=1e-12)


def plain(operators, weights, u):
    return sum(a.adjoint(w * a(u)) for a, w in zip(operators, weights, strict=True))


@pytest.mark.parametrize(
    ("dtype", "shape", "batch", "chunk"),
    [
        ("f", (8, 8), (5,), 3000),
        ("d", (33, 70), (), 1),
        ("F", (2, 2), (2, 3), 1 << 19),
        ("F", (33, 70), (5,), 3000),
        ("D", (16, 9), (5,), 3000),
        ("D", (8, 8), (2, 3), 1 << 19),
    ],
    ids=str,
)
def test_every_order_of_pixels_differences_and_wavelets(dtype, shape, batch, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    complex_ = dtype in "FD"
    u = noise((*batch, *shape), seed=1)
    u = u if complex_ else u.real
    kinds = (FiniteDifferences, lambda shape, **more: Wavelet(shape, "db2", 1, **more), Identity)
    blocks = [kind(shape, is_complex=complex_) for kind in kinds]
    weights = [np.exp(noise(a.out_shape, complex, k).real) for k, a in enumerate(blocks)]
    weights[0] = weights[0][:1]  # shared by both directions
    for order in ([0, 1, 2], [2, 0], [2, 1], [0], []):
        operators, chosen = [blocks[k] for k in order], [weights[k] for k in order]
        single = np.ascontiguousarray(u).astype(dtype)
        total, before = np.ones(single.shape, dtype), single.copy()
        add_weighted_grams(operators, chosen, single, total)
        expected = 1 + plain(operators, chosen, u)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(total, expected, atol=(5e-6 if dtype in "fF" else 1e-13) * scale)
        np.testing.assert_array_equal(single, before)


def test_weights_of_a_batch_and_arrays_out_of_order_go_the_general_way():
    shape, u = (6, 8), noise((3, 6, 8), complex, 2)
    blocks = [Identity(shape), FiniteDifferences(shape)]
    weights = [np.exp(noise((3, *a.out_shape), complex, 3).real) for a in blocks]
    total = np.zeros_like(u)
    add_weighted_grams(blocks, weights, u, total)
    np.testing.assert_allclose(total, plain(blocks, weights, u), atol=1e-12)
    backwards, total = u[:, ::-1], np.zeros_like(u)
    weights = [w[0] for w in weights]
    add_weighted_grams(blocks, weights, backwards, total)
    np.testing.assert_allclose(total, plain(blocks, weights, backwards), atol=1e-12)


@pytest.mark.parametrize(("dtype", "shape", "chunk"), [("F", (16, 10), 1), ("D", (8, 8), 1 << 19)], ids=str)
def test_parts_apart_in_one_phase_beside_plain_moduli(dtype, shape, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    u = noise((3, *shape), dtype, 1)
    turns = [np.exp(1j * noise(shape, complex, k).real) for k in (2, 3)]
    inner = [FiniteDifferences(shape), Wavelet(shape, "db2", 1), Identity(shape)]
    blocks = [*(PhasedParts(one, turns[0]) for one in inner), *inner, PhasedParts(Identity(shape), turns[1])]
    weights = [np.exp(noise(a.out_shape, complex, k).real) for k, a in enumerate(blocks)]
    weights[0] = weights[0][:1]
    for order in ([0, 1, 2], [2, 0], [0], [1], [2], [3, 0, 5, 2], [6, 2, 0], [4, 6, 1]):
        operators, chosen = [blocks[k] for k in order], [weights[k] for k in order]
        total = np.ones(u.shape, dtype)
        add_weighted_grams(operators, chosen, u, total)
        expected = 1 + plain(operators, chosen, u.astype(complex))
        np.testing.assert_allclose(total, expected, atol=(5e-6 if dtype == "F" else 1e-13) * np.abs(expected).max())


@pytest.mark.parametrize(("dtype", "phased"), [("F", False), ("D", True)])
def test_a_graph_takes_eight_images_together_however_large_they_are(dtype, phased, monkeypatch):
    """Its kernel walks the edges once for all of them."""
    shape, monkeyed = (12, 10), GraphDifferences._add
    neighbours = np.random.default_rng(0).integers(0, 120, (3, *shape))
    graph = GraphDifferences(np.where(neighbours == np.arange(120).reshape(shape), (neighbours + 1) % 120, neighbours))
    blocks = [graph, FiniteDifferences(shape)]
    if phased:
        turn = np.exp(1j * noise(shape, complex, 2).real)
        blocks = [PhasedParts(block, turn) for block in blocks]
    weights = [np.exp(noise(a.out_shape, complex, k).real) for k, a in enumerate(blocks)]
    u, taken = noise((19, *shape), dtype, 1), []
    monkeypatch.setattr(module, "CHUNK", 1)
    monkeypatch.setattr(GraphDifferences, "_add", lambda self, w, u, t: (taken.append(len(u)), monkeyed(self, w, u, t)))
    total = np.zeros_like(u)
    add_weighted_grams(blocks, weights, u, total)
    assert taken == [8, 8, 3]
    expected = plain(blocks, weights, u.astype(complex))
    np.testing.assert_allclose(total, expected, atol=(5e-6 if dtype == "F" else 1e-13) * np.abs(expected).max())

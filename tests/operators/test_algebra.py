"""Laws of every operator: adjoints, batches, precision, Gram operators, matrices, SciPy; and what makes no operator."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

from mri_design.operators import (
    CartesianSamples,
    CentredFFT,
    Coils,
    Dense,
    Diagonal,
    DirectFourier,
    FiniteDifferences,
    GraphDifferences,
    Identity,
    LinearOperator,
    NonUniformFourier,
    PhasedParts,
    RealAndImaginary,
    RealImage,
    RowsOnDisk,
    ScalarOperator,
    SparseMatrix,
    Wavelet,
    cartesian,
    checked_trajectory,
    density_weights,
    turned,
)
from mri_design.readouts import PlaneReadouts, ShotReadouts
from tests.arrays import as_real, noise
from tests.refusals import refused

SHAPES = [(8, 8), (9, 7), (6, 11)]


def in_precision(real: type, is_complex: bool) -> np.dtype:
    """The real or complex type of single or double precision."""
    return np.result_type(real, np.complex64) if is_complex else np.dtype(real)


def lines_of(shape: tuple[int, int]) -> list[int]:
    """Some lines, out of order, the first among them."""
    n = shape[0]
    return [n // 2, 0, n - 2, n // 2 - 1]


def mask_of(shape: tuple[int, int]) -> np.ndarray:
    """A third of the samples of a grid, in no pattern."""
    return np.random.default_rng(4).random(shape) < 0.3


def points_of(shape: tuple[int, int]) -> np.ndarray:
    """Points between those of the grid, one of them twice, up to the edges."""
    points = np.random.default_rng(8).uniform(-0.5, 0.5, (30, 2)) * shape
    points[0], points[1] = points[2], np.divide(shape, 2)
    return points


def maps_of(shape: tuple[int, int], real: type, coils: int = 3) -> np.ndarray:
    return noise((coils, *shape), in_precision(real, True), seed=3)


def neighbours_of(shape: tuple[int, int], count: int = 3) -> np.ndarray:
    """Any pixels: some chosen often, some never, some by themselves."""
    return np.random.default_rng(6).integers(0, shape[0] * shape[1], (count, *shape))


ZOO: dict[str, Callable[[tuple[int, int], type], LinearOperator]] = {
    "identity": lambda shape, real: Identity(shape),
    "identity, real": lambda shape, real: Identity(shape, is_complex=False),
    "complex scalar": lambda shape, real: ScalarOperator(0.5 - 2j, shape),
    "real scalar": lambda shape, real: ScalarOperator(-1.5, shape, is_complex=False),
    "diagonal": lambda shape, real: Diagonal(noise(shape, in_precision(real, True), 1)),
    "diagonal, real": lambda shape, real: Diagonal(noise(shape, real, 1), is_complex=False),
    "Fourier": lambda shape, real: CentredFFT(shape),
    "coils": lambda shape, real: Coils(maps_of(shape, real)),
    "lines, one coil": lambda shape, real: cartesian(lines_of(shape), shape),
    "lines, three coils": lambda shape, real: cartesian(lines_of(shape), shape, maps_of(shape, real)),
    "samples, one coil": lambda shape, real: CartesianSamples(mask_of(shape)),
    "samples, three coils": lambda shape, real: CartesianSamples(mask_of(shape), maps_of(shape, real)),
    "any points, one coil": lambda shape, real: NonUniformFourier(points_of(shape), shape),
    "any points, three coils": lambda shape, real: NonUniformFourier(points_of(shape), shape, maps_of(shape, real)),
    "any points, summed": lambda shape, real: DirectFourier(points_of(shape), shape, maps_of(shape, real)),
    "no lines": lambda shape, real: cartesian([], shape, maps_of(shape, real)),
    "differences": lambda shape, real: FiniteDifferences(shape),
    "differences, real": lambda shape, real: FiniteDifferences(shape, is_complex=False),
    "graph": lambda shape, real: GraphDifferences(neighbours_of(shape)),
    "graph, real": lambda shape, real: GraphDifferences(neighbours_of(shape), is_complex=False),
    "wavelet db2": lambda shape, real: Wavelet(shape, "db2", 2),
    "wavelet haar": lambda shape, real: Wavelet(shape, "haar", 1),
    "wavelet db4, real": lambda shape, real: Wavelet(shape, "db4", 2, is_complex=False),
    "real image": lambda shape, real: RealImage(shape),
    "real and imaginary": lambda shape, real: RealAndImaginary(shape),
    "dense": lambda shape, real: Dense(noise((5, shape[0]), in_precision(real, True), 2)),
    "dense, real": lambda shape, real: Dense(noise((5, shape[0]), real, 2)),
    "lines @ Fourier": lambda shape, real: cartesian(lines_of(shape), shape) @ CentredFFT(shape),
    "lines of a real image": lambda shape, real: (
        cartesian(lines_of(shape), shape, maps_of(shape, real)) @ RealImage(shape)
    ),
    "parts of differences": lambda shape, real: RealAndImaginary((2, *shape)) @ FiniteDifferences(shape),
    "sum": lambda shape, real: CentredFFT(shape) + Diagonal(noise(shape, in_precision(real, True), 1)),
    "multiple": lambda shape, real: (0.3 + 1j) * FiniteDifferences(shape),
    "adjoint": lambda shape, real: cartesian(lines_of(shape), shape, maps_of(shape, real)).H,
    "adjoint of a real image": lambda shape, real: RealImage(shape).H,
    "Toeplitz Gram": lambda shape, real: NonUniformFourier(points_of(shape), shape, maps_of(shape, real)).gram,
    "fused Gram": lambda shape, real: cartesian(lines_of(shape), shape, maps_of(shape, real)).gram,
    "Gram of samples": lambda shape, real: CartesianSamples(mask_of(shape), maps_of(shape, real)).gram,
    "Gram of a real image": lambda shape, real: (cartesian(lines_of(shape), shape) @ RealImage(shape)).gram,
    "three in a row": lambda shape, real: (
        Wavelet(shape, "haar", 1) @ Diagonal(noise(shape, in_precision(real, True), 5)) @ CentredFFT(shape)
    ),
}
NON_UNIFORM = ("any points, one coil", "any points, three coils", "Toeplitz Gram")
"""Those of the zoo that need an optional dependency."""
if not find_spec("finufft"):
    ZOO = {name: build for name, build in ZOO.items() if name not in NON_UNIFORM}


@pytest.fixture(params=list(ZOO))
def built(request: pytest.FixtureRequest) -> Callable[[type], LinearOperator]:
    """Precision -> an operator whose own arrays are in it; the grids come one after the other."""
    number = list(ZOO).index(request.param)
    return lambda real: ZOO[request.param](SHAPES[(number + (real is np.float64)) % 3], real)


def draw(operator, seed, real=np.float64, batch=(), side="in"):
    """An input; ``side="out"`` for an output."""
    shape = operator.in_shape if side == "in" else operator.out_shape
    is_complex = operator.in_complex if side == "in" else operator.out_complex
    return noise((*batch, *shape), in_precision(real, is_complex), seed)


PRECISIONS = (np.float32, np.float64)


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Re<a, b>."""
    return float(np.sum((np.conj(a).astype(complex) * b).real))


def test_adjoint_shapes_fields_and_precision(built):
    for real in PRECISIONS:
        A = built(real)
        u, v = draw(A, 10, real), draw(A, 11, real, side="out")
        weights = np.full(A.out_shape, 0.5, dtype=real)
        before = [array.copy() for array in (u, v, weights)]
        forward, backward, gram, weighted = A(u), A.adjoint(v), A.gram(u), A.weighted_gram(weights, u)
        for array, kept in zip((u, v, weights), before, strict=True):
            np.testing.assert_array_equal(array, kept)
        assert forward.shape == A.out_shape and forward.dtype == v.dtype
        for image in (backward, gram, weighted):
            assert image.shape == A.in_shape and image.dtype == u.dtype
        assert A.in_size == u.size * (2 if A.in_complex else 1)
        assert A.out_size == v.size * (2 if A.out_complex else 1)
        scale = np.linalg.norm(forward) * np.linalg.norm(v) + np.linalg.norm(backward) * np.linalg.norm(u)
        assert abs(inner(forward, v) - inner(u, backward)) <= 20 * np.finfo(real).eps * scale
        np.testing.assert_array_equal(A.H(v), backward)
        np.testing.assert_array_equal(A.H.H(u), forward)


def test_leading_axes_are_a_batch(built):
    A = built(np.float64)
    u, v = draw(A, 14, batch=(2, 3)), draw(A, 15, batch=(2, 3), side="out")
    weights = np.abs(draw(A, 16, side="out"))
    weighted = partial(A.weighted_gram, weights)
    for function, stack in ((A, u), (A.adjoint, v), (A.gram, u), (weighted, u)):
        together = function(stack)
        for index in np.ndindex(2, 3):
            np.testing.assert_allclose(together[index], function(stack[index]), rtol=1e-12, atol=1e-13)


def test_products_are_those_of_the_dense_matrix(built):
    A = built(np.float64)
    matrix, close = A.to_dense_real(), {"rtol": 1e-12, "atol": 1e-12}
    u, v = draw(A, 21), draw(A, 22, side="out")
    flat = as_real(u, A.in_complex)
    np.testing.assert_allclose(matrix @ flat, as_real(A(u), A.out_complex), **close)
    adjoint = as_real(A.adjoint(v), A.in_complex)
    np.testing.assert_allclose(matrix.T @ as_real(v, A.out_complex), adjoint, **close)
    for gram in (A.gram(u), A.gram.adjoint(u)):
        np.testing.assert_allclose(gram, A.adjoint(A(u)), **close)
    full = np.abs(draw(A, 20, side="out"))
    for weights in (full, full[..., :1], full.reshape(-1)[:1]):  # full size, broadcast along one axis, one number
        if weights.size:
            np.testing.assert_allclose(A.weighted_gram(weights, u), A.adjoint(weights * A(u)), **close)
    if A.in_complex and A.out_complex:
        assert A.complex_linear == np.allclose(A(1j * u), 1j * A(u), atol=1e-12)
    else:
        assert not A.complex_linear
    if A.complex_linear or not A.in_complex:
        np.testing.assert_allclose(A.to_dense() @ u.ravel(), A(u).ravel(), **close)
    else:
        with refused("to_dense"):
            A.to_dense()


def test_a_round_through_parts_is_real_linear_though_both_sides_are_complex():
    keep_real = RealImage((4, 3)) @ RealImage((4, 3)).H
    assert keep_real.in_complex and keep_real.out_complex and not keep_real.complex_linear
    assert not (Identity((4, 3)) @ keep_real).complex_linear
    assert not (keep_real @ Identity((4, 3))).complex_linear
    assert not (Identity((4, 3)) + keep_real).complex_linear
    u = draw(keep_real, 25)
    np.testing.assert_array_equal(keep_real(u), u.real)


def test_algebra_is_that_of_the_matrices():
    shape = (5, 6)
    F, D, G = CentredFFT(shape), Diagonal(np.arange(30.0).reshape(shape) * 1j), FiniteDifferences(shape)
    f, d, g = F.to_dense(), D.to_dense(), G.to_dense()
    for operator, matrix in [
        (G @ F @ D, g @ f @ d),
        ((G @ F) @ D, g @ f @ d),
        (F + D, f + d),
        (2 * F, 2 * f),
        (F * (1 - 3j), (1 - 3j) * f),
        (np.float64(2) * F, 2 * f),
        ((F + D).H, (f + d).conj().T),
        ((G @ D).gram, (g @ d).conj().T @ g @ d),
    ]:
        assert isinstance(operator, LinearOperator)
        np.testing.assert_allclose(operator.to_dense(), matrix, atol=1e-12)


def test_scipy_solvers_take_an_operator(built):
    A = built(np.float64)
    u, v = draw(A, 26), draw(A, 27, side="out")
    interop = A.as_scipy()
    stacked = (A.in_complex or A.out_complex) and not A.complex_linear

    def flat(array):
        return as_real(array, True) if stacked and np.iscomplexobj(array) else array.ravel()

    assert interop.shape == (flat(v).size, flat(u).size)
    assert np.iscomplexobj(np.zeros(0, interop.dtype)) == A.complex_linear
    np.testing.assert_allclose(interop @ flat(u), flat(A(u)), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(interop.rmatvec(flat(v)), flat(A.adjoint(v)), rtol=1e-13, atol=1e-13)


@pytest.fixture
def sparse(rng):
    """Nine rows of five columns, one row empty."""
    matrix = scipy.sparse.random(9, 5, 0.4, format="csr", rng=rng)
    matrix.data[:] = rng.standard_normal(matrix.nnz)
    return (scipy.sparse.diags_array(np.arange(9) != 3, dtype=float) @ matrix).tocsr()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
def test_sparse_is_dense(form, batch, sparse, rng):
    ours, plain = SparseMatrix(sparse.asformat(form)), Dense(sparse.toarray())
    u, v = rng.standard_normal((*batch, 5)), rng.standard_normal((*batch, 9))
    np.testing.assert_allclose(ours(u), plain(u), atol=1e-14)
    np.testing.assert_allclose(ours.adjoint(v), plain.adjoint(v), atol=1e-14)
    np.testing.assert_allclose(ours.to_dense_real(), sparse.toarray(), atol=1e-15)


@pytest.mark.parametrize("kind", [SparseMatrix, lambda m: Dense(m.toarray())])
def test_gram_and_spread_by_hand(kind, sparse, rng):
    operator, B = kind(sparse), sparse.toarray()
    weights, root = rng.uniform(0.1, 2, 9), rng.standard_normal((6, 5))
    np.testing.assert_allclose(operator.weighted_gram_matrix(weights), B.T @ np.diag(weights) @ B, atol=1e-14)
    np.testing.assert_allclose(operator.spread(root), np.diag(B @ root.T @ root @ B.T), atol=1e-14)


def test_rows_beyond_one_chunk_and_single_precision(rng, sparse):
    matrix = rng.standard_normal((9001, 2))
    for operator in (Dense(matrix), SparseMatrix(scipy.sparse.csr_array(matrix))):
        np.testing.assert_allclose(operator.spread(np.eye(2)), (matrix**2).sum(axis=1))
    u = rng.standard_normal(5).astype(np.float32)
    assert SparseMatrix(sparse)(u).dtype == np.float32


def test_duplicates_add_up_and_the_given_matrix_is_left_alone():
    given = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    ours = SparseMatrix(given)
    given.data[:] = 0
    np.testing.assert_array_equal(ours(np.array([5.0, 7.0, 9.0])), [21.0])


def test_rows_are_those_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(0)
    operators = [
        Dense(rng.standard_normal((7, 5))),
        Dense(rng.standard_normal((7, 5)) + 1j * rng.standard_normal((7, 5))),
        SparseMatrix(scipy.sparse.random_array((7, 5), density=0.4, rng=rng)),
        FiniteDifferences((4, 3)),
        Wavelet((8, 8), "db2", 1),
        RealAndImaginary((3, 3)),
        cartesian([0, 2, 3], (4, 4)),
    ]
    for operator in operators:
        count = int(np.prod(operator.out_shape))
        index = np.array([count - 1, 0, count // 2])
        found = operator.real_rows(index)
        dense = operator.to_dense_real().reshape(found.shape[1], count, -1)
        np.testing.assert_allclose(found, dense[:, index].transpose(1, 0, 2), atol=1e-6, err_msg=str(type(operator)))


def test_a_matrix_on_disk_is_a_dense_one(tmp_path) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((23, 4))
    np.save(tmp_path / "rows.npy", matrix)
    operator, dense = RowsOnDisk(tmp_path / "rows.npy", slab_rows=5), Dense(matrix)
    u, v = rng.standard_normal((3, 4)), rng.standard_normal((2, 23))
    np.testing.assert_allclose(operator(u), dense(u))
    np.testing.assert_allclose(operator.adjoint(v), dense.adjoint(v))
    np.testing.assert_array_equal(operator.rows(np.array([3, 22])), matrix[[3, 22]])


K = np.random.default_rng(1).uniform(-0.5, 0.5, (40, 2)) * 8
SHOT = np.stack([np.zeros(5), np.arange(5) - 2.0], axis=1)
SHOTS = ShotReadouts((6, 5), turned(SHOT, np.linspace(0, np.pi, 7, endpoint=False)))
TURN = np.exp(1j * np.arange(16.0).reshape(4, 4))
REFUSED = [
    ("CentredFFT", lambda: CentredFFT((4, 4))(np.zeros((4, 5)))),
    ("CentredFFT", lambda: CentredFFT((4, 4))(np.zeros(4))),
    ("FiniteDifferences", lambda: FiniteDifferences((4, 4)).adjoint(np.zeros((4, 4)))),
    ("CentredFFT @ CentredFFT", lambda: CentredFFT((4, 4)) @ CentredFFT((4, 5))),
    ("CentredFFT @ Identity", lambda: CentredFFT((4, 4)) @ Identity((4, 4), is_complex=False)),
    ("sum of operators", lambda: CentredFFT((4, 4)) + CentredFFT((4, 5))),
    ("sum of operators", lambda: Identity((4, 4)) + Identity((4, 4), is_complex=False)),
    ("sum of operators", lambda: RealAndImaginary((4, 2)) + FiniteDifferences((4, 2))),
    ("scalar", lambda: 1j * Identity((3, 3), is_complex=False)),
    ("diagonal", lambda: Diagonal(np.ones((2, 2)) * 1j, is_complex=False)),
    ("matrix", lambda: Dense(np.zeros(3))),
    ("matrix", lambda: Dense(np.full((2, 2), np.nan))),
    ("dense matrix", lambda: Identity((80, 80)).to_dense()),
    ("dense matrix", lambda: Identity((60, 60)).to_dense_real()),
    ("dense matrix", lambda: cartesian([0], (40, 40)).to_dense(limit=100)),
    ("to_dense", lambda: RealImage((4, 3)).H.to_dense()),
    *(
        ("sparse matrix", lambda m=m: SparseMatrix(m))
        for m in (np.eye(3), "rows", scipy.sparse.csr_array(1j * np.eye(2)))
    ),
    *(("sparse matrix", lambda m=m: SparseMatrix(scipy.sparse.csr_array([[m, 1.0]]))) for m in (np.nan, np.inf)),
    *(("wavelet", lambda a=a: Wavelet((8, 8), *a)) for a in (("no such", 1), ("bior2.2", 1), ("gaus1", 1))),
    ("wavelet levels", lambda: Wavelet((8, 8), "db4", 0)),
    ("wavelet levels", lambda: Wavelet((8, 4), "db4", 3)),
    *(("lines", lambda n=n: cartesian(n, (8, 8))) for n in ([0, 8], [-1], [3, 3], [1.5])),
    ("lines", lambda: cartesian([[1, 2]], (8, 8))),
    ("coil maps", lambda: cartesian([1], (8, 8), np.ones((2, 8, 7)))),
    ("coil maps", lambda: cartesian([1], (8, 8), np.ones((8, 8)))),
    ("coil maps", lambda: Coils(np.ones((8, 8)))),
    *(
        ("sample mask", lambda m=m: CartesianSamples(m))
        for m in (np.ones(8, bool), np.ones((8, 8)), np.zeros((8, 8), bool))
    ),
    ("coil maps", lambda: CartesianSamples(np.ones((8, 8), dtype=bool), np.ones((2, 8, 7)))),
    *(
        ("trajectory", lambda k=k: DirectFourier(k, (8, 6)))
        for k in (np.zeros((0, 2)), np.zeros((3, 3)), 1j * np.zeros((3, 2)), [[np.nan, 0]], [[4.1, 0]], [[0, -3.1]])
    ),
    ("coil maps", lambda: DirectFourier([[0.0, 0.0]], (8, 6), np.ones((2, 6, 8)))),
    *(
        ("trajectory", lambda k=k: NonUniformFourier(k, (8, 8)))
        for k in (K[:, 0], K.reshape(8, 5, 2), K[:, 1] + 1j * K[:, 0], K[:0], np.where(K[3] == K, np.nan, K), K / 8)
    ),
    ("trajectory", lambda: NonUniformFourier(3 * K, (8, 8))),
    ("coil maps", lambda: NonUniformFourier(K, (8, 8), np.ones((3, 8, 7)))),
    ("iterations", lambda: density_weights(K, (8, 8), iterations=0)),
    *(
        ("trajectory", lambda k=k: checked_trajectory(k))
        for k in (np.zeros((0, 2)), [[np.nan, 0.0]], "spokes", np.ones((4, 3)))
    ),
    *(
        ("neighbours", lambda n=n: GraphDifferences(n))
        for n in (np.zeros((2, 3), int), np.zeros((2, 3, 3)), np.zeros((0, 3, 3), int), np.full((1, 3, 3), 9))
    ),
    ("neighbours", lambda: GraphDifferences(-np.ones((1, 2, 2), int))),
    ("PhasedParts", lambda: PhasedParts(RealAndImaginary((4, 4)), TURN)),
    ("rotation", lambda: PhasedParts(Identity((4, 4)), TURN[:, :3])),
    ("rotation", lambda: PhasedParts(Identity((4, 4)), 2 * TURN)),
    ("imaginary", lambda: PhasedParts(Identity((4, 4)), TURN, -1.0)),
    *(("samples", lambda n=n: PlaneReadouts((6, 5)).mask(n)) for n in ([0, 30], [-1], [2, 2], [[0]], [1.5])),
    *(("shots", lambda n=n: SHOTS.data(np.zeros((1, 7, 5), complex), n)) for n in ([0, 7], [-1], [[0]], [1.5])),
    ("shots", lambda: ShotReadouts((6, 5), SHOT)),
    ("shots", lambda: ShotReadouts((6, 5), SHOT[None], "lines")),
    ("trajectory", lambda: ShotReadouts((6, 5), 4 * SHOT[None])),
    ("angles", lambda: ShotReadouts((6, 5), SHOT[None], "radial", (1, 2))),
    ("weights", lambda: ShotReadouts((6, 5), SHOT[None], weights=np.ones(3))),
]


@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_what_operators_do_not_take_is_refused_by_its_field(field, call):
    with refused(field):
        call()


def test_files_that_are_no_matrix_are_refused(tmp_path):
    for name, array in (("flat", np.ones(4)), ("whole", np.ones((2, 2), dtype=int)), ("nan", np.full((3, 2), np.nan))):
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "text.npy").write_text("no array")
    for name in ("flat", "whole", "nan", "text", "missing"):
        with refused(str(tmp_path / f"{name}.npy")):
            RowsOnDisk(tmp_path / f"{name}.npy")


def test_where_finufft_is_missing_it_is_asked_for(monkeypatch):
    real_import = builtins.__import__

    def without(name, *rest):
        if name == "finufft":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with refused("non-uniform Fourier transform"):
        NonUniformFourier(K, (8, 8))(np.ones((8, 8)))

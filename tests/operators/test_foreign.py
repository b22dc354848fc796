"""Operators of SciPy, PyLops, SigPy and mri-nufft map as their owners do; wrong adjoints are refused at the front."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import mri_design as md
from mri_design.operators import cartesian, from_linop

GRID = (16, 12)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return parts[0] + 1j * parts[1]


MATRIX = numbers(10, 6)


def scipys(matvec, rmatvec=None, dtype=complex) -> LinearOperator:
    return LinearOperator(MATRIX.shape, matvec=matvec, rmatvec=rmatvec, dtype=dtype)


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX.real], ids=["complex", "real"])
def test_scipys_vectors_become_images_and_batches(matrix: np.ndarray) -> None:
    ours = from_linop(aslinearoperator(matrix), in_shape=(2, 3), out_shape=(5, 2))
    u = numbers(4, 2, 3) if np.iscomplexobj(matrix) else numbers(4, 2, 3).real
    np.testing.assert_allclose(ours(u).reshape(4, 10), u.reshape(4, 6) @ matrix.T)
    np.testing.assert_allclose(ours.adjoint(ours(u)).reshape(4, 6), u.reshape(4, 6) @ matrix.T @ matrix.conj())
    single = ours(u.astype(np.result_type(u.real.astype(np.float32), np.complex64 if np.iscomplexobj(u) else 0.0)))
    assert single.shape == (4, 5, 2)
    assert from_linop(ours) is ours


def test_pylops_operators_keep_their_axes() -> None:
    pylops = pytest.importorskip("pylops")
    ours = from_linop(pylops.FirstDerivative((8, 5), axis=0))
    assert ours.in_shape == ours.out_shape == (8, 5)
    np.testing.assert_allclose(ours(np.arange(40.0).reshape(8, 5))[1:-1], 5.0)


def test_sigpys_sense_operator_measures_what_ours_does() -> None:
    sigpy_mri = pytest.importorskip("sigpy.mri")
    maps = numbers(3, *GRID)
    mask = np.arange(GRID[0]) % 3 == 0
    theirs = from_linop(sigpy_mri.linop.Sense(maps, weights=mask[:, None] * np.ones(GRID)))
    ours = cartesian(np.flatnonzero(mask), GRID, maps)
    u = numbers(*GRID)
    np.testing.assert_allclose(theirs(u)[:, mask], ours(u), atol=1e-6)
    np.testing.assert_allclose(theirs.gram(u), ours.gram(u), atol=1e-5)


@pytest.mark.parametrize("coils", [1, 3])
def test_mri_nufft_operators_measure_what_ours_do(coils: int) -> None:
    pytest.importorskip("finufft")
    mrinufft = pytest.importorskip("mrinufft")
    spokes = mrinufft.initialize_2D_radial(8, 32).astype(np.float32)
    maps = numbers(3, 32, 32).astype(np.complex64) if coils > 1 else None
    make = mrinufft.get_operator("finufft")
    theirs = make(spokes, (32, 32), n_coils=coils, smaps=maps, squeeze_dims=True)
    u = numbers(32, 32).astype(np.complex64)
    operator = from_linop(theirs)
    np.testing.assert_allclose(operator(u), theirs.op(u), rtol=1e-4)
    with pytest.raises(md.InputError) as caught:
        from_linop(make(spokes, (32, 32), n_coils=coils, smaps=maps, density=True, squeeze_dims=True))
    assert caught.value.field == "linop: adjoint"


def test_an_image_of_a_foreign_operator_is_that_of_ours() -> None:
    ours = cartesian(range(4, 12), GRID)
    prior = md.SiteBlock("pixels", md.operators.Identity(GRID), md.sites.Laplace(rate=0.5))
    means = []
    for operator in (ours, from_linop(ours.as_scipy(), in_shape=GRID, out_shape=ours.out_shape)):
        model = md.GeneralizedLinearModel(operator, ours(numbers(*GRID, seed=1)), 0.01, (prior,))
        means.append(md.DoubleLoop(md.variances.Exact(), tolerance=1e-4).infer(model, np.random.default_rng(0)).mean)
    np.testing.assert_allclose(means[1], means[0], atol=1e-3)


REFUSED = {
    "twice the adjoint": ("linop: adjoint", lambda: scipys(MATRIX.dot, lambda v: 2 * MATRIX.conj().T @ v)),
    "a transpose": ("linop: adjoint", lambda: scipys(MATRIX.dot, MATRIX.T.dot)),
    "no adjoint": ("linop", lambda: scipys(MATRIX.dot)),
    "other shapes": ("linop", lambda: scipys(MATRIX.dot, MATRIX.dot)),
    "a constant": ("linop", lambda: scipys(lambda u: MATRIX @ u + 1, MATRIX.conj().T.dot)),
    "a conjugate": ("linop", lambda: scipys(lambda u: MATRIX @ u.conj(), MATRIX.conj().T.dot)),
    "NaN": ("linop", lambda: scipys(lambda u: MATRIX @ u * np.nan, MATRIX.conj().T.dot)),
    "an array": ("linop", lambda: MATRIX),
}


@pytest.mark.parametrize(("field", "make"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_linear_operator_with_its_adjoint_is_refused(field: str, make) -> None:
    with pytest.raises(md.InputError) as caught:
        from_linop(make())
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["in_shape", "out_shape"])
def test_shapes_have_as_many_entries_as_the_operator(field: str) -> None:
    with pytest.raises(md.InputError) as caught:
        from_linop(aslinearoperator(MATRIX), **{field: (7, 7)})
    assert caught.value.field == field

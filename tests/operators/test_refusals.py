"""What operators, trajectories and readouts do not take, by the field that the error names."""

import builtins

import numpy as np
import pytest
import scipy.sparse

from mri_design import Dense, FiniteDifferences, Identity, NonUniformFourier, Wavelet, cartesian, turned
from mri_design.operators import (
    CartesianSamples,
    CentredFFT,
    Coils,
    Diagonal,
    DirectFourier,
    GraphDifferences,
    LineSampling,
    PhasedParts,
    RealAndImaginary,
    RealImage,
    RowsOnDisk,
    SparseMatrix,
    checked_trajectory,
    density_weights,
    transform,
)
from mri_design.readouts import PlaneReadouts, ShotReadouts, readouts_named
from tests.refusals import refused

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
    ("FFT library", lambda: transform(np.zeros((2, 2)), (-1,), library="mkl")),
    ("FFT library", lambda: CentredFFT((4, 4), "mkl")(np.ones((4, 4)))),
    *(("lines", lambda n=n: cartesian(n, (8, 8))) for n in ([0, 8], [-1], [3, 3], [1.5])),
    ("lines", lambda: LineSampling([[1, 2]], (8, 8))),
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
    *(("encoding", lambda name=name: readouts_named(name, (6, 5))) for name in ("spiral", "readouts", "nonsense")),
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

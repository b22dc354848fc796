"""Sums of weighted Gram products taken image by image agree with the operators' own, one after the other."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, Wavelet
from mri_design.model import add_weighted_grams
from mri_design.model import precision as module
from mri_design.operators import GraphDifferences, PhasedParts


def noise(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


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
    u = noise((*batch, *shape), np.complex128, 1)
    u = u if complex_ else u.real
    options = {"is_complex": complex_}
    blocks = [FiniteDifferences(shape, **options), Wavelet(shape, "db2", 1, **options), Identity(shape, **options)]
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

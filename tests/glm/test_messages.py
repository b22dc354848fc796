"""Sites in chunks: every one once, groups together, and what cannot be a chunk."""

from __future__ import annotations

import numpy as np
import pytest

import mri_design as md
from mri_design import Dense, Logistic, Sech2, WarmStart
from mri_design.glm import (
    DensePrecision,
    LowRankCovariance,
    Message,
    coefficients_of_sites,
    load_chunk,
    partition_sites,
)
from tests.refusals import refused


def run(model, warm_start=None, **settings):
    return md.LaplacePropagation(**settings).infer(model, np.random.default_rng(7), warm_start=warm_start)


def test_a_partition_holds_every_site_once() -> None:
    labels = md.SiteBlock("labels", Dense(np.ones((101, 2))), Logistic(np.ones(101)))
    for partition, sizes in (("random", {50, 51}), ("contiguous", {50, 51}), ("groups", {101})):
        chunks = partition_sites([labels], [0], partition, 60, np.random.default_rng(0))
        assert {len(chunk.sites) for chunk in chunks} == sizes
        np.testing.assert_array_equal(np.sort(np.concatenate([c.sites for c in chunks])), np.arange(101))


def test_groups_share_a_site() -> None:
    block = md.SiteBlock("tv", md.FiniteDifferences((3, 4)), Sech2(np.arange(1.0, 13).reshape(1, 3, 4)), (-3,))
    index = coefficients_of_sites(block, np.array([0, 5]))
    np.testing.assert_array_equal(index, [[0, 12], [5, 17]])
    model = md.GeneralizedLinearModel(md.Identity((3, 4)), np.zeros((3, 4), dtype=complex), 4.0, (block,))
    chunk = partition_sites(model.blocks, [0], "contiguous", 5, np.random.default_rng(0))[1]
    loaded = load_chunk(model, chunk)
    assert loaded.parts == 4  # two differences, real and imaginary
    rng = np.random.default_rng(0)
    u = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    theta = np.concatenate([u.real.ravel(), u.imag.ravel()])
    power = np.sum((loaded.rows @ theta[loaded.coordinates]).reshape(-1, 4) ** 2, axis=1)
    np.testing.assert_allclose(power, block.site_power(block.analysis(u)).ravel()[chunk.sites])
    np.testing.assert_allclose(loaded.potential.scale, np.arange(1.0, 13)[chunk.sites])


def test_an_undetermined_gaussian_part_needs_a_warm_start() -> None:
    rng = np.random.default_rng(4)
    x, data = rng.standard_normal((4, 8)), rng.standard_normal(4)
    block = md.SiteBlock("b", Dense(rng.standard_normal((16, 8))), Sech2(1.0))
    model = md.GeneralizedLinearModel(Dense(x), data, 1.0, (block,))
    start = WarmStart(np.zeros(8), (np.ones(16),))
    for size in (3, 2):  # held by the precision, by the covariance
        with refused("a chunk and its cavity"):
            run(model, chunk_size=size)
        u = run(model, start, chunk_size=size).mean
        gradient = x.T @ (data - x @ u) - block.analysis.adjoint(2 * np.tanh(block.analysis(u)))
        np.testing.assert_allclose(gradient, 0, atol=1e-9)


@pytest.mark.parametrize("coordinates", [4, 16])
def test_both_ways_to_hold_the_product_make_the_same_messages(coordinates) -> None:
    """Chunks with more rows than coordinates and with fewer, one after the other."""
    rng = np.random.default_rng(5)
    rows = np.zeros((18, 20))
    rows[:, :coordinates] = rng.standard_normal((18, coordinates))
    block = md.SiteBlock("labels", Dense(rows), Logistic(np.sign(rng.standard_normal(18))))
    model = md.GeneralizedLinearModel.of_sites([block, md.SiteBlock("weights", Dense(np.eye(20)), md.Gaussian(0.7))])
    P, h = 0.7 * np.eye(20) + 0.1, rng.standard_normal(20)
    ways, found = (DensePrecision(P.copy(), h.copy()), LowRankCovariance.of(P, h)), []
    for way in ways:
        for chunk in partition_sites(model.blocks, [0], "contiguous", 9, rng):
            loaded, flat = load_chunk(model, chunk), Message.flat(9, 1)
            mode, theta = way.mode(loaded, flat, np.zeros(20), None, 50)
            way.replace(loaded, mode.message)
            again, _ = way.mode(loaded, mode.message, np.zeros(20), None, 50)
            found.append((mode.message.slope, mode.message.curvature, theta, again.message.slope))
    for one, other in zip(found[:2], found[2:], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-10)
    np.testing.assert_allclose(np.linalg.inv(ways[1].V), ways[0].P, atol=1e-9)
    np.testing.assert_allclose(ways[0].P @ ways[1].m, ways[0].h, atol=1e-9)

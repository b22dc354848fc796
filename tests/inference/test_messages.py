"""Sites in chunks: every one once, groups together, and what cannot be a chunk."""

from __future__ import annotations

import numpy as np
import pytest

import mri_design as md
from mri_design import Dense, Laplace, Logistic, Sech2, Tilted, WarmStart
from mri_design.inference.messages import coefficients_of_sites, load_chunk, partition_sites
from mri_design.potentials.base import Potential


def run(model, **settings):
    return md.LaplacePropagation(**settings).propagate(model, np.random.default_rng(7))


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


@pytest.mark.parametrize(
    "site", [Laplace(1.0), Tilted(Laplace(1.0), 0.3), md.ExponentialPower(1.5, 1.0)], ids=lambda s: type(s).__name__
)
def test_sites_with_a_kink_at_zero_are_refused(site: Potential) -> None:
    model = md.GeneralizedLinearModel(Dense(np.eye(3)), np.ones(3), 1.0, (md.SiteBlock("b", Dense(np.eye(3)), site),))
    with pytest.raises(md.InputError, match="corner"):
        run(model)


def test_an_undetermined_gaussian_part_needs_a_warm_start() -> None:
    rng = np.random.default_rng(4)
    x, data = rng.standard_normal((4, 8)), rng.standard_normal(4)
    block = md.SiteBlock("b", Dense(rng.standard_normal((16, 8))), Sech2(1.0))
    model = md.GeneralizedLinearModel(Dense(x), data, 1.0, (block,))
    with pytest.raises(md.InputError, match="warm start"):
        run(model, chunk_size=3, cavity="dense")
    with pytest.raises(md.InputError, match="warm start"):
        run(model, chunk_size=3, cavity="low_rank")
    start = WarmStart(np.zeros(8), (np.ones(16),))
    for cavity in ("dense", "low_rank"):
        found = md.LaplacePropagation(chunk_size=3, cavity=cavity).propagate(
            model, np.random.default_rng(0), warm_start=start
        )
        u = found.posterior.mean
        gradient = x.T @ (data - x @ u) - block.analysis.adjoint(2 * np.tanh(block.analysis(u)))
        np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_what_only_rounding_determines_is_refused() -> None:
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((5, 30)) @ rng.standard_normal((30, 30))
    block = md.SiteBlock("labels", Dense(rng.standard_normal((1, 30))), Logistic(np.ones(1)))
    for scale in (1.0, 1e-3, 1e3):
        model = md.GeneralizedLinearModel(Dense(scale * rows), np.ones(5), 1.0, (block,))
        with pytest.raises(md.InputError, match="proper distribution"):
            run(model)

"""A reconstruction in pieces, over coil groups or over slices, is the joint one."""

from __future__ import annotations

import numpy as np

import mri_design as md
from mri_design import Dense, Gaussian, Sech2, WarmStart, cartesian

SHAPE = (8, 6)
N = SHAPE[0] * SHAPE[1]
SIGMA = 0.05


def scan(rng):
    """A small complex image, four smooth coils with unit root sum of squares, and lines with noise."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in SHAPE), indexing="ij")
    image = (np.abs(x) < 0.6) * (np.abs(y) < 0.7) * np.exp(0.5j * x) + 0.3 * (x**2 + y**2 < 0.2)
    maps = np.stack([np.exp(-((x - a) ** 2) - (y - b) ** 2 + 1j * a * y) for a in (-1, 1) for b in (-1, 1)])
    maps /= np.sqrt(np.sum(np.abs(maps) ** 2, axis=0))
    lines = [1, 3, 4, 5, 7]
    operators = [cartesian(lines, SHAPE, maps[k : k + 2]) for k in (0, 2)]
    data = []
    for operator in operators:
        noise = rng.standard_normal((2, *operator.out_shape))
        data.append(operator(image) + SIGMA * (noise[0] + 1j * noise[1]))
    return cartesian(lines, SHAPE, maps), operators, data


def sparse_sites():
    return (
        md.SiteBlock("pixels", md.Identity(SHAPE), Sech2(0.05)),
        md.SiteBlock("differences", md.FiniteDifferences(SHAPE), Sech2(0.2), (-3,)),
    )


def gradient(model, u):
    """Of log p, for smooth sites with representation g."""
    slope = model.measurement.adjoint(model.data - model.measurement(u))
    for block in model.blocks:
        s = block.coefficients(u)
        slope = slope + block.analysis.adjoint(2 * block.potential.dg(block.site_power(s) / model.noise_variance) * s)
    return slope


def test_coil_groups_one_after_the_other_make_the_joint_reconstruction() -> None:
    rng = np.random.default_rng(0)
    whole, operators, data = scan(rng)
    joint = md.GeneralizedLinearModel(whole, np.concatenate(data), SIGMA**2, sparse_sites())
    groups = [
        md.SiteBlock(f"coils {k}", operator, Gaussian(1.0), offset=y)
        for k, (operator, y) in enumerate(zip(operators, data, strict=True))
    ]
    split = md.GeneralizedLinearModel.of_sites([*groups, *sparse_sites()], SIGMA**2)
    start = WarmStart(joint.back_projection(), tuple(np.ones(b.site_shape) for b in split.blocks))
    alone = WarmStart(start.mean, tuple(np.ones(b.site_shape) for b in joint.blocks))
    one = md.LaplacePropagation(chunk_size=N, tolerance=1e-11).infer(joint, np.random.default_rng(0), warm_start=alone)
    for schedule in ("serial", "parallel"):
        engine = md.LaplacePropagation(partition="groups", schedule=schedule, exact=(), tolerance=1e-11, max_sweeps=40)
        found = engine.propagate(split, np.random.default_rng(0), warm_start=start)
        assert [c.block for c in found.chunks] == [0, 1, 2, 3]
        assert found.posterior.convergence.converged
        u = found.posterior.mean
        np.testing.assert_allclose(gradient(joint, u), 0, atol=1e-9)
        np.testing.assert_allclose(u, one.mean, atol=1e-9)
        np.testing.assert_allclose(found.posterior.image_variances, one.image_variances, rtol=1e-7)


def test_slices_one_after_the_other_make_the_joint_volume() -> None:
    rng = np.random.default_rng(1)
    n_slices, pixels = 3, 16
    differences = md.FiniteDifferences((4, 4)).to_dense().real
    measurements = [rng.standard_normal((9, pixels)) / 3 for _ in range(n_slices)]
    volume = np.repeat(rng.standard_normal((1, pixels)) > 0, n_slices, axis=0) + 0.05 * rng.standard_normal((3, pixels))
    data = [x @ u + 0.1 * rng.standard_normal(9) for x, u in zip(measurements, volume, strict=True)]

    def of_slice(k, matrix):
        rows = np.zeros((len(matrix), n_slices * pixels))
        rows[:, k * pixels : (k + 1) * pixels] = matrix
        return Dense(rows)

    blocks = []
    for k in range(n_slices):
        blocks.append(md.SiteBlock(f"data {k}", of_slice(k, measurements[k]), Gaussian(1.0), offset=data[k]))
        blocks.append(md.SiteBlock(f"differences {k}", of_slice(k, differences), Sech2(0.5)))
        blocks.append(md.SiteBlock(f"pixels {k}", of_slice(k, np.eye(pixels)), Gaussian(1e-2)))
    between = np.kron(np.eye(n_slices)[1:] - np.eye(n_slices)[:-1], np.eye(pixels))
    blocks.append(md.SiteBlock("through slices", Dense(between), Sech2(1.0)))
    model = md.GeneralizedLinearModel.of_sites(blocks, 0.01)
    joint = md.LaplacePropagation(chunk_size=10_000).infer(model, np.random.default_rng(0))
    found = md.LaplacePropagation(partition="groups", cavity="low_rank", tolerance=1e-10).propagate(
        model, np.random.default_rng(0)
    )
    assert found.posterior.convergence.converged
    widths = [len(mode) for mode in found.modes]
    assert widths == [pixels, pixels, pixels, n_slices * pixels]  # a slice's chunk knows its own pixels only
    np.testing.assert_allclose(gradient(model, found.posterior.mean), 0, atol=1e-9)
    np.testing.assert_allclose(found.posterior.mean, joint.mean, atol=1e-9)
    np.testing.assert_allclose(found.posterior.image_variances, joint.image_variances, rtol=1e-7)
    alone = md.LaplacePropagation().infer(
        md.GeneralizedLinearModel.of_sites(blocks[:-1], 0.01), np.random.default_rng(0)
    )
    assert np.abs(alone.mean - joint.mean).max() > 0.01  # the slices did talk to each other

"""A reconstruction in pieces, over coil groups or over slices, is the joint one."""

from __future__ import annotations

import numpy as np

import mri_design as md
from mri_design import Gaussian, Sech2, WarmStart, cartesian

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
        found, sweeps = engine.propagate(split, np.random.default_rng(0), warm_start=start)
        assert [c.block for c in sweeps.chunks] == [0, 1, 2, 3]
        assert found.convergence.converged
        u = found.mean
        np.testing.assert_allclose(gradient(joint, u), 0, atol=1e-9)
        np.testing.assert_allclose(u, one.mean, atol=1e-9)
        np.testing.assert_allclose(found.image_variances, one.image_variances, rtol=1e-7)

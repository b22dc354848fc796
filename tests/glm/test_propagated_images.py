"""A reconstruction in pieces, over groups of coils, is the joint one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design import Gaussian, Sech2, WarmStart, cartesian


def gradient(model, u):
    """Slope of log p, for smooth sites with representation g."""
    slope = model.measurement.adjoint(model.data - model.measurement(u))
    for block in model.blocks:
        s = block.coefficients(u)
        slope = slope + block.analysis.adjoint(2 * block.potential.dg(block.site_power(s) / model.noise_variance) * s)
    return slope


@pytest.mark.parametrize("schedule", ["serial", "parallel"])
def test_coil_groups_one_after_the_other_make_the_joint_reconstruction(schedule, tiny_model) -> None:
    joint = tiny_model("coils", Sech2)
    differences = replace(joint.blocks[1], group_axes=(-3,))
    joint = replace(joint, blocks=(joint.blocks[0], differences))
    X = joint.measurement
    groups = []
    for part in (slice(0, 1), slice(1, 3)):
        rows = cartesian(X.lines.tolist(), joint.image_shape, X.maps[part])
        groups.append(md.SiteBlock(f"coils {part}", rows, Gaussian(1.0), offset=joint.data[part]))
    split = md.GeneralizedLinearModel.of_sites([*groups, *joint.blocks], joint.noise_variance)

    def start(model):
        return WarmStart(joint.back_projection(), tuple(np.ones(b.site_shape) for b in model.blocks))

    size = joint.measurement.in_size
    one = md.LaplacePropagation(chunk_size=size, tolerance=1e-11).infer(
        joint, np.random.default_rng(0), warm_start=start(joint)
    )
    engine = md.LaplacePropagation(partition="groups", schedule=schedule, exact=(), tolerance=1e-11, max_sweeps=40)
    found, sweeps = engine.propagate(split, np.random.default_rng(0), warm_start=start(split))
    assert [c.block for c in sweeps.chunks] == [0, 1, 2, 3]
    assert found.convergence.converged
    np.testing.assert_allclose(gradient(joint, found.mean), 0, atol=1e-9)
    np.testing.assert_allclose(found.mean, one.mean, atol=1e-9)
    np.testing.assert_allclose(found.image_variances, one.image_variances, rtol=1e-7)

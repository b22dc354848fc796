"""Frames of a series that share the sites of their prior."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.errors import InputError
from mri_design.estimation import IRLS
from mri_design.inference import DoubleLoop, WarmStart
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel, non_locally_refined
from mri_design.model.sparsity import SHARED, SharedFrame, SparsityBlock, find_alike
from mri_design.operators.base import LinearOperator
from mri_design.sites import Laplace
from mri_design.variances import Exact
from tests.arrays import noise

PRIOR = (SparsityBlock("pixels", 3.0), SparsityBlock("differences", 2.0))
SWEEPS, LINES = 8, ((0, 2, 3), (1, 2, 3))


class EachFrame(LinearOperator):
    """The operators of all frames next to each other."""

    def __init__(self, operators: Sequence[LinearOperator]) -> None:
        self.operators, count = operators, len(operators)
        shapes = (count, *operators[0].in_shape), (count, *operators[0].out_shape)
        super().__init__(*shapes, in_complex=True, out_complex=True)

    def _apply(self, u):
        parts = [one(part) for one, part in zip(self.operators, np.moveaxis(u, -3, 0), strict=True)]
        return np.stack(parts, axis=-len(self.out_shape))

    def _adjoint(self, v):
        parts = zip(self.operators, np.moveaxis(v, -len(self.out_shape), 0), strict=True)
        return np.stack([one.adjoint(part) for one, part in parts], axis=-3)


def frames_of_a_series() -> list[SliceModel]:
    kspace = noise((2, 1, 4, 4)) * np.array([3.0, 2.0])[:, None, None, None]
    return [SliceModel(one.astype(complex), np.ones(4, dtype=bool), 0.3, prior=PRIOR) for one in kspace]


def known(posterior: GaussianPosterior, signal: float) -> SharedFrame:
    """With draws whose variances are exactly those of the posterior."""
    root = np.linalg.cholesky(np.linalg.inv(posterior.precision.dense_real()))
    real, imaginary = np.split(root.T * np.sqrt(posterior.model.noise_variance * len(root)), 2, axis=1)
    drawn = (real + 1j * imaginary).reshape(-1, *posterior.mean.shape)
    return SharedFrame(posterior.mean, drawn, signal, float(np.sqrt(posterior.model.noise_variance)))


def test_frames_in_turn_are_one_model_of_the_vector_of_all_frames() -> None:
    engine = DoubleLoop(Exact(), IRLS(1e-9), 20, 1e-4)
    slices, signals, rng = frames_of_a_series(), (2.0, 1.0), np.random.default_rng(0)
    alone = [one.model(at, signal) for one, at, signal in zip(slices, LINES, signals, strict=True)]
    found = [engine.infer(model, rng) for model in alone]
    for _ in range(SWEEPS):
        for n in (0, 1):
            other = known(found[1 - n], signals[1 - n])
            model = replace(slices[n], frames=(other,)).model(LINES[n], signals[n])
            found[n] = engine.infer(model, rng, warm_start=WarmStart.from_posterior(found[n]))
    blocks = []
    for each in zip(*(model.blocks for model in alone), strict=True):
        scaled = EachFrame([float(block.potential.rate) * block.analysis for block in each])
        axis = -len(scaled.out_shape)
        blocks.append(md.SiteBlock(each[0].name, scaled, Laplace(SHARED * np.sqrt(2)), (axis,)))
    measurement, data = EachFrame([model.measurement for model in alone]), np.stack([model.data for model in alone])
    joint = engine.infer(md.GeneralizedLinearModel(measurement, data, 0.3, tuple(blocks)), rng)
    np.testing.assert_allclose([one.mean for one in found], joint.mean, rtol=0, atol=1e-4 * np.abs(joint.mean).max())
    assert np.abs(joint.mean[0] - engine.infer(alone[0], rng).mean).max() > 0.01


def test_pixels_are_alike_that_are_in_all_frames() -> None:
    clear = 1e3 * np.add.outer(np.sin(np.arange(32) / 3), np.sin(np.arange(32) / 4)).astype(complex)
    one = SliceModel(noise((1, 32, 32)), np.ones(32, dtype=bool), 1.0, prior=(SparsityBlock("non-local", 1.0),))
    vague, other = noise((32, 32)), SharedFrame(clear, np.zeros((1, 32, 32)), 1.0, 1.0)
    found, known = non_locally_refined(replace(one, frames=(other,)), vague).alike, find_alike(clear)
    assert np.mean(found.neighbours == known.neighbours) > 0.9
    np.testing.assert_allclose(known.seen_in(clear).differences, known.differences, rtol=1e-6)
    assert found.differences.mean() == pytest.approx(2, rel=0.1)  # of noise alone


def test_frames_share_laplace_sites_only() -> None:
    one = replace(frames_of_a_series()[0], prior=(SparsityBlock("pixels", 3.0, site="sech2"),))
    other = SharedFrame(np.ones((4, 4), dtype=complex), np.ones((1, 4, 4), dtype=complex), 1.0, 1.0)
    with pytest.raises(InputError) as refused:
        replace(one, frames=(other,)).model(LINES[0], 1.0)
    assert refused.value.field == "block pixels: site"

"""Companions: which pixels they say belong together, and the block of sites that they make."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design.inference import DoubleLoop
from mri_design.model import MRSlice, SparsityBlock, companion_patches, unit_modulus
from mri_design.model.sparsity import LEAST_DIFFERENCE
from mri_design.variances import Exact

BLOCK = SparsityBlock("companion", 0.8, isotropic=True, tau_limit=0.03)


def head(shape: tuple[int, int], levels: tuple[float, ...] = (0.3, 0.9, 0.5)) -> np.ndarray:
    """Three tissues; contrasts differ in their levels alone."""
    y, x = (np.linspace(-1, 1, n) for n in shape)
    radius = np.hypot(y[:, None] * 1.1, x[None, :] * 1.3)
    image = np.select([radius < 0.35, radius < 0.7, radius < 0.9], levels, 0.0)
    return image + 0.3 * (np.hypot(y[:, None] + 0.45, x[None, :] - 0.2) < 0.13)


def grained(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return head(shape) + 0.02 * np.random.default_rng(seed).standard_normal(shape)


def test_brightness_and_phase_of_a_companion_do_not_matter():
    image = np.abs(grained((24, 20)))
    turned = 3e4 * image * np.exp(1j * np.linspace(0, 5, 20))
    first, second = companion_patches([image]), companion_patches([turned])
    np.testing.assert_array_equal(first.neighbours, second.neighbours)
    np.testing.assert_allclose(first.differences, second.differences, atol=1e-9)


def test_pixels_belong_together_only_where_they_do_in_every_companion():
    one, other = head((32, 32)), np.roll(head((32, 32)), 6, axis=1)
    rng = np.random.default_rng(1)
    one, other = (image + 0.01 * rng.standard_normal(image.shape) for image in (one, other))
    both = companion_patches([one, other])
    for image in (one, other):
        flat = unit_modulus(image).ravel()
        own = np.arange(flat.size).reshape(image.shape)
        between = np.abs(flat[own] - flat[both.neighbours]).mean()
        assert between < 1.3 * both.differences.mean()
        assert between > np.abs(flat[own] - flat[companion_patches([image]).neighbours]).mean()


def test_rates_are_those_of_expected_differences_up_to_the_limit():
    image = grained((16, 16))
    patches = companion_patches([image])
    signal, noise_sd = 50.0, 2.0
    sites = BLOCK.sites((16, 16), signal, noise_sd, None, None, patches)
    rates = (0.8 / (patches.differences + LEAST_DIFFERENCE)).mean(axis=0) * noise_sd / signal
    np.testing.assert_allclose(np.squeeze(sites.potential.scale), np.minimum(rates, 0.03), rtol=1e-6)
    u = np.random.default_rng(2).standard_normal((16, 16))
    np.testing.assert_allclose(sites.analysis(u), u - u.ravel()[patches.neighbours], atol=1e-12)


@pytest.fixture(params=(0, 1, 2))
def scan(request) -> tuple[MRSlice, np.ndarray, list[int]]:
    """A scan of 16 x 16 of which every second line outside the centre is missing, its truth, and the lines."""
    rng = np.random.default_rng(request.param)
    truth = head((16, 16), (0.9, 0.4, 0.7)).astype(complex)
    truth[7:9, 5:7] = 0.2
    noise = 0.02 * (rng.standard_normal((16, 16)) + 1j * rng.standard_normal((16, 16)))
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(truth), norm="ortho")) + noise
    lines = sorted({*range(5, 11), *rng.permutation(16)[:4].tolist()})
    blocks = (SparsityBlock("differences", 10.0), BLOCK)
    return MRSlice(kspace[None].astype(np.complex64), np.ones(16, bool), 0.02**2, prior=blocks), truth, lines


def test_a_companion_lowers_the_error_and_without_one_its_block_is_left_out(scan):
    one, truth, lines = scan
    engine = DoubleLoop(variances=Exact())

    def error(slice_model: MRSlice) -> float:
        model = slice_model.model(lines)
        return float(np.linalg.norm(engine.infer(model, np.random.default_rng(0)).mean - truth))

    with_companion = replace(one, companion=companion_patches([grained((16, 16))]))
    assert [block.name for block in one.model(lines).blocks] == ["differences"]
    assert [block.name for block in with_companion.model(lines).blocks] == ["differences", "companion"]
    assert error(with_companion) < 0.95 * error(one)

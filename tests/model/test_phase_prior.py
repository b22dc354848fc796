"""The phase of an image, and phase-aware blocks: products against dense matrices, preconditioner, variants."""

import numpy as np
import pytest

from mri_design import SliceModel, SparsityBlock
from mri_design.model import (
    ImageFacts,
    PhaseMap,
    PhasePrior,
    PosteriorPrecision,
    ScaledCirculantInverse,
    estimate_phase,
    mirrored,
    phase_refined,
    phase_variants,
)
from mri_design.model.sparsity import DEFAULT_PRIOR
from mri_design.operators import CentredFFT, FiniteDifferences, Identity
from mri_design.scan.scenes import smooth_phase
from tests.arrays import as_real, noise
from tests.phased_slices import places
from tests.refusals import refused

N = (16, 12)
ALL = (*DEFAULT_PRIOR, SparsityBlock("wavelet", 20.0, wavelet="db2", levels=1))


Y, X = np.mgrid[: N[0], : N[1]]
ANGLE = 0.1 * Y - 0.05 * X + 0.6
IMAGE = (1.0 * (np.abs(Y - 8) < 5) * (np.abs(X - 6) < 4) + 0.5 * (X == 6)) * np.exp(1j * ANGLE)
UNSURE = PhaseMap(np.exp(1j * ANGLE), np.random.default_rng(3).uniform(0, 1, N))


def one_slice(**changes: object) -> SliceModel:
    kspace = (CentredFFT(N)(IMAGE) + 0.02 * noise(N))[None]
    return SliceModel(**{"kspace": kspace, "measured": np.ones(N[0], bool), "noise_variance": 0.02**2, **changes})


def dense_gram(one: SliceModel, weights) -> np.ndarray:
    """B^H diag(w) B from textbook matrices: parts, their factors, the analysis, the phase."""
    phase = one.phase
    turn = np.diag(np.conj(phase.phase.rotation).ravel())
    rho = 1 + (phase.imaginary_ratio - 1) * phase.phase.confidence
    total = 0
    for block, w in zip(one.prior, weights, strict=True):
        plain = FiniteDifferences(N) if block.kind == "differences" else Identity(N)
        b = plain.to_dense() @ turn
        factor = np.ones(plain.out_shape) * rho
        real = np.concatenate([b.real, -b.imag], axis=1)
        imaginary = factor.ravel()[:, None] * np.concatenate([b.imag, b.real], axis=1)
        w = np.broadcast_to(w, (*plain.out_shape, 2)).reshape(-1, 2)
        total = total + real.T @ (w[:, :1] * real) + imaginary.T @ (w[:, 1:] * imaginary)
    return total


@pytest.mark.parametrize("ratio", [3.0, 1.0])
def test_products_and_dense_matrices_agree_with_the_textbook(ratio):
    one = one_slice(phase=PhasePrior(UNSURE, ratio))
    model = one.model([8, 7, 9, 3])
    rng = np.random.default_rng(1)
    pi = tuple(rng.uniform(0.1, 4, block.site_shape) for block in model.blocks)
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    dense = precision.dense_real()
    x = model.measurement.to_dense_real()
    np.testing.assert_allclose(dense, x.T @ x + dense_gram(one, pi), atol=1e-10)
    u = noise((2, *N))
    np.testing.assert_allclose(as_real(precision(u), True, 1), as_real(u, True, 1) @ dense, atol=1e-10)
    assert not precision.complex_linear


def test_shared_sites_with_ratio_one_or_no_confidence_are_those_on_moduli():
    lines = [8, 7, 9, 3]
    plain = one_slice(prior=ALL).model(lines)
    nothing = PhaseMap(np.exp(1j * ANGLE), np.zeros(N))
    for prior in (PhasePrior(UNSURE, 1.0), PhasePrior(nothing, 5.0)):
        aware = one_slice(prior=ALL, phase=prior).model(lines)
        for a, b in zip(plain.blocks, aware.blocks, strict=True):
            turned = a.analysis(np.exp(-1j * ANGLE) * IMAGE)
            np.testing.assert_allclose(b.site_power(b.coefficients(IMAGE))[..., 0], a.site_power(turned), atol=1e-12)
            tau = np.broadcast_to(b.potential.rate, b.site_shape)[..., 0]
            np.testing.assert_allclose(tau, np.broadcast_to(a.potential.rate, tau.shape))


def test_isotropic_differences_share_a_site_among_all_four_numbers():
    block = SparsityBlock("differences", 10.0, isotropic=True)
    shared = block.sites(ImageFacts(N, 1.0), 0.1, PhasePrior(UNSURE, 3.0))
    assert shared.site_shape == (1, *N, 1)
    s = shared.coefficients(IMAGE)
    np.testing.assert_allclose(shared.site_power(s)[0, ..., 0], (s**2).sum(axis=(0, -1)))


@pytest.mark.parametrize("shape", [N, (32, 80)])  # by a library, and by compiled loops
def test_the_preconditioner_inverts_what_it_is_made_for(shape):
    rng = np.random.default_rng(0)
    symmetric = [rng.uniform(0.5, 2, shape) for _ in range(2)]
    real, imaginary = ((s + mirrored(s)) / 2 for s in symmetric)
    shared = rng.uniform(0, 1, shape)
    rotation = np.exp(1j * rng.uniform(-3, 3, shape))
    u = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    v = np.conj(rotation) * u
    filtered = np.fft.ifft2(shared * np.fft.fft2(v)) + np.fft.ifft2(real * np.fft.fft2(v.real)).real
    filtered = rotation * (filtered + 1j * np.fft.ifft2(imaginary * np.fft.fft2(v.imag)).real)
    precondition = ScaledCirculantInverse.of(shared, real, imaginary, rotation)
    np.testing.assert_allclose(precondition(filtered), u, atol=1e-10)
    single = precondition(filtered.astype(np.complex64))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, u, atol=1e-3)


def test_a_phase_not_given_is_taken_from_the_centre():
    one = one_slice(phase=PhasePrior(imaginary_ratio=2.0))
    lines = [8, 7, 9, 6, 10, 2]
    blocks = one.model(lines).blocks
    seen = PhasePrior(imaginary_ratio=2.0).seen_in(one.central_image(lines), one.noise_variance)
    np.testing.assert_array_equal(blocks[0].analysis.rotation, seen.phase.rotation)


def test_variants_and_refinement():
    one = one_slice(phase=PhasePrior(UNSURE))
    found = phase_variants(one, IMAGE, imaginary_ratios=(1.0, 3.0))
    assert [v.phase and v.phase.imaginary_ratio for v in found] == [None, 1.0, 3.0]
    assert found[1].phase.phase is found[2].phase.phase
    dark = np.full(N, 1e-6 + 0j)
    assert [v.phase for v in phase_variants(one, dark)] == [None]
    with refused("image"):
        phase_variants(one, IMAGE[:4])
    assert phase_refined(found[0], IMAGE) is found[0]
    assert phase_refined(found[1], dark) is found[1]
    turned = phase_refined(found[1], 1j * IMAGE)
    np.testing.assert_allclose(turned.phase.phase.rotation, 1j * found[1].phase.phase.rotation, atol=1e-10)


LARGE = (64, 48)
DISC = 1.0 * (np.square(places(LARGE)).sum(axis=0) < 0.1)


def test_a_smooth_phase_is_found_in_the_object_and_trusted():
    angle = smooth_phase(LARGE, np.random.default_rng(1), amplitude=1.5, degree=2)
    found = estimate_phase(DISC * np.exp(1j * angle) + 0.1 * noise(LARGE), 0.01)
    wrong = np.abs(np.angle(found.rotation * np.exp(-1j * angle)))[DISC > 0]
    assert np.median(wrong) < 0.05
    assert np.median(found.confidence[DISC > 0]) > 0.9
    assert found.confidence[DISC > 0].mean() > 2 * found.confidence[:4].mean()


def test_a_phase_that_jumps_is_doubted_where_it_does():
    angle = np.where(np.arange(LARGE[0]) < LARGE[0] // 2, 0, np.pi)[:, None] * np.ones(LARGE)
    found = estimate_phase(DISC * np.exp(1j * angle), 1e-6)
    centre = LARGE[0] // 2
    assert found.confidence[centre - 1 : centre + 1, 24].max() < 0.2
    assert found.confidence[centre - 12, 24] > 0.8


def test_a_global_phase_turns_with_the_image_and_scale_does_not_matter():
    image = DISC + 0.05 * noise(LARGE)
    one, other = estimate_phase(image, 0.0025), estimate_phase(7 * np.exp(0.8j) * image, 49 * 0.0025)
    np.testing.assert_allclose(other.rotation, np.exp(0.8j) * one.rotation, atol=1e-10)
    np.testing.assert_allclose(other.confidence, one.confidence, atol=1e-10)

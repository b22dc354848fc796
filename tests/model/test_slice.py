"""MR slices: the signal level, acquisition, prior blocks and their limits."""

import numpy as np
import pytest

import mri_design as md
from mri_design.model import Coefficients, ImageFacts
from mri_design.model.sparsity import DETERMINED
from mri_design.operators import CentredFFT, FiniteDifferences, Identity, Wavelet
from mri_design.readouts import LineReadouts
from mri_design.sites import StudentT
from mri_design.variances import Exact
from tests.arrays import noise

N = (16, 12)


def image() -> np.ndarray:
    y, x = np.mgrid[: N[0], : N[1]]
    return (1.0 * (np.abs(y - 8) < 5) * (np.abs(x - 6) < 4) + 0.5 * (x == 6)) * np.exp(0.2j * y)


def one_slice(scale: float = 1.0, **changes: object) -> md.SliceModel:
    known = {"kspace": scale * (CentredFFT(N)(image()) + 0.05 * noise(N))[None], "measured": np.ones(N[0], bool)}
    return md.SliceModel(**{**known, "noise_variance": (0.05 * scale) ** 2, **changes})


def test_a_faint_signal_is_no_noise() -> None:
    kspace = CentredFFT(N)(1.5 * image()) + noise(N, seed=3)
    assert md.SliceModel(kspace[None], np.ones(N[0], bool), 1.0).signal_level(range(4, 13)) > 0


@pytest.mark.parametrize(
    ("lines", "n", "run"),
    [
        ([8, 7, 9, 0], 16, [7, 8, 9]),
        ([0, 15, 8], 16, [8]),
        (range(16), 16, list(range(16))),
        ([4, 3, 5, 6, 0], 9, [3, 4, 5, 6]),
        ([2, 0, 7], 16, [0, 2, 7]),
        ([], 16, []),
    ],
)
def test_central_run(lines, n, run):
    assert LineReadouts((n, 4)).central_run(lines) == run


def test_the_signal_level_is_the_percentile_of_the_image_of_the_centre():
    one, centre = one_slice(), [6, 7, 8, 9, 10]
    level = one.signal_level(centre)
    for outer in ([0], [15, 1, 3], [12, 4]):
        assert one.signal_level([*outer, *centre]) == level
        assert one.signal_level([*centre[::-1], *outer]) == pytest.approx(level, rel=1e-12)
    assert one.signal_level([*centre, 11]) != level
    full = np.percentile(np.abs(CentredFFT(N).adjoint(one.kspace[0])), 99.5)
    assert one.signal_level(range(16)) == pytest.approx(full, rel=1e-10)


def test_a_model_is_made_of_the_lines_in_order_and_by_default_of_all_that_hold_data():
    one = one_slice()
    model = one.model([8, 7, 2])
    assert model.measurement.lines.tolist() == [8, 7, 2]
    np.testing.assert_array_equal(model.data, one.kspace[:, [8, 7, 2]])
    np.testing.assert_array_equal(model.data, one.acquire([8, 7, 2]))
    assert model.noise_variance == one.noise_variance
    np.testing.assert_allclose(one.encoding()(image()), CentredFFT(N)(image())[None], atol=1e-12)
    measured = np.ones(N[0], bool)
    measured[[0, 3]] = False
    one = one_slice(measured=measured)
    np.testing.assert_array_equal(one.model().data, one.model(np.flatnonzero(measured).tolist()).data)


def test_prior_blocks_and_their_scales():
    prior = (
        md.SparsityBlock("pixels", 7.0),
        md.SparsityBlock("differences", 3.0, isotropic=True),
        md.SparsityBlock("wavelet", 5.0, wavelet="haar", levels=2, coarse_rate=0.5),
    )
    pixels, differences, wavelet = one_slice(prior=prior).model([8], signal=2.0).blocks
    assert [type(b.analysis) for b in (pixels, differences, wavelet)] == [Identity, FiniteDifferences, Wavelet]
    assert pixels.potential.rate == pytest.approx(7 * 0.05 / 2)
    assert differences.potential.rate == pytest.approx(3 * 0.05 / 2) and differences.group_axes == (-3,)
    assert wavelet.analysis.levels == 2
    coarse = wavelet.analysis.level_map() == 0
    np.testing.assert_allclose(wavelet.potential.rate, np.where(coarse, 0.5, 5.0) * 0.05 / 2)
    assert md.SparsityBlock("differences", 1.0).sites(ImageFacts(N, 1.0), 1.0).group_axes == ()


def test_kinds_of_blocks_and_sites_that_a_script_registers_are_known_by_name():
    md.register_site("cauchy", lambda tau: StudentT(1.0, tau**2))
    md.register_block("steps", lambda block, image: Coefficients(FiniteDifferences(image.shape)))
    (block,) = one_slice(prior=(md.SparsityBlock("steps", 1.0, site="cauchy"),)).model([8], signal=2.0).blocks
    assert isinstance(block.analysis, FiniteDifferences) and isinstance(block.potential, StudentT)


def test_rates_stop_at_a_share_of_the_noise() -> None:
    """tau = scale sigma / signal, 0.4 at most: 100 x 0.002 = 0.2 below it, 100 x 0.1 = 10 above."""
    block = md.SparsityBlock("pixels", 100.0, tau_limit=0.4)
    for noise_sd, tau in ((0.002, 0.2), (0.1, 0.4)):
        assert block.sites(ImageFacts(N, 1.0), noise_sd).potential.rate == pytest.approx(tau)
    wavelet = md.SparsityBlock("wavelet", 100.0, wavelet="haar", levels=2, coarse_rate=0.5, tau_limit=0.4)
    assert set(wavelet.sites(ImageFacts(N, 1.0), 0.1).potential.rate.ravel().round(6)) == {0.05, 0.4}


def test_scaling_the_data_scales_the_mean_and_nothing_else():
    scale, lines = 1e-4, [8, 7, 9, 6, 10, 2, 13]
    loop = md.DoubleLoop(variances=Exact(), outer_iterations=3, tolerance=1e-12)
    results = [loop.infer(one_slice(c).model(lines), np.random.default_rng(1)) for c in (1.0, scale)]
    np.testing.assert_allclose(results[1].mean, scale * results[0].mean, rtol=1e-6, atol=1e-6 * scale)
    for z, z_scaled in zip(results[0].marginals.values, results[1].marginals.values, strict=True):
        np.testing.assert_allclose(z_scaled, z, rtol=1e-6)


def test_from_data_takes_the_slice_and_its_coils():
    kspace, maps = noise((2, 3, 2, *N), np.complex64)
    data = md.KSpaceData(kspace, np.ones(N[0], bool), noise_variance=0.3, coil_maps=maps)
    one = data.slice_model(1)
    np.testing.assert_array_equal(one.kspace, kspace[1])
    np.testing.assert_array_equal(one.maps, maps[1])
    assert one.noise_variance == 0.3 and one.shape == N


def test_what_stands_in_the_holes_of_lines_is_no_data(coils: int = 3) -> None:
    """The model of lines with holes is that of the dense matrix's rows for the samples that are there."""
    rng = np.random.default_rng(5)
    samples = rng.random(N) < 0.5
    samples[6:11, 4:9] = True
    maps = noise((coils, *N))
    maps /= np.linalg.norm(maps, axis=0)
    kspace = CentredFFT(N)(maps * image()) + 0.05 * rng.standard_normal((coils, *N))
    known = {"kspace": kspace, "maps": maps, "samples": samples}
    one, fooled = one_slice(**known), one_slice(**{**known, "kspace": np.where(samples, kspace, 99)})
    lines = [8, 7, 6, 9, 10, 2, 15]
    model, other = one.model(lines), fooled.model(lines)
    np.testing.assert_array_equal(model.data, other.data)
    chosen = np.zeros(N, bool)
    chosen[lines] = True
    rows = np.concatenate([np.flatnonzero((chosen & samples).ravel()) + i * samples.size for i in range(coils)])
    dense = one.encoding().to_dense()[rows]
    np.testing.assert_allclose(model.measurement.to_dense(), dense, atol=1e-12)
    np.testing.assert_array_equal(model.data.ravel(), kspace.reshape(-1)[rows])


def test_lines_with_holes_come_from_data() -> None:
    rng = np.random.default_rng(6)
    mask = rng.random(N) < 0.5
    mask[6:11] = True
    kspace = (one_slice().kspace * mask)[None].astype(np.complex64)
    one = md.KSpaceData(kspace, np.ones(N[0], bool), noise_variance=0.01).slice_model()
    np.testing.assert_array_equal(one.grid_samples(one.measured), mask)


BLOCK = md.SparsityBlock("pixels", 100.0, tau_limit=0.4, tau_limit_bright=0.02)
GRID = (24, 24)


HALF_BRIGHT = (2j * (np.arange(24) >= 12)[:, None] * np.ones(GRID)).astype(np.complex64)
"""Rows above the middle are dark, those below as bright as the image is."""


def limits(variance: float, block: md.SparsityBlock = BLOCK) -> np.ndarray:
    limit = block.where_determined(variance, HALF_BRIGHT).tau_limit
    return np.broadcast_to(np.asarray(limit), GRID)


def test_only_bright_pixels_of_a_determined_image_have_the_lower_limit() -> None:
    found = limits(DETERMINED[0])
    np.testing.assert_allclose(found[:6], 0.4)
    np.testing.assert_allclose(found[18:], 0.02)
    assert np.all(np.diff(found[:, 0]) <= 1e-9)
    np.testing.assert_array_equal(found, limits(2.0))


def test_images_that_are_not_determined_and_blocks_without_the_setting_keep_the_usual_limit() -> None:
    assert BLOCK.where_determined(DETERMINED[1], HALF_BRIGHT) is BLOCK
    assert BLOCK.where_determined(1e9, HALF_BRIGHT) is BLOCK
    between = float(np.sqrt(np.prod(DETERMINED)))  # half of the way, in logarithms
    np.testing.assert_allclose(limits(between), np.sqrt(0.4 * limits(DETERMINED[0])), rtol=1e-6)
    plain = md.SparsityBlock("pixels", 100.0, tau_limit=0.4)
    assert plain.where_determined(2.0, HALF_BRIGHT) is plain
    low = md.SparsityBlock("pixels", 100.0, tau_limit=0.01, tau_limit_bright=0.02)
    np.testing.assert_allclose(limits(2.0, low), 0.01)


def test_a_limit_of_every_pixel_is_that_of_its_site_also_where_it_is_reweighted() -> None:
    """tau = 100 sigma / signal = 0.1 where the limit is larger."""
    block = BLOCK.where_determined(2.0, HALF_BRIGHT)
    tau = block.limited_for_non_local().sites(ImageFacts(GRID, 1.0), 0.001).potential.rate
    np.testing.assert_allclose(tau, np.minimum(0.1, block.tau_limit), rtol=1e-6)
    np.testing.assert_array_equal(BLOCK.less_where_bright(HALF_BRIGHT).tau_limit, limits(DETERMINED[0]))

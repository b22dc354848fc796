"""Reconstruction under a prior with a non-local block: better images, every engine and solver, said fallbacks."""

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import LBFGS
from mri_design.evaluation import relative_l2
from mri_design.evidence import is_non_local, posterior_mean
from mri_design.experiment import Image, load_scan
from mri_design.model import PhasePrior, non_locally_refined
from mri_design.sites import Laplace
from mri_design.variances import ControlVariate, Exact, MonteCarlo, VarianceEstimator

LINES = sorted({*range(20, 29), *range(1, 48, 5)})


def recipe_of(matrix: int = 48, **simulation: object) -> md.Recipe:
    return md.Recipe().replacing("input", matrix=matrix).replacing("simulation", **simulation)


def scan_of(recipe: md.Recipe, name: str = "t2w") -> md.KSpaceData:
    return md.calibrate(load_scan(f"phantom:{name}", recipe), recipe)


def image_of(one: md.SliceModel, recipe: md.Recipe, method: str = "mean", with_std: bool = False) -> Image:
    return md.reconstruct(one, LINES, method, recipe, np.random.default_rng(0), with_std=with_std)  # type: ignore[arg-type]


def plain(one: md.SliceModel) -> md.SliceModel:
    return replace(one, prior=tuple(block for block in one.prior if block.kind != "non-local"))


@pytest.fixture(scope="module")
def slice_of_32() -> md.SliceModel:
    return scan_of(recipe_of(32)).slice_model(0, **recipe_of(32).slice_settings)


@pytest.fixture(scope="module")
def small_model() -> Callable[..., md.GeneralizedLinearModel]:
    """(phase=None) -> the model of a slice of 16 x 16 that knows what is alike in its image from all lines."""
    recipe = recipe_of(16)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)

    def build(phase: PhasePrior | None = None) -> md.GeneralizedLinearModel:
        seen = non_locally_refined(replace(one, phase=phase), one.central_image(range(16)))
        return seen.model([*range(6, 11), 2, 13])

    return build


@pytest.mark.parametrize("method", ["mean", "map"])
@pytest.mark.slow
def test_the_image_gets_better_and_stays_the_same_from_run_to_run(method: str) -> None:
    recipe = recipe_of()
    scan = scan_of(recipe)
    one, truth = scan.slice_model(0, **recipe.slice_settings), md.experiment.truth_of(scan)
    first, second = (image_of(one, recipe, method) for _ in range(2))
    np.testing.assert_array_equal(first.image, second.image)
    assert first.convergence.converged and not first.left_out
    assert relative_l2(first.image, truth) < 0.98 * relative_l2(image_of(plain(one), recipe, method).image, truth)


def test_without_an_image_the_block_is_left_out_of_the_model(slice_of_32: md.SliceModel) -> None:
    one = slice_of_32
    assert is_non_local(one) and not is_non_local(plain(one))
    assert [block.name for block in one.model(range(32)).blocks] == ["pixels", "differences"]
    seen = non_locally_refined(one, one.central_image(range(32)))
    blocks = seen.model(range(32)).blocks
    assert [block.name for block in blocks] == ["pixels", "differences", "non-local"]
    assert blocks[2].analysis.out_shape == (6, 32, 32) and blocks[2].site_shape == (1, 32, 32)


def test_an_image_without_structure_falls_back_and_says_so(slice_of_32: md.SliceModel) -> None:
    recipe, one = recipe_of(32), slice_of_32
    rng = np.random.default_rng(5)
    noise = rng.standard_normal(one.kspace.shape) + 1j * rng.standard_normal(one.kspace.shape)
    snow = replace(one, kspace=noise.astype(np.complex64), noise_variance=1e-4)
    for method in ("mean", "map"):
        result, other = (
            md.reconstruct(s, range(32), method, recipe, np.random.default_rng(0), with_std=False)  # type: ignore[arg-type]
            for s in (snow, plain(snow))
        )
        assert result.left_out
        assert relative_l2(result.image, other.image) < 0.01


def test_of_noisy_scans_plain_differences_are_weaker_beside_the_block_only() -> None:
    recipe = recipe_of(32, noise=0.08)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)
    lines = range(32)
    without, beside = (s.model(lines) for s in (one, non_locally_refined(one, one.central_image(lines))))
    sd, level = float(np.sqrt(one.noise_variance)), one.signal_level(lines)
    tau = [_largest_tau(model, 1) for model in (without, beside)]
    np.testing.assert_allclose(tau, [10 * sd / level, 0.1], rtol=1e-6)
    assert _largest_tau(without, 0) == _largest_tau(beside, 0)
    assert _largest_tau(beside, 2) <= 1.0 + 1e-6


def _largest_tau(model: md.GeneralizedLinearModel, block: int) -> float:
    site = model.blocks[block].potential
    assert isinstance(site, Laplace)
    return float(np.max(site.rate))


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.slow
def test_every_variance_estimator_gives_nearly_the_exact_posterior(
    small_model: Callable[..., md.GeneralizedLinearModel], aware: bool
) -> None:
    model = small_model(PhasePrior(None, 2.0) if aware else None)

    def infer(variances: VarianceEstimator) -> md.DoubleLoop:
        return md.DoubleLoop(variances, LBFGS(1e-7), outer_iterations=4, tolerance=1e-3)

    exact = infer(Exact()).infer(model, np.random.default_rng(0))
    for estimator, most in ((ControlVariate(48, 0.01), 0.02), (MonteCarlo(48, 1e-3), 0.02)):
        found = infer(estimator).infer(model, np.random.default_rng(0))
        assert relative_l2(found.mean, exact.mean) < most
        ratio = found.image_variances.sum() / exact.image_variances.sum()
        assert 0.9 < ratio < 1.1


def test_what_cannot_take_the_block_leaves_it_out_and_says_so(slice_of_32: md.SliceModel) -> None:
    recipe, lines = recipe_of(32).replacing("inference", variances="exact-columns"), [*range(10, 22), 3, 27]
    result, other = (
        md.reconstruct(one, lines, "mean", recipe, np.random.default_rng(0), with_std=False)
        for one in (slice_of_32, plain(slice_of_32))
    )
    assert result.left_out and not other.left_out
    assert relative_l2(result.image, other.image) < 0.01


def test_coils_that_determine_an_image_pull_its_bright_pixels_less_towards_zero() -> None:
    """Every second line of eight coils leaves little open; every sixth and four at the centre leave much."""
    recipe = recipe_of(32, coils=8)
    prepared = scan_of(recipe)
    one, truth = prepared.slice_model(0, **recipe.slice_settings), md.experiment.truth_of(prepared)
    inside = np.abs(truth) > 0.1 * np.abs(truth).max()

    def made(one: md.SliceModel, lines: list[int]) -> np.ndarray:
        return md.reconstruct(one, lines, "mean", recipe, np.random.default_rng(0), with_std=False).image

    dense, sparse = [*range(0, 32, 2), 13, 15, 17, 19], [*range(0, 32, 6), 15, 16, 17]
    same = replace(one, prior=tuple(replace(block, tau_limit_bright=None) for block in one.prior))  # type: ignore[type-var]
    before, after = made(same, dense), made(one, dense)
    errors = [relative_l2(np.where(inside, image, 0), np.where(inside, truth, 0)) for image in (before, after)]
    assert errors[1] < 0.99 * errors[0]
    np.testing.assert_array_equal(made(one, sparse), made(same, sparse))


def test_reweighted_pixels_of_one_coil_follow_the_image_so_far() -> None:
    """The limits of the last estimate are those that the image before it asks for; dark pixels keep theirs."""
    recipe = recipe_of(32)
    pixels, *others = recipe.blocks()
    prior = (replace(pixels, reweighted=True), *others)
    one = scan_of(recipe).slice_model(0, **replace(recipe, prior=prior).slice_settings)
    lines, engine = [*range(0, 32, 3), 14, 16, 17], recipe.inference.engine()
    with patch.object(md.DoubleLoop, "infer", autospec=True, side_effect=md.DoubleLoop.infer) as inferring:
        made, *_ = posterior_mean(one, lines, engine, np.random.default_rng(0))
    (block,) = (block for block in made.model.blocks if block.name == "pixels")
    before = inferring.call_args.kwargs["warm_start"].mean
    wanted = one.prior[0].less_where_bright(before).tau_limit  # type: ignore[union-attr]
    tau = np.asarray(block.potential.rate)  # type: ignore[attr-defined]
    np.testing.assert_allclose(tau, np.minimum(wanted, tau.max()), rtol=1e-5)
    assert tau.max() > 2 * tau.min()

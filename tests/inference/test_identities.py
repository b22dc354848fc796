"""What TR-175 states about log|A| and z, on dense matrices (Theorem 1)."""

import numpy as np
import pytest

from mri_design import Exact, GeneralizedLinearModel
from mri_design.model.precision import PosteriorPrecision


def log_a(model: GeneralizedLinearModel, pi: tuple[np.ndarray, ...]) -> float:
    return float(np.linalg.slogdet(PosteriorPrecision(model.measurement, model.blocks, pi).dense_real())[1])


def random_gammas(model: GeneralizedLinearModel, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return tuple(np.exp(rng.normal(rng.uniform(-2, 2), 1, b.site_shape)) for b in model.blocks)


def pooled_z(model: GeneralizedLinearModel, pi: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    values = Exact()(
        precision, [b.analysis for b in model.blocks], np.random.default_rng(0), model.back_projection()
    ).values
    return [b.pooled(z) for b, z in zip(model.blocks, values, strict=True)]


def test_z_is_the_gradient_of_log_a_in_pi(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    z = pooled_z(model, pi)
    rng = np.random.default_rng(2)
    for _ in range(3):
        direction = [rng.standard_normal(p.shape) for p in pi]
        step = 1e-5
        ends = [
            log_a(model, tuple(p + sign * step * d for p, d in zip(pi, direction, strict=True))) for sign in (1, -1)
        ]
        slope = sum(float(np.sum(a * d)) for a, d in zip(z, direction, strict=True))
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_z_lies_between_zero_and_gamma(tiny_model, model_name, random_precisions):
    """Times the number of real coefficients that share the site."""
    model = tiny_model(model_name)
    for seed in range(3):
        pi = random_precisions(model, seed)
        for block, z, one in zip(model.blocks, pooled_z(model, pi), pi, strict=True):
            count = block.analysis.out_size // int(np.prod(block.site_shape))
            assert (z > 0).all() and (z <= count / one * (1 + 1e-9)).all()


def test_log_a_is_concave_in_pi_convex_in_gamma_and_concave_with_log_gamma(tiny_model, model_name):
    """Theorem 1, parts 1, 2 and 3; the last with every site counted as often as it has real coefficients."""
    model = tiny_model(model_name)
    rng = np.random.default_rng(3)
    counts = [b.analysis.out_size // int(np.prod(b.site_shape)) for b in model.blocks]

    def logs(gammas: tuple[np.ndarray, ...]) -> float:
        return sum(count * float(np.log(g).sum()) for count, g in zip(counts, gammas, strict=True))

    for _ in range(6):
        a, b = (random_gammas(model, rng) for _ in range(2))
        middle = tuple((x + y) / 2 for x, y in zip(a, b, strict=True))
        inverse = [tuple(1 / g for g in gammas) for gammas in (a, b, middle)]
        of_a, of_b, of_middle = (log_a(model, pi) for pi in inverse)
        assert of_middle <= (of_a + of_b) / 2 + 1e-9
        assert of_middle + logs(middle) >= (of_a + logs(a) + of_b + logs(b)) / 2 - 1e-9
        between = tuple((x + y) / 2 for x, y in zip(inverse[0], inverse[1], strict=True))
        assert log_a(model, between) >= (of_a + of_b) / 2 - 1e-9

"""X and B with a common null space are refused before anything is computed, others never."""

import numpy as np
import pytest

import mri_design as md
from mri_design.model import require_determined
from mri_design.operators import Diagonal, PhasedParts, RealImage
from tests.refusals import refused

SHAPE = (6, 4)


def model_of(X, *analyses, names=("differences", "more")) -> md.GeneralizedLinearModel:
    blocks = tuple(md.SiteBlock(name, B, md.Laplace(1.0)) for name, B in zip(names, analyses, strict=False))
    return md.GeneralizedLinearModel(X, np.zeros(X.out_shape, complex if X.out_complex else float), 1.0, blocks)


def coils() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, *SHAPE)) + 1j * rng.standard_normal((2, *SHAPE))


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.cartesian([0, 3], SHAPE), md.FiniteDifferences(SHAPE)),
        model_of(md.cartesian([0, 1], SHAPE), md.Identity(SHAPE)),
        model_of(md.cartesian([0], SHAPE), md.Wavelet(SHAPE, "db1", 1)),
        model_of(md.cartesian([0, 1], SHAPE), md.FiniteDifferences(SHAPE), md.Identity(SHAPE)),
        model_of(md.cartesian([0, 1], SHAPE, coils()), md.FiniteDifferences(SHAPE)),
        model_of(md.cartesian([3], SHAPE) @ RealImage(SHAPE), md.FiniteDifferences(SHAPE, is_complex=False)),
        model_of(md.Dense(np.ones((1, 3))), md.Dense(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))),
    ],
    ids=["centre", "pixels", "wavelet", "both", "coils", "real image", "matrix"],
)
def test_determined_models_pass(model):
    require_determined(model)


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.cartesian([0, 1], SHAPE), md.FiniteDifferences(SHAPE)),
        model_of(md.cartesian([0, 1], SHAPE) @ RealImage(SHAPE), md.FiniteDifferences(SHAPE, is_complex=False)),
        model_of(
            md.cartesian([0, 1], SHAPE, np.array([[[1.0 + 0j]], [[0.5j]]]) * np.ones(SHAPE)),
            md.FiniteDifferences(SHAPE),
        ),
        model_of(md.Dense(np.array([[1.0, -1.0, 0.0]])), md.Dense(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))),
        md.GeneralizedLinearModel.of_sites([md.SiteBlock("differences", md.FiniteDifferences(SHAPE), md.Laplace(1.0))]),
    ],
    ids=["no centre", "real image", "flat coils", "matrix", "prior alone"],
)
def test_a_common_null_space_is_refused_with_its_blocks_and_the_cure(model):
    with refused("model with blocks 'differences'"):
        require_determined(model)
    with refused("model with blocks 'differences'"):
        md.DoubleLoop().infer(model, np.random.default_rng(0))


def test_where_a_block_is_known_to_see_every_image_nothing_is_solved(monkeypatch):
    monkeypatch.setattr("mri_design.model.generalized_linear._null_direction_found", lambda *_: pytest.fail("probed"))
    shape = (40, 20)
    rotation = np.exp(1j * np.random.default_rng(0).uniform(-3, 3, shape))
    pixels, slopes = (PhasedParts(B, rotation, 3.0) for B in (md.Identity(shape), md.FiniteDifferences(shape)))
    require_determined(model_of(md.cartesian([0, 3], shape, np.ones((2, *shape))), slopes, pixels))
    with pytest.raises(pytest.fail.Exception, match="probed"):  # differences alone see no constant image
        require_determined(model_of(md.cartesian([0, 3], shape, np.ones((2, *shape))), slopes))


def large(free: int, kind: type) -> md.GeneralizedLinearModel:
    """Beyond dense rank computations and without known spectra: pixels with weights, ``free`` of them 0."""
    shape = (40, 20)
    seen = np.geomspace(1, 100, 800).reshape(shape).astype(kind)
    seen.ravel()[100 : 100 + free] = 0
    one, two = Diagonal(seen), Diagonal(seen[::-1, ::-1] * (seen > 0))
    return model_of(one, two)


@pytest.mark.parametrize(("free", "kind"), [(1, np.float64), (30, np.float32)])
def test_a_null_space_of_a_large_model_is_found_by_a_probe(free, kind):
    with refused("model with blocks 'differences'"):
        require_determined(large(free, kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.thorough
def test_large_determined_models_pass_the_probe(kind):
    require_determined(large(0, kind))
    weights = np.geomspace(1e-4, 1, 800).reshape(40, 20).astype(kind)
    require_determined(model_of(Diagonal(weights), Diagonal(weights)))
    rows = np.random.default_rng(0).standard_normal((900, 800)).astype(kind)
    require_determined(model_of(md.Dense(rows[:450]), md.Dense(rows[450:])))
    require_determined(model_of(md.Dense(1e6 * rows[:450]), md.Dense(1e-3 * rows[450:])))
    with refused("model with blocks 'differences'"):
        require_determined(model_of(md.Dense(rows[:400]), md.Dense(rows[400:790])))

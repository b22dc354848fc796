"""A site and a kind of coefficients of one's own: a file and a line each in the package, or two calls in a script."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mri_design import (
    Coefficients,
    FiniteDifferences,
    Generic,
    LinearOperator,
    load_recipe,
    prepare,
    reconstruct,
    register_block,
    register_site,
)
from mri_design.experiment import load_input
from mri_design.priors import BLOCKS, SITES

RECIPE = """
[simulation]
matrix = 16
[phase]
model = "modulus"
[inference]
samples = 4
loops = 4
tolerance = 0.3
[reconstruction]
std_samples = 4
[[prior]]
kind = "differences"
scale = 10.0
site = "cauchy"
[[prior]]
kind = "row-sums"
scale = 0.1
[[prior]]
kind = "pixels"
scale = 10.0
"""


@pytest.fixture
def registered() -> Iterator[None]:
    register_site("cauchy", cauchy)
    register_block("halves", lambda block, image: Coefficients(Halves(image.shape)))
    yield
    del SITES["cauchy"], BLOCKS["halves"]


class Halves(FiniteDifferences):
    """Anything with an adjoint."""


def cauchy(tau: np.ndarray) -> Generic:
    width = 1 / np.square(tau)
    return Generic(
        lambda x: -np.log1p(x / width),
        lambda x: -1 / (width + x),
        lambda x: 1 / (width + x) ** 2,
        log_concave=False,
        name="Cauchy",
    )


def test_a_script_registers_both_and_recipes_name_them(registered: None, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE.replace("row-sums", "halves"))
    recipe = load_recipe(path)
    scan = prepare(load_input("phantom:t2w", recipe), recipe)
    one = scan.slice_model(0, recipe)
    assert isinstance(one.model().blocks[1].analysis, LinearOperator)
    image = reconstruct(one, range(4, 12), "mean", recipe, np.random.default_rng(0), with_std=False).image
    assert np.isfinite(image).all()

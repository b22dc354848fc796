"""A site and a kind of coefficients of one's own: a file and a line each in the package, or two calls in a script."""

from pathlib import Path

import numpy as np

import mri_design as md
from mri_design.experiment import load_input

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
kind = "halves"
scale = 0.1
[[prior]]
kind = "pixels"
scale = 10.0
"""


def cauchy(tau: np.ndarray) -> md.Generic:
    width = 1 / np.square(tau)
    return md.Generic(
        lambda x: -np.log1p(x / width),
        lambda x: -1 / (width + x),
        lambda x: 1 / (width + x) ** 2,
        log_concave=False,
        name="Cauchy",
    )


def test_a_script_registers_both_and_recipes_name_them(tmp_path: Path) -> None:
    md.register_site("cauchy", cauchy)
    md.register_block("halves", lambda block, image: md.Coefficients(md.FiniteDifferences(image.shape)))
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE)
    recipe = md.load_recipe(path)
    scan = md.prepare(load_input("phantom:t2w", recipe), recipe)
    one = scan.slice_model(0, recipe)
    assert isinstance(one.model().blocks[1].analysis, md.LinearOperator)
    image = md.reconstruct(one, range(4, 12), "mean", recipe, np.random.default_rng(0), with_std=False).image
    assert np.isfinite(image).all()

"""A site and a kind of coefficients of one's own: a file and a line each in the package, or two calls in a script."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mri_design import (
    Coefficients,
    FiniteDifferences,
    Generic,
    ImageFacts,
    InputError,
    LinearOperator,
    Recipe,
    SparsityBlock,
    load_input,
    load_recipe,
    prepare,
    reconstruct,
    register_block,
    register_site,
)
from mri_design.priors import BLOCKS, SITES

REPOSITORY = Path(__file__).parents[2]
OPERATOR = """
from mri_design.operators.base import LinearOperator


class RowSums(LinearOperator):
    def __init__(self, shape):
        super().__init__(shape, shape[:1])

    def _apply(self, u):
        return u.sum(axis=-1)

    def _adjoint(self, v):
        return v[..., None].repeat(self.in_shape[1], axis=-1)


def row_sums(block, image):
    return RowSums(image.shape)
"""
SITE = """
import numpy as np

from mri_design.potentials.priors import Generic


def cauchy(tau):
    width = 1 / np.square(tau)
    return Generic(
        lambda x: -np.log1p(x / width),
        lambda x: -1 / (width + x),
        lambda x: 1 / (width + x) ** 2,
        log_concave=False,
        name="Cauchy",
    )
"""
LINES = """
register_block("row-sums", Shipped("operators.row_sums", "row_sums"))
register_site("cauchy", Shipped("potentials.cauchy", "cauchy"))
"""
BOTH = """
import sys
from mri_design.cli.start import main
for sys.argv[1:] in {}:
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (None, 0, 4), ended
"""
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


@pytest.mark.slow
def test_a_planted_site_and_a_planted_block_go_through_design_recon_and_report(tmp_path: Path) -> None:
    package, own = tmp_path / "mri_design", REPOSITORY / "mri_design"
    copied = (own / "operators", own / "potentials", own / "priors.py")
    for folder in ("", "operators", "potentials"):  # the rest by links, so that nothing is compiled anew
        (package / folder).mkdir()
        for entry in (own / folder).iterdir():
            if entry not in copied and entry.name != "__pycache__":
                (package / folder / entry.name).symlink_to(entry)
    shutil.copy(own / "priors.py", package)
    (tmp_path / "phantoms").symlink_to(REPOSITORY / "phantoms")
    (package / "operators" / "row_sums.py").write_text(OPERATOR)
    (package / "potentials" / "cauchy.py").write_text(SITE)
    with (package / "priors.py").open("a") as registry:
        registry.write(LINES)
    (tmp_path / "mine.toml").write_text(RECIPE)
    verbs = ("design phantom:brain --lines 7 --start 5 --out d", "recon phantom:brain --mask d/mask.npy --out r")
    code = BOTH.format([[*words.split(), "--recipe", "mine.toml"] for words in verbs])
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for out in ("d", "r"):
        page = (tmp_path / out / "report.html").read_text(encoding="utf-8")
        assert "row-sums" in page and "cauchy" in page


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


@pytest.mark.parametrize("site", ["student-t", "sech2"])
def test_other_sites_than_laplace_make_an_image(site: str) -> None:
    recipe = Recipe.of(
        {
            "prior": [{"kind": "pixels", "scale": 30.0}, {"kind": "differences", "scale": 10.0, "site": site}],
            "simulation": {"matrix": 24},
            "phase": {"model": "modulus"},
        }
    )
    one = prepare(load_input("phantom:brain", recipe), recipe).slice_model(0, recipe)
    result = reconstruct(one, [*range(8, 16), 3, 20], "mean", recipe, np.random.default_rng(0))
    assert np.isfinite(result.image).all() and result.std is not None
    assert result.std_factor is not None and result.std_factor.how == "held back"


def test_what_cannot_be_registered_or_named_is_refused() -> None:
    with pytest.raises(InputError, match="letters, digits and hyphens"):
        register_site("a b", cauchy)
    with pytest.raises(InputError, match="a function or a class that makes it"):
        register_block("mine", 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"site: got 'laplas'; wanted .*laplace"):
        SparsityBlock("pixels", 1.0, site="laplas")
    assert ImageFacts((4, 4), 1.0).alike is None


def test_a_block_that_makes_no_operator_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BLOCKS, "nothing", lambda block, image: None)
    with pytest.raises(InputError, match=r"block nothing: got None; wanted a LinearOperator"):
        SparsityBlock("nothing", 1.0).sites((4, 4), 1.0, 0.1)

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from mri_design.errors import InputError
from mri_design.estimation import ADMM, IRLS, LBFGS, Automatic
from mri_design.experiment import Recipe, load_recipe, make_strategy, shipped_recipes
from mri_design.inference import DoubleLoop
from mri_design.variances import ControlVariate, Exact, ExactByColumns, Lanczos, MonteCarlo


def test_the_shipped_default_is_the_recipe_in_force_without_one() -> None:
    assert load_recipe("default") == Recipe() == load_recipe(None)


def test_the_shipped_default_lists_every_setting_with_a_comment() -> None:
    """Settings without a default, and those of other kinds of blocks, are there as commented-out lines."""
    text = (resources.files("mri_design") / "recipes" / "default.toml").read_text(encoding="utf-8")
    every = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
    listed = tomllib.loads(every)
    assert Recipe.model_validate(listed)
    settings = Recipe().as_settings()
    assert {block["kind"] for block in listed["prior"]} == {"pixels", "differences", "wavelet"}
    assert {key for block in listed.pop("prior") for key in block} == set(settings.pop("prior")[0])
    assert set(listed) == set(settings)
    for section, values in settings.items():
        if isinstance(values, dict):
            assert set(listed[section]) == set(values), section
            in_force = tomllib.loads(text)[section]
            assert in_force == {key: value for key, value in values.items() if value is not None}
    assert not re.findall(r"^\w+ = [^#]*$", every, flags=re.MULTILINE)  # none without its comment


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_makes_its_parts(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.blocks()
    assert isinstance(recipe.inference.engine(), DoubleLoop)
    assert make_strategy(recipe.design.strategy).name == recipe.design.strategy


def test_the_recipes_of_the_help_are_there() -> None:
    assert set(shipped_recipes()) == {"default", "fast", "lanczos", "tv-wavelet"}


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("colour = 1", "colour", "Extra inputs"),
        ("[inference]\nsample = 3", "inference.sample", "Extra inputs"),
        ("[inference]\nsamples = 1", "inference.samples", "greater than or equal to 2"),
        ("[inference]\nsamples = '12'", "inference.samples", "valid integer"),
        ("[inference]\nsamples = 12.5", "inference.samples", "valid integer"),
        ("[inference]\nloops = true", "inference.loops", "valid integer"),
        ("[inference]\nloops = 0", "inference.loops", "greater than or equal to 1"),
        ("[inference]\ntolerance = -0.1", "inference.tolerance", "greater than 0"),
        ("[inference]\ntolerance = nan", "inference.tolerance", "finite"),
        (
            "[inference]\nvariances = 'guess'",
            "inference.variances",
            "'control-variate', 'perturb-and-solve', 'lanczos', 'exact-columns' or 'exact'",
        ),
        ("[input]\nduplicates = 'first'", "input.duplicates", "'error', 'average' or 'last'"),
        ("[noise]\nvariance = inf", "noise.variance", "finite"),
        ("[noise]\nvariance = 0.0", "noise.variance", "greater than 0"),
        ("[coils]\ncalibration_lines = 4", "coils.calibration_lines", "greater than or equal to 8"),
        ("[simulation]\nnoise = -0.01", "simulation.noise", "greater than 0"),
        ("[simulation]\nmatrix = 8", "simulation.matrix", "greater than or equal to 16"),
        ("[simulation]\nmatrix = 1000000", "simulation.matrix", "less than or equal to 2048"),
        ("[[prior]]\nkind = 'pixels'", "prior.0.scale", "Field required"),
        ("[[prior]]\nkind = 'pixels'\nscale = '1'", "prior.0.scale", "valid number"),
        ("[[prior]]\nkind = 'curvelets'\nscale = 1", "prior.0.kind", "'pixels', 'differences' or 'wavelet'"),
        ("prior = 3", "prior", "valid tuple"),
        ("inference = 3", "inference", "valid dictionary"),
        ("[reconstruction]\nmethod = 'magic'", "reconstruction.method", "'mean', 'map'"),
        ("fft = 'mkl'", "fft", "'scipy' or 'pyfftw'"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_wanted(tmp_path: Path, text: str, place: str, wanted: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    assert caught.value.field == f"recipe mine.toml: {place}"
    assert wanted in caught.value.wanted
    assert str(tmp_path) not in str(caught.value)


def test_a_recipe_without_any_block_is_refused_where_the_prior_is_made(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("prior = []")
    with pytest.raises(InputError, match=r"recipe: prior: got no block; wanted at least one \[\[prior\]\] table"):
        load_recipe(path).blocks()


def test_a_file_changes_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[inference]\nloops = 3\n[[prior]]\nkind = 'pixels'\nscale = 5\n")
    recipe = load_recipe(path)
    assert recipe.inference.loops == 3
    assert [b.kind for b in recipe.prior] == ["pixels"]
    assert recipe.inference.samples == Recipe().inference.samples
    assert recipe.simulation == Recipe().simulation


@pytest.mark.parametrize(
    ("content", "got"),
    [(b"[inference", "Expected"), (b"a = 1\na = 2", "Cannot overwrite"), (b"\xff\xfe", "codec can't decode")],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes, got: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"mine\.toml") as caught:
        load_recipe(path)
    assert got in caught.value.got


def test_a_missing_file_is_named_and_the_shipped_ones_offered(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_recipe(tmp_path / "absent.toml")
    assert caught.value.field == "recipe absent.toml"
    assert caught.value.got == "No such file or directory"
    assert "default, fast, lanczos, tv-wavelet" in caught.value.wanted
    with pytest.raises(InputError, match="Is a directory"):
        load_recipe(tmp_path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with path.open("wb") as stream:
        stream.truncate(1 << 33)
    with pytest.raises(InputError, match="got 8589934592 bytes"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exact", Exact),
        ("exact-columns", ExactByColumns),
        ("lanczos", Lanczos),
        ("perturb-and-solve", MonteCarlo),
        ("control-variate", ControlVariate),
    ],
)
def test_variances_by_name(name: str, kind: type) -> None:
    recipe = Recipe.model_validate({"inference": {"variances": name, "samples": 7, "lanczos_steps": 31}})
    estimator = recipe.inference.estimator()
    assert isinstance(estimator, kind)
    assert getattr(estimator, "samples", 7) == 7
    assert getattr(estimator, "steps", 31) == 31


def test_settings_are_frozen_and_plain_for_a_manifest() -> None:
    recipe = Recipe()
    with pytest.raises(ValueError, match="frozen"):
        recipe.fft = "pyfftw"
    settings = recipe.as_settings()
    assert settings["inference"]["samples"] == 8
    assert settings["prior"][0] == {
        "kind": "pixels",
        "scale": 100.0,
        "isotropic": False,
        "wavelet": "db4",
        "levels": 3,
        "coarse_scale": 0.1,
        "tau_limit": 0.4,
    }
    assert Recipe.model_validate(settings) == recipe


@pytest.mark.parametrize(("name", "kind"), [("automatic", Automatic), ("irls", IRLS), ("lbfgs", LBFGS), ("admm", ADMM)])
def test_solvers_and_classes_by_name(name: str, kind: type) -> None:
    chosen = {"solver": name, "algorithm": "hybrid", "inner_tolerance": 0.5, "inner_iterations": 7}
    recipe = Recipe.model_validate({"inference": chosen})
    engine = recipe.inference.engine()
    assert engine.algorithm == "hybrid"
    for solver in (engine.inner, recipe.reconstruction.map_estimate(recipe.inference).inner):
        assert type(solver) is kind
        assert (solver.tolerance, solver.max_iterations) == (0.5, 7)

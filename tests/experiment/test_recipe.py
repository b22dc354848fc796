import json
import tomllib
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import ADMM, IRLS, LBFGS, Automatic
from mri_design.experiment.recipe import SHIPPED, recipe_schema, shipped_recipes
from mri_design.variances import ControlVariate, Exact, ExactByColumns, Lanczos, MonteCarlo
from tests.refusals import refused


def test_the_shipped_default_is_the_recipe_in_force_without_one() -> None:
    assert md.load_recipe("default") == md.Recipe() == md.load_recipe(None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("colour = 1", "colour"),
        ("[inference]\nsamples = 1", "inference.samples"),
        ("[inference]\nsamples = 12.5", "inference.samples"),
        ("[inference]\ntolerance = -0.1", "inference.tolerance"),
        ("[inference]\ntolerance = nan", "inference.tolerance"),
        ("[inference]\nvariances = 'guess'", "inference.variances"),
        ("[input]\nmatrix = [8, 3]", "input.matrix"),
        ("[[prior]]\nkind = 'pixels'", "prior.0.rate"),
        ("[[prior]]\nkind = 'curvelets'\nrate = 1", "prior.0.kind"),
        ("prior = 3", "prior"),
        ("inference = 3", "inference"),
        ("[[prior]]\nkind = 'wavelet:db4:0'\nrate = 1", "prior.0.kind"),
        ("[[prior]]\nkind = 'pixels:3'\nrate = 1", "prior.0.kind"),
        ("[design]\norder = 'ascending:2'", "design.order"),
        ("[coils]\nmaps = 'espirit:7'", "coils.maps"),
        ("[inference]\nvariances = 'control-variate:0'", "inference.variances"),
        ("[inference]\nvariances = 'exact:0.1'", "inference.variances"),
        ("[inference]\nsolver = 'irls:nan'", "inference.solver"),
        ("[[prior]]\nkind = 'pixels'\nrate = 1\nisotropic = 1", "prior.0.isotropic"),
        ("[constraints]\nforbid = 'a'", "constraints.forbid"),
        ("[constraints]\nmax_jump = 0", "constraints.max_jump"),
        ("[design]\nuntil_gain = inf", "design.until_gain"),
        ("[constraints]\npartial_fourier = 0.3", "constraints.partial_fourier"),
        ("[design]\nstrategy = 'oracle-greedy'", "design.strategy"),
        ("[design]\nstrategy = 'random:2'", "design.strategy"),
        ("[input]\nnoise = 0", "input.noise"),
        ("[input]\nnoise = 1e200", "input.noise"),
        ("[input.series]\ncontrast = 'all'\nset = 'all'", "input.series"),
        ("[input.series]\nset = -1", "input.series"),
        ("[input.series]\nslice = 1", "input.series"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with refused(f"recipe mine.toml: {place}") as caught:
        md.load_recipe(tmp_path / "mine.toml")
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("[design]\nstratgy = 'random'", "design.strategy"),
        ("[desing]\nblock = 3", "design"),
        ("[design]\nsamples = 3", "inference.samples"),
        ("[[prior]]\nkind = 'pixels'\nrat = 3", "prior.0.rate"),
        ("[design]\norder = 'interleave'", "interleaved"),
        ("[design]\nstrategy = 'randm'", "random"),
    ],
)
def test_the_cure_is_the_nearest_key_or_choice(tmp_path: Path, text: str, near: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(md.InputError) as caught:
        md.load_recipe(tmp_path / "mine.toml")
    assert near in caught.value.cure


def test_every_shipped_recipe_fits_the_shipped_schema() -> None:
    shipped = json.loads((SHIPPED / "recipe.schema.json").read_text("utf-8"))
    assert shipped == json.loads(json.dumps(recipe_schema()))
    validator = pytest.importorskip("jsonschema").Draft202012Validator(shipped)
    for name in shipped_recipes():
        text = (SHIPPED / f"{name}.toml").read_text("utf-8")
        assert text.startswith("#:schema recipe.schema.json\n")
        validator.validate(tomllib.loads(text))
    for wrong in (
        {"inference": {"samples": 1}},
        {"desing": {}},
        {"design": {"stratgy": "random"}},
        {"input": {"noise": 0}},
    ):
        assert not validator.is_valid(wrong)


def test_a_recipe_without_any_block_is_refused_where_the_prior_is_made() -> None:
    with refused("recipe: prior"):
        md.Recipe.of({"prior": []}).blocks()


def test_a_file_changes_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[inference]\nloops = 3\n[[prior]]\nkind = 'pixels'\nrate = 5\n")
    recipe = md.load_recipe(path)
    assert recipe.inference.loops == 3
    assert [b.kind for b in recipe.prior] == ["pixels"]
    assert recipe.inference.samples == md.Recipe().inference.samples
    assert recipe.simulation == md.Recipe().simulation


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for content in (b"[inference", b"a = 1\na = 2", b"\xff\xfe"):
        path.write_bytes(content)
        with refused("recipe mine.toml"):
            md.load_recipe(path)
    for missing in (tmp_path / "absent.toml", tmp_path):
        with refused(f"recipe {missing.name}") as caught:
            md.load_recipe(missing)
        assert "default, fast" in caught.value.wanted
    with path.open("wb") as stream:
        stream.truncate(1 << 33)  # which is not read
    with refused(str(path)):
        md.load_recipe(path)


def test_settings_of_a_command_line_are_those_of_a_file() -> None:
    texts = [
        "inference.samples=16",
        "input.series.set=1",
        "input.dims = ['kx', 'ky']",
        "constraints.forbid=0-9",
        "design.strategy=random",
        "design.until_error=7%",
        "constraints.partial_fourier=.75",
    ]
    lists = ["input.centre=40,35", "input.matrix=64,48", "constraints.require=13", "companion.trust=true"]
    recipe = md.Recipe().with_settings([*texts, *lists])
    assert recipe == md.Recipe.of(
        {
            "inference": {"samples": 16},
            "input": {"dims": ["kx", "ky"], "series": {"set": 1}, "centre": [40, 35], "matrix": [64, 48]},
            "constraints": {"forbid": "0-9", "require": "13", "partial_fourier": 0.75},
            "companion": {"trust": True},
            "design": {"strategy": "random", "until_error": 0.07},
        }
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *(("inference.samples", "setting"), ("samples=3", "setting"), ("inference.=3", "setting")),
        *(("inference.samples=few", "inference.samples"), ("inferenc.samples=3", "inferenc")),
        *(("design.stratgy=random", "design.stratgy"), ("design.strategy=randm", "design.strategy")),
        ("prior.0.rate=2", "prior.0.rate"),
    ],
)
def test_a_wrong_setting_of_a_command_line_is_named(text: str, place: str) -> None:
    with refused(f"recipe: {place}"):
        md.Recipe().with_settings([text])


def test_a_setting_is_a_value_or_given_by_its_parts() -> None:
    with refused("recipe: input.series"):
        md.Recipe().with_settings(["input.series=3", "input.series.contrast=3"])


def test_numbers_of_numpy_are_numbers_in_lists_and_tables_too() -> None:
    given = {"matrix": (np.int64(64), 48), "centre": [np.int32(3), 4], "series": {"contrast": np.int64(2)}}
    found = md.Recipe().replacing("input", noise=np.float32(0.5), **given).input
    assert (found.matrix, found.centre, found.series, found.noise) == ((64, 48), (3, 4), {"contrast": 2}, 0.5)
    assert all(type(number) is int for number in (*found.matrix, *found.centre))


def test_how_a_file_is_read_is_what_the_recipe_says() -> None:
    asked = {"duplicates": "last", "series": {"contrast": 1}, "dims": ["kx", "ky"], "centre": [3, 4], "matrix": [8, 6]}
    reading = md.Recipe.of({"input": asked}).input.reading
    wanted = {"duplicates": "last", "counters": {"contrast": 1}, "matrix": (8, 6), "dims": ("kx", "ky")}
    assert reading == wanted | {"centre": (3, 4), "noise": True}


def test_settings_are_frozen_and_plain_for_a_manifest() -> None:
    recipe = md.Recipe()
    with pytest.raises(FrozenInstanceError):
        recipe.design = md.Recipe().design  # type: ignore[misc]
    settings = recipe.as_settings()
    assert settings["inference"]["samples"] == 8
    assert md.Recipe.of(settings) == recipe


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("automatic", Automatic), ("irls", IRLS), ("lbfgs", LBFGS), ("admm", ADMM)),
        *(("exact", Exact), ("exact-columns", ExactByColumns), ("lanczos", Lanczos)),
        *(("perturb-and-solve", MonteCarlo), ("control-variate", ControlVariate)),
    ],
)
def test_solvers_and_variances_by_name(name: str, kind: type) -> None:
    chosen = {"solver": "irls:0.5"}
    chosen |= {"variances": name} if kind.__module__.startswith("mri_design.variances") else {"solver": f"{name}:5e-1"}
    made = md.Recipe.of({"inference": {"samples": 7} | chosen}).inference.engine()
    assert kind in (type(made.variances), type(made.inner))
    assert (getattr(made.variances, "samples", 7), getattr(made.variances, "steps", 100)) == (7, 100)
    assert made.inner.tolerance == 0.5


@pytest.mark.parametrize("rough", [False, True])
def test_lanczos_takes_the_steps_that_are_written_behind_it(rough: bool) -> None:
    made = md.Recipe.of({"inference": {"variances": "lanczos:20"}}).inference.engine(rough=rough)
    assert made.variances == Lanczos(20)
    with pytest.raises(md.InputError) as wrong:
        md.Recipe.of({"inference": {"variances": "lanczos:few"}})
    assert wrong.value.field.endswith("inference.variances")

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from mri_design import (
    ADMM,
    IRLS,
    LBFGS,
    Automatic,
    ControlVariate,
    DoubleLoop,
    Exact,
    ExactByColumns,
    InputError,
    Lanczos,
    MonteCarlo,
    Recipe,
    load_recipe,
    make_strategy,
)
from mri_design.experiment.recipe import shipped_recipes


def test_the_shipped_default_is_the_recipe_in_force_without_one() -> None:
    assert load_recipe("default") == Recipe() == load_recipe(None)


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_makes_its_parts(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.blocks()
    assert isinstance(recipe.inference.engine(), DoubleLoop)
    assert make_strategy(recipe.design.strategy).name == recipe.design.strategy


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("colour = 1", "colour", "one of: prior, phase, input"),
        ("[inference]\nsamples = 1", "inference.samples", "a whole number, 2 or more"),
        ("[inference]\nsamples = 12.5", "inference.samples", "a whole number, 2 or more"),
        ("[inference]\ntolerance = -0.1", "inference.tolerance", "a finite number, above 0"),
        ("[inference]\ntolerance = nan", "inference.tolerance", "finite"),
        (
            "[inference]\nvariances = 'guess'",
            "inference.variances",
            "'control-variate', 'perturb-and-solve', 'lanczos', 'exact-columns' or 'exact'",
        ),
        ("[simulation]\nmatrix = 8", "simulation.matrix", "a whole number, 16 to 2048"),
        ("[[prior]]\nkind = 'pixels'", "prior.0.scale", "a finite number, above 0"),
        ("[[prior]]\nkind = 'curvelets'\nscale = 1", "prior.0.kind", "'pixels', 'differences', 'wavelet'"),
        ("prior = 3", "prior", "one [[prior]] table or several"),
        ("inference = 3", "inference", "a table [inference]"),
        ("fft = 3", "fft", "'scipy' or 'pyfftw'"),
        ("[phase]\nimaginary_ratios = []", "phase.imaginary_ratios", "a list of 1 to 8, each a finite number, above 0"),
        ("[phase]\nimaginary_ratios = [0]", "phase.imaginary_ratios.0", "a finite number, above 0"),
        ("[[prior]]\nkind = 'pixels'\nscale = 1\nisotropic = 1", "prior.0.isotropic", "true or false"),
        ("[constraints]\nforbid = 'a'", "constraints.forbid", "numbers and ranges from 0, as 0-9,250-255"),
        ("[constraints]\nmax_jump = 0", "constraints.max_jump", "a whole number, 1 or more"),
        ("[design]\nuntil_gain = inf", "design.until_gain", "finite"),
        ("[constraints]\npartial_fourier = 0.3", "constraints.partial_fourier", "a finite number, 0.5 to 1"),
        ("[design]\nstrategy = 'oracle-greedy'", "design.strategy", "does without the truth"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[design]\nstratgy = 'random'", "design.stratgy: got an unknown setting; .* Did you mean design.strategy?"),
        ("[desing]\nblock = 3", "desing: got an unknown section; .* Did you mean design?"),
        (
            "[design]\nlanczos_steps = 3",
            "design.lanczos_steps: got an unknown setting; .* Did you mean inference.lanczos_steps?",
        ),
        ("[[prior]]\nkind = 'pixels'", "prior.0.scale: got nothing; .* Give prior.0.scale a value."),
        ("[[prior]]\nkind = 'pixels'\nscal = 3", "prior.0.scal: .* setting; .* Did you mean prior.0.scale?"),
        (
            "[design]\norder = 'interleave'",
            "design.order: got unknown order 'interleave'; .* Did you mean interleaved?",
        ),
        (
            "[design]\nstrategy = 'randm'",
            "design.strategy: got unknown strategy 'randm'; .* Did you mean random?",
        ),
        ("[design]\nstrategy = 'random:2'", "design.strategy: got 'random:2': strategy 'random' takes no power"),
    ],
)
def test_errors_name_the_nearest_key_or_choice(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    pattern = re.escape(f"recipe mine.toml: {message}").replace(r"\.\*", ".*")
    with pytest.raises(InputError, match=pattern):
        load_recipe(path)


@pytest.mark.parametrize(
    ("text", "place", "instead"),
    [
        ("[inference]\nlearn = 'scales'", "inference.learn", "learn_hyperparameters"),
        ("[design]\nplane_block = 64", "design.plane_block", "block counts samples of a plane, too"),
        ("[[prior]]\nkind = 'wavelet'\nscale = 1\ncoarse_scale = 0.1", "prior.0.coarse_scale", "SparsityBlock("),
        ("[inference]\nalgorithm = 'hybrid'", "inference.algorithm", "DoubleLoop("),
        ("[design]\nsamples = 4", "design.samples", "under [inference]"),
        ("[phase]\nmodel = 'automatic'", "phase.model", "held-back-anywhere"),
    ],
)
def test_what_older_recipes_have_is_refused_with_what_to_do_instead(
    tmp_path: Path, text: str, place: str, instead: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    assert caught.value.field == f"recipe mine.toml: {place}" and instead in caught.value.cure


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
    assert "default, fast, lanczos, local, tv-wavelet" in caught.value.wanted
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
    recipe = Recipe.of({"inference": {"variances": name, "samples": 7, "lanczos_steps": 31}})
    estimator = recipe.inference.estimator()
    assert isinstance(estimator, kind)
    assert getattr(estimator, "samples", 7) == 7
    assert getattr(estimator, "steps", 31) == 31


def test_settings_are_frozen_and_plain_for_a_manifest() -> None:
    recipe = Recipe()
    with pytest.raises(FrozenInstanceError):
        recipe.fft = "pyfftw"  # type: ignore[misc]
    settings = recipe.as_settings()
    assert settings["inference"]["samples"] == 8
    assert settings["prior"][0] == {
        "kind": "pixels",
        "scale": 100.0,
        "site": "laplace",
        "isotropic": False,
        "wavelet": "db4",
        "levels": 3,
        "tau_limit": 0.4,
        "tau_limit_with_non_local": None,
        "tau_limit_bright": 0.02,
        "reweighted": False,
    }
    assert Recipe.of(settings) == recipe


@pytest.mark.parametrize(("name", "kind"), [("automatic", Automatic), ("irls", IRLS), ("lbfgs", LBFGS), ("admm", ADMM)])
def test_solvers_by_name(name: str, kind: type) -> None:
    chosen = {"solver": name, "inner_tolerance": 0.5, "inner_iterations": 7}
    recipe = Recipe.of({"inference": chosen})
    engine = recipe.inference.engine()
    for solver in (engine.inner, recipe.reconstruction.map_estimate(recipe.inference).inner):
        assert type(solver) is kind
        assert (solver.tolerance, solver.max_iterations) == (0.5, 7)


def test_all_settings_of_an_older_recipe_that_went_are_named_at_once() -> None:
    old = {
        "inference": {"learn": True, "algorithm": "first"},
        "prior": [{"neighbours": 3}],
        "phase": {"model": "automatic"},
    }
    with pytest.raises(
        InputError, match=r"inference.learn, inference.algorithm, prior.neighbours, phase.model"
    ) as caught:
        Recipe.of(old)
    assert "learn_hyperparameters" in caught.value.cure

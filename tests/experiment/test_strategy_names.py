"""Strategies by name: made, listed, tuned, registered, refused."""

from pathlib import Path

import pytest

from mri_design import (
    InputError,
    Recipe,
    SparsityBlock,
    UsageError,
    VariableDensity,
    load_recipe,
    make_strategy,
    register_strategy,
    strategy_names,
)
from mri_design.experiment import strategies as registry
from mri_design.experiment.strategies import is_random, tuned_families
from mri_design.readouts import LineReadouts, PlaneReadouts
from mri_design.runs.compare import ComparisonRequest
from mri_design.runs.protocol import ProtocolRequest


@pytest.mark.parametrize("name", strategy_names())
def test_every_name_makes_the_strategy_that_carries_it(name: str) -> None:
    strategy = make_strategy(name)
    assert strategy.name == name
    assert 1 <= strategy.default_start(LineReadouts((64, 64)), 16) <= 16


def test_posterior_strategies_and_an_oracle_look_at_data() -> None:
    looking = [name for name in strategy_names() if make_strategy(name).needs_posterior]
    assert looking == [
        "calibrated",
        "information-gain",
        "information-gain-lanczos",
        "expected-error",
        "oracle-residual",
        "oracle-hole",
        "residual-greedy",
    ]


@pytest.mark.parametrize(
    ("name", "family", "power"),
    [
        ("vd-polynomial:3", "polynomial", 3.0),
        ("vd-polynomial:0", "polynomial", 0.0),
        ("vd-gaussian:12.5", "gaussian", 12.5),
        ("vd-gaussian:1e2", "gaussian", 100.0),
    ],
)
def test_a_power_follows_a_colon(name: str, family: str, power: float) -> None:
    strategy = make_strategy(name)
    assert isinstance(strategy, VariableDensity)
    assert (strategy.family, strategy.power, strategy.name) == (family, power, name)


@pytest.mark.parametrize("power", ["", "x", "-1", "nan", "inf", "1e6", "3:4"])
def test_a_power_that_is_none_is_refused(power: str) -> None:
    with pytest.raises(UsageError, match="power must be a number of zero or more"):
        make_strategy(f"vd-polynomial:{power}")


def test_others_take_no_power() -> None:
    with pytest.raises(UsageError, match="'random' takes no power"):
        make_strategy("random:3")


@pytest.mark.parametrize("name", ["", "informationgain", "Random", "information-gain@train", "poisson:3"])
def test_an_unknown_name_is_refused_with_all_known_ones(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_strategy(name)
    assert all(known in str(caught.value) for known in strategy_names())


@pytest.mark.parametrize("family", tuned_families())
def test_every_power_that_tuning_tries_is_one(family: str) -> None:
    powers = tuned_families()[family]
    assert len(set(powers)) == len(powers) > 3
    for power in powers:
        rule = make_strategy(f"{family}:{power:g}")
        assert rule.name == f"{family}:{power:g}"
        assert getattr(rule, "power", getattr(rule, "spacing", None)) == power


@pytest.mark.parametrize("spacing", ["", "0", "2.5", "-3", "x", "1000000"])
def test_a_spacing_that_is_none_is_refused(spacing: str) -> None:
    with pytest.raises(UsageError, match="distance of the lines must be a whole number"):
        make_strategy(f"regular:{spacing}")


def test_random_rules_are_those_that_follow_their_seed_alone() -> None:
    steady = [name for name in strategy_names() if not is_random(name)]
    assert steady == [
        "calibrated",
        "information-gain",
        "information-gain-lanczos",
        "expected-error",
        "low-pass",
        "golden-ratio",
        "oracle-residual",
        "oracle-hole",
        "oracle-greedy",
        "residual-greedy",
    ]


def test_a_strategy_that_is_registered_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", {name: dict(of) for name, of in registry.STRATEGIES.items()})
    register_strategy("mine", VariableDensity, ["lines", "shots"], tuned=(1.0, 2.0))
    assert "mine" in strategy_names() and "mine" in strategy_names("radial") and "mine" not in strategy_names("plane")
    made = make_strategy("mine:2")
    assert isinstance(made, VariableDensity) and (made.power, made.name) == (2.0, "mine:2")
    assert tuned_families()["mine"] == (1.0, 2.0) and is_random("mine")
    for name, encodings in (
        *(("a:b", ["lines"]), ("", ["lines"]), ("Mine", ["lines"]), (3, ["lines"])),
        *(("trained", ["lines"]), ("hybrid", ["lines"]), ("mine", ["planes"]), ("mine", "planes"), ("mine", [])),
    ):
        with pytest.raises(InputError):
            register_strategy(name, VariableDensity, encodings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="its class"):
        register_strategy("mine", 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="looks_at"):
        register_strategy("other", VariableDensity, looks_at="elsewhere")
    assert "other" not in strategy_names()


def test_a_registered_oracle_is_no_strategy_of_a_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", {name: dict(of) for name, of in registry.STRATEGIES.items()})
    monkeypatch.setattr(registry, "ORACLES", list(registry.ORACLES))
    for _ in range(2):
        register_strategy("all-seeing", VariableDensity, "lines", looks_at="truth")
    assert registry.ORACLES.count("all-seeing") == 1
    (tmp_path / "r.toml").write_text('[design]\nstrategy = "all-seeing"\n')
    with pytest.raises(InputError, match="does without the truth"):
        load_recipe(str(tmp_path / "r.toml"))


PLANE_DRAWN = {"random", "vd-polynomial", "poisson-disc"}


@pytest.mark.parametrize(("encoding", "drawn"), [("plane", PLANE_DRAWN), ("radial", set()), ("spiral", set())])
def test_strategies_of_other_encodings_have_names_of_their_own(encoding: str, drawn: set[str]) -> None:
    for name in strategy_names(encoding):
        rule = make_strategy(name, encoding)
        assert rule.name == name and 1 <= rule.default_start(PlaneReadouts((64, 64)), 512) <= 512
    assert {name for name in strategy_names(encoding) if is_random(name, encoding)} == drawn
    for family, powers in tuned_families(encoding).items():
        assert [make_strategy(f"{family}:{power:g}", encoding).power for power in powers] == list(powers)


def test_a_spacing_in_two_directions_follows_a_colon() -> None:
    assert make_strategy("caipi:2x3x1", "plane").spacing == (2, 3)


def test_names_that_people_know_are_taken_wherever_a_strategy_a_method_or_a_prior_is_named() -> None:
    assert make_strategy("vd:3") == make_strategy("vd-polynomial:3")
    assert make_strategy("poisson", "plane") == make_strategy("poisson-disc", "plane")
    with pytest.raises(UsageError):
        make_strategy("poisson", "lines")
    recipe = Recipe.of(
        {
            "design": {"strategy": "info"},
            "reconstruction": {"method": "sense"},
            "prior": [{"kind": "tv", "site": "l1", "scale": 1.0}],
        }
    )
    assert (recipe.design.strategy, recipe.reconstruction.method) == ("information-gain", "least-squares")
    assert (recipe.prior[0].kind, recipe.prior[0].site) == ("differences", "laplace")
    assert SparsityBlock(kind="l1", scale=1.0).kind == "wavelet"
    asked = ComparisonRequest(sources=[], recipe=Recipe(), strategies=["vd", "vd-polynomial", "info"], lines=[8])
    assert asked.strategies == ("vd-polynomial", "information-gain")
    against = ProtocolRequest(sources=[], recipe=Recipe(), lines=8, against=["equispaced"], strategy="info")
    assert (*against.against, against.strategy) == ("fastmri-equispaced", "information-gain")

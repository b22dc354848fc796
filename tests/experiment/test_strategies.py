"""Strategies by name: made, listed, tuned, registered, refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import VariableDensity
from mri_design.errors import UnknownNameError
from mri_design.experiment import candidates_of, explained, is_random, shot_slice, tuned_powers, with_power
from mri_design.experiment import strategies as registry
from mri_design.kinds import KINDS
from mri_design.readouts import LineReadouts, PlaneReadouts
from mri_design.runs.compare import ComparisonRequest
from mri_design.runs.protocol import ProtocolRequest
from tests.refusals import refused


@pytest.mark.parametrize(
    ("encoding", "looking", "drawn"),
    [
        (
            "lines",
            "calibrated corrected-error information-gain expected-error oracle-residual oracle-hole residual-greedy",
            "random fastmri-random fastmri-equispaced vd-polynomial vd-gaussian regular",
        ),
        (
            "plane",
            "calibrated information-gain expected-error oracle-residual oracle-hole residual-greedy",
            "random vd-polynomial poisson-disc",
        ),
        ("radial", "information-gain expected-error", ""),
        ("spiral", "information-gain expected-error", ""),
    ],
)
def test_every_name_makes_the_strategy_that_carries_it(encoding: str, looking: str, drawn: str) -> None:
    readouts = LineReadouts((64, 64)) if encoding == "lines" else PlaneReadouts((64, 64))
    made = {name: md.make_strategy(name, encoding) for name in md.strategy_names(encoding)}
    for name, strategy in made.items():
        assert strategy.name == name and explained(name)
        assert 1 <= strategy.default_start(readouts, 16 if encoding == "lines" else 512) <= readouts.size
        for power in tuned_powers(name, encoding):
            rule = md.make_strategy(with_power(name, power), encoding)
            assert rule.name == f"{name}:{power:g}"
            assert getattr(rule, "power", getattr(rule, "spacing", None)) == power
    assert [name for name, strategy in made.items() if strategy.needs_posterior] == looking.split()
    blind = [name for name in made if name not in looking.split() and not name.startswith("oracle")]
    assert list(registry.kinds_of_masks(encoding)) == blind  # as the table marks them
    assert [name for name in made if is_random(name, encoding)] == drawn.split()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("vd-polynomial:3", {"family": "polynomial", "power": 3.0, "draw": "random"}),
        ("vd-polynomial:0", {"power": 0.0}),
        ("vd-gaussian:1e2", {"family": "gaussian", "power": 100.0}),
        ("vd-gaussian draw=systematic", {"family": "gaussian", "power": 20.0, "draw": "systematic"}),
        ("vd-polynomial:1.5 draw=half", {"power": 1.5, "draw": "half"}),
    ],
)
def test_a_setting_follows_the_family(name: str, fields: dict[str, object]) -> None:
    strategy = md.make_strategy(name)
    assert isinstance(strategy, VariableDensity) and strategy.name == name and is_random(name)
    assert {field: getattr(strategy, field) for field in fields} == fields


def test_a_way_of_drawing_is_tuned_as_its_family_is() -> None:
    name = "vd-polynomial draw=golden"
    assert tuned_powers(name) == tuned_powers("vd-polynomial") and not tuned_powers("vd-polynomial:2 draw=golden")
    assert with_power(name, 2.5) == "vd-polynomial:2.5 draw=golden"
    assert md.make_strategy("vd:2.5 draw=golden") == md.make_strategy(with_power(name, 2.5))


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        *((f"vd-polynomial:{power}", "lines") for power in ("", "x", "-1", "nan", "inf", "1e6", "3:4")),
        *((f"vd-polynomial{wrong}", "lines") for wrong in (" draw=even", " draw=", ":x draw=half", " even")),
        *((f"regular:{spacing}", "lines") for spacing in ("", "0", "2.5", "-3", "x", "1000000")),
        *((f"caipi:{spacing}", "plane") for spacing in ("", "2", "2x0", "2x3x3", "2x3x1x1")),
        ("vd-polynomial draw=half", "plane"),
        ("random:3", "lines"),
        ("regular", "plane"),
        ("calibrated:order.npz", "plane"),
        ("trained", "lines"),
    ],
)
def test_a_setting_that_is_none_is_refused(name: str, encoding: str) -> None:
    with pytest.raises(md.UsageError):
        md.make_strategy(name, encoding)


@pytest.mark.parametrize("name", ["", "informationgain", "Random", "information-gain@train", "poisson:3"])
def test_an_unknown_name_is_refused_with_all_known_ones(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        md.make_strategy(name)
    assert set(md.strategy_names()) < set(caught.value.known)


def test_a_strategy_that_is_registered_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", {name: dict(of) for name, of in registry.STRATEGIES.items()})
    md.register_strategy("mine", VariableDensity, ["lines", "shots"], tuned=(1.0, 2.0))
    assert (
        "mine" in md.strategy_names()
        and "mine" in md.strategy_names("radial")
        and "mine" not in md.strategy_names("plane")
    )
    made = md.make_strategy("mine:2")
    assert isinstance(made, VariableDensity) and (made.power, made.name) == (2.0, "mine:2")
    assert tuned_powers("mine") == (1.0, 2.0) and is_random("mine")
    for name, encodings in (
        *(("a:b", ["lines"]), ("", ["lines"]), ("Mine", ["lines"]), (3, ["lines"])),
        *(("trained", ["lines"]), ("mine", ["planes"]), ("mine", "planes"), ("mine", [])),
    ):
        with pytest.raises(md.InputError):
            md.register_strategy(name, VariableDensity, encodings)  # type: ignore[arg-type]
    with refused("strategy mine"):
        md.register_strategy("mine", 3)  # type: ignore[arg-type]
    with refused("looks_at"):
        md.register_strategy("other", VariableDensity, looks_at="elsewhere")
    assert "other" not in md.strategy_names()


def test_a_registered_oracle_is_no_strategy_of_a_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", {name: dict(of) for name, of in registry.STRATEGIES.items()})
    for _ in range(2):
        md.register_strategy("all-seeing", VariableDensity, "lines", looks_at="truth")
    assert registry.ORACLES.count("all-seeing") == 1
    (tmp_path / "r.toml").write_text('[design]\nstrategy = "all-seeing"\n')
    with refused("recipe r.toml: design.strategy"):
        md.load_recipe(str(tmp_path / "r.toml"))


def test_names_that_people_know_are_taken_wherever_a_strategy_a_method_or_a_prior_is_named() -> None:
    assert md.make_strategy("vd:3") == md.make_strategy("vd-polynomial:3")
    assert md.make_strategy("poisson", "plane") == md.make_strategy("poisson-disc", "plane")
    with pytest.raises(md.UsageError):
        md.make_strategy("poisson", "lines")
    prior = [{"kind": "tv", "site": "l1", "rate": 1.0}]
    recipe = md.Recipe.of({"design": {"strategy": "info"}, "reconstruction": {"method": "sense"}, "prior": prior})
    assert (recipe.design.strategy, recipe.reconstruction.method) == ("information-gain", "least-squares")
    assert (recipe.prior[0].kind, recipe.prior[0].site) == ("differences", "laplace")
    assert md.SparsityBlock(kind="l1", rate=1.0).kind == "wavelet"
    asked = ComparisonRequest(sources=[], recipe=md.Recipe(), strategies=["vd", "vd-polynomial", "info"], lines=[8])
    assert asked.strategies == ("vd-polynomial", "information-gain")
    against = ProtocolRequest(sources=[], recipe=md.Recipe(), lines=8, against=["equispaced"], strategy="info")
    assert (*against.against, against.strategy) == ("fastmri-equispaced", "information-gain")


def petal(matrix: int, count: int) -> np.ndarray:
    """One petal that begins and ends at DC."""
    turn = np.linspace(0, np.pi, 2 * matrix, endpoint=False)
    radius = matrix / 2 * np.sin(turn)
    return np.stack([radius * np.sin(turn / 2), radius * np.cos(turn / 2)], axis=1)


def test_a_family_of_shots_that_is_registered_is_designed_and_reconstructed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("finufft")
    monkeypatch.setitem(KINDS, "rosette", replace(KINDS["spiral"], shot=petal))  # taken away again after the test
    md.register_trajectory("rosette", petal, unit="petal")
    chosen = {"design": {"encoding": "rosette"}, "inference": {"samples": 4}}
    recipe, rule = md.Recipe.of(chosen), md.make_strategy("information-gain", "rosette")
    data = md.load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(0))
    shots = candidates_of(recipe, rule, (16, 16), 5, 1)
    assert (shots.size, shots.unit, shots.name) == (20, "petal", "rosette")
    one = shot_slice(md.calibrate(data).slice_model(), shots, np.random.default_rng(1), truth=data.reference[0])
    lines = md.run_design([one], rule, 5, recipe).trace.lines
    image, truth = md.reconstruct(one, lines, "mean", recipe, with_std=False).image, data.reference[0]
    assert len(lines) == 5 and np.linalg.norm(image - truth) < 0.5 * np.linalg.norm(truth)
    for name, unit in (("lines", "petal"), ("two words", "petal"), ("Rosette", "petal"), ("rosette", "")):
        with pytest.raises(md.InputError):
            md.register_trajectory(name, petal, unit=unit)

"""The benchmark of rules for masks: a smoke run at toy size, and what its rules compute."""

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import Calibrated, DesignEngine, ImageStack, MRSlice, load_recipe, random_head, simulate_scan

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("mask_rules")


@pytest.fixture
def refits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("refits")


def a_slice(coils: int = 1) -> MRSlice:
    rng = np.random.default_rng(3)
    stack = ImageStack(random_head(32, rng)[None], name="head")
    return MRSlice.from_data(simulate_scan(stack, noise=0.01, phase="own", n_coils=coils, rng=rng))


def designed(one: MRSlice, rule: Calibrated, count: int = 16) -> list[int]:
    engine = DesignEngine(rule, load_recipe("local").inference.engine(), seed=0)
    return list(engine.run([one], engine.begin([one], [14, 15, 16, 17]), count).trace.lines)


def test_a_smoke_run_holds_every_rule_against_the_first(tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    command = [sys.executable, str(BENCHMARKS / "mask_rules.py"), "--quick", "--out", str(out)]
    subprocess.run([*command, "--work", str(tmp_path / "work")], check=True)
    with out.with_suffix(".csv").open() as stream:
        rows = list(csv.DictReader(stream))
    runs = {(row["scan"], row["coils"], row["setting"], row["seed"]) for row in rows}
    assert len(runs) == len(rows)
    names = {row["setting"] for row in rows}
    assert {row["setting"] for row in rows if row["coils"] == "1"} < names
    first = {row["scan"]: row["error 2"] for row in rows if row["setting"].startswith("as it is")}
    assert any(row["error 2"] != first[row["scan"]] for row in rows)
    text = out.read_text()
    assert "benchmarks/mask_rules.py DATA" in text and all(f"| {name} |" in text for name in names)
    before = out.with_suffix(".csv").read_bytes()
    subprocess.run([*command, "--work", str(tmp_path / "work")], check=True)
    assert out.with_suffix(".csv").read_bytes() == before


def test_sides_alternate_until_the_last_line_of_the_rule(rules) -> None:
    lines = designed(a_slice(), rules.Alternating(most=6))
    sides = np.sign(np.array(lines[4:10]) - 16)
    assert (sides[1:] == -sides[:-1]).all()


def test_sides_do_not_alternate_once_any_difference_counts_as_known(rules) -> None:
    assert designed(a_slice(), rules.Alternating(most=16, sure=0.0)) == designed(a_slice(), Calibrated())


def test_narrow_objects_and_several_coils_tell_more_about_neighbours(rules) -> None:
    def shares(one: MRSlice) -> np.ndarray:
        lines = list(range(8, 24))
        engine = load_recipe("local").inference.engine()
        return rules.explained_shares(engine.infer(one.model(lines, one.signal_level(lines)), np.random.default_rng(0)))

    def strip(width: int) -> MRSlice:
        image = np.zeros((1, 32, 32), np.complex64)
        image[:, 16 - width // 2 : 16 + width // 2] = 1
        data = simulate_scan(ImageStack(image), noise=1e-4, phase="own", rng=np.random.default_rng(0))
        return MRSlice.from_data(data)

    k = np.arange(1, 5) / 32
    for width in (4, 16):  # of a strip of even brightness: the squared Fourier transform of the strip
        dirichlet = (np.sin(np.pi * k * width) / np.sin(np.pi * k) / width) ** 2
        assert np.allclose(shares(strip(width)), dirichlet, atol=0.03)
    assert shares(a_slice(4))[0] > 2 * shares(a_slice())[0]


def test_a_weight_that_grows_with_the_logarithm_of_the_coils_is_found(refits) -> None:
    rng, coils = np.random.default_rng(0), [2, 4, 8, 16] * 6
    near, tables = refits.FEATURES.index("measured at distance 1"), []
    for count in coils:
        x = rng.normal(size=(400, len(refits.FEATURES)))
        y = (1 + 0.5 * np.log(count / 4)) * x[:, near] + rng.normal(0, 0.1, 400)
        tables.append((x, y))
    refit = refits.fitted(tables, coils, with_slope=True)
    assert refit.slope[near] == pytest.approx(0.5, abs=0.05)
    assert np.allclose(np.delete(refit.slope, near), 0, atol=0.05)
    assert refit.model(16).mean[near] == pytest.approx(1 + 0.5 * np.log(4), abs=0.05)
    assert not refits.fitted(tables, coils, with_slope=False).slope.any()

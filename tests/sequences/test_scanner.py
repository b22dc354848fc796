"""Scanners are read from what is shipped and from files, and refused where a limit is none."""

from pathlib import Path

import pytest

from mri_design import InputError, UsageError
from mri_design.sequences.scanner import GAMMA, load_scanner, shipped_scanners
from tests.refusals import refused

GOOD = """
[mine]
max_gradient = 0.03
max_slew = 120.0
max_b1 = 12e-6
rf_dead_time = 1e-4
rf_ringdown_time = 3e-5
adc_dead_time = 1e-5
"""


@pytest.mark.parametrize("name", shipped_scanners())
def test_every_shipped_scanner_has_limits_that_a_scanner_may_have(name: str) -> None:
    scanner = load_scanner(name)
    assert scanner.name == name
    assert 0.01 <= scanner.max_gradient <= 0.1
    assert 20 <= scanner.max_slew <= 250


def test_a_file_names_one_scanner(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GOOD)
    scanner = load_scanner(str(tmp_path / "own.toml"))
    assert (scanner.name, scanner.max_gradient, scanner.samples_divisor) == ("mine", 0.03, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("0.03", "30.0"), ["mine: max_gradient: got 30.0", "between 0.001 and 1"]),
        (GOOD.replace("0.03", "true"), ["mine: max_gradient: got True"]),
        (GOOD.replace("max_slew = 120.0", ""), ["mine: max_slew: got nothing"]),
        (GOOD.replace("max_slew", "max_slow"), ["mine: max_slow", "Did you mean max_slew?"]),
        (GOOD + GOOD.replace("mine", "other"), ["2 entries", "one table"]),
        ("max_gradient = 1", ["one table"]),
        ("[mine", ["a TOML file with one scanner"]),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_scanner(str(tmp_path / "own.toml"))
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_missing_file_and_an_unknown_name_are_refused(tmp_path: Path) -> None:
    with refused("none.toml"):
        load_scanner(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"unknown scanner 'generik'.*Did you mean generic\?"):
        load_scanner("generik")


def test_pypulseq_gets_the_limits_in_its_units() -> None:
    pytest.importorskip("pypulseq")
    system = load_scanner("generic").opts(0.5)
    assert system.max_grad == pytest.approx(0.012 * GAMMA)
    assert system.max_slew == pytest.approx(50 * GAMMA)
    assert system.gamma == GAMMA

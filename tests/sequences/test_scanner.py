"""Scanners, settings and orders: read where they are sound, refused by the field that is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from mri_design.errors import UnknownNameError
from mri_design.sequences import GridOrder, load_scanner, shipped_scanners
from tests.refusals import refused
from tests.sequences.conftest import GRE, ORDER

GOOD = """
[mine]
max_gradient = 0.03
max_slew = 120.0
max_b1 = 12e-6
rf_dead_time = 1e-4
rf_ringdown_time = 3e-5
adc_dead_time = 1e-5
"""


def test_shipped_scanners_have_limits_that_a_scanner_may_have() -> None:
    assert [load_scanner(name).name for name in shipped_scanners()] == list(shipped_scanners())


def test_a_file_names_one_scanner(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GOOD)
    scanner = load_scanner(str(tmp_path / "own.toml"))
    assert (scanner.name, scanner.max_gradient, scanner.samples_divisor) == ("mine", 0.03, 1)
    with refused("none.toml"):
        load_scanner(str(tmp_path / "none.toml"))
    with pytest.raises(UnknownNameError):
        load_scanner("generik")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (GOOD.replace("0.03", "30.0"), "mine: max_gradient"),
        (GOOD.replace("0.03", "true"), "mine: max_gradient"),
        (GOOD.replace("max_slew = 120.0", ""), "mine: max_slew"),
        (GOOD.replace("max_slew", "max_slow"), "mine: max_slow"),
        *((text, "own.toml") for text in (GOOD + GOOD.replace("mine", "other"), "max_gradient = 1", "[mine")),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with refused(field):
        load_scanner(str(tmp_path / "own.toml"))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"kind": "epi"}, "sequence"),
        ({"field_of_view": (240.0, 0.2)}, "field of view"),
        ({"echo_time": 8.0}, "echo time"),
        ({"repetition_time": float("nan")}, "repetition time"),
        ({"flip_angle": 0.0}, "flip angle"),
        ({"flip_angle": 120.0}, "flip angle"),
        ({"bandwidth": 0.4}, "bandwidth"),
        ({"slice_thickness": 5.0}, "slice thickness"),
        ({"samples": 2}, "samples of a readout"),
        ({"samples": 16.0}, "samples of a readout"),
        ({"dummies": -1}, "dummies"),
        ({"rf_spoiling": -117.0}, "RF spoiling"),
    ],
)
def test_values_out_of_range_are_refused(changed: dict[str, object], field: str) -> None:
    with refused(field):
        replace(GRE, **changed)


def test_an_order_knows_its_lines_and_the_echo_of_the_centre() -> None:
    assert ORDER.numbers == (8, 3, 12, 9, 0, 15, 7, 1)
    assert (ORDER.echoes, ORDER.dc_echo) == (3, 1)
    assert GridOrder(((3, 7), (9, 1)), 16).dc_echo == 2  # 7 and 9 are equally near; the lower one counts
    assert GridOrder.in_trains((4, 2, 5), 2, 6).trains == ((4, 2), (5,))

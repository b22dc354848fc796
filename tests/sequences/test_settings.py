"""What is asked of a sequence is held to its ranges, in words that say the unit."""

from dataclasses import replace

import pytest

from mri_design import InputError
from mri_design.sequences.orders import LineOrder
from tests.sequences.conftest import GRE, ORDER


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "epi"}, ["sequence: got 'epi'", "gre or tse"]),
        ({"field_of_view": (240.0, 0.2)}, ["field of view: got 240.0", "metres"]),
        ({"echo_time": 8.0}, ["echo time: got 8.0", "seconds"]),
        ({"repetition_time": float("nan")}, ["repetition time: got nan"]),
        ({"flip_angle": 0.0}, ["flip angle", "0.5 to 90 degrees"]),
        ({"flip_angle": 120.0}, ["flip angle", "0.5 to 90 degrees"]),
        ({"bandwidth": 0.4}, ["bandwidth", "Hz for each pixel"]),
        ({"slice_thickness": 5.0}, ["slice thickness", "metres"]),
        ({"samples": 2}, ["samples of a readout: got 2"]),
        ({"samples": 16.0}, ["samples of a readout: got 16.0"]),
        ({"dummies": -1}, ["dummies: got -1"]),
        ({"rf_spoiling": -117.0}, ["RF spoiling"]),
    ],
)
def test_values_out_of_range_are_refused(changed: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        replace(GRE, **changed)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("trains", "n_lines", "words"),
    [
        ((), 16, ["no line"]),
        (((1,), ()), 16, ["empty echo train"]),
        (((1, 2), (16,)), 16, ["lines[2]: got 16", "0 to 15"]),
        (((1, -2),), 16, ["lines[1]: got -2"]),
        (((1, 2), (1,)), 16, ["line 1 twice"]),
        (((1,),), 2, ["lines of the grid: got 2"]),
        (((1.0,),), 16, ["lines[0]: got 1.0"]),
    ],
)
def test_orders_that_are_none_are_refused(trains: tuple, n_lines: int, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        LineOrder(trains, n_lines)
    assert all(word in str(caught.value) for word in words), caught.value


def test_an_order_knows_its_lines_and_the_echo_of_the_centre() -> None:
    assert ORDER.lines == (8, 3, 12, 9, 0, 15, 7, 1)
    assert (ORDER.echoes, ORDER.dc_echo) == (3, 1)
    assert LineOrder(((3, 7), (9, 1)), 16).dc_echo == 2  # 7 and 9 are equally near; the lower one counts
    assert LineOrder.of_lines((4, 2), 6).trains == ((4,), (2,))

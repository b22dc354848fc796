import numpy as np
import pytest

from mri_design.design.echo_trains import ORDERS, acquisition_order
from mri_design.errors import InputError

LINES = (8, 7, 9, 6, 2, 13, 0, 11, 4, 15, 10, 5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("train", [2, 3, 5, 12, 20])
def test_every_line_is_measured_once_in_trains_that_are_not_longer_than_asked(order: str, train: int) -> None:
    made = acquisition_order(LINES, 16, order, train)
    assert sorted(made.lines) == sorted(LINES)
    assert all(1 <= len(one) <= train for one in made.trains)
    assert len(made.trains) == -(-len(LINES) // train)


def test_orders_without_trains() -> None:
    assert acquisition_order(LINES, 16).lines == LINES
    assert acquisition_order(LINES, 16, "ascending").lines == tuple(sorted(LINES))
    assert acquisition_order((2, 13, 8, 7, 9), 16, "centre-out").lines == (8, 7, 9, 13, 2)


def test_interleaved_trains_cover_k_space_and_an_echo_measures_one_band() -> None:
    made = acquisition_order(LINES, 16, "interleaved", 4)
    bands = np.sort(LINES).reshape(4, 3)
    for train in made.trains:
        assert list(train) == sorted(train)
        assert all(line in band for line, band in zip(train, bands, strict=True))
    assert made.trains[0] == (0, 5, 8, 11)


def test_centre_out_trains_all_begin_at_the_centre() -> None:
    made = acquisition_order(LINES, 16, "centre-out", 4)
    assert {train[0] for train in made.trains} == {8, 7, 9}
    for train in made.trains:
        assert [abs(line - 8) for line in train] == sorted(abs(line - 8) for line in train)
    assert made.dc_echo == 1


@pytest.mark.parametrize("echo", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [12, 11, 10])
def test_the_effective_echo_measures_dc(echo: int, count: int) -> None:
    made = acquisition_order(LINES[:count], 16, "interleaved", 4, echo)
    assert sorted(made.lines) == sorted(LINES[:count])
    if count == 12 or echo < 4:
        assert made.dc_echo == echo
    else:
        assert made.dc_echo == min(len(train) for train in made.trains)


def test_facts_of_an_acquisition() -> None:
    made = acquisition_order((3, 9, 4), 16)
    assert (made.largest_jump, made.dc_echo) == (6, 1)  # 9 is nearest to DC, every train has one echo
    assert acquisition_order((3,), 16).largest_jump == 0


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"order": "spiral"}, "order"),
        ({"order": "interleaved"}, "order"),
        ({"train": 0}, "echo train"),
        ({"train": 4, "effective_echo": 2}, "effective echo"),
        ({"order": "interleaved", "train": 4, "effective_echo": 5}, "effective echo"),
        ({"order": "interleaved", "train": 4, "effective_echo": 0}, "effective echo"),
        ({"lines": ()}, "lines"),
        ({"lines": (3, 3)}, "lines"),
        ({"lines": (16,)}, "lines"),
    ],
)
def test_what_makes_no_order_is_refused(settings: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        acquisition_order(**({"lines": LINES, "n_lines": 16} | settings))  # type: ignore[arg-type]
    assert caught.value.field == field

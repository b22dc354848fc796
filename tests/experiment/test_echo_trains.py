from itertools import pairwise

import numpy as np
import pytest

from mri_design.experiment import acquisition_order
from mri_design.experiment.recipe import ORDERS
from mri_design.readouts import LineReadouts, PlaneReadouts
from tests.refusals import refused

GRID = LineReadouts((16, 8))
PLANE = PlaneReadouts((24, 20))
LINES = (8, 7, 9, 6, 2, 13, 0, 11, 4, 15, 10, 5)


def test_orders_without_trains() -> None:
    assert acquisition_order(LINES, GRID).lines == LINES
    assert acquisition_order(LINES, GRID, "ascending").lines == tuple(sorted(LINES))
    assert acquisition_order((2, 13, 8, 7, 9), GRID, "centre-out").lines == (8, 7, 9, 13, 2)


def test_interleaved_trains_cover_k_space_and_an_echo_measures_one_band() -> None:
    made = acquisition_order(LINES, GRID, "interleaved", 4)
    bands = np.sort(LINES).reshape(4, 3)
    for train in made.trains:
        assert list(train) == sorted(train)
        assert all(line in band for line, band in zip(train, bands, strict=True))
    assert made.trains[0] == (0, 5, 8, 11)


def test_centre_out_trains_all_begin_at_the_centre() -> None:
    made = acquisition_order(LINES, GRID, "centre-out", 4)
    assert {train[0] for train in made.trains} == {8, 7, 9}
    for train in made.trains:
        assert [abs(line - 8) for line in train] == sorted(abs(line - 8) for line in train)
    assert made.dc_echo == 1


@pytest.mark.parametrize("echo", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [12, 11, 10])
def test_the_effective_echo_measures_dc(echo: int, count: int) -> None:
    made = acquisition_order(LINES[:count], GRID, "interleaved", 4, echo)
    assert sorted(made.lines) == sorted(LINES[:count])
    if count == 12 or echo < 4:
        assert made.dc_echo == echo
    else:
        assert made.dc_echo == min(len(train) for train in made.trains)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"order": "interleaved"}, "order"),
        ({"train": 4, "effective_echo": 2}, "effective echo"),
        ({"order": "interleaved", "train": 4, "effective_echo": 5}, "effective echo"),
        ({"order": "interleaved", "train": 4, "effective_echo": 0}, "effective echo"),
    ],
)
def test_what_makes_no_order_is_refused(settings: dict[str, object], field: str) -> None:
    with refused(field):
        acquisition_order(**({"lines": LINES, "readouts": GRID} | settings))  # type: ignore[arg-type]


def samples(count: int) -> tuple[int, ...]:
    """Samples of an elliptical mask that thins out towards its rim, in a random order."""
    rng = np.random.default_rng(0)
    density = np.where(PLANE.radius <= 1, (1.05 - PLANE.radius) ** 2, 0)
    drawn = rng.choice(PLANE.size, count, replace=False, p=density / density.sum()).tolist()
    centre = PLANE.nearest_to_centre(range(PLANE.size), 1)[0]
    return tuple(drawn) if centre in drawn else (*drawn[1:], centre)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("train", [2, 3, 5, 12, 20, 200])
def test_everything_is_measured_once_in_trains_that_are_not_longer_than_asked(order: str, train: int) -> None:
    for chosen, readouts in ((LINES, GRID), (samples(100), PLANE)):
        made = acquisition_order(chosen, readouts, order, train)
        assert sorted(made.lines) == sorted(chosen) and len(made.trains) == -(-len(chosen) // train)
        assert all(1 <= len(one) <= train for one in made.trains)
        assert made.lines == chosen or order != "as-chosen"


def test_centre_out_trains_of_a_plane_measure_a_ring_with_every_echo() -> None:
    made = acquisition_order(samples(120), PLANE, "centre-out", 8)
    rings = [[PLANE.radius[train[echo]] for train in made.trains] for echo in range(8)]
    assert all(max(inner) <= min(outer) + 1e-12 for inner, outer in pairwise(rings))
    assert made.dc_echo == 1 and sorted(PLANE.radius[list(made.lines)])[0] == 0
    apart = acquisition_order(samples(120), PLANE, "as-chosen", 8)
    assert made.typical_jump < 0.5 * apart.typical_jump


def test_centre_out_without_trains_leads_from_dc_outwards_in_a_plane_as_of_lines() -> None:
    made = acquisition_order(samples(120), PLANE, "centre-out")
    radii, (ky, kz) = PLANE.radius[list(made.lines)].round(12), PLANE.frequencies[list(made.lines)].T
    assert (ky[0], kz[0]) == (0, 0) and all(inner <= outer for inner, outer in pairwise(radii))
    assert len(made.trains) == 120 and made.dc_echo == 1
    angles = np.arctan2(kz, ky)
    at_one_distance = np.diff(radii) == 0
    assert at_one_distance.sum() > 10 and (np.diff(angles)[at_one_distance] > 0).all()


@pytest.mark.parametrize("echo", [1, 3, 8])
def test_interleaved_trains_of_a_plane_measure_bands_and_dc_where_it_is_asked_for(echo: int) -> None:
    made = acquisition_order(samples(120), PLANE, "interleaved", 8)
    ky = PLANE.frequencies[:, 0]
    assert all(list(ky[list(train)]) == sorted(ky[list(train)]) for train in made.trains)
    turned = acquisition_order(samples(120), PLANE, "interleaved", 8, echo)
    assert turned.dc_echo == echo and sorted(turned.lines) == sorted(made.lines)


def test_ascending_samples_run_along_ky_then_kz_and_jumps_are_distances() -> None:
    made = acquisition_order(samples(60), PLANE, "ascending")
    assert made.lines == tuple(sorted(made.lines))
    assert acquisition_order((0, 3 * 20 + 4), PLANE).largest_jump == 5.0

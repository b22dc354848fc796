"""When a design estimates its coil maps anew."""

from itertools import pairwise

import pytest

from mri_design.design.slices import map_lines


@pytest.mark.parametrize("start", [1, 2, 4, 8, 24])
def test_maps_rest_on_lines_that_are_measured_and_are_renewed_ever_later(start: int) -> None:
    known = [map_lines(start, count) for count in range(start, 200)]
    assert known[0] == start and all(lines <= start + place for place, lines in enumerate(known))
    renewals = sorted(set(known))
    assert all(later - before <= 16 for before, later in pairwise(renewals)) and len(renewals) < 20
    assert all(start + place - lines < 16 for place, lines in enumerate(known))


def test_the_first_maps_of_a_design_of_24_lines() -> None:
    assert sorted({map_lines(4, count) for count in range(4, 25)}) == [4, 6, 9, 14, 21]

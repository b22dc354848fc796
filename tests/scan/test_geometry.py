"""Where a slice lies: sizes, places and directions, and what of them makes no sense."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.geometry import SliceGeometry, around

AXIAL = ((10.0, 20.0, 30.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def _turned() -> SliceGeometry:
    """A slice with all three directions oblique."""
    q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    return SliceGeometry((1.5, 2.0), 5.0, (10.0, -20.0, 30.0), *map(tuple, q))


@pytest.mark.parametrize("shape", [(12, 16), (13, 15)])
def test_the_affine_leads_the_middle_pixel_to_the_centre_and_steps_along_the_directions(shape: tuple[int, int]) -> None:
    place = _turned()
    affine = place.affine(shape)
    to_ras = np.diag([-1.0, -1.0, 1.0])
    middle = affine @ [shape[1] // 2, shape[0] // 2, 0, 1]
    np.testing.assert_allclose(to_ras @ middle[:3], place.centre, atol=1e-9)
    np.testing.assert_allclose(to_ras @ affine[:3, 0], 2.0 * np.array(place.read), atol=1e-12)
    np.testing.assert_allclose(to_ras @ affine[:3, 1], 1.5 * np.array(place.phase), atol=1e-12)
    np.testing.assert_allclose(to_ras @ affine[:3, 2], 5.0 * np.array(place.normal), atol=1e-12)


def test_without_a_place_the_affine_has_the_sizes_alone() -> None:
    affine = SliceGeometry((1.5, 2.0), 5.0).affine((4, 4))
    np.testing.assert_array_equal(np.abs(np.diag(affine)), [2.0, 1.5, 5.0, 1.0])
    assert not SliceGeometry((1.5, 2.0), 5.0).placed
    np.testing.assert_array_equal(np.abs(np.diag(SliceGeometry((1.5, 2.0), None).affine((4, 4)))), [2.0, 1.5, 1.0, 1.0])


@pytest.mark.parametrize(
    "place",
    [_turned(), SliceGeometry((1.5, 2.0), 5.0), SliceGeometry((1.5, 2.0), None)],
    ids=["placed", "sizes", "flat"],
)
def test_manifests_hold_all_of_it(place: SliceGeometry) -> None:
    assert SliceGeometry.from_settings("manifest", place.as_settings()) == place


@pytest.mark.parametrize(
    "stored",
    [
        None,
        3,
        {},
        {"pixel_mm": [1, 2, 3], "thickness_mm": 1},
        {"pixel_mm": [1, 0], "thickness_mm": 1},
        {"pixel_mm": [1, 1], "thickness_mm": math.nan},
        {"pixel_mm": [1, 1], "thickness_mm": 1, "centre": [0, 0, 0]},
        {"pixel_mm": [1, 1], "thickness_mm": 1, "centre": [0, 0], "phase": [1], "read": [], "normal": "abc"},
    ],
)
def test_damaged_settings_are_refused(stored: object) -> None:
    with pytest.raises(InputError, match=r"^run/manifest\.json"):
        SliceGeometry.from_settings("run/manifest.json", stored)


def test_directions_must_be_at_right_angles() -> None:
    with pytest.raises(InputError, match="right angles"):
        SliceGeometry((1.0, 1.0), 1.0, AXIAL[0], AXIAL[1], AXIAL[1], AXIAL[3])


def test_headers_without_sizes_give_nothing_and_those_without_directions_the_sizes() -> None:
    assert SliceGeometry.of_header((math.nan, 1.0), 1.0, AXIAL) is None
    zeros = [(0.0, 0.0, 0.0)] * 4
    assert SliceGeometry.of_header((1.0, 2.0), 3.0, zeros) == SliceGeometry((1.0, 2.0), 3.0)
    assert SliceGeometry.of_header((1.0, 2.0), 3.0, AXIAL) == SliceGeometry((1.0, 2.0), 3.0, *AXIAL)


def test_a_thickness_that_is_missing_leaves_the_pixels() -> None:
    assert SliceGeometry.of_header((1.0, 2.0), math.nan) == SliceGeometry((1.0, 2.0), None)


def test_slices_of_a_stack_follow_along_the_normal() -> None:
    later = SliceGeometry((1.0, 2.0), 3.0, *AXIAL).slice_after(2)
    assert later == SliceGeometry((1.0, 2.0), 3.0, (10.0, 20.0, 36.0), *AXIAL[1:])
    assert SliceGeometry((1.0, 2.0), None, *AXIAL).slice_after(1) == SliceGeometry((1.0, 2.0), None)
    assert SliceGeometry((1.0, 2.0), 3.0).slice_after(1) == SliceGeometry((1.0, 2.0), 3.0)


def test_another_field_of_view_changes_the_pixels_alone() -> None:
    place = _turned().with_field_of_view((0.24, 0.32), (12, 16))
    assert place.pixel == pytest.approx((20.0, 20.0))
    assert place.centre == _turned().centre


def test_slices_around_one_are_those_above_and_below_in_whichever_order_they_were_measured() -> None:
    first = _turned()
    interleaved = [first.slice_after(height) for height in (0, 2, 4, 1, 3)]
    for number, wanted in (
        (3, [{0: 0.5, 1: 0.5}, {4: 1}]),
        (0, [{3: 1}, {1: 1}]),
        (1, [{3: 0.5, 4: 0.5}, {0: 0.5, 2: 0.5}]),
    ):
        for found, pair in zip(around(dict(enumerate(interleaved)), number, 2), wanted, strict=True):
            assert found == pytest.approx(pair)
    assert around(dict(enumerate([None, *interleaved[1:]])), 3, 1) == [{2: 0.5, 4: 0.5}]
    uneven = [first, first.slice_after(1), first.slice_after(4)]
    assert around(dict(enumerate(uneven)), 1, 1)[0] == pytest.approx({0: 0.75, 2: 0.25})


def test_slices_in_other_directions_or_beside_one_are_not_around_it() -> None:
    first = _turned()
    _, phase, read, normal = first.vectors
    aside = tuple(np.add(first.slice_after(1).centre, 30 * phase))
    places = [first, first.slice_after(3), replace(first.slice_after(1), centre=aside)]
    crossed = replace(first.slice_after(2), phase=tuple(normal), read=tuple(read), normal=tuple(-phase))
    assert around(dict(enumerate([*places, crossed])), 0, 3) == [{1: 1.0}]

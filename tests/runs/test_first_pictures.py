"""Pictures and facts that a report begins with show what was measured, and how large it is."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from mri_design import Convergence, Reconstruction, Status
from mri_design.evaluation.plots.panels import Frame, object_top
from mri_design.readouts import LineReadouts, PlaneReadouts, ShotReadouts
from mri_design.runs.image_sections import (
    first_row,
    mask_picture,
)

DONE = Convergence(Status.CONVERGED, 1, 0.0)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_lines_and_samples_are_shown_where_they_lie_in_the_image() -> None:
    mask = np.array([False, True, True, False, False, True])
    drawn = mask_picture(Frame("ky-rows"), LineReadouts((6, 4)), mask)
    np.testing.assert_array_equal(pixels(drawn.png), 255 * np.repeat(mask[:, None], 4, axis=1))
    turned = mask_picture(Frame("ky-columns"), LineReadouts((6, 4)), mask)
    np.testing.assert_array_equal(pixels(turned.png), pixels(drawn.png).T)
    assert turned.shape == (4, 6)
    plane = np.eye(4, dtype=bool)
    np.testing.assert_array_equal(
        pixels(mask_picture(Frame("plane-rows"), PlaneReadouts((4, 4)), plane).png), 255 * plane
    )


def test_shots_mark_the_cells_that_hold_their_samples() -> None:
    across, down = np.zeros((2, 8, 2))
    across[:, 1] = down[:, 0] = np.arange(-4, 4)
    shots = ShotReadouts((8, 8), np.stack([across, down]), "radial")
    shown = mask_picture(Frame("no-lines"), shots, np.array([True, False]))
    expected = np.zeros((8, 8))
    expected[4] = 255
    np.testing.assert_array_equal(pixels(shown.png), expected)


def test_error_bars_are_told_in_shares_of_what_is_white() -> None:
    image = np.full((8, 8), 200 + 0j)
    result = Reconstruction(image, np.full((8, 8), 10.0), DONE)
    _, shown, doubt = first_row(LineReadouts((8, 8)), np.ones(8, bool), result, Frame("ky-rows", (2.0, 1.0)))
    assert shown.top == "200" and doubt.top == "5.0\N{NO-BREAK SPACE}%" and pixels(shown.png).min() == 255
    assert shown.proportion == 2.0 and shown.bar is not None and (shown.bar.millimetres, shown.bar.share) == (2, 0.25)
    turned = first_row(LineReadouts((8, 8)), np.ones(8, bool), result, Frame("ky-columns", (2.0, 1.0)))[1]
    assert turned.proportion == 0.5 and turned.bar is not None and turned.bar.millimetres == 5
    assert (
        len(first_row(LineReadouts((8, 8)), np.ones(8, bool), Reconstruction(image, None, DONE), Frame("ky-rows"))) == 2
    )
    assert result.predicted_error == pytest.approx(0.05 / np.hypot(1, 0.05))
    assert Reconstruction(image, None, DONE).predicted_error is None


def test_no_bright_speck_and_no_air_set_the_grey_of_the_object() -> None:
    image = np.zeros((64, 64))
    image[24:40, 24:40] = np.linspace(80, 100, 256).reshape(16, 16)
    expected = np.percentile(image[image > 0], 99)
    assert object_top([image]) == pytest.approx(expected)
    image[0, :2] = 5000.0
    assert object_top([image]) <= 100
    image[:10, 40:] += 0.5  # air
    assert object_top([image]) <= 100
    assert object_top([np.zeros((4, 4))]) == 1.0

"""Figures over a plane: what is drawn, and what is refused."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evaluation import plots

RNG = np.random.default_rng(0)


def drawn(figure) -> list[np.ndarray]:
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def test_masks_lie_side_by_side_with_their_acceleration() -> None:
    masks = {"one": RNG.uniform(size=(8, 6)) < 0.5, "two": np.ones((8, 6), dtype=bool)}
    figure = plots.plane_masks(masks)
    np.testing.assert_array_equal(drawn(figure)[0], masks["one"].astype(int))
    assert "48 samples, 1.00" in figure.axes[1].get_title()


def test_growth_colours_what_is_new() -> None:
    panels = drawn(plots.plane_growth([5, 6, 7, 0], (3, 4), [2, 4]))
    assert panels[0].ravel()[[5, 6, 7, 0]].tolist() == [1, 1, 0, 0]
    assert panels[1].ravel()[[5, 6, 7, 0]].tolist() == [1, 1, 2, 2]


def test_a_legend_says_what_is_new_and_axes_tell_the_size_of_the_plane() -> None:
    figure = plots.plane_growth([5, 6, 7, 0], (9, 4), [2, 4])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["measured before", "added since the panel before"]
    assert figure.axes[0].get_yticks().tolist() == [-4, 0, 4] and figure.axes[0].get_xticks().tolist() == [-2, 0, 1]
    assert not plots.plane_growth([5, 6], (9, 4), [2]).legends  # nothing is coloured


@pytest.mark.parametrize("values", [[6.5, 6.2, 5.9], [40.0, 9.0, 3.0], [1e4, 1.0, 1e-3]])
def test_ticks_of_logarithmic_courses_are_plain_numbers(values: list[float]) -> None:
    figure = plots.block_course([10, 20, 30], {"predicted": values}, "error")
    figure.canvas.draw()
    axis, (low, high) = figure.axes[0].yaxis, figure.axes[0].get_ylim()
    shown = [text.get_text() for text in axis.get_ticklabels() if low <= text.get_position()[1] <= high]
    assert len(shown) >= 2 and not any("$" in text or "times" in text for text in shown)
    assert not [text for text in axis.get_ticklabels(minor=True) if text.get_text()]


def test_maps_share_a_scale_and_leave_holes_blank() -> None:
    values = RNG.exponential(size=(4, 4))
    values[0, 0] = np.nan
    figure = plots.plane_maps({"a": values, "b": 100 * values}, "energy")
    assert len({axes.images[0].norm.vmax for axes in figure.axes if axes.images}) == 1
    assert np.ma.getmaskarray(np.ma.masked_invalid(drawn(figure)[0]))[0, 0]


def test_orders_leave_what_is_not_measured_blank() -> None:
    figure = plots.plane_order({"train": {0: 1, 5: 2}, "echo": {0: 1, 5: 3}}, (2, 3))
    train, echo = drawn(figure)[:2]
    assert (train[0, 0], train[1, 2], echo[1, 2]) == (1, 2, 3) and np.isnan(np.ma.filled(train, np.nan)[0, 1])


def test_a_course_has_a_curve_for_every_name() -> None:
    figure = plots.block_course([10, 20], {"predicted": [2.0, 1.0], "found": [3.0, float("nan")]}, "energy")
    assert [line.get_label() for line in figure.axes[0].lines] == ["predicted", "found"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.plane_masks({}),
        lambda: plots.plane_masks({"a": np.ones(4, dtype=bool)}),
        lambda: plots.plane_growth([1, 2], (2, 2), [2, 1]),
        lambda: plots.plane_growth([1, 9], (2, 2), [2]),
        lambda: plots.plane_maps({"a": np.full((2, 2), np.nan)}, "energy"),
        lambda: plots.plane_order({"a": {6: 1}}, (2, 3)),
        lambda: plots.plane_order({"a": {}}, (2, 3)),
        lambda: plots.block_course([1, 2], {"a": [1.0]}, "energy"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw) -> None:
    with pytest.raises(InputError):
        draw()

"""Figures show what they are given, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from mri_design import (
    equispaced_angles,
    interleaf_angles,
    nyquist_turns,
    point_spread,
    radial_spokes,
    turned,
)
from mri_design.evaluation import plots
from mri_design.evaluation.first_screen import ScaleBar
from mri_design.evaluation.metrics import ImageMetrics
from mri_design.evaluation.pictures import PALETTE, png_bytes
from mri_design.evaluation.plots.panels import object_top
from mri_design.evaluation.plots.style import INK
from mri_design.kinds import KINDS
from mri_design.scan.trajectories.point_spread import largest_side_lobe
from mri_design.scan.trajectories.spiral import spiral_curve
from tests.evaluation.conftest import texts

HOSTILE = r"$\frac{1$ <b>_^%"


@pytest.fixture
def image() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(size=(12, 8)) + 1j * rng.normal(size=(12, 8))


@pytest.fixture
def scores() -> np.ndarray:
    """Three steps over nine lines; line 4 (the centre) is measured, then 3, then 5."""
    values = np.tile(np.array([1.0, 2, 3, 6, 9, 5, 3, 2, 1]), (3, 1))
    values[:, 4] = values[1:, 3] = values[2:, 5] = np.nan
    return values


def shown(figure: Figure) -> list[np.ndarray]:
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


class TestImages:
    def test_magnitudes_on_one_grey_scale_with_captions(self, image):
        caption = plots.metric_caption(0.0523, ImageMetrics(0.0523, 0.06, 31.25, 0.9412))
        figure = plots.image_grid(
            [plots.ImagePanel(image, "all lines"), plots.ImagePanel(3 * image, "design", caption)]
        )
        first, second = shown(figure)
        np.testing.assert_allclose(first, np.abs(image))
        np.testing.assert_allclose(second, 3 * np.abs(image))
        limits = {axes.images[0].get_clim() for axes in figure.axes}
        assert len(limits) == 1 and limits.pop()[0] == 0.0
        assert "all lines" in texts(figure)
        assert caption.splitlines() == ["error 5.23\N{NO-BREAK SPACE}%", "PSNR 31.2 dB", "SSIM 0.941"]
        assert caption in texts(figure)

    def test_numbers_of_a_scanner_s_unit_stand_beside_the_scale_and_not_in_its_name(self, image):
        for figure in (
            plots.error_maps([plots.ImagePanel(1.1e-5 * image, "x")], 1e-5 * image),
            plots.image_with_error_bars(1e-5 * image, np.abs(1e-6 * image), None),
        ):
            png_bytes(figure)
            (bar,) = (axes for axes in figure.axes if not axes.images)
            axis = bar.xaxis if bar.get_xlabel() else bar.yaxis
            assert axis.get_offset_text().get_text() == ""
            assert max(float(label.get_text().replace("\N{MINUS SIGN}", "-")) for label in axis.get_ticklabels()) < 1e-4

    def test_the_name_of_a_scale_is_no_wider_than_the_figure(self, image):
        for figure in (
            plots.error_maps([plots.ImagePanel(image, "x")], 1e-5 * image),
            plots.std_map(abs(image), image),
        ):
            png_bytes(figure)
            (bar,) = (axes for axes in figure.axes if not axes.images)
            extent = bar.xaxis.label.get_window_extent()
            assert min(extent.x0, extent.y0) >= 0 and extent.x1 <= figure.bbox.width

    @pytest.mark.parametrize("orientation", ["ky-rows", "ky-columns"])
    def test_the_image_lies_as_in_the_source(self, image, orientation):
        expected = np.abs(image) if orientation == "ky-rows" else np.abs(image).T
        panel = plots.ImagePanel(image, "x")
        for figure in (
            plots.image_grid([panel], plots.Frame(orientation)),
            plots.std_map(np.abs(image), image, plots.Frame(orientation)),
            plots.error_maps([panel], np.zeros_like(image), plots.Frame(orientation)),
        ):
            np.testing.assert_allclose(shown(figure)[0], expected)
            down = "phase encode" if orientation == "ky-rows" else "readout"
            assert down in figure.axes[0].get_ylabel()

    @pytest.mark.parametrize(("layout", "proportion"), [("ky-rows", 2.0), ("ky-columns", 0.5)])
    def test_where_the_size_of_a_pixel_is_known_it_has_its_shape_and_a_bar(self, image, layout, proportion):
        rows, columns = image.shape
        frame = plots.Frame(layout, (24 / rows, 12 / rows))  # millimetres along ky and kx
        wide = 24.0 if layout == "ky-columns" else 12 * columns / rows
        panel = plots.ImagePanel(image, "x")
        for figure in (
            plots.image_grid([panel, panel], frame),
            plots.std_map(np.abs(image), image, frame),
            plots.error_maps([panel], np.zeros_like(image), frame),
            plots.std_against_error(np.abs(image), image, image, frame),
        ):
            first, *others = (axes for axes in figure.axes if axes.images)
            assert first.get_aspect() == proportion
            bar = ScaleBar.across(wide)
            assert bar is not None and first.texts[0].get_text() == f"{bar.millimetres} mm"
            left, right = first.lines[0].get_xdata()
            across = rows if layout == "ky-columns" else columns
            assert (right - left) / across * wide == pytest.approx(bar.millimetres)
            assert not any(axes.texts or axes.lines for axes in others)
        assert not plots.image_grid([panel], plots.Frame(layout)).axes[0].texts

    @pytest.mark.parametrize(("layout", "down", "across"), [("plane-rows", 1, 2), ("plane-columns", 2, 1)])
    def test_both_directions_of_a_plane_are_phase_encodes(self, image, layout, down, across):
        panel, name = plots.ImagePanel(image, "x", "error 5 %"), {1: "phase encode 1 (ky)", 2: "phase encode 2 (kz)"}
        for figure in (
            plots.image_grid([panel, panel], plots.Frame(layout)),
            plots.std_map(np.abs(image), image, plots.Frame(layout)),
            plots.error_maps([panel], np.zeros_like(image), plots.Frame(layout)),
            plots.std_against_error(np.abs(image), image, image, plots.Frame(layout), ("5 % predicted", "4 % found")),
        ):
            np.testing.assert_allclose(shown(figure)[0].shape, image.shape if down == 1 else image.T.shape)
            assert name[down] in figure.axes[0].get_ylabel()
            assert figure.axes[0].get_xlabel().startswith(name[across])
            assert "readout" not in texts(figure)
        assert figure.axes[1].get_xlabel() == "4 % found"  # the direction is named once

    def test_error_maps_share_one_scale_and_a_bar_with_its_unit(self, image):
        panels = [plots.ImagePanel(scale * image, str(scale)) for scale in (1.1, 1.5, 2.0)]
        figure = plots.error_maps(panels, image)
        for scale, error in zip((1.1, 1.5, 2.0), shown(figure), strict=False):
            np.testing.assert_allclose(error, (scale - 1) * np.abs(image))
        limits = {axes.images[0].get_clim() for axes in figure.axes[:3]}
        assert len(limits) == 1
        assert limits.pop()[1] == pytest.approx(np.percentile(np.abs(image), 99.8))
        white = object_top([np.abs(image)])
        assert f"(image units; white in the image is {white:.3g})" in texts(figure)
        assert figure.axes[-1].get_position().y1 < figure.axes[0].get_position().y0  # the bar lies below

    def test_errors_of_complex_images_and_of_moduli_are_drawn(self, image):
        (of_moduli,), (of_both,) = (
            shown(plots.error_maps([plots.ImagePanel(1j * image, "x")], image, modulus=modulus))[:1]
            for modulus in (True, False)
        )
        np.testing.assert_allclose(of_moduli, 0, atol=1e-12)
        np.testing.assert_allclose(of_both, np.sqrt(2) * np.abs(image))

    def test_white_is_set_by_the_object_in_pictures_of_magnitudes(self, image):
        bright = np.abs(image).copy()
        bright[0, 0] = 1e6
        (axes,) = plots.image_grid([plots.ImagePanel(bright, "one")]).axes
        assert axes.images[0].get_clim()[1] == pytest.approx(object_top([bright]))

    def test_std_stands_beside_the_complex_error_on_one_scale(self, image):
        std = np.full(image.shape, 0.5)
        figure = plots.std_against_error(std, image * 1j, image, captions=("5 % predicted", "4 % found"))
        left, right = shown(figure)[:2]
        np.testing.assert_allclose(left, 0.5)
        np.testing.assert_allclose(right, np.abs(1j - 1) * np.abs(image))
        assert figure.axes[0].images[0].get_clim() == figure.axes[1].images[0].get_clim()
        assert [axes.get_xlabel().rpartition("\n")[2] for axes in figure.axes[:2]] == ["5 % predicted", "4 % found"]

    def test_rows_of_the_grid_are_balanced(self, image):
        figure = plots.image_grid([plots.ImagePanel(image, str(index)) for index in range(5)])
        assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (2, 3)
        assert not figure.axes[5].axison

    def test_an_image_of_zeros_can_be_drawn(self, image):
        png_bytes(plots.image_grid([plots.ImagePanel(0 * image, "zero")]))
        png_bytes(plots.std_map(np.zeros((4, 4)), np.zeros((4, 4))))


class TestMasks:
    def test_bars_cover_the_measured_lines(self):
        mask = np.zeros(9, bool)
        mask[[0, 3, 4, 5, 8]] = True
        figure = plots.mask_barcodes({"design": mask})
        axes = figure.axes[0]
        runs = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
        assert runs == [(-4.5, 1), (-1.5, 3), (3.5, 1)]  # the centre, line 4, is ky = 0
        assert axes.get_xlim() == (-4.5, 4.5)
        assert list(axes.lines[0].get_xdata()) == [0, 0]  # the centre is marked
        assert "5 lines, 1.80×" in texts(figure)
        assert "0 lines" in texts(plots.mask_barcodes({"nothing": np.zeros(6, bool)}))

    def test_masks_lie_one_above_the_other_on_one_axis(self):
        mask = np.arange(8) < 2
        figure = plots.mask_barcodes({"a": mask, "b": ~mask})
        first, second = figure.axes
        assert first.get_position().y0 > second.get_position().y1
        assert first.get_xlim() == second.get_xlim() == (-4.5, 3.5)
        assert "cycles per field of view" in second.get_xlabel()


class TestCourse:
    def test_order_shows_every_line_at_its_ky(self):
        figure = plots.acquisition_order([4, 5, 0, 8], n_lines=9, n_start=2)
        _, start, chosen = figure.axes[0].lines
        np.testing.assert_array_equal(start.get_xydata(), [[1, 0], [2, 1]])
        np.testing.assert_array_equal(chosen.get_xydata(), [[3, -4], [4, 4]])
        figure = plots.acquisition_order([4, 0, 7], n_lines=8)  # the centre of an even number is half of it
        np.testing.assert_array_equal(figure.axes[0].lines[-1].get_ydata(), [0, -4, 3])
        assert figure.axes[0].get_ylim() == (3.5, -4.5)

    def test_map_shows_scores_and_hides_measured_lines(self, scores):
        figure = plots.score_map(scores, [3, 5, 6], first_order=2)
        drawn = figure.axes[0].images[0]
        np.testing.assert_array_equal(np.ma.getmaskarray(drawn.get_array()), np.isnan(scores.T))
        assert drawn.get_extent() == [1.5, 4.5, 4.5, -4.5]
        np.testing.assert_array_equal(figure.axes[0].lines[0].get_xydata(), [[2, -1], [3, 1], [4, 2]])
        assert "information gain (nats)" in texts(figure)

    def test_wide_scores_get_a_logarithmic_scale_and_negative_ones_do_not(self, scores):
        def scale(values: np.ndarray) -> object:
            return plots.score_map(values, [3, 5, 6]).axes[0].images[0].norm

        assert not isinstance(scale(scores), LogNorm)
        assert isinstance(scale(scores**3), LogNorm)
        assert not isinstance(scale(scores**3 - 5), LogNorm)

    def test_profiles_mark_the_chosen_line(self, scores):
        figure = plots.score_profiles(scores, [3, 5, 6], steps=[1], first_order=2)
        _, profile, chosen = figure.axes[0].lines
        np.testing.assert_array_equal(profile.get_ydata(), scores[1])
        np.testing.assert_array_equal(chosen.get_xydata(), [[1, 5.0]])
        assert "line 3: ky = +1 chosen" in texts(figure)

    @pytest.mark.slow
    def test_a_step_without_any_score_can_be_drawn(self, scores):
        scores[1] = np.nan
        png_bytes(plots.score_profiles(scores, [3, 5, 6], [0, 1]))
        png_bytes(plots.score_map(scores, [3, 5, 6]))

    def test_gains_and_their_sum(self):
        figure = plots.information_gained([3.0, 2.0, 0.5], first_order=9)
        each, total = (axes.lines[0].get_xydata() for axes in figure.axes)
        np.testing.assert_allclose(each, [[9, 3], [10, 2], [11, 0.5]])
        np.testing.assert_allclose(total, [[9, 3], [10, 5], [11, 5.5]])

    def test_growth_gives_each_line_a_bar_from_its_step_to_the_end(self):
        figure = plots.mask_growth([4, 5, 0, 8], n_lines=9, n_start=2)
        start, chosen, *new = figure.axes[0].patches
        none = np.nan
        for outline, tops in (
            (start, [none, none, none, none, 1.5, 1.5, none, none, none]),  # there in the first row already
            (chosen, [2.5, none, none, none, none, none, none, none, 3.5]),
        ):
            values, edges, baseline = outline.get_data()
            np.testing.assert_array_equal(values, tops)
            np.testing.assert_array_equal(edges, np.arange(-4.5, 5))
            assert baseline == 4.5
        bars = [(b.get_x() + b.get_width() / 2, b.get_y(), b.get_height()) for b in new]
        assert bars == [(-4, 2.5, 1), (4, 3.5, 1)]  # the new line of each row
        assert figure.axes[0].get_ylim() == (4.5, 1.5)
        assert "new line" in texts(figure)

    def test_growth_without_start_or_steps_can_be_drawn(self):
        png_bytes(plots.mask_growth([4, 0], n_lines=9))
        png_bytes(plots.mask_growth([4, 0], n_lines=9, n_start=2))


class TestCurves:
    def test_mean_and_band(self):
        curve = plots.ErrorCurve("design", np.array([16, 32]), np.array([[0.2, 0.1], [0.4, 0.1]]))
        figure = plots.error_against_lines([curve])
        axes = figure.axes[0]
        np.testing.assert_allclose(axes.lines[0].get_xydata(), [[16, 30], [32, 10]])
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == pytest.approx((10.0, 30 + 100 * np.std([0.2, 0.4], ddof=1)))
        assert "design (2 runs)" in texts(figure)

    def test_one_run_has_no_band(self):
        curve = plots.ErrorCurve("design", np.array([16, 32]), np.array([[0.2, 0.1]]))
        figure = plots.error_against_lines([curve])
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [20, 10])
        assert not figure.axes[0].collections

    @pytest.mark.parametrize("kind", ["lines", "spiral"])
    def test_the_axis_names_what_is_counted(self, kind):
        unit = KINDS[kind].unit
        curve = plots.ErrorCurve("design", np.array([16, 32]), np.array([[0.2, 0.1]]))
        named = plots.error_against_lines([curve], unit=unit).axes[0].get_xlabel()
        assert named == ("measured phase-encode lines" if kind == "lines" else f"measured {unit}s")

    def test_strategies_differ_in_more_than_colour(self):
        curves = [plots.ErrorCurve(str(n), np.array([1, 2]), np.ones((1, 2))) for n in range(7)]
        lines = plots.error_against_lines(curves).axes[0].lines
        assert len({line.get_marker() for line in lines}) == len({line.get_color() for line in lines}) == 7

    def test_calibration_draws_pairs_identity_and_the_median_ratio(self):
        figure = plots.calibration([1.0, 10.0, 100.0, 0.0], [2.0, 20.0, 100.0, 1.0], [-3, 2, 1, 0], "mV")
        axes = figure.axes[0]
        points = axes.collections[0]
        np.testing.assert_allclose(points.get_offsets(), [[1, 2], [10, 20], [100, 100]])
        np.testing.assert_allclose(points.get_array(), [3, 2, 1])
        identity = axes.lines[0].get_xydata()
        np.testing.assert_array_equal(identity[:, 0], identity[:, 1])
        assert axes.get_xlim() == axes.get_ylim()
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert "predicted / actual = 0.50; 1 not drawable" in axes.get_title()


@pytest.mark.slow
def test_a_scans_name_is_never_read_as_a_formula(image, scores):
    mask = np.ones(8, bool)
    figures = [
        plots.image_grid([plots.ImagePanel(image, HOSTILE, HOSTILE)]),
        plots.error_maps([plots.ImagePanel(image, HOSTILE, HOSTILE)], image),
        plots.mask_barcodes({HOSTILE: mask}),
        plots.error_against_lines([plots.ErrorCurve(HOSTILE, np.array([1]), np.ones((1, 1)))]),
        plots.score_map(scores, [3, 5, 6], unit=HOSTILE),
        plots.calibration([1.0], [1.0], [0], HOSTILE),
        plots.innovation_course([1], [1.0], [1.0], [1.0], unit=HOSTILE),
        plots.line_predictions([plots.LinePanel(HOSTILE, np.ones(8), np.ones(8), mask)], HOSTILE),
    ]
    for figure in figures:
        assert png_bytes(figure).startswith(b"\x89PNG")


@pytest.mark.slow
def test_no_letter_is_too_small_for_a_phone(image, scores):
    mask = np.arange(8) < 4
    panel = plots.LinePanel("one", np.arange(1.0, 9), np.arange(1.0, 9), mask)
    drawn = [
        plots.image_grid([plots.ImagePanel(image, "x", "caption")]),
        plots.std_against_error(np.abs(image), image, 2 * image),
        plots.mask_barcodes({"a": mask}),
        plots.mask_growth([4, 0], 9),
        plots.acquisition_order([4, 5], 9, 1),
        plots.information_gained([3.0, 2.0]),
        plots.error_against_lines([plots.ErrorCurve(str(n), np.array([1, 2]), np.ones((1, 2))) for n in range(9)]),
        plots.calibration([1.0, 10], [2.0, 20], [3, 4], "mV"),
        plots.error_course([1, 2], [0.5, 0.4], [1], [0.5], [0.4]),
        plots.innovation_course([1, 2], [1.0, 2], [1.0, 3], [1.0, 1]),
        plots.line_predictions([panel]),
        plots.score_map(scores, [3, 5, 6]),
        plots.score_profiles(scores, [3, 5, 6], [0, 1]),
    ]
    for figure in drawn:
        figure.draw_without_rendering()
        written = [a for a in figure.findobj(Text) if a.get_text() and a.get_visible()]
        assert written and min(a.get_fontsize() for a in written) >= 8
        marks = (axis.get_ticklabels(which="both") for axes in figure.axes for axis in (axes.xaxis, axes.yaxis))
        ticks = {label for labels in marks for label in labels}
        places = [a.get_window_extent() for a in written if a not in ticks]  # the library hides ticks that do not fit
        assert all(figure.bbox.x0 - 1 <= place.x0 and place.x1 <= figure.bbox.x1 + 1 for place in places)
        assert all(figure.bbox.y0 - 1 <= place.y0 and place.y1 <= figure.bbox.y1 + 1 for place in places)


def test_the_axis_names_the_numbers_of_lines_that_were_tried():
    curve = plots.ErrorCurve("design", np.array([24, 32, 48]), np.ones((1, 3)))
    assert list(plots.error_against_lines([curve]).axes[0].get_xticks()) == [24, 32, 48]


def test_figures_fit_a_page_and_name_no_release_of_the_library(image):
    figure = plots.image_grid([plots.ImagePanel(image, "x")] * 4)
    assert figure.get_figwidth() <= 5.2  # 7/10 of it is a phone's width
    assert b"Software" not in png_bytes(figure)  # another release of the library may not change the file


RNG = np.random.default_rng(0)


def test_masks_lie_side_by_side_with_their_acceleration() -> None:
    masks = {"one": RNG.uniform(size=(8, 6)) < 0.5, "two": np.ones((8, 6), dtype=bool)}
    figure = plots.plane_masks(masks)
    np.testing.assert_array_equal(shown(figure)[0], masks["one"].astype(int))
    assert "48 samples, 1.00" in figure.axes[1].get_title()


def test_growth_colours_what_is_new() -> None:
    panels = shown(plots.plane_growth([5, 6, 7, 0], (3, 4), [2, 4]))
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
    assert np.ma.getmaskarray(np.ma.masked_invalid(shown(figure)[0]))[0, 0]


def test_orders_leave_what_is_not_measured_blank() -> None:
    figure = plots.plane_order({"train": {0: 1, 5: 2}, "echo": {0: 1, 5: 3}}, (2, 3))
    train, echo = shown(figure)[:2]
    assert (train[0, 0], train[1, 2], echo[1, 2]) == (1, 2, 3) and np.isnan(np.ma.filled(train, np.nan)[0, 1])


def test_a_course_has_a_curve_for_every_name() -> None:
    figure = plots.block_course([10, 20], {"predicted": [2.0, 1.0], "found": [3.0, float("nan")]}, "energy")
    assert [line.get_label() for line in figure.axes[0].lines] == ["predicted", "found"]


def test_error_course_in_per_cent_with_a_band_around_the_actual_error():
    figure = plots.error_course([4, 5, 6], [0.3, 0.2, 0.1], [4, 6], [0.25, 0.1], [0.5, 0.2], "some lines")
    predicted, actual, there = figure.axes[0].lines
    np.testing.assert_allclose(predicted.get_xydata(), [[4, 30], [5, 20], [6, 10]])
    np.testing.assert_allclose(actual.get_xydata(), [[4, 50], [6, 20]])
    np.testing.assert_allclose(there.get_xydata(), [[4, 25], [6, 10]])
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((10, 100))
    assert "(%)" in figure.axes[0].get_ylabel()
    assert "actual, some lines" in texts(figure) and "predicted, all lines" in texts(figure)
    assert len(plots.error_course([4, 5], [0.3, 0.2]).axes[0].lines) == 1


def test_innovations_and_their_ratio():
    figure = plots.innovation_course([3, 4], [2.0, 8.0], [4.0, 4.0], [0.5, 1.0], noise=[1.0, 1.0], unit="mV")
    above, below = figure.axes
    np.testing.assert_allclose([line.get_ydata() for line in above.lines], [[2, 8], [4, 4], [1, 1]])
    _, each, running = below.lines
    np.testing.assert_allclose(each.get_xydata(), [[3, 0.5], [4, 2]])
    np.testing.assert_allclose(running.get_xydata(), [[3, 0.5], [4, 1]])
    assert "(mV)" in texts(figure)


def test_line_panels_share_a_scale_and_leave_out_what_is_not_positive():
    acquired = np.array([False, False, True, False])
    panel = plots.LinePanel("two lines", np.array([1.0, 2, 0.1, 1]), np.array([2.0, -1, np.nan, 9]), acquired)
    figure = plots.line_predictions([panel, panel], "mV")
    first, second = figure.axes
    actual, _, predicted, measured = (line.get_xydata() for line in first.lines)
    np.testing.assert_allclose(actual, [[-2, 2], [-1, np.nan], [0, np.nan], [1, 9]])
    np.testing.assert_allclose(predicted[:, 1], [1, 2, np.nan, 1])
    np.testing.assert_allclose(measured[:, 1], [np.nan, np.nan, 0.1, np.nan])
    assert [bar.get_x() + bar.get_width() / 2 for bar in first.patches] == [0]
    assert first.get_ylim() == second.get_ylim()
    assert "two lines" in texts(figure) and "(mV)" in texts(figure)


ARM = spiral_curve(32, nyquist_turns(32, 8), points=90)
SETS = {spread: turned(ARM, interleaf_angles(6, spread)) for spread in ("full-turn", "half-turn")}


def test_curves_lie_as_images_do_and_captions_say_what_is_measured_twice():
    figure = plots.trajectory_curves(SETS, (32, 32))
    for axes, (title, shots) in zip(figure.axes, SETS.items(), strict=True):
        others, first = axes.collections
        np.testing.assert_array_equal(first.get_segments()[0], shots[0, :, ::-1])  # kx across, ky along the page
        assert len(others.get_segments()) == 5
        low, high = axes.get_ylim()
        assert low > 16 > -16 > high  # ky grows downwards
        assert axes.get_title() == title
        assert "6 shots of 90 samples" in axes.get_xlabel()
    captions = texts(figure)
    assert "100 % measured as k and −k" in captions
    assert "cycles per field of view" in captions
    named = plots.trajectory_curves(SETS, (32, 32), first="the first arm of the start")
    assert [text.get_text() for text in named.legends[0].get_texts()] == ["the first arm of the start", "the others"]
    colours = [handle.get_color() for handle in named.legends[0].legend_handles]
    assert [colour[:3] for colour in np.reshape(colours, (2, -1)).tolist()] == [
        list(to_rgb(PALETTE[1])),
        list(to_rgb(INK)),
    ]


def test_one_spoke_alone_can_be_drawn():
    figure = plots.trajectory_curves({"one": radial_spokes(16, equispaced_angles(1))}, (16, 16))
    (axes,) = figure.axes
    assert "1 shot of 16 samples" in axes.get_xlabel() and len(figure.legends[0].get_texts()) == 1
    assert axes.collections[1].get_segments()[0].shape == (16, 2)


def test_spreads_are_in_decibels_below_the_peak_on_one_scale():
    spreads = {title: 3 * point_spread(shots, (32, 32)) for title, shots in SETS.items()}
    figure = plots.point_spread_maps(spreads)
    for axes, spread in zip(figure.axes, spreads.values(), strict=False):
        shown = np.asarray(axes.images[0].get_array())
        np.testing.assert_allclose(10 ** (shown / 20), np.abs(spread) / 3, atol=1e-12)
        assert axes.images[0].get_clim() == (-60, 0)
        assert axes.images[0].get_extent() == [-16.5, 15.5, 15.5, -16.5]  # pixels from the peak, rows downwards
        assert axes.get_xlabel().startswith("pixels from the point")
        assert f"largest side lobe {largest_side_lobe(spread).decibels:.1f} dB" in axes.get_xlabel()


def test_scores_of_angles_stand_above_the_angles_that_are_measured():
    angles = np.pi * np.arange(4) / 4
    scores = {"2 spokes measured": np.array([np.nan, 3.0, np.nan, 2.0]), "3": np.array([np.nan, np.nan, np.nan, 1.0])}
    flags = {"2 spokes measured": np.array([True, False, True, False]), "3": np.array([True, True, True, False])}
    figure = plots.angle_scores(angles, scores, flags, "nats")
    first, second = figure.axes
    curve, ticks = first.lines
    np.testing.assert_allclose(curve.get_xdata(), [0, 45, 90, 135])
    np.testing.assert_array_equal(curve.get_ydata(), scores["2 spokes measured"])
    np.testing.assert_allclose(ticks.get_xdata(), [0, 90])
    np.testing.assert_allclose(second.lines[1].get_xdata(), [0, 45, 90])
    assert first.get_ylabel() == "score (nats)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["score of an angle", "measured angle"]

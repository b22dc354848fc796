"""Figures show the numbers they were given: positions, scales, orientation, units."""

import numpy as np
import pytest
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.text import Text

from mri_design import InputError
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import ImageMetrics
from mri_design.evaluation.pictures import png_bytes
from mri_design.kinds import KINDS
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
        caption = plots.metric_caption(ImageMetrics(0.0523, 0.06, 31.25, 0.9412))
        figure = plots.image_grid(
            [plots.ImagePanel(image, "all lines"), plots.ImagePanel(3 * image, "design", caption)]
        )
        first, second = shown(figure)
        np.testing.assert_allclose(first, np.abs(image))
        np.testing.assert_allclose(second, 3 * np.abs(image))
        limits = {axes.images[0].get_clim() for axes in figure.axes}
        assert len(limits) == 1 and limits.pop()[0] == 0.0
        for text in ("all lines", "design", "5.23 %", "31.2 dB", "0.941"):
            assert text in texts(figure)

    @pytest.mark.parametrize("orientation", ["ky-rows", "ky-columns"])
    def test_the_image_lies_as_in_the_source(self, image, orientation):
        expected = np.abs(image) if orientation == "ky-rows" else np.abs(image).T
        panel = plots.ImagePanel(image, "x")
        for figure in (
            plots.image_grid([panel], orientation),
            plots.std_map(np.abs(image), orientation),
            plots.error_maps([panel], np.zeros_like(image), orientation),
        ):
            np.testing.assert_allclose(shown(figure)[0], expected)
            down = "phase encode" if orientation == "ky-rows" else "readout"
            assert down in figure.axes[0].get_ylabel()

    @pytest.mark.parametrize(("layout", "down", "across"), [("plane-rows", 1, 2), ("plane-columns", 2, 1)])
    def test_both_directions_of_a_plane_are_phase_encodes(self, image, layout, down, across):
        panel, name = plots.ImagePanel(image, "x", "error 5 %"), {1: "phase encode 1 (ky)", 2: "phase encode 2 (kz)"}
        for figure in (
            plots.image_grid([panel, panel], layout),
            plots.std_map(np.abs(image), layout),
            plots.error_maps([panel], np.zeros_like(image), layout),
            plots.std_against_error(np.abs(image), image, image, layout),
        ):
            np.testing.assert_allclose(shown(figure)[0].shape, image.shape if down == 1 else image.T.shape)
            assert name[down] in figure.axes[0].get_ylabel()
            assert figure.axes[0].get_xlabel().startswith(name[across])
            assert "readout" not in texts(figure)
        assert figure.axes[1].get_xlabel().startswith("root mean square")  # said once

    def test_error_maps_share_one_scale_and_a_bar_with_its_unit(self, image):
        panels = [plots.ImagePanel(scale * image, str(scale)) for scale in (1.1, 1.5, 2.0)]
        figure = plots.error_maps(panels, image, unit="mV")
        for scale, error in zip((1.1, 1.5, 2.0), shown(figure), strict=False):
            np.testing.assert_allclose(error, (scale - 1) * np.abs(image))
        limits = {axes.images[0].get_clim() for axes in figure.axes[:3]}
        assert len(limits) == 1
        assert limits.pop()[1] == pytest.approx(np.percentile(np.abs(image), 99.8))
        assert "(mV)" in texts(figure)

    def test_std_stands_beside_the_complex_error_on_one_scale(self, image):
        std = np.full(image.shape, 0.5)
        figure = plots.std_against_error(std, image * 1j, image)
        left, right = shown(figure)[:2]
        np.testing.assert_allclose(left, 0.5)
        np.testing.assert_allclose(right, np.abs(1j - 1) * np.abs(image))
        assert figure.axes[0].images[0].get_clim() == figure.axes[1].images[0].get_clim()
        assert "root mean square 0.5" in texts(figure)

    def test_rows_of_the_grid_are_balanced(self, image):
        figure = plots.image_grid([plots.ImagePanel(image, str(index)) for index in range(5)])
        assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (2, 3)
        assert not figure.axes[5].axison

    def test_an_image_of_zeros_can_be_drawn(self, image):
        png_bytes(plots.image_grid([plots.ImagePanel(0 * image, "zero")]))
        png_bytes(plots.std_map(np.zeros((4, 4))))

    def test_what_does_not_belong_together_is_refused(self, image):
        panel = plots.ImagePanel(image, "x")
        for wrong in (
            lambda: plots.image_grid([]),
            lambda: plots.image_grid([panel, plots.ImagePanel(image.T, "y")]),
            lambda: plots.error_maps([panel], image.T),
            lambda: plots.std_against_error(np.abs(image).T, image, image),
            lambda: plots.std_map(np.ones(5)),
            lambda: plots.image_grid([panel], "sideways"),
        ):
            with pytest.raises(InputError):
                wrong()

    def test_error_maps_hold_the_error_alone_and_their_bar_lies_below(self, image):
        found = ImageMetrics(0.0523, 0.06, 31.25, 0.9412)
        assert plots.error_caption(found) == "error 5.23 %"
        assert plots.metric_caption(found).splitlines() == ["error 5.23 %", "PSNR 31.2 dB", "SSIM 0.941"]
        figure = plots.error_maps([plots.ImagePanel(image, "x", plots.error_caption(found))], 0.5 * image)
        figure.draw_without_rendering()
        map_, bar = figure.axes
        assert bar.get_position().y1 < map_.get_position().y0


class TestMasks:
    def test_bars_cover_the_measured_lines(self):
        mask = np.zeros(9, bool)
        mask[[0, 3, 4, 5, 8]] = True
        figure = plots.mask_barcodes({"design": mask})
        axes = figure.axes[0]
        runs = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
        assert runs == [(-4.5, 1), (-1.5, 3), (3.5, 1)]  # the centre, line 4, is ky = 0
        assert axes.get_xlim() == (-4.5, 4.5)
        assert "5 lines, 1.80×" in texts(figure)

    def test_masks_lie_one_above_the_other_on_one_axis(self):
        mask = np.arange(8) < 2
        figure = plots.mask_barcodes({"a": mask, "b": ~mask})
        first, second = figure.axes
        assert first.get_position().y0 > second.get_position().y1
        assert first.get_xlim() == second.get_xlim() == (-4.5, 3.5)
        assert "cycles per field of view" in second.get_xlabel()

    def test_the_centre_is_marked(self):
        figure = plots.mask_barcodes({"a": np.ones(6, bool)})
        assert list(figure.axes[0].lines[0].get_xdata()) == [0, 0]

    def test_an_empty_mask_has_no_acceleration(self):
        assert "0 lines" in texts(plots.mask_barcodes({"nothing": np.zeros(6, bool)}))

    @pytest.mark.parametrize(
        "masks",
        [{}, {"a": np.ones(4)}, {"a": np.ones((2, 2), bool)}, {"a": np.ones(4, bool), "b": np.ones(5, bool)}],
    )
    def test_what_is_no_mask_is_refused(self, masks):
        with pytest.raises(InputError):
            plots.mask_barcodes(masks)


class TestCourse:
    def test_order_shows_every_line_at_its_ky(self):
        figure = plots.acquisition_order([4, 5, 0, 8], n_lines=9, n_start=2)
        _, start, chosen = figure.axes[0].lines
        np.testing.assert_array_equal(start.get_xydata(), [[1, 0], [2, 1]])
        np.testing.assert_array_equal(chosen.get_xydata(), [[3, -4], [4, 4]])

    def test_the_centre_of_an_even_number_of_lines_is_half_of_it(self):
        figure = plots.acquisition_order([4, 0, 7], n_lines=8)
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
        assert len(plots.score_profiles(scores, [3, 5, 6]).axes) == 3

    @pytest.mark.slow
    def test_a_step_without_any_score_can_be_drawn(self, scores):
        scores[1] = np.nan
        png_bytes(plots.score_profiles(scores, [3, 5, 6]))
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

    def test_impossible_runs_are_refused(self, scores):
        for wrong in (
            lambda: plots.acquisition_order([], 9),
            lambda: plots.acquisition_order([9], 9),
            lambda: plots.acquisition_order([-1], 9),
            lambda: plots.mask_growth([9], 9),
            lambda: plots.score_map(scores, [3]),
            lambda: plots.score_map(scores * np.nan, [3, 5, 6]),
            lambda: plots.score_map(scores, [3, 5, 9]),
            lambda: plots.score_profiles(scores, [3, 5, 6], steps=[3]),
            lambda: plots.information_gained([]),
            lambda: plots.information_gained([1.0, np.nan]),
        ):
            with pytest.raises(InputError):
                wrong()


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
        figure = plots.error_against_lines([curve], y_label="error", percent=False)
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.2, 0.1])
        assert not figure.axes[0].collections

    @pytest.mark.parametrize("kind", ["lines", "plane", "radial", "spiral"])
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
        figure = plots.calibration([1.0, 10.0, 100.0, 0.0], [2.0, 20.0, 100.0, 1.0], ky=[-3, 2, 1, 0])
        axes = figure.axes[0]
        points = axes.collections[0]
        np.testing.assert_allclose(points.get_offsets(), [[1, 2], [10, 20], [100, 100]])
        np.testing.assert_allclose(points.get_array(), [3, 2, 1])
        identity = axes.lines[0].get_xydata()
        np.testing.assert_array_equal(identity[:, 0], identity[:, 1])
        assert axes.get_xlim() == axes.get_ylim()
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert "predicted / actual = 0.50; 1 not drawable" in axes.get_title()
        assert len(plots.calibration([1.0], [2.0]).axes) == 1

    def test_impossible_curves_are_refused(self):
        for wrong in (
            lambda: plots.error_against_lines([]),
            lambda: plots.ErrorCurve("x", np.array([1, 2]), np.ones((1, 3))),
            lambda: plots.calibration([1.0], [1.0, 2.0]),
            lambda: plots.calibration([0.0], [1.0]),
        ):
            with pytest.raises(InputError):
                wrong()


@pytest.mark.slow
def test_a_scans_name_is_never_read_as_a_formula(image, scores):
    mask = np.ones(8, bool)
    figures = [
        plots.image_grid([plots.ImagePanel(image, HOSTILE, HOSTILE)]),
        plots.error_maps([plots.ImagePanel(image, HOSTILE, HOSTILE)], image, unit=HOSTILE),
        plots.mask_barcodes({HOSTILE: mask}),
        plots.error_against_lines([plots.ErrorCurve(HOSTILE, np.array([1]), np.ones((1, 1)))], y_label=HOSTILE),
        plots.score_map(scores, [3, 5, 6], unit=HOSTILE),
        plots.calibration([1.0], [1.0], unit=HOSTILE),
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
        plots.calibration([1.0, 10], [2.0, 20], [3, 4]),
        plots.error_course([1, 2], [0.5, 0.4], [1], [0.5], [0.4]),
        plots.innovation_course([1, 2], [1.0, 2], [1.0, 3], [1.0, 1]),
        plots.line_predictions([panel]),
        plots.score_map(scores, [3, 5, 6]),
        plots.score_profiles(scores, [3, 5, 6]),
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


def test_figures_fit_a_page_and_repeat_exactly(image):
    figure = plots.image_grid([plots.ImagePanel(image, "x")] * 4)
    assert figure.get_figwidth() <= 5.2  # 7/10 of it is a phone's width
    again = plots.image_grid([plots.ImagePanel(image, "x")] * 4)
    assert png_bytes(figure) == png_bytes(again)
    assert b"Software" not in png_bytes(figure)  # another release of the library may not change the file

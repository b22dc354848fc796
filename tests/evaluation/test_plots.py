"""Figures hold the data that they are given, lie and scale as they should, and become the same files and no more."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design.evaluation import inline, placed, plots, png_bytes, svg_text
from mri_design.operators import interleaf_angles, radial_spokes, turned
from mri_design.scan import nyquist_turns, point_spread, spiral_curve

RNG = np.random.default_rng(1)
IMAGE = RNG.normal(size=(12, 8)) + 1j * RNG.normal(size=(12, 8))
SCORES = np.tile(np.array([1.0, 2, 3, 6, 9, 5, 3, 2, 1]), (3, 1))  # nine lines: 4, the centre, is measured, then 3, 5
SCORES[:, 4] = SCORES[1:, 3] = SCORES[2:, 5] = np.nan
HOSTILE = r"$\frac{1$ <b>_^% </script>--><script>"
ARM = spiral_curve(32, nyquist_turns(32, 8), points=90)
SETS = {spread: turned(ARM, interleaf_angles(6, spread)) for spread in ("full-turn", "half-turn")}
LINES = np.zeros(9, bool)
LINES[[0, 3, 4, 5, 8]] = True
PANEL = plots.ImagePanel(IMAGE, "x")


def shown(figure: Figure) -> list[np.ndarray]:
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


FIGURES: dict[str, Callable[[str], Figure]] = {
    "image_grid": lambda text: plots.image_grid([plots.ImagePanel(0 * IMAGE, text, text)] * 5),
    "error_maps": lambda text: plots.error_maps([plots.ImagePanel(IMAGE, text)], 1.1 * IMAGE),
    "std_beside_error": lambda text: plots.image_grid(plots.doubt_panels(IMAGE, 0 * IMAGE, IMAGE, (text, text))),
    "maps": lambda text: plots.image_grid([plots.ImagePanel(0 * IMAGE, text, text, True)], errors=text),
    "image_beside_errors": lambda text: plots.image_grid([PANEL, *plots.doubt_panels(IMAGE, 0, None)], errors=text),
    "image_with_regions": lambda text: plots.image_with_regions(IMAGE, {text: np.abs(IMAGE) > 1, "none": IMAGE > 99}),
    "mask_barcodes": lambda text: plots.mask_barcodes({text: LINES, "nothing": LINES & False}),
    "acquisition_order": lambda text: plots.acquisition_order([4, 5, 0, 8], 9, 2, text),
    "mask_growth": lambda text: plots.mask_growth([4, 0], 9, 2),
    "score_map": lambda text: plots.score_map(SCORES, [3, 5, 6], text),
    "score_profiles": lambda text: plots.score_profiles(
        np.arange(9.0), {text: (SCORES[0], LINES), "none": (LINES * np.nan, LINES)}, "ky", text
    ),
    "plane_flags": lambda text: plots.plane_flags({text: IMAGE.real > 0, "two": 2 * (IMAGE.real > 0)}, (text, "new")),
    "plane_maps": lambda text: plots.plane_maps({text: np.abs(IMAGE)}, text),
    "plane_order": lambda text: plots.plane_maps({text: np.abs(IMAGE)}),
    "trajectory_curves": lambda text: plots.trajectory_curves({text: radial_spokes(16, np.zeros(1))}, (16, 16)),
    "mask_of_lines": lambda text: plots.mask_with_spread(text, LINES, np.fft.fftshift(np.fft.fft(LINES))),
    "mask_of_samples": lambda text: plots.mask_with_spread(text, IMAGE.real > 0, IMAGE),
    "mask_of_shots": lambda text: plots.mask_with_spread(
        text, np.ones(6, bool), point_spread(SETS["half-turn"], (32, 32)), SETS["half-turn"]
    ),
    "error_against_lines": lambda text: plots.error_against_lines(
        np.arange(3), {text * number: np.ones((2, 3)) for number in range(1, 9)}
    ),
    "error_of_one_run": lambda text: plots.error_against_lines(
        np.arange(9), {text: np.ones((1, 9))}, bands=False
    ),
    "calibration": lambda text: plots.calibration(*np.array([[1.0, 10], [2, 5], [3, 4]]), text),
    "information_gained": lambda text: plots.information_gained(np.array([3.0, 2.0, 0.5]), 9, text),
    "error_course": lambda text: plots.error_course(([4, 5], [0.3, 0.2]), [(4, 0.3, 0.2)], text),
    "innovation_course": lambda text: plots.innovation_course(*np.array([[3.0, 4]] * 4), None, text, text),
    "line_predictions": lambda text: plots.line_predictions(
        {text: (np.ones(4), np.array([2.0, -1, np.nan, 9]), np.arange(4) == 2)}, text
    ),
}  # fmt: skip


@pytest.mark.drawn
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_becomes_a_part_of_a_page_that_repeats_and_obeys_no_name(name: str) -> None:
    """Names from a scan are never read as formulas or markup, and a user's settings of the library change nothing."""
    figure = FIGURES[name](HOSTILE)
    text = svg_text(figure)
    with matplotlib.rc_context({"svg.fonttype": "none", "savefig.bbox": "tight", "svg.hashsalt": "x"}):
        assert svg_text(FIGURES[name](HOSTILE)) == text
    assert figure.get_figwidth() <= 6 and matplotlib.__version__ not in text
    one, two = inline(text, "a-", HOSTILE), inline(text, "b-", "two")
    assert re.match(r'<svg role="img" aria-label="[^"<>]*" ', one)
    assert not re.search(r"<(script|style|metadata|!|\?)|\bon\w+=|xmlns|https?:", one)
    ids, used = (set(re.findall(form, one)) for form in (r' id="([^"]*)"', r'(?:href="#|url\(#)([^")]*)'))
    assert used <= ids and all(each.startswith("a-") for each in ids) and f'"#{next(iter(used))}' not in two
    assert "#ffffff" not in one and "#5d6066" not in one  # the page's colours instead


@pytest.mark.drawn
@pytest.mark.parametrize("regions", [1, 6])
def test_intervals_have_as_much_room_of_each_region_whatever_their_number(regions: int) -> None:
    names, ends = [f"region {n}" for n in range(regions)], np.tile([0.9, 1.1], (3, regions, 1))
    figure = plots.interval_course(names, [4, 6, 8], ends, [1.0] * regions)
    with placed(figure):
        assert all(0.9 < axes.get_position().height * figure.get_figheight() < 1.7 for axes in figure.axes)


@pytest.mark.drawn
def test_a_placed_figure_is_laid_out_once_and_its_files_are_what_each_would_be_alone() -> None:
    figure = FIGURES["mask_barcodes"]("a")
    with placed(figure):
        svg_text(figure)
        assert png_bytes(figure) == png_bytes(FIGURES["mask_barcodes"]("a"))
    assert figure.get_layout_engine() is not None  # it may be written again, with other contents


# ---- images ----


@pytest.mark.parametrize("layout", ["ky-rows", "ky-columns", "plane-rows", "plane-columns"])
def test_images_lie_as_in_the_source_with_pixels_of_their_shape_and_a_bar(layout: plots.Layout) -> None:
    rows, columns = IMAGE.shape
    turned = layout.endswith("columns")
    frame = plots.Frame(layout, (24 / rows, 12 / rows))  # millimetres along ky and kx
    wide = 24.0 if turned else 12 * columns / rows
    for figure in (
        plots.image_grid([PANEL, PANEL], frame),
        plots.error_maps([PANEL], np.zeros_like(IMAGE), frame),
        plots.image_grid(plots.doubt_panels(np.abs(IMAGE), IMAGE, 0 * IMAGE), frame),
    ):
        np.testing.assert_allclose(shown(figure)[0], np.abs(IMAGE).T if turned else np.abs(IMAGE))
        first, *others = (axes for axes in figure.axes if axes.images)
        assert first.get_aspect() == (0.5 if turned else 2.0)
        millimetres, _ = frame.scale_bar(rows if turned else columns)
        left, right = first.lines[0].get_xdata()
        assert (right - left) / (rows if turned else columns) * wide == pytest.approx(millimetres)
        assert not any(axes.texts or axes.lines for axes in others)
    assert not plots.image_grid([PANEL], plots.Frame(layout)).axes[0].texts


def test_errors_are_those_of_moduli_or_of_complex_pixels_on_one_scale() -> None:
    panels = [plots.ImagePanel(scale * 1j * IMAGE, str(scale)) for scale in (1.1, 1.5)]
    figure = plots.error_maps(panels, IMAGE)
    for scale, error in zip((1.1, 1.5), shown(figure), strict=False):
        np.testing.assert_allclose(error, (scale - 1) * np.abs(IMAGE))
    complex_error = shown(plots.error_maps([plots.ImagePanel(1j * IMAGE, "x")], IMAGE, modulus=False))[0]
    doubt = plots.image_grid(plots.doubt_panels(np.full(IMAGE.shape, 0.5), 1j * IMAGE, IMAGE))
    std, error = shown(doubt)[:2]
    np.testing.assert_allclose([complex_error, error], np.sqrt(2) * np.abs([IMAGE, IMAGE]))
    np.testing.assert_allclose(std, 0.5)
    for each in (figure, doubt):
        assert each.axes[0].images[0].get_clim() == each.axes[1].images[0].get_clim()


@pytest.mark.parametrize(("side", "step"), [(12, 1), (700, 3)])
def test_values_of_pixels_are_kept_in_16_bits_and_of_large_images_thinned(side: int, step: int) -> None:
    image = RNG.exponential(size=(side, side - 2))
    kept = plots.pixel_values(plots.Frame("ky-columns"), image, image / 7, {"reference": 2 * image})
    assert (kept["step"], kept["rows"] * kept["columns"]) == (step, image[::step, ::step].size)
    for view, values in zip(kept["views"], (image, image / 7, 2 * image), strict=True):
        words = np.frombuffer(b64decode(view["values"]), "<u2").reshape(kept["rows"], kept["columns"])
        found = words * (float(view["largest"]) / 65535)
        np.testing.assert_allclose(found, values.T[::step, ::step], atol=2e-5 * values.max())

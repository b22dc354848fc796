"""Pictures of shots: the point-spread function is the compensated sum, and captions name the colours that are drawn."""

import colorsys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mri_design import equispaced_angles, interleaf_angles, nyquist_turns, point_spread, radial_spokes, turned
from mri_design.evaluation import plots
from mri_design.evaluation.pictures import THEMED
from mri_design.evaluation.run_folder import RunFolder
from mri_design.operators.nonuniform import density_weights
from mri_design.runs.image_sections import compensated_spread, curves_figure, point_spread_figure
from mri_design.scan.trajectories.spiral import spiral_curve

pytest.importorskip("finufft")
ARMS = turned(spiral_curve(32, nyquist_turns(32, 8), points=90), interleaf_angles(5, "full-turn"))
SPOKES = radial_spokes(32, equispaced_angles(24))


@pytest.mark.parametrize("shots", [ARMS, SPOKES], ids=["spiral", "radial"])
def test_the_spread_is_the_compensated_sum_and_its_peak_is_in_the_middle(shots):
    grid, points = (32, 30), shots.reshape(-1, 2) * (1, 30 / 32)
    spread = compensated_spread(points, grid)
    expected = point_spread(points, grid, weights=density_weights(points, grid))
    np.testing.assert_allclose(spread, expected, atol=1e-11)
    assert np.unravel_index(np.abs(spread).argmax(), grid) == (16, 15)
    assert spread[16, 15] == pytest.approx(1)
    plain = np.abs(point_spread(points, grid))
    assert np.abs(spread)[16, 18] < plain[16, 18]  # what lies close at the centre no longer blurs the point


def test_the_caption_names_the_colours_of_the_curves(tmp_path: Path) -> None:
    figure = curves_figure(RunFolder(tmp_path / "run"), "trajectory", {"arms": ARMS}, (32, 32), "arm", "the first arm")
    (axes,) = plots.trajectory_curves({"arms": ARMS}, (32, 32)).axes
    others, first = axes.collections
    hue, saturation, _ = colorsys.rgb_to_hsv(*first.get_color()[0][:3])
    assert 15 < 360 * hue < 45 and saturation > 0.5
    assert first.get_linewidth()[0] > others.get_linewidth()[0]
    assert "thick orange curve is the first arm" in figure.caption
    assert THEMED[to_hex(others.get_color()[0])] == "var(--ink)"
    assert "thin ones, in the colour of the text, are all the others" in figure.caption
    assert "one curve for each arm" in figure.caption


def test_where_no_report_is_wanted_nothing_is_computed_for_it(tmp_path: Path) -> None:
    unreported = RunFolder(tmp_path / "run", reported=False)
    figure = point_spread_figure(unreported, "too many", np.full((3, 2), 99.0), (8, 8), "they")
    assert figure.picture == "" and "what they make of a point" in figure.caption

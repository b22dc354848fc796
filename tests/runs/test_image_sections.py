"""What a report shows of images, masks and trajectories."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mri_design import (
    Convergence,
    Reconstruction,
    Status,
    equispaced_angles,
    interleaf_angles,
    measure,
    nyquist_turns,
    point_spread,
    radial_spokes,
    turned,
)
from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation import plots
from mri_design.evaluation.page import ReportFigure, ReportTable
from mri_design.evaluation.pictures import THEMED
from mri_design.evaluation.plots.panels import Frame
from mri_design.evaluation.run_folder import RunFolder
from mri_design.operators.nonuniform import density_weights
from mri_design.operators.readouts import LineReadouts, PlaneReadouts, ShotReadouts
from mri_design.runs.image_sections import (
    curves_figure,
    image_sections,
    layout_of,
    mask_sentence,
    metric_rows,
    point_spread_figure,
    save_images,
    with_noise_of_reference,
)
from mri_design.runs.scan_facts import NamedImage, with_zero_filled
from mri_design.scan.trajectories.point_spread import compensated_spread
from mri_design.scan.trajectories.spiral import spiral_curve

DONE, STOPPED = (
    Convergence(Status.CONVERGED, 3, 0.0, matvecs=40),
    Convergence(Status.MAX_ITERATIONS, 9, 1.0, matvecs=70),
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def image(rng: np.random.Generator) -> np.ndarray:
    return (rng.standard_normal((8, 8)) + 1j * rng.standard_normal((8, 8))).astype(np.complex64)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def figures(folder: RunFolder) -> set[str]:
    return {path.stem for path in (folder.path / "figures").glob("*.svg")}


def test_images_lie_as_what_was_measured_encodes_them() -> None:
    lines, plane = LineReadouts((8, 6)), PlaneReadouts((8, 6))
    shots = ShotReadouts((8, 8), turned(radial_spokes(8, equispaced_angles(1))[0], np.array([0.0, 1.0])), "radial")
    assert [layout_of(lines, way) for way in ("ky-rows", "ky-columns")] == ["ky-rows", "ky-columns"]
    assert [layout_of(plane, way) for way in ("ky-rows", "ky-columns")] == ["plane-rows", "plane-columns"]
    assert layout_of(shots, "ky-columns") == "no-lines"


def test_metric_rows_by_hand(image: np.ndarray) -> None:
    reference = image + 0.1
    made = {"mean": Reconstruction(image, None, DONE), "map": Reconstruction(2 * image, None, STOPPED)}
    first, second = metric_rows(
        [NamedImage.judged(*one, reference) for one in made.items()], {"lines": 2, "acceleration": 4.0}
    )
    assert first["method"] == "mean"
    assert (first["lines"], first["acceleration"], first["matvecs"]) == (2, 4.0, 40)
    assert first["relative_l2"] == measure(image, reference).relative_l2
    assert (first["converged"], second["converged"]) == (True, False)
    blank = metric_rows([NamedImage.judged("mean", made["mean"], None)], {"lines": 2})[0]
    assert (blank["relative_l2"], blank["psnr"], blank["ssim"]) == (None, None, None)


def test_the_zero_filled_image_stands_beside_others_once(make_image: Callable[..., ReferenceSlice]) -> None:
    one = make_image().slice_model
    result = NamedImage("map", Reconstruction(np.zeros((16, 16), complex), None, DONE))
    both = with_zero_filled([result], one, [8, 7])
    assert [named.name for named in both] == ["map", "zero-filled"]
    kspace = np.zeros((16, 16), complex)
    kspace[[8, 7]] = one.kspace[0, [8, 7]]
    expected = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace), norm="ortho"))
    np.testing.assert_allclose(both[1].reconstruction.image, expected, atol=1e-6)
    assert with_zero_filled(both, one, [8, 7]) == both


def test_images_are_saved_in_their_formats(folder: RunFolder, image: np.ndarray) -> None:
    rows = [{"method": "mean", "relative_l2": 0.125}]
    save_images(folder, Reconstruction(image.astype(complex), np.abs(image).astype(float), DONE), rows)
    recon, std = np.load(folder.path / "recon.npy"), np.load(folder.path / "std.npy")
    assert (recon.dtype, std.dtype) == (np.complex64, np.float32)
    np.testing.assert_array_equal(recon, image)
    assert (folder.path / "metrics.csv").read_text() == "method,relative_l2\nmean,0.125\n"


def test_errors_against_a_noisy_reference_are_shown_without_its_noise_and_say_whether_they_rank() -> None:
    rows = [{"method": "mean", "relative_l2": 0.1}, {"method": "map", "relative_l2": 0.07}]
    assert with_noise_of_reference(rows, None, False) == rows
    first, second = with_noise_of_reference(rows, 0.06, False)
    assert first["beyond_reference_noise"] == pytest.approx(0.08) and first["ranks"] == "yes"
    assert (
        second["relative_l2"] == 0.07 and second["ranks"] == "no: the difference is within the noise of the reference"
    )
    of_all = with_noise_of_reference([*rows, {"method": "least-squares", "relative_l2": None}], 0.06, True)
    assert [row["beyond_reference_noise"] for row in of_all] == [None] * 3
    assert of_all[0]["ranks"] == "no: made from the reference's own samples"
    assert of_all[2]["ranks"] == "no: it is the reference"


def test_error_bars_of_an_earlier_run_do_not_stay_beside_another_image(folder: RunFolder, image: np.ndarray) -> None:
    rows = [{"method": "mean"}]
    save_images(folder, Reconstruction(image, np.abs(image), DONE), rows)
    save_images(folder, Reconstruction(image, None, DONE), rows)
    assert not (folder.path / "std.npy").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "std", "expected"),
    [
        (True, True, {"images", "errors", "std"}),
        (True, False, {"images", "errors"}),
        (False, True, {"images", "std"}),
        (False, False, {"images"}),
    ],
)
def test_figures_of_images_show_what_is_known(
    folder: RunFolder, image: np.ndarray, reference: bool, std: bool, expected: set[str]
) -> None:
    truth = image + 0.1 if reference else None
    named = [NamedImage.judged("mean", Reconstruction(image, np.abs(image) if std else None, DONE), truth)]
    rows = metric_rows(named, {"lines": 4})
    (section,) = image_sections(folder, named, truth, Frame(), rows)
    assert figures(folder) == expected
    assert isinstance(section.blocks[0], ReportTable)
    assert all(isinstance(block, ReportFigure) and block.caption for block in section.blocks[1:])


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


def mask(n: int, *lines: int) -> np.ndarray:
    flags = np.zeros(n, bool)
    flags[list(lines)] = True
    return flags


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "0 of 12 lines are measured."),
        (
            [4, 5, 6, 7],
            "4 of 12 lines are measured. Around the centre 4 are measured without a gap, ky = -2 to 1; no other line "
            "is measured.",
        ),
        (
            [0, 5, 6, 8, 9],
            "5 of 12 lines are measured. Around the centre 2 are measured without a gap, ky = -1 to 0; of the other 3, "
            "1 have negative and 2 positive ky. The largest gap between neighbours misses 4 in a row.",
        ),
        (
            [6, 11],
            "2 of 12 lines are measured. Around the centre one line is measured without a gap, ky = 0 to 0; of the "
            "other 1, 0 have negative and 1 positive ky. The largest gap between neighbours misses 4 in a row.",
        ),
        (
            [1],
            "1 of 12 lines are measured. The line through the centre (DC) is not among them; of the other 1, 1 have "
            "negative and 0 positive ky.",
        ),
    ],
)
def test_it_says_what_the_mask_is(lines: list[int], said: str) -> None:
    assert mask_sentence(mask(12, *lines)) == said

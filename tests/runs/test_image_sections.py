"""What a report shows of images, masks and trajectories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.evaluation import RelativeError
from mri_design.evaluation.plots import object_top
from mri_design.evaluation.plots.pictures import layout_of
from mri_design.experiment import Image
from mri_design.readouts import LineReadouts, PlaneReadouts, ShotReadouts
from mri_design.runs.image_sections import image_rows
from mri_design.runs.known_slice import GivenReference, KnownSlice, NamedImage

DONE = md.Convergence(md.Status.CONVERGED, 3, 0.0, matvecs=40)
STOPPED = md.Convergence(md.Status.MAX_ITERATIONS, 9, 1.0, matvecs=70)


def test_images_lie_as_what_was_measured_encodes_them() -> None:
    lines, plane = LineReadouts((8, 6)), PlaneReadouts((8, 6))
    shots = ShotReadouts(
        (8, 8), md.operators.turned(md.operators.radial_spokes(8, [0.0])[0], np.array([0.0, 1.0])), "radial"
    )
    assert [layout_of(lines, way) for way in ("ky-rows", "ky-columns")] == ["ky-rows", "ky-columns"]
    assert [layout_of(plane, way) for way in ("ky-rows", "ky-columns")] == ["plane-rows", "plane-columns"]
    assert layout_of(shots, "ky-columns") == "no-lines"


def test_rows_of_images_have_their_errors_and_whether_these_rank_them() -> None:
    rng = np.random.default_rng(0)
    image = rng.standard_normal((8, 8)) + 1j * rng.standard_normal((8, 8))
    known, reference = replace(known_scan(0.05, 64, truth=False), lines=[31, 32]), np.ones((8, 8))
    errors, found = md.measure(image, reference), RelativeError(0.2, 0.1)
    named = NamedImage("mean", Image(image, None, DONE), errors, found)
    near = replace(named, name="map", reconstruction=Image(image, None, STOPPED))
    near = replace(near, errors=replace(errors, relative_l2=1.1 * (known.reference_noise or 0)))
    first, second = image_rows(known, [named, near])
    assert first["method"] == "mean" and (first["predicted_error"], first["found_error"]) == (0.2, 0.1)
    assert (first["lines"], first["acceleration"], first["matvecs"]) == (2, 32.0, 40)
    assert first["relative_l2"] == errors.relative_l2 and (first["converged"], second["converged"]) == (True, False)
    assert [str(row["ranks"]).partition(":")[0] for row in (first, second)] == ["yes", "no"]
    own = image_rows(replace(known, lines=range(64)), [named, NamedImage("least-squares", named.reconstruction)])
    assert [str(row["ranks"]).partition(":")[0] for row in own] == ["no", "no"]
    assert {own[1][name] for name in ("relative_l2", "psnr", "ssim", "predicted_error", "found_error")} == {None}
    assert "ranks" not in image_rows(known_scan(0.05, 64), [named])[0]  # beside a true image all do


def test_the_zero_filled_image_stands_beside_others_once() -> None:
    known, made = known_scan(0.0), Image(np.zeros((32, 32), complex), None, DONE)
    known = replace(known, lines=[16, 15])
    both = known.judged("map", made)[1]
    assert [named.name for named in both] == ["map", "zero-filled"]
    kspace = np.zeros((32, 32), complex)
    kspace[[16, 15]] = known.scan.kspace[0, 0, [16, 15]]
    expected = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace), norm="ortho"))
    np.testing.assert_allclose(both[1].reconstruction.image, expected, atol=1e-6)
    assert [named.name for named in known.judged("zero-filled", made)[1]] == ["zero-filled"]


def known_scan(noise: float, side: int = 32, *, truth: bool = True) -> KnownSlice:
    """A head, whose true image may be kept back."""
    made = md.load_phantom("t2w", shape=(side, side), noise=noise, rng=np.random.default_rng(4))
    data = replace(made, noise_variance=max(made.noise_variance or 0.0, 1e-8))
    data = data if truth else replace(data, reference=None)
    scan = md.calibrate(data, md.Recipe())
    return KnownSlice(scan=scan, slice_model=scan.slice_model(), signal=1.0, lines=range(side))


def some_lines(count: int) -> list[int]:
    """Nine lines at the centre of 64, and others."""
    outer = np.random.default_rng(1).permutation(np.flatnonzero(np.abs(np.arange(64) - 32) > 4))
    return sorted([*range(28, 37), *outer[: count - 9].tolist()])


@pytest.mark.parametrize("count", [20, 32])
def test_the_error_found_is_that_of_the_complex_image_without_the_noise_of_the_reference(count: int) -> None:
    """A complete scan is its own reference; what is found by it is what the true image shows."""
    own, truth = known_scan(0.05, 64, truth=False), known_scan(0.05, 64)
    lines = some_lines(count)
    image = md.reconstruct(own.slice_model, lines, "mean", md.load_recipe("fast"))
    (found, zeros), (true, true_zeros) = (
        replace(known, lines=lines).judged("mean", image.times(known.image_unit))[1] for known in (own, truth)
    )
    assert true.error.found == pytest.approx(true.errors.relative_l2_complex)
    assert found.errors.relative_l2_complex > 1.3 * true.errors.relative_l2_complex
    assert found.error.found == pytest.approx(true.error.found, rel=0.1)
    assert zeros.error.found == pytest.approx(true_zeros.error.found, rel=0.1) and zeros.error.predicted is None
    assert found.error.predicted == true.error.predicted == image.predicted_error
    every = replace(own, lines=range(64)).judged("mean", image.times(own.image_unit))[1]
    assert len(every) == 1 and every[0].error.found is None  # made of what the reference is made of


def test_beside_an_image_of_a_file_both_errors_are_those_of_the_modulus() -> None:
    known = replace(known_scan(0.02, 64), lines=some_lines(24))
    made = md.reconstruct(known.slice_model, known.lines, "mean", md.load_recipe("fast")).times(known.image_unit)
    given = GivenReference("truth.npy", np.abs(known.reference)[None])
    of_file, (image, _) = replace(known, given=given).judged("mean", made)
    error, true = image.error, known.judged("mean", made)[1][0].error
    assert error.of == "modulus" and true.of == "complex image"
    assert error.found == pytest.approx(md.measure(made.image, of_file.given.image).relative_l2)
    assert error.predicted / error.found == pytest.approx(true.predicted / true.found, rel=0.1)


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

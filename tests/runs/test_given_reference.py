"""Images of a file that errors are measured against: scaled to fit, one for each slice, refused where none fits."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, measure
from mri_design.runs.known_slice import GivenReference
from mri_design.scan.io import read_images
from tests.refusals import refused


@pytest.fixture
def image(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((8, 6)) + 1j * rng.standard_normal((8, 6))


@pytest.mark.parametrize("unit", [1.0, 1e-18, 3e12])
def test_no_other_factor_fits_better_and_the_phase_is_not_compared(rng, image, unit):
    given = unit * (np.abs(image) + 0.3 * rng.random((8, 6)))
    fitted = GivenReference("truth.npy", (given * np.exp(2j * rng.random((8, 6))))[None]).fitted(image)
    np.testing.assert_allclose(np.abs(fitted.image), fitted.factor * given, rtol=1e-6)

    def missed(factor: float) -> float:
        return float(np.linalg.norm(np.abs(image) - factor * given))

    assert missed(fitted.factor) < min(missed(0.999 * fitted.factor), missed(1.001 * fitted.factor))
    errors = measure(image, fitted.image)
    assert errors.relative_l2_complex == pytest.approx(errors.relative_l2, rel=1e-5)
    assert errors.relative_l2 == pytest.approx(missed(fitted.factor) / np.linalg.norm(fitted.factor * given), rel=1e-5)


def test_images_go_by_the_numbers_of_slices_or_by_their_order(rng: np.random.Generator) -> None:
    images = rng.random((4, 8, 6)).astype(np.float32)
    every = GivenReference("four.npy", images).of_slices([3, 1], 4, (8, 6))
    some = GivenReference("two.npy", images[[3, 1]]).of_slices([3, 1], 4, (8, 6))
    for number in (3, 1):
        np.testing.assert_array_equal(every[number].images, images[[number]])
        np.testing.assert_array_equal(some[number].images, images[[number]])


@pytest.mark.parametrize(("shape", "grid"), [((2, 8, 6), (9, 6)), ((3, 8, 6), (8, 6)), ((2, 6, 8), (8, 6))])
def test_other_shapes_are_refused(shape: tuple[int, ...], grid: tuple[int, int]) -> None:
    with refused("reference r.npy"):
        GivenReference("r.npy", np.ones(shape, np.float32)).of_slices([3, 1], 4, grid)


def test_what_shows_nothing_is_refused(image: np.ndarray) -> None:
    dark = np.stack([np.ones((8, 6)), np.zeros((8, 6))])
    with refused("reference r.npy"):
        GivenReference("r.npy", dark).of_slices([0, 1], 2, (8, 6))
    apart = np.zeros((8, 6))
    apart[0] = 1
    with pytest.raises(InputError):
        GivenReference("r.npy", apart[None]).fitted(image * (apart == 0))


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (lambda pixels: pixels, ""),
        (lambda pixels: pixels[::-1], "flipped along ky"),
        (np.transpose, "with rows and columns exchanged"),
        (np.rot90, "turned by 270 degrees"),
    ],
)
def test_a_reference_that_lies_otherwise_is_doubted(turn: object, said: str, rng: np.random.Generator) -> None:
    truth = rng.random((8, 8)) ** 3
    noisy = truth + 0.05 * rng.standard_normal((8, 8))
    assert GivenReference("r.npy", turn(truth)[None]).fitted(noisy).turned == said


@pytest.mark.parametrize("kind", ["npy", "npz", "cfl"])
def test_images_lie_as_the_package_writes_them(kind: str, image: np.ndarray, tmp_path: Path) -> None:
    path, seen = tmp_path / f"image.{kind}", image.astype(np.complex64)
    if kind == "cfl":
        seen.tofile(path)
        path.with_suffix(".hdr").write_text("# Dimensions\n6 8 1 1 1\n")
    else:
        np.save(path, seen) if kind == "npy" else np.savez(path, recon=seen, std=np.ones(3))
    np.testing.assert_array_equal(read_images(path).images, seen[np.newaxis])


def test_files_that_hold_no_images_are_refused_by_their_names(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.Nifti1Image(np.ones((6, 8, 2, 3), np.float32), np.eye(4)), tmp_path / "several.nii")
    np.save(tmp_path / "zeros.npy", np.zeros((8, 6)))
    np.save(tmp_path / "nan.npy", np.full((8, 6), np.nan))
    np.save(tmp_path / "line.npy", np.ones(8))
    (tmp_path / "coils.cfl").write_bytes(np.ones(96, np.complex64).tobytes())
    (tmp_path / "coils.hdr").write_text("# Dimensions\n6 8 1 2\n")
    for name in ("several.nii", "zeros.npy", "nan.npy", "line.npy", "coils.cfl"):
        with pytest.raises(InputError) as caught:
            read_images(tmp_path / name)
        assert name.partition(".")[0] in caught.value.field

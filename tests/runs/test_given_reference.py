"""Images of a file that errors are measured against: scaled to fit, one for each slice, refused where none fits."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import ImageStack, InputError, measure
from mri_design.runs.given_reference import GivenReference, GivenReferences, scaled_words
from mri_design.scan.io.companions import read_images


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def image(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((8, 6)) + 1j * rng.standard_normal((8, 6))


@pytest.mark.parametrize("unit", [1.0, 1e-18, 3e12])
def test_no_other_factor_fits_better_and_the_phase_is_not_compared(
    rng: np.random.Generator, image: np.ndarray, unit: float
) -> None:
    given = unit * (np.abs(image) + 0.3 * rng.random((8, 6)))
    fitted = GivenReference("truth.npy", given * np.exp(2j * rng.random((8, 6)))).fitted(image)
    np.testing.assert_allclose(np.abs(fitted.image), fitted.factor * given, rtol=1e-6)

    def missed(factor: float) -> float:
        return float(np.linalg.norm(np.abs(image) - factor * given))

    assert missed(fitted.factor) < min(missed(0.999 * fitted.factor), missed(1.001 * fitted.factor))
    errors = measure(image, fitted.image)
    assert errors.relative_l2_complex == pytest.approx(errors.relative_l2, rel=1e-5)
    assert errors.relative_l2 == pytest.approx(missed(fitted.factor) / np.linalg.norm(fitted.factor * given), rel=1e-5)


def test_images_go_by_the_numbers_of_slices_or_by_their_order(rng: np.random.Generator) -> None:
    images = rng.random((4, 8, 6)).astype(np.float32)
    every = GivenReferences("four.npy", ImageStack(images)).of_slices([3, 1], 4, (8, 6))
    some = GivenReferences("two.npy", ImageStack(images[[3, 1]])).of_slices([3, 1], 4, (8, 6))
    for number in (3, 1):
        np.testing.assert_array_equal(every[number].image, images[number])
        np.testing.assert_array_equal(some[number].image, images[number])


@pytest.mark.parametrize(
    ("shape", "grid", "said"),
    [
        ((2, 8, 6), (9, 6), r"got 2 x 8 x 6 .*wanted 2 x 9 x 6.*or images of all 4 slices.* on the matrix"),
        ((3, 8, 6), (8, 6), r"got 3 x 8 x 6 .*wanted 2 x 8 x 6"),
        ((2, 6, 8), (8, 6), r".*numpy\.transpose"),
    ],
)
def test_other_shapes_are_refused_with_both(shape: tuple[int, ...], grid: tuple[int, int], said: str) -> None:
    with pytest.raises(InputError, match=f"reference r.npy: {said}"):
        GivenReferences("r.npy", ImageStack(np.ones(shape, np.float32))).of_slices([3, 1], 4, grid)


def test_what_shows_nothing_is_refused(image: np.ndarray) -> None:
    dark = np.zeros((2, 8, 6), np.float32)
    dark[0] = 1
    with pytest.raises(InputError, match=r"reference r.npy, slice 1: got all zeros.*slices"):
        GivenReferences("r.npy", ImageStack(dark)).of_slices([0, 1], 2, (8, 6))
    apart = np.zeros((8, 6))
    apart[0] = 1
    with pytest.raises(InputError, match="zero wherever the reconstruction is not"):
        GivenReference("r.npy", apart).fitted(image * (apart == 0))


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (lambda pixels: pixels, ""),
        (lambda pixels: pixels[::-1], "flipped along ky"),
        (lambda pixels: pixels[:, ::-1], "flipped along kx"),
        (lambda pixels: pixels[::-1, ::-1], "turned by 180 degrees"),
        (np.transpose, "with rows and columns exchanged"),
        (np.rot90, "turned by 270 degrees"),
    ],
)
def test_a_reference_that_lies_otherwise_is_doubted(turn: object, said: str, rng: np.random.Generator) -> None:
    truth = rng.random((8, 8)) ** 3
    noisy = truth + 0.05 * rng.standard_normal((8, 8))
    fitted = GivenReference("r.npy", turn(truth)).fitted(noisy)
    assert fitted.turned == said and fitted.doubt.startswith("r.npy fits the image much better" if said else "")
    assert bool(fitted.doubt) == bool(said)


@pytest.mark.parametrize("kind", ["npy", "npz", "nii", "cfl"])
def test_images_lie_as_the_package_writes_them(kind: str, image: np.ndarray, tmp_path: Path) -> None:
    path, seen = tmp_path / f"image.{kind}", image.astype(np.complex64)
    if kind == "npy":
        np.save(path, seen)
    elif kind == "npz":
        np.savez(path, recon=seen, std=np.ones(3))
    elif kind == "nii":
        seen = np.abs(seen)
        path.write_bytes(_nifti(seen))
    else:
        seen.tofile(path)
        path.with_suffix(".hdr").write_text("# Dimensions\n6 8 1 1 1\n")
    np.testing.assert_array_equal(read_images(path).images, seen[np.newaxis])


def test_one_of_several_volumes_is_not_taken_in_silence(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    path = tmp_path / "truth.nii"
    nibabel.save(nibabel.Nifti1Image(np.ones((6, 8, 2, 3), np.float32), np.eye(4)), path)
    with pytest.raises(InputError, match=r"truth\.nii: got volumes first of 3; wanted one volume\. .* file of its own"):
        read_images(path)


def _nifti(image: np.ndarray) -> bytes:
    pytest.importorskip("nibabel")
    from mri_design.scan.writing.images import nifti_bytes

    return nifti_bytes(image, None, "image", compressed=False)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((8, 6)), "all zeros"),
        (np.full((8, 6), np.nan), "not finite|NaN"),
        (np.ones(8), r"\(slice, row, column\)"),
    ],
)
def test_arrays_that_are_no_images_are_refused_by_the_name_of_their_file(
    values: np.ndarray, said: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "r.npy", values)
    with pytest.raises(InputError, match=f"r.npy: .*{said}"):
        read_images(tmp_path / "r.npy")


def test_k_space_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "coils.cfl").write_bytes(np.ones(96, np.complex64).tobytes())
    (tmp_path / "coils.hdr").write_text("# Dimensions\n6 8 1 2\n")
    with pytest.raises(InputError, match="images of 2 coils"):
        read_images(tmp_path / "coils.cfl")


def test_factors_of_many_slices_are_told_by_their_range() -> None:
    assert "scaled by 1.02, which" in scaled_words([1.02])
    assert "scaled by 0.5 to 2, slice by slice" in scaled_words([1.0, 2.0, 0.5])

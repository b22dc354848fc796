"""Other images and masks are laid over a scan: by the headers' places, by fields of view, or slice upon slice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import affine_transform

from mri_design.evidence import Offered, choose_companions
from mri_design.experiment import CompanionImages, RegionMask, companion_file, load_recipe, region_labels
from mri_design.model import Companion
from mri_design.scan import KSpaceData, SliceGeometry
from mri_design.scan.writing import nifti_bytes
from tests.numbers_in_text import numbers_in
from tests.refusals import refused
from tests.two_contrasts import FIRST, head, scanned, slice_of

RECIPE = load_recipe("local")


def ball(points: np.ndarray) -> np.ndarray:
    """Brightness anywhere in space (mm), smooth."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.exp(-(((x - 6) / 30) ** 2 + ((y + 4) / 22) ** 2 + ((z - 3) / 25) ** 2))


def points_of(geometry: SliceGeometry, shape: tuple[int, int]) -> np.ndarray:
    _, phase, read, _ = geometry.vectors
    rows, columns = np.meshgrid(*map(np.arange, shape), indexing="ij")
    corner = geometry.first_pixel(shape)
    return corner + rows[..., None] * geometry.pixel[0] * phase + columns[..., None] * geometry.pixel[1] * read


STRAIGHT = SliceGeometry((2.0, 2.0), 5.0, (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
TURN = np.deg2rad(20)
HERE = SliceGeometry(
    (3.0, 2.5),
    4.0,
    (1.0, 2.0, 3.0),
    (0.0, np.cos(TURN), np.sin(TURN)),
    (1.0, 0.0, 0.0),
    (0.0, -np.sin(TURN), np.cos(TURN)),
)


def scan(shape: tuple[int, int] = (40, 36), geometry: SliceGeometry | None = HERE) -> KSpaceData:
    kspace = scanned(np.ones(shape))[None, None]
    return KSpaceData(kspace, np.ones(shape[0], bool), geometry=None if geometry is None else (geometry,))


def test_a_volume_is_sampled_where_the_slice_lies_whatever_its_grid_and_directions():
    first = replace(STRAIGHT, thickness=2.0, centre=(0.0, 0.0, -60.0))
    places = tuple(first.slice_after(number) for number in range(60))
    images = np.stack([ball(points_of(place, (70, 72))) for place in places]).astype(np.float32)
    over = CompanionImages("volume", images, places).over(scan(), 0, 1)
    wanted = ball(points_of(HERE, (40, 36)))
    inside = over.image > 0
    assert inside.mean() > 0.9
    np.testing.assert_allclose(over.image[inside], wanted[inside], atol=0.02)
    assert over.by_headers


def test_images_of_other_pixels_are_laid_over_by_their_fields_of_view():
    wide = SliceGeometry((2.0, 2.0), 4.0)
    images = ball(points_of(wide, (96, 96)))[None].astype(np.float32)
    here = SliceGeometry((3.0, 2.5), 4.0)
    over = CompanionImages("wide", images, (wide,)).over(scan(geometry=here), 0, 1)
    np.testing.assert_allclose(over.image, ball(points_of(here, (40, 36))), atol=0.02)
    assert not over.by_headers


def zoomed(image: np.ndarray, more: float) -> np.ndarray:
    """Larger about the middle, as slices of a head are nearer to its middle."""
    middle = (np.array(image.shape) - 1) / 2
    return affine_transform(image, np.eye(2) / more, middle - middle / more, order=1)


def volume_of_heads(places: tuple[SliceGeometry, ...] | None) -> CompanionImages:
    """Five slices, the third of them of the size of the scan's head."""
    images = np.stack([zoomed(head(FIRST), 1 + 0.08 * (number - 2)) for number in range(5)])
    return CompanionImages("volume", images.astype(np.float32), places)


def laid(beside: Companion) -> Offered:
    """As it is laid over an image of the head."""
    one = replace(slice_of(head(FIRST)), companions=(beside,))
    (offered,) = choose_companions(one, [], None, head(FIRST) + 0j).offered
    return offered


def test_of_volumes_without_places_the_slices_beside_that_of_the_number_are_looked_at():
    of_number = [volume_of_heads(None).over(scan((64, 64), None), number, 5) for number in (1, 2)]
    beside, right = (laid(companion) for companion in of_number)
    assert numbers_in(beside.aside) == [2, 5, 0, 1] and beside.aside in str(beside)
    np.testing.assert_allclose(beside.companion.image, right.companion.image, atol=0.05)
    assert right.aside == ""
    assert of_number[0].beside[-1.5][1]() is None  # where there is no slice
    halves = of_number[0].beside[0.5][1]()
    np.testing.assert_allclose(halves, volume_of_heads(None).images[1:3].mean(axis=0), atol=1e-6)


def test_of_volumes_with_places_as_many_millimetres_are_looked_at_and_count_as_motion():
    def lying(right: float, above: float) -> Offered:
        """As it was laid over the scan, where headers place it by so many millimetres elsewhere than it is."""
        first = replace(STRAIGHT, centre=(right, 0.0, above - 10.0))
        places = tuple(first.slice_after(number) for number in range(5))
        file = CompanionImages("volume", volume_of_heads(None).images[::-1], places[::-1])
        return laid(file.over(scan((64, 64), STRAIGHT), 0, 1))

    assert lying(0.0, 0.0).aside == ""
    assert numbers_in(lying(0.0, 5.0).aside) == [5]
    assert lying(9.0, 0.0).refused == ""
    far = lying(9.0, 5.0)
    assert (numbers_in(far.aside), numbers_in(far.refused)) == ([5], [10])


def test_an_image_of_another_place_is_refused():
    away = replace(HERE, centre=(0.0, 0.0, 200.0))
    with refused("companion away"):
        CompanionImages("away", np.ones((1, 40, 36), np.float32), (away,)).over(scan(), 0, 1)


def test_files_of_images_and_of_samples_are_read_and_folders_of_runs(tmp_path):
    image = ball(points_of(SliceGeometry((4.0, 4.0), 4.0), (32, 32))).astype(np.float32)
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "samples.npy", scanned(image, 0.005))
    run = tmp_path / "run"
    run.mkdir()
    np.save(run / "recon.npy", (image * 1j).astype(np.complex64))
    assert companion_file(str(run)) == str(run / "recon.npy")
    for name in ("image.npy", "samples.npy", "run"):
        read = CompanionImages.read(str(tmp_path / name), RECIPE)
        assert read.images.shape == (1, 32, 32)
        np.testing.assert_allclose(read.images[0] / read.images.max(), image / image.max(), atol=0.05)


def test_nifti_keeps_its_place(tmp_path):
    first = replace(STRAIGHT, thickness=3.0, centre=(0.0, 0.0, -9.0))
    images = np.stack([ball(points_of(first.slice_after(n), (30, 32))) for n in range(6)]).astype(np.float32)
    (tmp_path / "t1.nii.gz").write_bytes(nifti_bytes(images, first, "t1"))
    read = CompanionImages.read(str(tmp_path / "t1.nii.gz"), RECIPE)
    here = replace(first, centre=(0.0, 0.0, -4.5))
    over = read.over(scan((30, 32), here), 0, 1)
    np.testing.assert_allclose(over.image, ball(points_of(here, (30, 32))), atol=0.02)


def test_the_scan_itself_is_recognised_and_left_out_and_a_repeat_is_not(tmp_path):
    image = ball(points_of(SliceGeometry((4.0, 4.0), 4.0), (32, 32))).astype(np.float32)
    own, mask = scanned(image, 0.01), np.arange(32) % 3 < 2
    here = KSpaceData((own * mask[:, None])[None, None], mask)
    for name, samples, same in (
        ("same", own, True),
        ("rounded", (2e3 * own).astype(np.complex64) * np.exp(1j), True),
        ("again", scanned(image, 0.01, seed=1), False),
    ):
        np.save(tmp_path / f"{name}.npy", samples)
        found = CompanionImages.read(str(tmp_path / f"{name}.npy"), RECIPE).over(here, 0, 1)
        assert bool(found.refused) is same, name
    truth = replace(here, reference=(3 * image)[None].astype(np.complex64))
    assert CompanionImages("truth", image[None]).over(truth, 0, 1).refused
    assert not CompanionImages("turned", image[None, ::-1]).over(truth, 0, 1).refused


def test_a_complex_image_is_no_kspace_and_a_constant_says_nothing(tmp_path):
    image = head(FIRST)
    for name, samples, is_image in (("image.npy", image * np.exp(0.3j), True), ("kspace.npy", scanned(image), False)):
        np.save(tmp_path / name, samples.astype(np.complex64))
        if is_image:
            with refused("companion image.npy"):
                CompanionImages.read(str(tmp_path / name), RECIPE)
        else:
            assert CompanionImages.read(str(tmp_path / name), RECIPE).images.shape == (1, *image.shape)
    flat = CompanionImages("flat", np.ones((1, 2, 2), np.float32)).over(scan(), 0, 1)
    assert flat.refused


@pytest.mark.parametrize(
    "array",
    [
        *(np.zeros((4, 4)), np.full((4, 4), np.nan), -np.eye(4), np.eye(4) / 2, np.eye(4) * 1j, np.eye(4) * 1e12),
        np.arange(101),
    ],
    ids=["zeros", "not finite", "negative", "not whole", "complex", "too large", "too many"],
)
def test_what_is_no_mask_of_regions_is_refused(array: np.ndarray) -> None:
    with refused("lesion"):
        region_labels(array, "lesion")


def test_flags_and_numbers_are_regions_on_the_grid_of_the_image(tmp_path: Path) -> None:
    flags = np.eye(4, dtype=bool)
    np.save(tmp_path / "flags.npy", flags)
    mask = RegionMask.read(tmp_path / "flags.npy")
    np.testing.assert_array_equal(mask.over([None], (1, 4, 4))[0], flags)
    with refused("flags.npy"):
        mask.over([None], (1, 6, 4))
    with refused("region"):
        RegionMask.of(np.ones(4))


FINER = SliceGeometry((1.0, 1.0), 5.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))


def test_a_finer_mask_that_is_turned_lies_by_both_headers() -> None:
    fine = np.zeros((1, 24, 24), dtype=np.int64)
    fine[0, 4:10, 14:20] = 3  # x from -8 to -2, y from 2 to 8
    found = RegionMask("m", fine, (FINER,)).over([STRAIGHT], (1, 12, 12))[0]
    rows, columns = np.nonzero(found == 3)
    y, x = 2 * (rows - 6), 2 * (columns - 6)
    assert (y.min(), y.max(), x.min(), x.max()) == (2, 6, -8, -4)
    far = replace(STRAIGHT, centre=(0.0, 0.0, 90.0))
    with refused("m"):
        RegionMask("m", fine, (FINER,)).over([far], (1, 12, 12))

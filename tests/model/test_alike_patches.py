"""Similar patches: those a search over everything finds, the same every time, refused where nothing is similar."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.model.companion import AlikePatches, find_alike


def stripes(shape: tuple[int, int], period: int = 4) -> np.ndarray:
    """A texture that repeats, with a slow change and a phase."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    modulus = 1 + 0.5 * np.cos(2 * np.pi * y / period) + 0.1 * np.sin(x / 3) + (x > shape[1] // 2)
    return modulus * np.exp(0.02j * x) + 1e-3 * np.random.default_rng(0).standard_normal(shape)


def by_search(image: np.ndarray, count: int, half: int, radius: int) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square differences and neighbours, one pair of patches after the other."""
    ny, nx = image.shape
    reach = [min(radius, (n - 1) // 2) for n in image.shape]
    inside = [(a, b) for a in range(-half, half + 1) for b in range(-half, half + 1)]
    neighbours, differences = np.zeros((2, count, ny, nx))
    for y in range(ny):
        for x in range(nx):
            found = []
            for dy in range(-reach[0], reach[0] + 1):
                for dx in range(-reach[1], reach[1] + 1):
                    if max(abs(dy), abs(dx)) < 2:
                        continue
                    pairs = [
                        image[(y + a) % ny, (x + b) % nx] - image[(y + dy + a) % ny, (x + dx + b) % nx]
                        for a, b in inside
                    ]
                    rms = np.sqrt(np.mean(np.abs(pairs) ** 2))
                    found.append((rms, (y + dy) % ny * nx + (x + dx) % nx))
            found.sort()
            differences[:, y, x], neighbours[:, y, x] = np.transpose(found[:count])
    return neighbours, differences


@pytest.mark.parametrize("shape", [(8, 7)], ids=str)
def test_neighbours_are_those_of_a_search_over_everything(shape):
    image = stripes(shape)
    alike = find_alike(image, 5)
    neighbours, differences = by_search(image, 5, half=1, radius=4)
    np.testing.assert_array_equal(alike.neighbours, neighbours)
    np.testing.assert_allclose(alike.differences, differences, atol=1e-9)


def test_a_texture_finds_its_own_period():
    y, x = np.mgrid[:32, :32]
    image = np.cos(2 * np.pi * y / 8) * (1 + x / 32) + 0j
    image += 1e-6 * np.random.default_rng(0).standard_normal(image.shape)
    down = find_alike(image, 1).neighbours[0] // 32 - y
    assert np.mean(down[8:24, 4:28] % 8 == 0) > 0.95


def test_scale_and_common_phase_do_not_matter_and_a_second_search_finds_the_same():
    image = stripes((24, 17))
    first, second = find_alike(image), find_alike(3e4 * np.exp(1.3j) * image)
    np.testing.assert_array_equal(first.neighbours, find_alike(image.copy()).neighbours)
    assert np.mean(first.neighbours == second.neighbours) > 0.99
    np.testing.assert_allclose(second.differences, 3e4 * first.differences, rtol=1e-4, atol=1e-3)


def test_expected_differences_are_never_smaller_than_a_share_of_the_signal():
    alike = AlikePatches(np.zeros((1, 2, 2), int), np.array([[[0.0, 1.0], [2.0, 3.0]]]))
    np.testing.assert_allclose(alike.expected(5.0), [[[0.05, 1.05], [2.05, 3.05]]])


def noise(shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("image", [noise((17, 31)), np.ones((20, 20)), np.zeros((20, 20))])
def test_noise_and_constants_are_refused(image):
    with pytest.raises(InputError, match="equally alike"):
        find_alike(image)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (4, 4)], ids=str)
def test_a_grid_without_so_many_patches_is_refused(shape):
    with pytest.raises(InputError, match="neighbours: got 99"):
        find_alike(stripes(shape), 99)


def test_small_grids_have_small_windows():
    image = np.add.outer(np.array([0.0, 5.0, 0.0, 5.0, 0.1]), np.array([0.0, 0.1, 9.0, 0.0, 0.1, 9.0])) + 0j
    alike = find_alike(image, 2)
    assert alike.neighbours.shape == (2, 5, 6)
    for k in range(2):
        assert not (alike.neighbours[k] == np.arange(30).reshape(5, 6)).any()


def test_images_with_nan_or_other_axes_are_refused():
    for image in (np.full((9, 9), np.nan), np.ones(9), np.ones((2, 9, 9))):
        with pytest.raises(InputError, match="image"):
            find_alike(image)
    with pytest.raises(InputError, match="neighbours"):
        find_alike(stripes((12, 12)), 0)
    with pytest.raises(InputError, match="alike patches"):
        AlikePatches(np.zeros((2, 3, 3), int), np.zeros((1, 3, 3)))

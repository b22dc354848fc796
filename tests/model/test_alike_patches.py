"""Similar patches: those a search over everything finds, the same every time, refused where nothing is similar."""

import numpy as np

from mri_design.model import AlikePatches, companion_patches, find_alike, unit_modulus


def stripes(shape: tuple[int, int], period: int = 4) -> np.ndarray:
    """A texture that repeats, with a slow change and a phase."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    modulus = 1 + 0.5 * np.cos(2 * np.pi * y / period) + 0.1 * np.sin(x / 3) + (x > shape[1] // 2)
    return modulus * np.exp(0.02j * x) + 1e-3 * np.random.default_rng(0).standard_normal(shape)


def by_search(image: np.ndarray, count: int, nearest: int) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square differences of patches of 3 x 3 and neighbours within four pixels, one pair after the other."""
    ny, nx = image.shape
    reach = [min(4, (n - 1) // 2) for n in image.shape]
    inside = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    neighbours, differences = np.zeros((2, count, ny, nx))
    for y, x in np.ndindex(ny, nx):
        found = []
        for dy, dx in np.ndindex(2 * reach[0] + 1, 2 * reach[1] + 1):
            dy, dx = dy - reach[0], dx - reach[1]
            if max(abs(dy), abs(dx)) < nearest:
                continue
            here = np.array([image[(y + a) % ny, (x + b) % nx] for a, b in inside])
            there = np.array([image[(y + dy + a) % ny, (x + dx + b) % nx] for a, b in inside])
            rms = np.sqrt(np.mean(np.abs(here - there) ** 2))
            found.append((rms, (y + dy) % ny * nx + (x + dx) % nx))
        differences[:, y, x], neighbours[:, y, x] = np.transpose(sorted(found)[:count])
    return neighbours, differences


def test_neighbours_are_those_of_a_search_over_everything():
    grained = np.abs(stripes((12, 11), 5)) + 0.02 * np.random.default_rng(0).standard_normal((12, 11))
    for image, patches, nearest in (
        (stripes((8, 7)), find_alike(stripes((8, 7)), 5), 2),
        (unit_modulus(grained), companion_patches([grained], 5), 1),
    ):
        neighbours, differences = by_search(image, 5, nearest)
        np.testing.assert_array_equal(patches.neighbours, neighbours)
        np.testing.assert_allclose(patches.differences, differences, atol=1e-9)


def test_scale_and_common_phase_do_not_matter_and_a_second_search_finds_the_same():
    image = stripes((24, 17))
    first, second = find_alike(image), find_alike(3e4 * np.exp(1.3j) * image)
    np.testing.assert_array_equal(first.neighbours, find_alike(image.copy()).neighbours)
    assert np.mean(first.neighbours == second.neighbours) > 0.99
    np.testing.assert_allclose(second.differences, 3e4 * first.differences, rtol=1e-4, atol=1e-3)


def test_expected_differences_are_never_smaller_than_a_share_of_the_signal():
    alike = AlikePatches(np.zeros((1, 2, 2), int), np.array([[[0.0, 1.0], [2.0, 3.0]]]))
    np.testing.assert_allclose(alike.expected(5.0), [[[0.05, 1.05], [2.05, 3.05]]])

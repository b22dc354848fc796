"""Similar patches, those of companions, and the block of sites that they make."""

from dataclasses import replace

import numpy as np

from mri_design.model import AlikePatches, SliceModel, SparsityBlock, companion_patches, find_alike, unit_modulus
from mri_design.model.sparsity import LEAST_DIFFERENCE, ImageFacts

BLOCK = SparsityBlock("companion", 0.8, isotropic=True, tau_limit=0.03)


def head(shape: tuple[int, int], levels: tuple[float, ...] = (0.3, 0.9, 0.5)) -> np.ndarray:
    """Three tissues; contrasts differ in their levels alone."""
    y, x = (np.linspace(-1, 1, n) for n in shape)
    radius = np.hypot(y[:, None] * 1.1, x[None, :] * 1.3)
    image = np.select([radius < 0.35, radius < 0.7, radius < 0.9], levels, 0.0)
    return image + 0.3 * (np.hypot(y[:, None] + 0.45, x[None, :] - 0.2) < 0.13)


def grained(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return head(shape) + 0.02 * np.random.default_rng(seed).standard_normal(shape)


def test_pixels_belong_together_only_where_they_do_in_every_companion():
    one, other = head((32, 32)), np.roll(head((32, 32)), 6, axis=1)
    rng = np.random.default_rng(1)
    one, other = (image + 0.01 * rng.standard_normal(image.shape) for image in (one, other))
    both = companion_patches([one, other])
    for image in (one, other):
        flat = unit_modulus(image).ravel()
        own = np.arange(flat.size).reshape(image.shape)
        between = np.abs(flat[own] - flat[both.neighbours]).mean()
        assert between < 1.3 * both.differences.mean()
        assert between > np.abs(flat[own] - flat[companion_patches([image]).neighbours]).mean()


def test_rates_are_those_of_expected_differences_up_to_the_limit():
    image = grained((16, 16))
    patches = companion_patches([image])
    signal, noise_sd = 50.0, 2.0
    sites = BLOCK.sites(ImageFacts((16, 16), signal, companion=patches), noise_sd)
    rates = (0.8 / (patches.differences + LEAST_DIFFERENCE)).mean(axis=0) * noise_sd / signal
    np.testing.assert_allclose(np.squeeze(sites.potential.rate), np.minimum(rates, 0.03), rtol=1e-6)
    u = np.random.default_rng(2).standard_normal((16, 16))
    np.testing.assert_allclose(sites.analysis(u), u - u.ravel()[patches.neighbours], atol=1e-12)


def test_without_a_companion_its_block_is_left_out():
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(grained((16, 16))), norm="ortho"))[None]
    one = SliceModel(kspace, np.ones(16, bool), 0.02**2, prior=(SparsityBlock("differences", 10.0), BLOCK))
    with_companion = replace(one, companion=companion_patches([grained((16, 16))]))
    names = [[block.name for block in each.model(range(5, 11)).blocks] for each in (one, with_companion)]
    assert names == [["differences"], ["differences", "companion"]]


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


def test_scale_and_phase_do_not_matter_and_a_second_search_finds_the_same():
    image = stripes((24, 17))
    first, second = find_alike(image), find_alike(3e4 * np.exp(1.3j) * image)
    np.testing.assert_array_equal(first.neighbours, find_alike(image.copy()).neighbours)
    assert np.mean(first.neighbours == second.neighbours) > 0.99
    np.testing.assert_allclose(second.differences, 3e4 * first.differences, rtol=1e-4, atol=1e-3)
    image = np.abs(grained((24, 20)))
    first, second = (companion_patches([one]) for one in (image, 3e4 * image * np.exp(1j * np.linspace(0, 5, 20))))
    np.testing.assert_array_equal(first.neighbours, second.neighbours)
    np.testing.assert_allclose(first.differences, second.differences, atol=1e-9)


def test_expected_differences_are_never_smaller_than_a_share_of_the_signal():
    alike = AlikePatches(np.zeros((1, 2, 2), int), np.array([[[0.0, 1.0], [2.0, 3.0]]]))
    np.testing.assert_allclose(alike.expected(5.0), [[[0.05, 1.05], [2.05, 3.05]]])

"""Translations held against sums written out and, where they are installed, against the other packages themselves.

Factors of 2 (and pi), half a sample, a swapped column or another sign change every sample that is compared here.
"""

import shutil
import subprocess
import warnings

import numpy as np
import pytest

from mri_design import (
    from_bart,
    from_mri_nufft,
    from_sigpy,
    golden_angles,
    maps_from_bart,
    maps_to_bart,
    planes_from_bart,
    planes_to_bart,
    radial_spokes,
    samples_from_bart,
    samples_to_bart,
    to_bart,
    to_mri_nufft,
    to_sigpy,
)
from mri_design.scan.trajectories import MRI_NUFFT_SAMPLES
from tests.refusals import refused

SHAPE = (24, 32)
SHOTS = radial_spokes(24, golden_angles(5), oversampling=2) * np.array([1.0, 32 / 24]) * 0.8


@pytest.fixture(scope="module")
def image():
    rng = np.random.default_rng(0)
    return rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)


@pytest.fixture(scope="module")
def expected(image):
    """Samples of the image by the sum that the convention states."""
    y, x = (np.arange(24) - 12) / 24, (np.arange(32) - 16) / 32
    waves_y = np.exp(-2j * np.pi * SHOTS[..., :1] * y)
    waves_x = np.exp(-2j * np.pi * SHOTS[..., 1:] * x)
    return np.einsum("tsy,yx,tsx->ts", waves_y, image, waves_x) / np.sqrt(24 * 32)


def error(found, expected):
    return np.linalg.norm(np.ravel(found) - np.ravel(expected)) / np.linalg.norm(expected)


def write_cfl(path, array):
    path.with_suffix(".hdr").write_text("# Dimensions\n" + " ".join(map(str, array.shape)) + "\n")
    array.astype(np.complex64).ravel(order="F").tofile(path.with_suffix(".cfl"))


def read_cfl(path):
    lengths = [int(n) for n in path.with_suffix(".hdr").read_text().splitlines()[1].split()]
    return np.fromfile(path.with_suffix(".cfl"), np.complex64).reshape(lengths, order="F")


def bart(*command):
    subprocess.run([shutil.which("bart"), *map(str, command)], check=True, stdout=subprocess.DEVNULL, timeout=60)


needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed")


@needs_bart
def test_bart_takes_the_same_samples(tmp_path, image, expected):
    write_cfl(tmp_path / "trajectory", to_bart(SHOTS))
    write_cfl(tmp_path / "image", maps_to_bart(image[None]))
    bart("nufft", tmp_path / "trajectory", tmp_path / "image", tmp_path / "samples")
    found = samples_from_bart(read_cfl(tmp_path / "samples"))[0]
    assert found.shape == expected.shape
    assert error(found, expected) < 3e-3  # its own gridding
    for wrong in (to_bart(SHOTS[..., ::-1]), -to_bart(SHOTS), to_bart(SHOTS + 0.5)):
        write_cfl(tmp_path / "trajectory", wrong)
        bart("nufft", tmp_path / "trajectory", tmp_path / "image", tmp_path / "samples")
        assert error(samples_from_bart(read_cfl(tmp_path / "samples")), expected) > 0.5


@needs_bart
@pytest.mark.parametrize(("options", "offset"), [((), 0.5), (("-c",), 0.0)])
def test_spokes_of_bart_keep_their_half_sample(tmp_path, options, offset):
    bart("traj", "-x", 16, "-y", 3, "-r", *options, tmp_path / "trajectory")
    found = from_bart(read_cfl(tmp_path / "trajectory"))
    assert found.shape == (3, 16, 2)
    along = np.linalg.norm(found[1] - found[1, :1], axis=-1) - np.linalg.norm(found[1, 0])
    np.testing.assert_allclose(along, np.arange(16) - 8 + offset, atol=1e-5)


def test_bart_layout_there_and_back():
    there = to_bart(SHOTS)
    assert there.shape == (3, 48, 5) and there.dtype == np.complex64
    np.testing.assert_allclose(there[0, :, 2].real, SHOTS[2, :, 1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(there[1, :, 2].real, SHOTS[2, :, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(from_bart(there[..., None, None]), SHOTS, atol=1e-5)
    assert from_bart(to_bart(SHOTS[0])).shape == (1, 48, 2)
    with refused("trajectory"):
        from_bart(there + 1)
    with refused("trajectory"):
        from_bart(there * 1j)
    for wrong in (SHOTS, np.zeros((3, 2, 2, 2))):
        with refused("trajectory"):
            from_bart(wrong)
    with refused("trajectory"):
        to_bart(there)


def test_samples_and_maps_of_bart_there_and_back():
    rng = np.random.default_rng(1)
    samples, maps = rng.standard_normal((4, 5, 48)), rng.standard_normal((4, 24, 32))
    assert samples_to_bart(samples).shape == (1, 48, 5, 4) and maps_to_bart(maps).shape == (32, 24, 1, 4)
    np.testing.assert_allclose(samples_from_bart(samples_to_bart(samples)), samples, rtol=1e-6)
    np.testing.assert_allclose(samples_from_bart(samples_to_bart(samples[:, 0]))[:, 0], samples[:, 0], rtol=1e-6)
    np.testing.assert_allclose(maps_from_bart(maps_to_bart(maps)), maps, rtol=1e-6)
    np.testing.assert_allclose(maps_from_bart(maps[0].T)[0], maps[0])
    with refused("maps"):
        maps_from_bart(np.zeros((8, 8, 3, 4)))
    with refused("maps"):
        maps_to_bart(maps[0])
    for wrong in (np.zeros((2, 8, 3, 4)), np.zeros((1, 8, 3, 4, 2))):
        with refused("kspace"):
            samples_from_bart(wrong)
    with refused("kspace"):
        samples_to_bart(samples[0, 0])


def test_planes_of_bart_there_and_back():
    planes = np.random.default_rng(2).standard_normal((3, 4, 6, 5))  # x, coil, ky, kz
    there = planes_to_bart(planes)
    assert there.shape == (3, 6, 5, 4) and planes_to_bart(planes[1]).shape == (1, 6, 5, 4)
    assert there[2, 1, 3, 0] == np.complex64(planes[2, 0, 1, 3])
    np.testing.assert_allclose(planes_from_bart(there[..., None]), planes, rtol=1e-6)
    for wrong in (planes[0, 0], planes[None]):
        with refused("planes"):
            planes_to_bart(wrong)
    with refused("planes"):
        planes_from_bart(np.zeros((3, 6, 5, 4, 2)))


@pytest.mark.slow
def test_sigpy_takes_the_same_samples(image, expected):
    import sigpy

    found = sigpy.nufft(image, to_sigpy(SHOTS, SHAPE), oversamp=2, width=6)
    assert error(found, expected) < 1e-4
    for wrong in (SHOTS[..., ::-1] * np.array([1.0, 0.7]), -SHOTS, SHOTS + 0.5, SHOTS / 2):
        assert error(sigpy.nufft(image, wrong, oversamp=2, width=6), expected) > 0.5
    np.testing.assert_array_equal(from_sigpy(to_sigpy(SHOTS, SHAPE), SHAPE), SHOTS)


@pytest.mark.slow
@pytest.mark.parametrize("radians", [False, True])
def test_mri_nufft_takes_half_of_the_same_samples(image, expected, radians):
    mrinufft = pytest.importorskip("mrinufft")
    pytest.importorskip("finufft")
    positions = to_mri_nufft(SHOTS, SHAPE, radians=radians).astype(np.float32).reshape(-1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says which range it has guessed
        operator = mrinufft.get_operator("finufft")(positions, SHAPE, n_coils=1)
    found = operator.op(image.astype(np.complex64))
    assert error(found / MRI_NUFFT_SAMPLES, expected) < 1e-4


@pytest.mark.parametrize(("radians", "limit"), [(False, 0.5), (True, np.pi)])
def test_normalised_units_there_and_back(radians, limit):
    there = to_mri_nufft(SHOTS, SHAPE, radians=radians)
    np.testing.assert_allclose(there / limit, SHOTS / (np.array(SHAPE) / 2))
    np.testing.assert_allclose(from_mri_nufft(there, SHAPE, radians=radians), SHOTS, rtol=1e-14, atol=1e-14)
    other = not radians
    with refused("samples"):
        from_mri_nufft(there, SHAPE, radians=other)
    with refused("samples"):
        from_mri_nufft(SHOTS, SHAPE, radians=radians)

"""Volumes become one plane (ky, kz) per readout position, in the place of slices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError, KSpaceData, read

SHAPE = (5, 6, 8)  # x, y, z


def transformed(image: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The centred orthonormal FFT along some axes, written out as sums."""
    for axis in axes:
        k = np.arange(image.shape[axis]) - image.shape[axis] // 2
        matrix = np.exp(-2j * np.pi * np.outer(k, k) / len(k)) / np.sqrt(len(k))
        image = np.moveaxis(np.tensordot(matrix, image, axes=(1, axis)), 0, axis)
    return image


def saved(folder: Path, card: dict[str, Any], **arrays: np.ndarray) -> Path:
    path = folder / "volume.npz"
    np.savez(path, **arrays)
    path.with_suffix(".json").write_text(json.dumps(card))
    return path


def images(coils: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((coils, *SHAPE)) + 1j * rng.standard_normal((coils, *SHAPE))


@pytest.mark.parametrize(
    ("dims", "axes"), [(["coil", "ky", "kz", "kx"], (0, 2, 3, 1)), (["k0", "coil", "k1", "k2"], (1, 0, 2, 3))]
)
def test_every_readout_position_is_a_plane(tmp_path: Path, dims: list[str], axes: tuple[int, ...]) -> None:
    volume, maps = images(2), images(2)[::-1]
    kspace = transformed(volume, (1, 2, 3))
    card = {"dims": dims, "noise_variance": 0.25}
    path = saved(
        tmp_path,
        card,
        kspace=kspace.transpose(axes).astype(np.complex64),
        coil_maps=maps.transpose(axes).astype(np.complex64),
        reference=volume[0].transpose([{1: 0, 2: 1, 3: 2}[axis] for axis in axes if axis]).astype(np.complex64),
    )
    got = read(path)
    assert isinstance(got, KSpaceData) and got.kspace.shape == (5, 2, 6, 8)
    planes = transformed(volume, (2, 3)).swapaxes(0, 1)
    np.testing.assert_allclose(got.kspace, planes, atol=1e-5)
    assert got.coil_maps is not None and got.reference is not None
    np.testing.assert_allclose(got.coil_maps, maps.swapaxes(0, 1), atol=1e-6)
    np.testing.assert_allclose(got.reference, volume[0], atol=1e-6)
    assert got.noise_variance == 0.25 and "5 readout positions" in got.card["volume"]


def test_samples_that_were_not_measured_are_missing_at_every_position(tmp_path: Path) -> None:
    kspace = transformed(images(1), (1, 2, 3)).transpose(0, 2, 3, 1)[0].astype(np.complex64)
    kspace[2, 3] = 0
    got = read(saved(tmp_path, {"dims": ["ky", "kz", "kx"]}, kspace=kspace))
    assert isinstance(got, KSpaceData)
    expected = np.ones((6, 8), dtype=bool)
    expected[2, 3] = False
    for sampling in got.samplings:
        np.testing.assert_array_equal(sampling.samples, expected)


def test_an_image_volume_is_a_stack_along_its_readout(tmp_path: Path) -> None:
    image = np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(SHAPE)
    got = read(saved(tmp_path, {"dims": ["x", "y", "z"], "kind": "image domain volume"}, image=image))
    assert isinstance(got, ImageStack)
    np.testing.assert_array_equal(got.images, image)


@pytest.mark.parametrize(
    "card",
    [
        {"dims": ["slice", "ky", "kz", "kx"]},
        {"dims": ["rep", "k1", "k2", "k0"]},
        {"dims": ["coil", "ky", "kz", "kx"], "phase_encode_axis": 1},
    ],
)
def test_a_volume_has_no_slices_and_one_readout(tmp_path: Path, card: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="volume"):
        read(saved(tmp_path, card, kspace=np.ones((2, 4, 4, 4), dtype=np.complex64)))

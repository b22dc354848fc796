"""Axes that nothing names are held against the samples; what these do not show has to be named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mri_design import ImageStack, KSpaceData
from mri_design.scan.io import read
from mri_design.scan.simulation import load_phantom
from tests.refusals import refused, refuses

TURNED = [(2, 3, 1, 0), (3, 2, 1, 0), (2, 3, 0, 1), (1, 0, 2, 3)]
"""Of (slice, coil, ky, kx): coils before slices at the end, MATLAB's order, slices before coils, coils first."""


@pytest.fixture(scope="module")
def slices() -> np.ndarray:
    """K-space of three objects in four coils with some noise, (3 slices, 4 coils, 48 ky, 40 kx)."""
    brain, ellipses = (
        load_phantom(name, shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3)).kspace[0]
        for name in ("brain", "shepp-logan")
    )
    return np.stack([brain, ellipses, brain * np.exp(0.4j * np.arange(40))])


@pytest.fixture(scope="module")
def coils(slices: np.ndarray) -> np.ndarray:
    """K-space (4 coils, 48 ky, 40 kx)."""
    return np.asarray(slices[0])


def of(path: Path, array: np.ndarray, **options: Any) -> KSpaceData:
    np.save(path / "scan.npy", array)
    scan = read(path / "scan.npy", **options)
    return scan


def pairs(array: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.stack([array.real, array.imag], axis)


def assert_kspace(scan: KSpaceData, wanted: np.ndarray, tolerance: float = 1e-7) -> None:
    """Either axis of k-space may be called the phase encode, where all of it was measured."""
    kspace = scan.kspace.reshape(wanted.shape) if scan.kspace.size == wanted.size else scan.kspace
    assert kspace.shape == wanted.shape
    np.testing.assert_allclose(kspace, wanted, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("axis", [1, 2])
def test_coils_after_k_space_are_found(tmp_path: Path, coils: np.ndarray, axis: int) -> None:
    scan = of(tmp_path, np.moveaxis(coils, 0, axis))
    assert_kspace(scan, coils)
    assert "axes" in scan.provenance.left_out


@pytest.mark.parametrize("axes", [(2, 1, 0), (0, 2, 1)])
def test_lines_left_out_show_the_phase_encode_of_arrays_that_are_turned(tmp_path, coils, axes):
    measured = np.zeros(48, bool)
    measured[::3] = measured[16:32] = True
    scan = of(tmp_path, (coils * measured[:, None]).transpose(axes))
    assert_kspace(scan, coils * measured[:, None])
    np.testing.assert_array_equal(scan.measured, measured)
    assert scan.orientation == "ky-columns"


@pytest.mark.parametrize("order", TURNED)
def test_slices_and_coils_in_any_place_are_told_apart(tmp_path, slices, order):
    scan = of(tmp_path, slices.transpose(order))
    assert_kspace(scan, slices.swapaxes(-1, -2) if order[:2] == (3, 2) else slices)


JOINED = {
    "last": lambda k: pairs(k),
    "first": lambda k: pairs(k, 0),
    "second": lambda k: pairs(k, 1),
    "one coil": lambda k: pairs(k[0]),
    "in turn": lambda k: pairs(k, 1).reshape(-1, 48, 40),
    "in halves": lambda k: np.concatenate([k.real, k.imag]),
    "in turn and last": lambda k: np.moveaxis(pairs(k, 1).reshape(-1, 48, 40), 0, -1),
    "at the corner": lambda k: np.moveaxis(pairs(np.fft.ifftshift(k, axes=(-2, -1)), 1).reshape(-1, 48, 40), 0, -1),
    "integers": lambda k: (1e4 * pairs(k)).astype(np.int32),
}


@pytest.mark.parametrize("stored", JOINED.values(), ids=JOINED)
def test_real_and_imaginary_parts_are_joined(tmp_path: Path, coils: np.ndarray, stored: Any) -> None:
    array = stored(coils)
    scan = of(tmp_path, array)
    scan = scan.scaled(1e-4) if array.dtype.kind == "i" else scan
    assert_kspace(scan, coils[:1] if array.size == 2 * coils[0].size else coils, 2e-4)


@pytest.mark.parametrize(
    ("stored", "dims"),
    [
        (lambda k: pairs(k), ("coil", "ky", "kx", "real/imag")),
        (lambda k: pairs(k, 1).reshape(-1, *k.shape[1:]), ("coil*real/imag", "ky", "kx")),
        (lambda k: np.concatenate([k.real, k.imag]), ("real/imag*coil", "ky", "kx")),
        (lambda k: k, ("coil", "ky", "kx")),
    ],
)
def test_names_given_by_hand_go_before_those_of_the_header(tmp_path, scan, stored, dims):
    (tmp_path / "scan.json").write_text(json.dumps({"dims": ["slice", "ky", "kx"]}))
    np.testing.assert_array_equal(of(tmp_path, stored(scan[0]), dims=dims).kspace[0], scan[0])  # noise shows nothing


def test_images_stay_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for image in (*(rng.random(shape) for shape in ((2, 32, 32), (32, 32, 2), (4, 32, 32))), rng.normal(size=(48, 80))):
        np.save(tmp_path / "image.npy", image)
        assert isinstance(read(tmp_path / "image.npy"), ImageStack)


def test_what_the_samples_do_not_show_has_to_be_named(tmp_path: Path, coils: np.ndarray, slices: np.ndarray) -> None:
    rng, one_coil = np.random.default_rng(0), slices[:, 0]
    volume = np.fft.fftshift(np.fft.fft(one_coil[np.arange(32) // 11] * np.hanning(32)[:, None, None], axis=0), axes=0)
    echoes = coils[:1] * np.array([1, 0.7, 0.5])[:, None, None] + 0.002 * rng.standard_normal((3, 48, 40))
    parts = pairs(coils[0]).reshape(48, 80)
    for array in (one_coil, volume, volume[:, None], rng.standard_normal((4, 32, 32, 2)), pairs(volume, 0), echoes):
        refuses("dims", of, tmp_path, array)
    with refused("dims", "parts[..., 0::2] + 1j * parts[..., 1::2]"):
        of(tmp_path, parts)
    for dims in (("slice", "ky", "kx"), ("coil", "ky", "kx")):
        named = of(tmp_path, one_coil, dims=dims)
        assert (named.n_slices, named.n_coils) == ((3, 1) if dims[0] == "slice" else (1, 3))
    assert of(tmp_path, volume, dims=("kz", "ky", "kx")).grid_shape == (48, 32)
    assert of(tmp_path, echoes, dims=("echo", "ky", "kx")).n_coils == 1


def test_noise_and_given_maps_show_nothing(tmp_path: Path, scan: np.ndarray, slices: np.ndarray) -> None:
    assert of(tmp_path, scan[0]).n_coils == 3
    np.savez(tmp_path / "scan.npz", kspace=slices[:, 0], coil_maps=np.ones((3, 48, 40), np.complex64))
    known = read(tmp_path / "scan.npz")
    assert known.n_coils == 3


@pytest.mark.parametrize("dims", ["ky,kx", "coil,ky,ky", "coil,ky,what", "coil,slice,rep", "coil,ky,real/imag"])
def test_names_that_do_not_fit_are_refused(tmp_path: Path, coils: np.ndarray, dims: str) -> None:
    refuses("dims", of, tmp_path, coils, dims=dims.split(","))


@pytest.mark.parametrize(("axis", "counter"), [("rep", "repetition"), ("frame", "repetition"), ("echo", "contrast")])
def test_one_of_several_frames_or_echoes_is_read(tmp_path: Path, scan: np.ndarray, axis: str, counter: str) -> None:
    stack, dims = np.stack([scan, 2 * scan, 3 * scan], axis=1), ("slice", axis, "coil", "ky", "kx")
    first, third = of(tmp_path, stack, dims=dims), of(tmp_path, stack, dims=dims, counters={counter: 2})
    np.testing.assert_array_equal(first.kspace, scan)
    np.testing.assert_array_equal(third.kspace, 3 * scan)
    assert counter in third.provenance.series and (third.repeat is not None) == (axis == "rep")
    for counters in ({counter: 3}, {"set": 1}):
        refuses(next(iter(counters)), of, tmp_path, stack, dims=dims, counters=counters)


def hdf5(path: Path, array: np.ndarray, name: str = "kspace", matlab: bool = False, **more: Any) -> Path:
    with h5py.File(path / "scan.mat", "w") as file:
        if matlab:
            fields = np.empty(array.shape, [("real", "f4"), ("imag", "f4")])
            fields["real"], fields["imag"] = array.real, array.imag
            file.create_dataset(name, data=fields).attrs["MATLAB_class"] = np.bytes_("single")
        else:
            file[name] = array
        for other, content in more.items():
            file[other] = content
    return path / "scan.mat"


@pytest.mark.parametrize("name", ["kspace", "ksp"])
def test_arrays_of_matlab_are_read_as_hdf5_turns_them(tmp_path, coils, slices, name):
    assert_kspace(read(hdf5(tmp_path, coils, name, matlab=True)), coils)  # [kx, ky, coil] there
    assert_kspace(read(hdf5(tmp_path, coils[:, None], name, matlab=True)), coils)  # [kx, ky, 1, coil], as in BART
    assert_kspace(read(hdf5(tmp_path, coils.T, name, matlab=True)), coils.swapaxes(-1, -2))
    assert_kspace(read(hdf5(tmp_path, coils, name, matlab=True), dims=("kx", "ky", "coil")), coils)
    path = hdf5(tmp_path, slices[:, 0], name, matlab=True)  # [kx, ky, slice] of one coil
    with refused("dims", "kx,ky,slice"):
        read(path)
    assert_kspace(read(path, dims=("kx", "ky", "slice")), slices[:, :1])


def test_hdf5_without_fastmris_marks_is_read_by_its_samples(tmp_path, coils, slices):
    assert read(hdf5(tmp_path, slices)).orientation == "ky-columns"  # as fastMRI has them
    assert read(hdf5(tmp_path, slices[:, 0])).n_slices == 3
    measured = np.zeros(48, bool)
    measured[::2] = measured[16:32] = True
    assert_kspace(read(hdf5(tmp_path, slices * measured[:, None])), slices * measured[:, None])
    assert_kspace(read(hdf5(tmp_path, pairs(coils, 1).reshape(1, -1, 48, 40))), coils)
    assert_kspace(read(hdf5(tmp_path, np.moveaxis(coils, 0, -1), dims=np.arange(3))), coils)
    assert_kspace(read(hdf5(tmp_path, coils)), coils)
    assert read(hdf5(tmp_path, coils), dims=("slice", "ky", "kx")).n_slices == 4


def test_files_that_name_their_axes_take_no_others(mrd: Callable[[], Any], scan: np.ndarray) -> None:
    refuses("dims", mrd().add_scan(scan).read, dims=("coil", "ky", "kx"))

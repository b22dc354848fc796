"""Axes that nothing names are held against the samples; what these do not show has to be named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mri_design import ImageStack, InputError, KSpaceData, read
from mri_design.scan.simulation.phantoms import load_phantom
from tests.scan.io.reading import read_here

TURNED = [(2, 3, 1, 0), (3, 2, 1, 0), (2, 3, 0, 1), (1, 0, 2, 3)]
"""Of (slice, coil, ky, kx): coils before slices at the end, MATLAB's order, slices before coils, coils first."""


@pytest.fixture(scope="module")
def coils() -> np.ndarray:
    """K-space (4 coils, 48 ky, 40 kx) with some noise."""
    rng = np.random.default_rng(3)
    scan = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=rng)
    return np.asarray(scan.kspace[0])


@pytest.fixture(scope="module")
def slices(coils: np.ndarray) -> np.ndarray:
    """K-space of three objects in four coils, (3 slices, 4 coils, 48 ky, 40 kx)."""
    scenes = ("brain", "shepp-logan", "brain")
    scans = [
        load_phantom(name, shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3)) for name in scenes
    ]
    return np.stack([scan.kspace[0] for scan in scans[:2]] + [scans[2].kspace[0] * np.exp(0.4j * np.arange(40))])


def of(path: Path, array: np.ndarray, **options: Any) -> KSpaceData:
    np.save(path / "scan.npy", array)
    scan = read(path / "scan.npy", **options)
    assert isinstance(scan, KSpaceData)
    return scan


def pairs(array: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.stack([array.real, array.imag], axis)


def assert_kspace(scan: KSpaceData, wanted: np.ndarray) -> None:
    """Either axis of k-space may be called the phase encode, where all of it was measured."""
    kspace = scan.kspace.reshape(wanted.shape) if scan.kspace.size == wanted.size else scan.kspace
    assert kspace.shape == wanted.shape
    np.testing.assert_allclose(kspace, wanted, rtol=1e-6, atol=1e-7)


def test_coils_after_k_space_are_found(tmp_path: Path, coils: np.ndarray) -> None:
    for axis in (1, 2):
        scan = of(tmp_path, np.moveaxis(coils, 0, axis))
        assert_kspace(scan, coils)
        assert "axes" in scan.header


def test_lines_left_out_show_the_phase_encode_of_arrays_that_are_turned(tmp_path: Path, coils: np.ndarray) -> None:
    measured = np.zeros(48, bool)
    measured[::3] = measured[16:32] = True
    for array in ((coils * measured[:, None]).T, (coils * measured[:, None]).swapaxes(-1, -2)):
        scan = of(tmp_path, array)
        assert_kspace(scan, coils * measured[:, None])
        np.testing.assert_array_equal(scan.measured, measured)
        assert scan.orientation == "ky-columns"


@pytest.mark.parametrize("order", TURNED)
def test_slices_and_coils_in_any_place_are_told_apart(
    tmp_path: Path, slices: np.ndarray, order: tuple[int, ...]
) -> None:
    scan = of(tmp_path, slices.transpose(order))
    turned = order[:2] == (3, 2)
    assert_kspace(scan, slices.swapaxes(-1, -2) if turned else slices)


@pytest.mark.parametrize(
    "stored",
    [
        lambda k: pairs(k),
        lambda k: pairs(k, 0),
        lambda k: pairs(k, 1),
        lambda k: pairs(k[0]),
        lambda k: pairs(k, 1).reshape(-1, 48, 40),
        lambda k: np.concatenate([k.real, k.imag]),
        lambda k: np.moveaxis(pairs(k, 1).reshape(-1, 48, 40), 0, -1),
        lambda k: (1e4 * pairs(k)).astype(np.int32),
    ],
    ids=["last", "first", "second", "one coil", "in turn", "in halves", "in turn and last", "integers"],
)
def test_real_and_imaginary_parts_are_joined(tmp_path: Path, coils: np.ndarray, stored: Any) -> None:
    array = stored(coils)
    scan = of(tmp_path, array)
    wanted = coils[:1] if array.size == 2 * coils[0].size else coils
    found = scan.kspace[0] / (1e4 if array.dtype.kind == "i" else 1)
    np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_parts_named_by_hand(tmp_path: Path, scan: np.ndarray) -> None:
    stack = scan[0]  # of noise, which shows nothing
    for array, dims in (
        (pairs(stack), "coil,ky,kx,real/imag"),
        (pairs(stack, 1).reshape(-1, *stack.shape[1:]), "coil*real/imag,ky,kx"),
        (np.concatenate([stack.real, stack.imag]), "real/imag*coil,ky,kx"),
    ):
        np.testing.assert_array_equal(of(tmp_path, array, dims=dims.split(",")).kspace[0], stack)


def test_images_stay_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for shape in ((2, 32, 32), (32, 32, 2), (4, 32, 32)):
        np.save(tmp_path / "image.npy", rng.random(shape, dtype=np.float32))
        assert isinstance(read(tmp_path / "image.npy"), ImageStack)
    np.save(tmp_path / "image.npy", rng.standard_normal((4, 32, 32)))
    assert isinstance(read(tmp_path / "image.npy"), ImageStack)


def refused(path: Path, array: np.ndarray, **options: Any) -> InputError:
    np.save(path / "scan.npy", array)
    with pytest.raises(InputError) as caught:
        read(path / "scan.npy", **options)
    return caught.value


def test_what_the_samples_do_not_show_has_to_be_named(tmp_path: Path, coils: np.ndarray, slices: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    one_coil = slices[:, 0]
    volume = np.fft.fftshift(np.fft.fft(one_coil[np.arange(32) // 11] * np.hanning(32)[:, None, None], axis=0), axes=0)
    for array in (one_coil, volume, volume[:, None], rng.standard_normal((4, 32, 32, 2)), pairs(volume, 0)):
        assert refused(tmp_path, array).field.endswith("dims")
    assert of(tmp_path, one_coil, dims=("slice", "ky", "kx")).n_slices == 3
    assert of(tmp_path, one_coil, dims=("coil", "ky", "kx")).n_coils == 3
    assert of(tmp_path, volume, dims=("kz", "ky", "kx")).grid_shape == (48, 32)


def test_repetitions_and_echoes_are_no_coils(tmp_path: Path, coils: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    noise = 0.002 * (rng.standard_normal((3, 48, 40)) + 1j * rng.standard_normal((3, 48, 40)))
    echoes = (coils[:1] * np.array([1, 0.7, 0.5])[:, None, None] + noise).astype(np.complex64)
    assert refused(tmp_path, echoes).field.endswith("dims")
    assert of(tmp_path, echoes, dims=("echo", "ky", "kx")).n_coils == 1


def test_noise_and_given_maps_show_nothing(tmp_path: Path, scan: np.ndarray, slices: np.ndarray) -> None:
    assert of(tmp_path, scan[0]).n_coils == 3
    np.savez(tmp_path / "scan.npz", kspace=slices[:, 0], coil_maps=np.ones((3, 48, 40), np.complex64))
    known = read(tmp_path / "scan.npz")
    assert isinstance(known, KSpaceData) and known.n_coils == 3


@pytest.mark.parametrize(
    "dims",
    [("ky", "kx"), ("coil", "ky", "ky"), ("coil", "ky", "what"), ("coil", "slice", "rep"), ("coil", "ky", "real/imag")],
)
def test_names_that_do_not_fit_are_refused(tmp_path: Path, coils: np.ndarray, dims: tuple[str, ...]) -> None:
    assert refused(tmp_path, coils, dims=dims).field.endswith("dims")


def test_names_in_options_go_before_those_of_the_header(tmp_path: Path, scan: np.ndarray) -> None:
    (tmp_path / "scan.json").write_text(json.dumps({"dims": ["coil", "slice", "ky", "kx"]}))
    assert of(tmp_path, scan).n_slices == 3
    assert of(tmp_path, scan, dims=("slice", "coil", "ky", "kx")).n_slices == 2


@pytest.mark.parametrize(("axis", "counter"), [("rep", "repetition"), ("frame", "repetition"), ("echo", "contrast")])
def test_one_of_several_frames_or_echoes_is_read(tmp_path: Path, scan: np.ndarray, axis: str, counter: str) -> None:
    stack = np.stack([scan, 2 * scan, 3 * scan], axis=1)
    dims = ("slice", axis, "coil", "ky", "kx")
    np.testing.assert_array_equal(of(tmp_path, stack, dims=dims).kspace, scan)
    third = of(tmp_path, stack, dims=dims, counters={counter: 2})
    np.testing.assert_array_equal(third.kspace, 3 * scan)
    assert counter in third.header and (third.repeat is not None) == (axis == "rep")
    for counters in ({counter: 3}, {"set": 1}):
        assert refused(tmp_path, stack, dims=dims, counters=counters).field.endswith(next(iter(counters)))


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
def test_arrays_of_matlab_are_read_as_hdf5_turns_them(tmp_path: Path, coils: np.ndarray, name: str) -> None:
    assert_kspace(read_here(hdf5(tmp_path, coils, name, matlab=True)), coils)  # [kx, ky, coil] there
    assert_kspace(read_here(hdf5(tmp_path, coils.T, name, matlab=True)), coils.swapaxes(-1, -2))
    named = read_here(hdf5(tmp_path, coils, name, matlab=True), dims=("kx", "ky", "coil"))
    assert_kspace(named, coils)


def test_hdf5_without_fastmris_marks_is_read_by_its_samples(
    tmp_path: Path, coils: np.ndarray, slices: np.ndarray
) -> None:
    assert read_here(hdf5(tmp_path, slices)).orientation == "ky-columns"  # as fastMRI has them
    assert read_here(hdf5(tmp_path, slices[:, 0])).n_slices == 3
    measured = np.zeros(48, bool)
    measured[::2] = measured[16:32] = True
    assert_kspace(read_here(hdf5(tmp_path, slices * measured[:, None])), slices * measured[:, None])
    assert_kspace(read_here(hdf5(tmp_path, pairs(coils, 1).reshape(1, -1, 48, 40))), coils)
    assert_kspace(read_here(hdf5(tmp_path, np.moveaxis(coils, 0, -1), dims=np.arange(3))), coils)
    assert_kspace(read_here(hdf5(tmp_path, coils)), coils)
    assert read_here(hdf5(tmp_path, coils), dims=("slice", "ky", "kx")).n_slices == 4


def test_a_child_process_reads_axes_as_they_are_named(tmp_path: Path, coils: np.ndarray) -> None:
    scan = read(
        hdf5(tmp_path, np.stack([coils, 2 * coils])), dims=["echo", "coil", "ky", "kx"], counters={"contrast": 1}
    )
    assert isinstance(scan, KSpaceData)
    np.testing.assert_array_equal(scan.kspace[0], 2 * coils)


def test_files_that_name_their_axes_take_no_others(tmp_path: Path, mrd: Any, scan: np.ndarray) -> None:
    with pytest.raises(InputError) as caught:
        read_here(mrd().add_scan(scan).write(), dims=("coil", "ky", "kx"))
    assert caught.value.field.endswith("dims")


def test_the_zero_frequency_may_lie_at_the_corner(tmp_path: Path, coils: np.ndarray) -> None:
    corner = np.fft.ifftshift(coils, axes=(-2, -1))
    assert_kspace(of(tmp_path, np.moveaxis(pairs(corner, 1).reshape(-1, 48, 40), 0, -1)), coils)


def test_matlab_names_its_axes_in_its_own_order_in_refusals_too(
    tmp_path: Path, coils: np.ndarray, slices: np.ndarray
) -> None:
    assert_kspace(read_here(hdf5(tmp_path, coils[:, None], matlab=True)), coils)  # [kx, ky, 1, coil], as in BART
    path = hdf5(tmp_path, slices[:, 0], matlab=True)  # [kx, ky, slice] of one coil
    with pytest.raises(InputError) as caught:
        read_here(path)
    assert "kx,ky,slice" in caught.value.cure
    assert_kspace(read_here(path, dims=("kx", "ky", "slice")), slices[:, :1])


def test_pairs_in_turn_along_the_readout_of_one_coil_are_no_image(tmp_path: Path, coils: np.ndarray) -> None:
    np.save(tmp_path / "parts.npy", pairs(coils[0]).reshape(48, 80))
    with pytest.raises(InputError) as caught:
        read(tmp_path / "parts.npy")
    assert "parts[..., 0::2] + 1j * parts[..., 1::2]" in caught.value.cure
    np.save(tmp_path / "image.npy", np.random.default_rng(0).standard_normal((48, 80)))
    assert isinstance(read(tmp_path / "image.npy"), ImageStack)

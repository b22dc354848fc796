"""The centre of k-space is found where the samples show it, in every format alike, and stays where they show no other.

Objects are ellipses with a smooth phase, seen by four smooth coils, in the noise of a receiver.
"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import ismrmrd
import numpy as np
import pytest

import mri_design as md
from mri_design.experiment.description import describe_scan
from mri_design.experiment.recipe import Recipe
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.io.formats import opened
from mri_design.scan.kspace_centre import CENTRE, LINES_OF_NOISE, find_centre, with_its_centre
from tests.scan.io.conftest import MrdFile
from tests.scan.io.reading import read_here, summary_here

N = 64


def grid(ny: int = N, nx: int = N) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:ny, :nx]
    return (y - ny // 2) / (ny / 2), (x - nx // 2) / (nx / 2)


def image(ny: int = N, nx: int = N) -> np.ndarray:
    y, x = grid(ny, nx)
    inside = 1.0 * ((y / 0.75) ** 2 + (x / 0.6) ** 2 < 1) - 0.4 * (((y + 0.1) / 0.5) ** 2 + (x / 0.4) ** 2 < 1)
    inside += 0.6 * (((y - 0.3) / 0.1) ** 2 + ((x + 0.2) / 0.2) ** 2 < 1)
    return inside * np.exp(1j * (0.7 * x - 0.5 * y + 0.6 * x * y))


def kspace(ny: int = N, nx: int = N, sd: float = 0.01, coils: int = 4) -> np.ndarray:
    """K-space (coil, ky, kx), DC at ``N // 2``."""
    y, x = grid(ny, nx)
    angles = 2 * np.pi * np.arange(coils) / 4 + 0.4
    maps = [np.exp(-((y - np.sin(t)) ** 2 + (x - np.cos(t)) ** 2) / 1.5 + 1j * t) for t in angles]
    noise = sd * np.random.default_rng(0).standard_normal((2, coils, ny, nx))
    return (to_kspace(np.array(maps) * image(ny, nx)) + noise[0] + 1j * noise[1]).astype(np.complex64)


def lines(*spans: slice) -> np.ndarray:
    chosen = np.zeros(N, dtype=bool)
    for span in spans:
        chosen[span] = True
    return chosen


EVERYTHING, REGULAR = lines(slice(None)), lines(slice(None, None, 3), slice(24, 40))
MASKS = {
    "complete": EVERYTHING,
    "every third and 16": REGULAR,
    "every fourth alone": lines(slice(1, None, 4)),
    "partial Fourier": lines(slice(24, None)),
    "few": lines(slice(28, 36)),
    "dense elsewhere": lines(slice(None, None, 3), slice(40, 60)),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("fault", ["none", "spike", "line", "noise"])
def test_the_centre_stays_where_nothing_shows_another(mask: np.ndarray, fault: str) -> None:
    samples = kspace(sd=1.0 if fault == "noise" else 0.01)
    largest = np.abs(samples).max()
    if fault == "spike":
        samples[:, np.flatnonzero(mask)[-3], 50] = 10 * largest
    if fault == "line":
        samples[:, np.flatnonzero(mask)[1]] += largest * np.exp(1j * np.arange(N))
    found = find_centre(samples * mask[:, np.newaxis], np.broadcast_to(mask[:, np.newaxis], (N, N)))
    assert found.shift == (0, 0) and not found.notice("sample")


def test_noise_alone_and_the_edge_of_what_was_measured_show_no_centre() -> None:
    noise = np.random.default_rng(1).standard_normal((2, 4, N, N))
    everything = np.ones((N, N), dtype=bool)
    assert find_centre(noise[0] + 1j * noise[1], everything).known_by == "assumed"
    outer = np.broadcast_to(lines(slice(42, None))[:, np.newaxis], (N, N))
    found = find_centre(kspace() * outer, outer)  # strongest at its edge, line 42
    assert found.known_by == "assumed" and found.shift == (0, 0)
    assert "was not measured" in found.notice("sample")


SHIFTS = {"corner": (-32, -32), "lines": (8, 3), "samples": (0, -9), "one axis unshifted": (0, -32), "both": (-20, 13)}


@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("mask", [EVERYTHING, REGULAR], ids=["complete", "regular"])
@pytest.mark.parametrize("coils", [1, 4])
def test_a_centre_elsewhere_is_moved_and_said(shift: tuple[int, int], mask: np.ndarray, coils: int) -> None:
    true = kspace(coils=coils)[np.newaxis] * mask[:, np.newaxis]
    scan = md.KSpaceData(np.roll(true, shift, (2, 3)), np.roll(mask, shift[0]))
    moved = with_its_centre(scan)
    np.testing.assert_array_equal(moved.kspace, true)
    np.testing.assert_array_equal(moved.measured, mask)
    assert moved.header[CENTRE].startswith("measured")
    assert with_its_centre(moved) is not scan and with_its_centre(moved).header == moved.header


def test_planes_of_a_volume_are_moved_along_both_phase_encodes(tmp_path: Path) -> None:
    profile = np.exp(-((np.arange(16) - 8) ** 2) / 8.0)[np.newaxis, np.newaxis, np.newaxis]  # along kx
    volume = (kspace(48, 32)[..., np.newaxis] * profile).astype(np.complex64)
    path = tmp_path / "volume.npy"
    path.with_suffix(".json").write_text(json.dumps({"dims": ["coil", "ky", "kz", "kx"]}))
    read = []
    for shift in ((0, 0), (-9, 7)):
        np.save(path, np.roll(volume, shift, (1, 2)))
        read.append(read_here(path))
    np.testing.assert_array_equal(read[1].kspace, read[0].kspace)
    assert CENTRE in read[1].header and CENTRE not in read[0].header


@pytest.mark.parametrize(("ny", "nx"), [(63, 48), (96, 65)])
def test_odd_sizes_and_what_lies_beside_the_samples(ny: int, nx: int) -> None:
    true, u = kspace(ny, nx), image(ny, nx)
    stored = np.fft.ifftshift(true, axes=(1, 2))[np.newaxis]
    reference = to_image(np.fft.ifftshift(to_kspace(u)))[np.newaxis].astype(np.complex64)
    scan = md.KSpaceData(stored, np.ones(ny, dtype=bool), calibration=stored, repeat=stored, reference=reference)
    moved = with_its_centre(scan)
    assert moved.calibration is not None and moved.repeat is not None and moved.reference is not None
    for array in (moved.kspace, moved.calibration, moved.repeat):
        np.testing.assert_array_equal(array[0], true)
    np.testing.assert_allclose(moved.reference[0], u, atol=1e-5)


@pytest.mark.parametrize(("ny", "nx"), [(64, 64), (63, 48)])
def test_an_image_transformed_without_any_shift_comes_back_in_its_place(ny: int, nx: int) -> None:
    u = image(ny, nx)
    scan = md.KSpaceData(np.fft.fft2(u, norm="ortho").astype(np.complex64)[None, None], np.ones(ny, dtype=bool))
    np.testing.assert_allclose(np.abs(to_image(with_its_centre(scan).kspace[0, 0])), np.abs(u), atol=1e-5)


def made(folder: Path, form: str, stored: np.ndarray) -> Path:
    """Slices (slice, coil, ky, kx) in a file of one of the formats."""
    path = folder / f"scan.{form}"
    if form == "npy":
        np.save(path, stored)
    elif form == "npz":
        np.savez(path, kspace=stored)
    elif form == "fastmri":
        with h5py.File(path, "w") as file:
            file["kspace"] = stored.swapaxes(2, 3)
    else:
        path = MrdFile(folder, nx=N, rx=N, ny=N).add_scan(stored).write()
    return path


@pytest.mark.parametrize("form", ["npy", "npz", "fastmri", "mrd"])
def test_every_format_has_the_one_rule_for_all_its_slices(tmp_path: Path, form: str) -> None:
    true = np.stack([kspace(), kspace()[::-1], 1e-3 * kspace(sd=3.0)])  # the last holds hardly more than noise
    path = made(tmp_path, form, np.roll(true, (-9, 12), (2, 3)))
    whole = read_here(path)
    np.testing.assert_array_equal(whole.kspace, true)
    told = summary_here(path)
    np.testing.assert_array_equal(told.part.kspace[0], true[1])
    assert told.header[CENTRE] == whole.header[CENTRE]
    assert describe_scan(told, Recipe())["centre"].startswith("measured")
    with opened(path, md.ReadOptions(), isolated=False) as source, source.slice_reader() as slices:
        np.testing.assert_array_equal(slices.read(2).kspace[0], true[2])


def test_a_given_centre_is_taken_and_doubted_where_the_samples_show_another(tmp_path: Path) -> None:
    true = kspace()
    path = tmp_path / "scan.npy"
    np.save(path, np.roll(true, (5, 0), (1, 2)))
    given = read_here(path, centre=(36, 31))
    np.testing.assert_array_equal(given.kspace[0], np.roll(true, (1, 1), (1, 2)))
    assert CENTRE in given.header and "samples show" not in given.header[CENTRE]
    path.with_suffix(".json").write_text(json.dumps({"centre": [10, 32]}))
    wrong = read_here(path)
    np.testing.assert_array_equal(wrong.kspace[0], np.roll(true, 5 + 22, 1))
    assert "samples show" in wrong.header[CENTRE]
    assert describe_scan(summary_here(path), Recipe())["centre"].startswith("given")
    for place in ((64, 0), (0, 64)):
        with pytest.raises(md.InputError) as caught:
            read_here(path, centre=place)
        assert caught.value.field.endswith("centre")
    path.with_suffix(".json").write_text(json.dumps({"centre": 10}))
    with pytest.raises(md.InputError) as caught:
        read_here(path)
    assert caught.value.field.endswith("centre")


def test_images_have_no_centre_of_kspace(tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", np.abs(image()))
    with pytest.raises(md.InputError) as caught:
        read_here(tmp_path / "image.npy", centre=(32, 32))
    assert caught.value.field.endswith("centre")


def test_an_array_in_memory_is_looked_at_too() -> None:
    true = kspace()
    scan = md.load(np.fft.ifftshift(true, axes=(1, 2)))
    np.testing.assert_array_equal(scan.data.kspace[0], true)
    given = md.load(true, recipe={"input": {"centre": [30, 32]}})
    np.testing.assert_array_equal(given.data.kspace[0], np.roll(true, 2, 1))


def test_partial_fourier_whose_header_has_the_middle_as_centre_is_placed_by_its_samples(tmp_path: Path) -> None:
    """A converter numbers the lines from the first measured one; 6/8 of k-space, its centre at line 16."""
    true, raw = kspace(), MrdFile(tmp_path, nx=N, rx=N, ny=N)
    for line in range(16, N):
        raw.add(true[:, line], kspace_encode_step_1=line - 16)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace[0, :, 16:], true[:, 16:])
    np.testing.assert_array_equal(got.measured, np.arange(N) >= 16)


@pytest.mark.parametrize("said", [32, 31, 40, 0], ids=["own centre", "turned", "wrong", "unsaid"])
def test_reversed_readouts_lie_beside_the_others_as_their_samples_show(tmp_path: Path, said: int) -> None:
    """Backwards a readout has its centre at its own sample 32, which turning makes 31; or it is turned as stored."""
    true, raw = kspace(), MrdFile(tmp_path, nx=N, rx=N, ny=N)
    for line in range(N):
        back = line % 2 == 1
        samples = true[:, line, ::-1] if back else true[:, line]
        if back and said in (32, 0):  # from ky = 32, the same as -32 on this grid, to -31
            samples = np.roll(samples, 1, -1)
        flag = {"flag": ismrmrd.ACQ_IS_REVERSE} if back else {}
        raw.add(samples, kspace_encode_step_1=line, center_sample=said if back else 32, **flag)
    np.testing.assert_array_equal(raw.read().kspace[0], true)


def test_one_coil_numbered_by_acquisition_says_that_its_centre_was_not_measured(tmp_path: Path) -> None:
    true, raw = kspace(coils=1), MrdFile(tmp_path, nx=N, rx=N, ny=N)
    for number, line in enumerate(range(0, N, 2)):
        raw.add(true[:, line], kspace_encode_step_1=number)
    assert "not measured" in raw.read().header[CENTRE]


@pytest.mark.parametrize("side", [12, 16, 20])
def test_small_grids_show_a_centre_in_their_corner(side: int) -> None:
    samples, all_of_them = kspace(side, side, coils=1), np.ones((side, side), dtype=bool)
    assert find_centre(np.fft.ifftshift(samples, axes=(1, 2)), all_of_them).place == (0, 0)
    for first in (0, 3):  # complete, and partial Fourier
        measured = np.repeat(np.arange(side)[:, None] >= first, side, axis=1)
        assert find_centre(samples * measured, measured).shift == (0, 0)


@pytest.mark.parametrize(("centre", "first"), [(0, 0), (24, 0), (60, 0), (300, 0), (32, 1)])
def test_a_centre_that_leads_out_of_the_grid_is_left_to_the_samples(tmp_path: Path, centre: int, first: int) -> None:
    true, raw = kspace(), MrdFile(tmp_path, nx=N, rx=N, ny=N, centre=centre)
    for line in range(N):
        raw.add(true[:, line], kspace_encode_step_1=line + first)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace[0], true)
    assert str(centre) in got.header["centre_beyond_grid"]
    partial = MrdFile(tmp_path, nx=N, rx=N, ny=N, centre=0)
    for line in range(16, N):
        partial.add(true[:, line], kspace_encode_step_1=line - 16)
    np.testing.assert_array_equal(partial.read().kspace[0, :, 16:], true[:, 16:])


@pytest.mark.parametrize("coils", [1, 4])
def test_lines_that_were_not_measured_and_hold_noise_are_named(tmp_path: Path, coils: int) -> None:
    true = kspace(coils=coils)
    noise = np.random.default_rng(1).normal(0, 0.01, (2, *true.shape))
    stored = np.where(REGULAR[:, None], true, noise[0] + 1j * noise[1]).astype(np.complex64)
    np.save(tmp_path / "noise.npy", np.roll(stored, 6, 1))
    header = read_here(tmp_path / "noise.npy").header
    assert coils == 1 or {"22-23", "40-41", "43-44"} <= set(header[LINES_OF_NOISE].split("; ")[0].split(", "))
    assert summary_here(tmp_path / "noise.npy").header[LINES_OF_NOISE] == header[LINES_OF_NOISE]
    for lines_held in MASKS.values():
        np.save(tmp_path / "zeros.npy", true * lines_held[:, None])
        assert LINES_OF_NOISE not in read_here(tmp_path / "zeros.npy").header

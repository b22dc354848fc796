"""The centre of k-space is found where the samples show it, in every format alike, and stays where they show no other.

Objects are ellipses with a smooth phase, seen by four smooth coils, in the noise of a receiver.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import h5py
import ismrmrd
import numpy as np
import pytest

import mri_design as md
from mri_design.formats import ReadOptions
from mri_design.operators import to_image, to_kspace
from mri_design.scan import find_centre, with_its_centre
from mri_design.scan.io import opened, read, summary
from tests.refusals import refuses
from tests.scan.io.conftest import MrdFile

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
    assert found.shift == (0, 0) and not found.noticeable


def test_noise_alone_and_the_edge_of_what_was_measured_show_no_centre() -> None:
    noise = np.random.default_rng(1).standard_normal((2, 4, N, N))
    everything = np.ones((N, N), dtype=bool)
    assert find_centre(noise[0] + 1j * noise[1], everything).known_by == "assumed"
    outer = np.broadcast_to(lines(slice(42, None))[:, np.newaxis], (N, N))
    found = find_centre(kspace() * outer, outer)  # strongest at its edge, line 42
    assert (found.known_by, found.shift, found.gap) == ("assumed", (0, 0), 10) and found.noticeable


SHIFTS = {"corner": (-32, -32), "lines": (8, 3), "samples": (0, -9), "one axis unshifted": (0, -32), "both": (-20, 13)}


@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("mask", [EVERYTHING, REGULAR], ids=["complete", "regular"])
@pytest.mark.parametrize("coils", [1, 4])
def test_a_centre_elsewhere_is_moved_and_noted(shift: tuple[int, int], mask: np.ndarray, coils: int) -> None:
    true = kspace(coils=coils)[np.newaxis] * mask[:, np.newaxis]
    scan = md.KSpaceData(np.roll(true, shift, (2, 3)), np.roll(mask, shift[0]))
    moved = with_its_centre(scan)
    np.testing.assert_array_equal(moved.kspace, true)
    np.testing.assert_array_equal(moved.measured, mask)
    assert moved.provenance.centre.noticeable and with_its_centre(moved).provenance == moved.provenance


@pytest.mark.parametrize(("ny", "nx"), [(64, 64), (63, 48), (96, 65)])
def test_what_lies_beside_the_samples_and_the_origin_of_the_image_move_too(ny: int, nx: int) -> None:
    true, u = kspace(ny, nx), image(ny, nx)
    stored = np.fft.ifftshift(true, axes=(1, 2))[np.newaxis]
    reference = to_image(np.fft.ifftshift(to_kspace(u)))[np.newaxis].astype(np.complex64)
    scan = md.KSpaceData(stored, np.ones(ny, dtype=bool), calibration=stored, repeat=stored, reference=reference)
    moved = with_its_centre(scan)
    for array in (moved.kspace, moved.calibration, moved.repeat):
        np.testing.assert_array_equal(array[0], true)
    np.testing.assert_allclose(moved.reference[0], u, atol=1e-5)
    unshifted = np.fft.fft2(u, norm="ortho").astype(np.complex64)[None, None]  # of both domains
    moved = with_its_centre(md.KSpaceData(unshifted, np.ones(ny, dtype=bool)))
    np.testing.assert_allclose(np.abs(to_image(moved.kspace[0, 0])), np.abs(u), atol=1e-5)


@pytest.mark.parametrize("side", [12, 16, 20])
def test_small_grids_show_a_centre_in_their_corner(side: int) -> None:
    samples, all_of_them = kspace(side, side, coils=1), np.ones((side, side), dtype=bool)
    assert find_centre(np.fft.ifftshift(samples, axes=(1, 2)), all_of_them).place == (0, 0)
    for first in (0, 3):  # complete, and partial Fourier
        measured = np.repeat(np.arange(side)[:, None] >= first, side, axis=1)
        assert find_centre(samples * measured, measured).shift == (0, 0)


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
    whole, told = read(path), summary(path)
    np.testing.assert_array_equal(whole.kspace, true)
    np.testing.assert_array_equal(told.part.kspace[0], true[1])
    assert told.provenance.centre == whole.provenance.centre and whole.provenance.centre.noticeable
    with opened(path, ReadOptions(), isolated=False) as source, source.slice_reader() as slices:
        np.testing.assert_array_equal(slices.read(2).kspace[0], true[2])


def test_planes_of_a_volume_and_arrays_in_memory_are_moved_too(tmp_path: Path) -> None:
    profile = np.exp(-((np.arange(16) - 8) ** 2) / 8.0)[np.newaxis, np.newaxis, np.newaxis]  # along kx
    volume = (kspace(48, 32)[..., np.newaxis] * profile).astype(np.complex64)
    path, held = tmp_path / "volume.npy", []
    path.with_suffix(".json").write_text(json.dumps({"dims": ["coil", "ky", "kz", "kx"]}))
    for shift in ((0, 0), (-9, 7)):
        np.save(path, np.roll(volume, shift, (1, 2)))
        held.append(read(path))
    np.testing.assert_array_equal(held[1].kspace, held[0].kspace)
    assert [one.provenance.centre.noticeable for one in held] == [False, True]
    true = kspace()
    np.testing.assert_array_equal(md.load(np.fft.ifftshift(true, axes=(1, 2))).data.kspace[0], true)
    given = md.load(true, recipe={"input": {"centre": [30, 32]}})
    np.testing.assert_array_equal(given.data.kspace[0], np.roll(true, 2, 1))


def test_a_given_centre_is_taken_and_doubted_where_the_samples_show_another(tmp_path: Path) -> None:
    true, path = kspace(), tmp_path / "scan.npy"
    np.save(path, np.roll(true, (5, 0), (1, 2)))
    given = read(path, centre=(36, 31))
    np.testing.assert_array_equal(given.kspace[0], np.roll(true, (1, 1), (1, 2)))
    path.with_suffix(".json").write_text(json.dumps({"centre": [10, 32]}))
    wrong = read(path)
    np.testing.assert_array_equal(wrong.kspace[0], np.roll(true, 5 + 22, 1))
    assert summary(path).provenance.centre == wrong.provenance.centre and wrong.provenance.centre.shown
    doubts = [find_centre(np.roll(true, 5, 1), np.ones((N, N), bool), place).shown for place in ((36, 31), (10, 32))]
    assert doubts[0] is None and doubts[1] is not None
    np.save(tmp_path / "image.npy", np.abs(image()))
    for name, place in (("scan.npy", (64, 0)), ("scan.npy", (0, 64)), ("image.npy", (32, 32))):
        refuses("centre", read, tmp_path / name, centre=place)
    path.with_suffix(".json").write_text(json.dumps({"centre": 10}))
    refuses("centre", read, path)


@pytest.fixture
def raw(tmp_path: Path) -> partial[MrdFile]:
    return partial(MrdFile, tmp_path, nx=N, rx=N, ny=N)


@pytest.mark.parametrize("turned_at", [32, 31, 40, 0], ids=["own centre", "turned", "wrong", "unknown"])
def test_reversed_readouts_lie_beside_the_others_as_their_samples_show(raw: partial[MrdFile], turned_at: int) -> None:
    """Backwards a readout has its centre at its own sample 32, which turning makes 31; or it is turned as stored."""
    true, file = kspace(), raw()
    for line in range(N):
        back = line % 2 == 1
        samples = true[:, line, ::-1] if back else true[:, line]
        if back and turned_at in (32, 0):  # from ky = 32, the same as -32 on this grid, to -31
            samples = np.roll(samples, 1, -1)
        flag = {"flag": ismrmrd.ACQ_IS_REVERSE} if back else {}
        file.add(samples, kspace_encode_step_1=line, center_sample=turned_at if back else 32, **flag)
    np.testing.assert_array_equal(file.read().kspace[0], true)


@pytest.mark.parametrize(
    ("centre", "first"), [(0, 0), (24, 0), (60, 0), (300, 0), (32, 1)], ids=lambda number: str(number)
)
def test_a_centre_of_raw_data_that_leads_out_of_the_grid_is_left_to_the_samples(raw, centre, first):
    true, file = kspace(), raw(centre=centre)
    for line in range(N):
        file.add(true[:, line], kspace_encode_step_1=line + first)
    got = file.read()
    np.testing.assert_array_equal(got.kspace[0], true)
    assert centre in got.provenance.left_out["centre_beyond_grid"][0]


@pytest.mark.parametrize("centre", [None, 0])
def test_partial_fourier_numbered_from_its_first_line_is_placed_by_its_samples(raw, centre):
    """6/8 of k-space as a converter writes it, its centre at line 16."""
    true, file = kspace(), raw(centre=centre)
    for line in range(16, N):
        file.add(true[:, line], kspace_encode_step_1=line - 16)
    got = file.read()
    np.testing.assert_array_equal(got.kspace[0, :, 16:], true[:, 16:])
    np.testing.assert_array_equal(got.measured, np.arange(N) >= 16)
    one_coil = raw(centre=None)
    for number, line in enumerate(range(0, N, 2)):  # numbered by acquisition
        one_coil.add(true[:1, line], kspace_encode_step_1=number)
    assert one_coil.read().provenance.centre.noticeable


@pytest.mark.parametrize("coils", [1, 4])
def test_lines_that_were_not_measured_and_hold_noise_are_named(tmp_path: Path, coils: int) -> None:
    true = kspace(coils=coils)
    noise = np.random.default_rng(1).normal(0, 0.01, (2, *true.shape))
    stored = np.where(REGULAR[:, None], true, noise[0] + 1j * noise[1]).astype(np.complex64)
    np.save(tmp_path / "noise.npy", np.roll(stored, 6, 1))
    doubted = read(tmp_path / "noise.npy").provenance.doubted_lines
    assert coils == 1 or {22, 23, 40, 41, 43, 44} <= {*doubted}
    assert doubted and summary(tmp_path / "noise.npy").provenance.doubted_lines == doubted
    for lines_held in MASKS.values():
        np.save(tmp_path / "zeros.npy", true * lines_held[:, None])
        assert not read(tmp_path / "zeros.npy").provenance.doubted_lines

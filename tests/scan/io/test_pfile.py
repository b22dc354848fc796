"""P-files of GE: the revision that is read, and what else is refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.io import pfile, read, summary
from tests.refusals import refused, refuses

START = 512
FIELDS = {
    "dacq_ctrl": (124, 0),
    "data_collect_type": (132, 8),
    "npasses": (140, 1),
    "nslices": (144, 3),
    "nechoes": (146, 1),
    "nframes": (150, 6),
    "hnover": (154, 0),
    "frame_size": (156, 5),
    "point_size": (158, 2),
    "da_xres": (178, 5),
    "da_yres": (180, 7),
    "dab_start_rcv": (264, 0),
    "dab_stop_rcv": (266, 1),
}


def numbers(dtype: str = "<i2") -> np.ndarray:
    """Samples (channel, slice, frame, sample, part), every one different."""
    made = np.arange(1, 2 * 3 * 6 * 5 * 2 + 1).reshape(2, 3, 6, 5, 2).astype(dtype)
    return np.concatenate([np.zeros((2, 3, 1, 5, 2), dtype), made], axis=2)


def write(path: Path, samples: np.ndarray, *, revision: float = 26.002, **changes: int) -> Path:
    """A P-file of revision 26, or of another one with its mark where those before 26 have it."""
    head = bytearray(START)
    struct.pack_into("<fi", head, 0, revision, START)
    at = 110 if revision >= 26 else 34
    head[at : at + 10] = b"GE_MED_NMR"
    for name, (place, value) in FIELDS.items():
        struct.pack_into("<H", head, place, changes.get(name, value))
    path.write_bytes(bytes(head) + samples.tobytes())
    return path


@pytest.mark.parametrize(("dtype", "point_size"), [("<i2", 2), ("<i4", 4)])
@pytest.mark.parametrize("alternated", [True, False])
def test_samples_are_read_without_baselines_and_with_their_sign(tmp_path, dtype, point_size, alternated):
    samples = numbers(dtype)
    path = write(tmp_path / "P1.7", samples, point_size=point_size, data_collect_type=8 if alternated else 9)
    got = read(path)
    signs = np.where(np.arange(6) % 2, -1 if alternated else 1, 1)[:, np.newaxis]
    stored = samples[:, :, 1:, :, 0] + 1j * samples[:, :, 1:, :, 1]
    np.testing.assert_array_equal(got.kspace, stored.swapaxes(0, 1) * signs)
    assert got.geometry is None and got.measured.all()
    assert ("alternating_sign" in got.header) == alternated
    told = summary(path)
    assert told.index == 1 and told.n_slices == 3
    np.testing.assert_array_equal(told.part.kspace, got.kspace[1:2])


@pytest.mark.parametrize("name", ["P1.7", "scan.dat", "P1.7.anonymised"])
def test_pfiles_are_known_by_what_they_hold_whatever_their_name(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path / name, numbers())).n_slices == 3
    for revision in (7.0, 24.0, 28.003, 14.0):
        path = write(tmp_path / name, numbers(), revision=revision)
        with refused("rdb_hdr_rdbm_rev") as caught:
            read(path)
        assert "ge_to_ismrmrd" in caught.value.cure
    turned = bytearray(path.read_bytes())
    turned[:4] = struct.pack(">f", 9.0)
    path.write_bytes(turned)
    with refused("rdb_hdr_rdbm_rev") as caught:
        read(path)
    assert caught.value.got.endswith(" 9") and "ge_to_ismrmrd" in caught.value.cure


def test_a_pfile_that_is_still_written_and_a_name_without_one_are_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "P1.7", numbers())
    path.write_bytes(path.read_bytes().replace(b"GE_MED_NMR", b"INVALIDNMR"))
    with refused("P1.7") as caught:
        read(path)
    assert caught.value.field == str(path) and "not valid" in caught.value.got
    path.write_bytes(bytes(1000))
    with refused("P1.7") as caught:
        read(path)
    assert caught.value.field == str(path) and "ge_to_ismrmrd" in caught.value.cure


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"data_collect_type": 8 + 64}, "data_collect_type"),  # a volume
        ({"data_collect_type": 8 + 1024}, "data_collect_type"),  # spirals
        ({"dacq_ctrl": 2}, "dacq_ctrl"),
        ({"npasses": 2}, "npasses"),
        ({"nechoes": 2}, "nechoes"),
        ({"hnover": 4}, "hnover"),
        ({"da_xres": 6}, "da_xres"),
        ({"da_yres": 6}, "da_yres"),
        ({"point_size": 8}, "point_size"),
        ({"nslices": 0}, "nslices"),
        ({"frame_size": 65535, "da_xres": 65535}, "frame_size"),
        ({"dab_start_rcv": 2}, "dab_stop_rcv"),
    ],
)
def test_what_is_measured_in_another_way_is_refused_by_name(tmp_path, changes, field):
    path = write(tmp_path / "P1.7", numbers(), **changes)
    refuses(f"rdb_hdr_{field}", read, path)


def test_no_declared_size_is_trusted(tmp_path: Path) -> None:
    path = write(tmp_path / "P1.7", numbers())
    whole = path.read_bytes()
    for content in (whole[:-1], whole + b"\0", whole[:200]):
        path.write_bytes(content)
        with pytest.raises(InputError):
            read(path)
    for start in (0, -8, 2**31 - 1):
        path.write_bytes(whole[:4] + struct.pack("<i", start) + whole[8:])
        refuses("samples", read, path)
    path = write(tmp_path / "P2.7", numbers(), nslices=1000, dab_stop_rcv=1000)
    refuses("samples", read, path)
    assert not pfile.recognises(Path(__file__))

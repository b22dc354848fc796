"""F1, F13, F14: damaged and hostile npy and npz files are refused, fast, within bounds, by name."""

from __future__ import annotations

import io
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, ReadLimits, read


def npy_bytes(header: str, body: bytes = b"", *, version: tuple[int, int] = (1, 0), length: int | None = None):
    text = header.encode("latin-1")
    size = len(text) if length is None else length
    packed = struct.pack("<H" if version == (1, 0) else "<I", size)
    return b"\x93NUMPY" + bytes(version) + packed + text + body


def header(shape: str, descr: str = "'<c8'", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def npz_bytes(members: list[tuple[zipfile.ZipInfo | str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def saved(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    np.save(target, array)
    return target.getvalue()


def zip_bomb(path: Path, size: int = 2**28) -> None:
    """An array that is 256 MiB of zeros, in 260 kB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("kspace.npy", "w") as member:
        count = size // 8
        member.write(npy_bytes(header(f"({count // 4096}, 4096)")))
        zeros = bytes(2**24)
        for _ in range(size // len(zeros)):
            member.write(zeros)


def hostile_files(folder: Path) -> dict[str, bytes]:
    good = saved(np.ones((8, 8), np.complex64))
    link = zipfile.ZipInfo("kspace.npy")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    lying = bytearray(npz_bytes([("kspace.npy", good)]))
    directory = lying.index(b"PK\x01\x02")
    lying[directory + 24 : directory + 28] = struct.pack("<I", 0xFFFFFFF0)  # declared size of the member
    encrypted = bytearray(npz_bytes([("kspace.npy", good)]))
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    flipped = bytearray(npz_bytes([("kspace.npy", good)]))
    flipped[200] ^= 4  # inside the samples: only the checksum can tell
    many = npz_bytes([(f"a{n}.npy", b"") for n in range(2000)])
    return {
        "empty.npy": b"",
        "magic.npy": b"\x93NUMPY",
        "no_length.npy": b"\x93NUMPY\x01\x00\x10",
        "version.npy": npy_bytes(header("(8, 8)"), version=(9, 7)),
        "header_4GiB.npy": npy_bytes(header("(8, 8)"), version=(2, 0), length=2**32 - 1),
        "header_64KiB.npy": npy_bytes("(" * 60_000),
        "header_nested.npy": npy_bytes("[" * 9_000),
        "header_code.npy": npy_bytes("__import__('os').abort()"),
        "header_keys.npy": npy_bytes("{'descr': '<c8', 'shape': (8, 8)}"),
        "truncated.npy": good[:-9],
        "header_only.npy": good[:128],
        "junk_tail.npy": good + b"tail",
        "huge.npy": npy_bytes(header("(1000000, 1000000)")),
        "overflow.npy": npy_bytes(header(f"({2**62}, 4, 4)")),
        "overflow_zero.npy": npy_bytes(header(f"({2**62}, {2**62}, 0)")),
        "digits.npy": npy_bytes(header("(" + "9" * 6000 + ", 2)")),
        "negative.npy": npy_bytes(header("(-8, -8)"), bytes(512)),
        "float_shape.npy": npy_bytes(header("(8.0, 8)"), bytes(512)),
        "flag_shape.npy": npy_bytes(header("(True, 64)"), bytes(512)),
        "axes.npy": npy_bytes(header("(" + "1, " * 70 + ")"), bytes(8)),
        "object.npy": npy_bytes(header("(1,)", "'|O'"), pickle.dumps([1])),
        "structured.npy": npy_bytes(header("(8, 8)", "[('a', '<f4'), ('b', '<f4')]"), bytes(512)),
        "text.npy": npy_bytes(header("(8, 8)", "'<U1'"), bytes(256)),
        "order.npy": npy_bytes(header("(8, 8)", order="'yes'"), bytes(512)),
        "empty.npz": npz_bytes([]),
        "truncated.npz": npz_bytes([("kspace.npy", good)])[:-30],
        "zip_tail.npz": npz_bytes([("kspace.npy", good)])[:100],
        "checksum.npz": bytes(flipped),
        "lying_size.npz": bytes(lying),
        "encrypted.npz": bytes(encrypted),
        "many.npz": many,
        "traversal.npz": npz_bytes([("../kspace.npy", good)]),
        "absolute.npz": npz_bytes([("/etc/kspace.npy", good)]),
        "backslash.npz": npz_bytes([("..\\kspace.npy", good), ("kspace.npy", good)]),
        "hidden_path.npz": npz_bytes([("kspace.npy", good), ("../../evil.npy", good)]),
        "symlink.npz": npz_bytes([(link, b"/etc/passwd")]),
        "foreign.npz": npz_bytes([("kspace.npy", good), ("run.sh", b"true")]),
        "object.npz": npz_bytes([("kspace.npy", npy_bytes(header("(1,)", "'|O'"), pickle.dumps([1])))]),
        "member_tail.npz": npz_bytes([("kspace.npy", good + b"x")], zipfile.ZIP_DEFLATED),
        "no_kspace.npz": npz_bytes([("weights.npy", good)]),
    }


@pytest.mark.slow
def test_hostile_arrays_are_refused_by_name_within_a_second(tmp_path: Path, read_in_child: Callable[..., list]) -> None:
    paths = []
    for name, content in hostile_files(tmp_path).items():
        (tmp_path / name).write_bytes(content)
        paths.append(tmp_path / name)
    bomb = tmp_path / "bomb.npz"
    zip_bomb(bomb)
    # The interpreter and its libraries take half of this address space: no hostile array would fit.
    for outcome in read_in_child([*paths, bomb], limit=2**29):
        assert outcome.kind == "InputError", outcome
        assert str(outcome.path) in outcome.message, outcome
        assert outcome.seconds < 1, outcome


def test_duplicate_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.npz"
    good = saved(np.ones((8, 8), np.complex64))
    with pytest.warns(UserWarning, match="Duplicate"):
        path.write_bytes(npz_bytes([("kspace.npy", good), ("kspace.npy", good)]))
    with pytest.raises(InputError, match="the name twice"):
        read(path)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "sprung",))

    path = tmp_path / "trap.npy"
    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="dtype"):
        read(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("stored", ["npy", "npz"])
def test_the_memory_budget_is_a_setting_checked_before_allocation(tmp_path: Path, stored: str) -> None:
    path = tmp_path / f"scan.{stored}"
    array = np.ones((64, 64), np.float16)  # 8 KiB stored, 32 KiB as complex64
    if stored == "npy":
        np.save(path, array)
    else:
        np.savez(path, image=array)
    read(path, limits=ReadLimits(max_bytes=64 * 64 * 8))
    with pytest.raises(InputError, match="at most 32"):
        read(path, limits=ReadLimits(max_bytes=64 * 64 * 8 - 1))


@pytest.mark.parametrize("bound", [{"max_slices": 1}, {"max_coils": 2}, {"max_side": 11}])
def test_bounds_on_axes(tmp_path: Path, scan: np.ndarray, bound: dict[str, int]) -> None:
    np.save(tmp_path / "scan.npy", scan)
    with pytest.raises(InputError, match=r"scan\.npy: array: "):
        read(tmp_path / "scan.npy", limits=ReadLimits(**bound))


@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_a_bound_that_is_no_positive_number_is_refused(number: object) -> None:
    with pytest.raises(InputError, match="max_bytes"):
        ReadLimits(max_bytes=number)  # type: ignore[arg-type]


def test_damaged_samples_never_end_in_anything_but_an_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    original = npz_bytes([("kspace.npy", saved(np.ones((8, 8), np.complex64)))], zipfile.ZIP_DEFLATED)
    for _ in range(80):
        damaged = bytearray(original)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        (tmp_path / "flip.npz").write_bytes(damaged)
        try:
            scan = read(tmp_path / "flip.npz")
        except InputError:
            continue
        np.testing.assert_array_equal(scan.kspace, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(("descr", "double"), [("'<c32'", "complex128"), ("'<f16'", "float64")])
def test_extended_precision_is_refused_for_what_it_is(tmp_path: Path, descr: str, double: str) -> None:
    (tmp_path / "long.npy").write_bytes(npy_bytes(header("(4, 4)", descr), bytes(512)))
    with pytest.raises(InputError, match=rf"extended precision.*single or double.*astype\('{double}'\)"):
        read(tmp_path / "long.npy")

"""Compressed files come out as they went in; damaged ones say so."""

import gzip
import io
import zlib

import numpy as np
import pytest

from mri_design.scan.io.nifti import InflatedStream

PLAIN = np.random.default_rng(0).integers(0, 40, 700_000, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("sizes", [(-1,), (0, 1, 348, 2**19, -1), (2**20, -1)])
@pytest.mark.parametrize("behind", [b"", bytes(1000)])
def test_members_and_the_zeros_behind_them_are_read(sizes: tuple[int, ...], behind: bytes) -> None:
    compressed = gzip.compress(PLAIN[:500_000], 1) + gzip.compress(b"") + gzip.compress(PLAIN[500_000:]) + behind
    with InflatedStream(io.BytesIO(compressed)) as stream:
        read = [stream.read(size) for size in sizes]
        assert b"".join(read) == PLAIN and stream.read(10) == b""
    assert all(len(piece) == size for piece, size in zip(read, sizes, strict=True) if 0 <= size < 2**20)


def test_what_inflates_a_thousandfold_comes_in_the_pieces_that_were_asked_for() -> None:
    stream = InflatedStream(io.BytesIO(gzip.compress(bytes(10_000_000))))
    assert [len(stream.read(1000)) for _ in range(5)] == [1000] * 5


def test_damage_is_named() -> None:
    whole = bytearray(gzip.compress(PLAIN))
    with pytest.raises(EOFError, match="ends before the end"):
        InflatedStream(io.BytesIO(whole[:-9])).read()
    with pytest.raises(EOFError):
        InflatedStream(io.BytesIO(whole[:-2])).read()
    whole[-6] ^= 1  # the checksum
    with pytest.raises(zlib.error, match="data check"):
        InflatedStream(io.BytesIO(whole)).read()
    with pytest.raises(zlib.error):
        InflatedStream(io.BytesIO(gzip.compress(PLAIN) + b"rest")).read()

"""Damages to files: cuts, flipped bits, lies about sizes, links."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

LIES = (b"0", b"-1", b"1e999", b"999999999", b"18446744073709551616", b"NaN", b"'")
DAMAGES = ("bit", "bits", "bytes", "cut", "insertion", "lie", "header", "link")
"""Kinds of damage; "header" is bits among the first bytes, "lie" another number where a number stands as text."""


def damaged(path: Path, kind: str, secret: Path, rng: np.random.Generator) -> None:
    """Damage a file in place.

    Parameters
    ----------
    path : Path
        A sound file.
    kind : str
        One of `DAMAGES`.
    secret : Path
        A file that nobody was asked to read: where "link" leads.
    rng : Generator
        Of places and values.
    """
    if kind == "link":
        path.unlink()
        path.symlink_to(secret)
        return
    path.write_bytes(_changed(path.read_bytes(), kind, rng))


def _changed(content: bytes, kind: str, rng: np.random.Generator) -> bytes:
    data, size = bytearray(content), len(content)
    if kind in ("bit", "bits", "header"):
        within = min(size, 128) if kind == "header" else size
        for at in rng.integers(within, size=1 if kind == "bit" else int(rng.integers(2, 17))):
            data[at] ^= 1 << int(rng.integers(8))
    elif kind == "bytes":
        start, length = int(rng.integers(size)), int(rng.integers(1, 33))
        data[start : start + length] = rng.choice([b"\x00", b"\xff", b"\x80"]) * len(data[start : start + length])
    elif kind == "cut":
        del data[int(rng.integers(size)) :]
    elif kind == "insertion":
        at = int(rng.integers(size + 1))
        data[at:at] = rng.bytes(int(rng.integers(1, 65)))
    else:
        numbers = list(re.finditer(rb"\d+", content[:4096])) or list(re.finditer(rb".", content[:64], re.DOTALL))
        found = numbers[int(rng.integers(len(numbers)))]
        data[found.start() : found.end()] = LIES[int(rng.integers(len(LIES)))]
    return bytes(data)

"""What a mask looks like, read off its lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mask_sentence(mask: NDArray[np.bool_]) -> str:
    """How far the centre is filled, where the other lines lie, and the largest gap between measured lines.

    Parameters
    ----------
    mask : bool array, shape (ky,)
        True where the line is measured; DC at ``N // 2``.
    """
    dc, lines = len(mask) // 2, np.flatnonzero(mask)
    said = [f"{len(lines)} of {len(mask)} lines are measured."]
    if not len(lines):
        return said[0]
    if mask[dc]:
        low, high = dc, dc
        while low > 0 and mask[low - 1]:
            low -= 1
        while high + 1 < len(mask) and mask[high + 1]:
            high += 1
        said.append(f"Around the centre {_lines(high - low + 1)} without a gap, ky = {low - dc} to {high - dc};")
        rest = lines[(lines < low) | (lines > high)]
    else:
        said.append("The line through the centre (DC) is not among them;")
        rest = lines
    if not len(rest):
        said.append("no other line is measured.")
        return " ".join(said)
    said.append(f"of the other {len(rest)}, {np.sum(rest < dc)} have negative and {np.sum(rest > dc)} positive ky.")
    if len(lines) > 1:
        missing = np.diff(lines) - 1
        said.append(f"The largest gap between neighbours misses {int(missing.max())} in a row.")
    return " ".join(said)


def _lines(count: int) -> str:
    return "one line is measured" if count == 1 else f"{count} are measured"

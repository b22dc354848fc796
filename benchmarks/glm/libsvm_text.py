"""Reader of LIBSVM text: a label and `index:value` pairs a line, within bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from mri_design.errors import InputError

MOST_BYTES = 200_000_000
MOST_FEATURES = 100_000


def read_libsvm(path: Path, features: int) -> tuple[scipy.sparse.csr_array, NDArray[np.float64]]:
    """Rows and labels.

    Parameters
    ----------
    features : int
        Columns; indices count from 1 to it.

    Raises
    ------
    InputError
        For a file that is missing or too large, a line of another form, an index out of order or range, values that
        are not finite, labels other than +-1.
    """
    if not 1 <= features <= MOST_FEATURES:
        raise InputError(field="features", got=str(features), wanted=f"1 to {MOST_FEATURES}")
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise InputError(field=path.name, got="no file, or a huge one", wanted=f"a file of at most {MOST_BYTES} bytes")
    labels: list[float] = []
    ends, columns, values = [0], [], []
    with path.open(encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            label, *pairs = line.split() or ["nothing"]
            try:
                labels.append({"+1": 1.0, "1": 1.0, "-1": -1.0}[label])
                found = [(int(index), float(value)) for index, value in (pair.split(":") for pair in pairs)]
            except (KeyError, ValueError) as error:
                raise _refused(path, number, line) from error
            indices = [index for index, _ in found]
            if indices and not (indices[0] >= 1 and indices[-1] <= features and sorted(set(indices)) == indices):
                raise _refused(path, number, line)
            columns += [index - 1 for index in indices]
            values += [value for _, value in found]
            ends.append(len(columns))
    if not labels or not np.isfinite(values).all():
        raise InputError(field=path.name, got="no line, or values that are not finite", wanted="finite numbers")
    return scipy.sparse.csr_array((values, columns, ends), shape=(len(labels), features)), np.array(labels)


def _refused(path: Path, number: int, line: str) -> InputError:
    wanted = "+1 or -1, then index:value pairs of rising index"
    return InputError(field=f"{path.name}, line {number}", got=repr(line[:60]), wanted=wanted)

"""Data sets that the papers measured, found by name and checked by what they contain; and stand-ins for them.

None of them may be shipped: ``a9a`` and ``w8a`` are the Adult and Web data of Platt as LIBSVM distributes them,
``usps_3v5.npz`` holds the threes and fives of the USPS digits, ``img_3T_complex.npz`` images of heads (`scans`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mri_design.errors import InputError

SHA256 = {
    "a9a": "7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
    "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    "w8a": "05af7655871a35d5bc89c755791b5338a9969cb604c9df045c811c5e5a45426e",
    "usps_3v5.npz": "44e07de2f75c6ddf2580708937381b4404391149e4cad71418312491ea549e7f",
    "img_3T_complex.npz": "1f8e39e51e977410d16c480f72840c71f83b73bf5f2e9eb23f87839f0431e216",
}
"""Of the files that gave the numbers in `results/papers`; those of `real-sim` and `rcv1` were not at hand."""
FEATURES = {"a9a": 123, "a9a.t": 123, "w8a": 300, "real-sim": 20_958, "rcv1": 42_736}
ADULT = (1605, 2265, 3185, 4781, 6414, 11220, 16100)
"""Cases of Adult1 to Adult7; and of Web1 to Web7."""
WEB = (2477, 3470, 4912, 7366, 9888, 17188, 24692)
Rows = sp.csr_array
Labels = NDArray[np.float64]


def at_hand(folder: Path | None, name: str) -> Path | None:
    """The path of a data set in a folder or below it; None where it is not there."""
    return None if folder is None else next((path for path in sorted(folder.rglob(name)) if path.is_file()), None)


def require(folder: Path | None, name: str) -> Path:
    """The path of a data set, once its checksum has been compared where it is known."""
    path = at_hand(folder, name)
    if path is None:
        got, cure = "none" if folder is None else str(folder), "name the folder that has it: make papers DATA=FOLDER"
        raise InputError("DATA", got, f"a folder with the file {name}", cure)
    if name not in SHA256:
        return path
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[name]:
        raise InputError(name, f"SHA-256 {found}", SHA256[name], cure="take the file that the results name")
    return path


def read_libsvm(path: Path, features: int) -> tuple[Rows, Labels]:
    """Cases as rows, and their labels, +1 or -1, of a file of LIBSVM's sparse text."""
    labels, columns, values, ends = array("d"), array("i"), array("d"), array("q", [0])
    with path.open(encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            label, *pairs = line.split() or [""]
            if label not in {"+1", "-1", "1"}:
                raise InputError(f"{path.name}, line {number}", label, "a label: +1 or -1")
            labels.append(float(label))
            try:
                for pair in pairs:
                    index, _, value = pair.partition(":")
                    columns.append(int(index) - 1)
                    values.append(float(value))
            except ValueError:
                raise InputError(f"{path.name}, line {number}", pair, "FEATURE:VALUE") from None
            ends.append(len(columns))
    if len(set(labels)) != 2:
        raise InputError(path.name, f"{len(set(labels))} different labels in {len(labels)} cases", "two, +1 and -1")
    if columns and not 0 <= min(columns) <= max(columns) < features:
        raise InputError(path.name, f"a feature {max(columns) + 1}", f"features 1 to {features}")
    parts = (np.asarray(values), np.asarray(columns), np.asarray(ends))
    return sp.csr_array(parts, (len(labels), features)), np.asarray(labels)


def data_set(folder: Path | None, name: str) -> tuple[Rows, Labels]:
    """`a9a`, `a9a.t`, `w8a`, `real-sim` or `rcv1`, whole."""
    return read_libsvm(require(folder, name), FEATURES[name])


def words_like(
    cases: int,
    features: int,
    per_case: float,
    rng: np.random.Generator,
    positive: float = 0.5,
    precision: type[np.floating] = np.float64,
) -> tuple[Rows, Labels]:
    """Sparse cases as texts have them, to stand in for a data set that is not at hand.

    Parameters
    ----------
    cases, features : int
        Rows and columns.
    per_case : float
        Words of a row on average. They are drawn by a power law, and those drawn again are one entry.
    rng : Generator
        Draws cases, weights and labels.
    positive : float
        Part of the labels that is +1.
    precision : type
        Of the entries.

    Returns
    -------
    csr_array, ndarray
        Rows of Euclidean norm 1, and labels that a logistic model of sparse weights gave.
    """
    counts = np.maximum(rng.poisson(per_case, cases), 1)
    used = 1 / (np.arange(features) + 8.0)
    parts = []
    for some in np.array_split(counts, max(1, int(counts.sum() // 4_000_000))):
        columns = rng.choice(features, some.sum(), p=used / used.sum()).astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(some)]).astype(np.int32)
        part = sp.csr_array((np.ones(len(columns), precision), columns, ends), (len(some), features))
        part.sum_duplicates()
        part.data[:] = 1 + np.log(part.data)
        norms = np.sqrt(np.add.reduceat(part.data**2, part.indptr[:-1]))
        part.data /= np.repeat(norms, np.diff(part.indptr))
        parts.append(part)
    rows = sp.csr_array(sp.vstack(parts, format="csr"))
    weights = rng.laplace(size=features) * 6
    scores = rows @ weights + rng.logistic(size=cases)
    return rows, np.where(scores > np.quantile(scores, 1 - positive), 1.0, -1.0)


def nested(sizes: Sequence[int], cases: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Rows of subsets of these sizes, each a part of the next."""
    if sizes[-1] > cases:
        raise InputError("sizes", sizes[-1], f"at most the {cases} cases that there are")
    order = rng.permutation(cases)
    return [np.sort(order[:size]) for size in sizes]

"""Raw data of MRD, version 2: a binary stream of a header and acquisitions, as mrd-python and Tyger write it.

Header and acquisitions become those of ISMRMRD, version 1, whose names differ in little more than capitals.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.io.ismrmrd import series_of
from mri_design.scan.io.raw_data import HEAD, Acquisitions, parse_mrd_header
from mri_design.scan.io.source import ReadOptions, Source

_MAGIC = b"yardl"
_UNITS = {"mm": "_mm", "deg": "_deg", "t": "_T"}
_SEQUENCE = {"t_r": "TR", "t_e": "TE", "t_i": "TI"}


def recognises(path: Path) -> bool:
    """Whether a file begins as streams of MRD, version 2, do."""
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """One image series of a stream, all of which is read; images and waveforms in it are passed over.

    Raises
    ------
    MissingPackageError
        Without the package mrd-python.
    InputError
        For a stream that is cut short, of something else than raw data, or larger than the limits allow; and as
        `ismrmrd.opened`.
    """
    mrd, limits, found = optional_package("mrd", "mrd2"), options.limits, list[Any]()
    size = path.stat().st_size
    if size > limits.max_bytes:
        raise InputError(str(path), f"{size} bytes", f"at most {limits.max_bytes}")
    try:
        with path.open("rb") as stream, mrd.BinaryMrdReader(stream) as reader:
            said = reader.read_header()
            found += (item.value for item in reader.read_data() if isinstance(item, mrd.StreamItem.Acquisition))
    except Exception as error:  # whatever the package raises for bytes that are no such stream
        got, cure = f"bytes that mrd-python does not read ({error})", "Copy it again, or write it as ISMRMRD."
        raise InputError(str(path), got, "a whole stream of MRD, version 2", cure) from error
    field = f"{path}: acquisitions"
    if not 1 <= len(found) <= limits.max_readouts:
        raise InputError(field, str(len(found)), f"1 to {limits.max_readouts}")
    text = ET.tostring(_element("ismrmrdHeader", said), encoding="unicode")
    header = parse_mrd_header(f"{path}: header", text, limits)

    def numbers(name: str, positions: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
        for at in positions:
            stored = found[at].data.astype(np.complex64) if name == "data" else found[at].trajectory.T
            yield at, np.ascontiguousarray(stored).view(np.float32).reshape(-1)

    axes = np.array([one.trajectory.shape[0] if one.trajectory.size else 0 for one in found], np.intp)
    raw = Acquisitions(path, field, header, _heads(found), "MRD, version 2", numbers, axes)
    yield series_of(raw, f"{path}: header", options)


def _heads(found: list[Any]) -> NDArray[Any]:
    """Headers of acquisitions; what one does not say is zero, and its centre the middle."""
    heads = np.zeros(len(found), HEAD)
    for head, one in zip(heads, found, strict=True):
        said, (channels, samples) = one.head, one.data.shape
        head["flags"], head["active_channels"], head["number_of_samples"] = int(said.flags), channels, samples
        head["center_sample"] = samples // 2 if said.center_sample is None else said.center_sample
        for name in ("encoding_space_ref", "discard_pre", "discard_post", "sample_time_us"):
            head[name] = getattr(said, name) or 0
        for name in HEAD["idx"].names or ():
            head["idx"][name] = getattr(said.idx, name) or 0
        for name in ("position", "phase_dir", "read_dir", "slice_dir"):
            head[name] = getattr(said, name)
    return heads


def _element(name: str, said: Any) -> ET.Element:
    """A part of the header as an element of the XML of version 1."""
    element = ET.Element(name)
    if not hasattr(said, "__dict__") or isinstance(said, Enum):
        element.text = getattr(said, "name", None) or str(said)
        return element
    for field, value in vars(said).items():
        parts = value if isinstance(value, list) else [] if value is None else [value]
        element.extend(_element(_tag(field), part) for part in parts)
    return element


def _tag(field: str) -> str:
    """``field_of_view_mm`` as ``fieldOfView_mm``; counters and short names have forms of their own."""
    if field in _SEQUENCE or field.startswith("kspace_"):
        return _SEQUENCE.get(field, field)
    first, *others = field.split("_")
    unit = _UNITS.get(others[-1], "") if others else ""
    return first + "".join(word.capitalize() for word in others[: -1 if unit else None]) + unit

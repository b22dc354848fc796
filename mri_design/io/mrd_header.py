"""The part of an ISMRMRD XML header that places Cartesian readouts, read without trusting it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass

from mri_design.errors import InputError
from mri_design.io.safe import ReadLimits

__all__ = ["EncodedSpace", "MrdHeader", "parse_mrd_header"]


@dataclass(frozen=True)
class EncodedSpace:
    """One matrix of the header.

    Parameters
    ----------
    matrix : tuple of int
        Samples (x, y, z): readout, phase encode, partition.
    field_of_view : tuple of float
        Millimetres (x, y, z); NaN where the header gives none.
    """

    matrix: tuple[int, int, int]
    field_of_view: tuple[float, float, float]


@dataclass(frozen=True)
class MrdHeader:
    """First encoding of an ISMRMRD header.

    Parameters
    ----------
    encoded, reconstructed : EncodedSpace
        What was measured and what the image is cut to.
    centre_line : int, optional
        Value of the phase-encode counter at the centre of k-space; None where the header gives none.
    trajectory : str
        "cartesian", "radial", ... in lower case; empty where the header gives none.
    """

    encoded: EncodedSpace
    reconstructed: EncodedSpace
    centre_line: int | None
    trajectory: str


def parse_mrd_header(field: str, text: str, limits: ReadLimits) -> MrdHeader:
    """The first encoding of an ISMRMRD XML header.

    Parameters
    ----------
    field : str
        File and dataset, for messages.
    text : str
        The XML.
    limits : ReadLimits
        Matrix sizes must lie within ``max_side``.

    Raises
    ------
    InputError
        On bad XML, a document type (which could define entities that expand without bound), a missing
        matrix, and numbers that are not sizes.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(field=field, got="XML with a document type", wanted="a plain ISMRMRD header")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise InputError(field=field, got=f"bad XML ({error})", wanted="an ISMRMRD header") from error
    encoding = root.find("{*}encoding")
    if encoding is None:
        raise InputError(field=field, got="no <encoding>", wanted="an ISMRMRD header with an encoding")
    centre = encoding.findtext("{*}encodingLimits/{*}kspace_encoding_step_1/{*}center")
    return MrdHeader(
        encoded=_space(field, encoding, "encodedSpace", limits),
        reconstructed=_space(field, encoding, "reconSpace", limits),
        centre_line=None if centre is None else _whole(f"{field}: kspace_encoding_step_1.center", centre, 0, 65535),
        trajectory=(encoding.findtext("{*}trajectory") or "").strip().lower(),
    )


def _space(field: str, encoding: ET.Element, name: str, limits: ReadLimits) -> EncodedSpace:
    place = f"{field}: {name}.matrixSize"
    sizes = [encoding.findtext(f"{{*}}{name}/{{*}}matrixSize/{{*}}{axis}") for axis in "xyz"]
    if None in sizes:
        raise InputError(field=place, got="nothing", wanted="x, y and z")
    x, y, z = (
        _whole(f"{place}.{axis}", str(size), 1, limits.max_side) for axis, size in zip("xyz", sizes, strict=True)
    )
    lengths = [encoding.findtext(f"{{*}}{name}/{{*}}fieldOfView_mm/{{*}}{axis}") for axis in "xyz"]
    fov = tuple(_length(f"{field}: {name}.fieldOfView_mm.{a}", n) for a, n in zip("xyz", lengths, strict=True))
    return EncodedSpace(matrix=(x, y, z), field_of_view=(fov[0], fov[1], fov[2]))


def _whole(field: str, text: str, low: int, high: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and low <= int(digits) <= high):
        raise InputError(field=field, got=repr(text[:40]), wanted=f"a whole number from {low} to {high}")
    return int(digits)


def _length(field: str, text: str | None) -> float:
    if text is None:
        return math.nan
    try:
        length = float(text)
    except ValueError:
        length = -1.0
    if not (math.isfinite(length) and 0 < length < 1e6):
        raise InputError(field=field, got=repr(text[:40]), wanted="a positive length in millimetres")
    return length

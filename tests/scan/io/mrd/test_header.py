"""What the header says beside the places of readouts."""

from __future__ import annotations

import math

import pytest

from mri_design.scan.io.mrd.header import MrdHeader, parse_mrd_header
from mri_design.scan.io.safe import DEFAULT_LIMITS

_SPACE = (
    "<matrixSize><x>16</x><y>12</y><z>1</z></matrixSize><fieldOfView_mm><x>16</x><y>12</y><z>1</z></fieldOfView_mm>"
)


def header(before: str = "", behind: str = "") -> MrdHeader:
    """A small header with more elements before and behind its encoding."""
    encoding = f"<encodedSpace>{_SPACE}</encodedSpace><reconSpace>{_SPACE}</reconSpace>"
    text = f'<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">{before}<encoding>{encoding}</encoding>{behind}</ismrmrdHeader>'
    return parse_mrd_header("header", text, DEFAULT_LIMITS)


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("unknownSizes", "x y z", (False, False, False)),
        ("unknownSizes", "z", (True, True, False)),
        ("unknownSizes", "x and y", (True, True, True)),
        ("unknownSizes", "", (True, True, True)),
        ("comment", "x y z", (True, True, True)),
    ],
)
def test_lengths_that_the_header_marks_are_not_known(name: str, value: str, known: tuple[bool, ...]) -> None:
    parameter = f"<userParameterString><name>{name}</name><value>{value}</value></userParameterString>"
    (encoding,) = header(behind=f"<userParameters>{parameter}</userParameters>").encodings
    for space in (encoding.encoded, encoding.reconstructed):
        assert tuple(not math.isnan(length) for length in space.field_of_view) == known

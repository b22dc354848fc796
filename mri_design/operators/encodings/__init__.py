"""What of k-space is measured one by one, by number: phase-encode lines, or the samples of a plane."""

from mri_design.operators.encodings.base import Encoding, EncodingName
from mri_design.operators.encodings.lines import LineEncoding
from mri_design.operators.encodings.plane import PlaneEncoding

__all__ = ["Encoding", "EncodingName", "LineEncoding", "PlaneEncoding", "encoding_named"]


def encoding_named(name: EncodingName, grid: tuple[int, int]) -> Encoding:
    """The encoding of that name on a grid."""
    return PlaneEncoding(grid) if name == "plane" else LineEncoding(grid)

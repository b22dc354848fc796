"""What of k-space is measured one by one, by number: phase-encode lines, the samples of a plane, or whole shots."""

from mri_design.errors import InputError
from mri_design.operators.encodings.base import Encoding, Rows
from mri_design.operators.encodings.lines import LineEncoding
from mri_design.operators.encodings.plane import PlaneEncoding
from mri_design.operators.encodings.shots import ShotEncoding

__all__ = [
    "Encoding",
    "LineEncoding",
    "PlaneEncoding",
    "Rows",
    "ShotEncoding",
    "encoding_named",
]


def encoding_named(name: str, grid: tuple[int, int]) -> Encoding:
    """The encoding of that name on a grid.

    Raises
    ------
    InputError
        For shots, of which a grid does not say where they run, and other names.
    """
    if name not in ("lines", "plane"):
        raise InputError(
            field="encoding", got=repr(name), wanted="lines or plane", cure="Give the shots themselves: ShotEncoding."
        )
    return PlaneEncoding(grid) if name == "plane" else LineEncoding(grid)

"""What a report begins with: one sentence that says what came out, pictures of it in a row, and a line of facts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

_TALLEST = 20.0  # rem: the highest picture of the row
_CRISP = 150  # pixels of a side up to which pixels are shown as squares
_BAR_LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # millimetres
_LONGEST_BAR = 0.4  # of the picture's width


@dataclass(frozen=True)
class ScaleBar:
    """A length drawn into a picture.

    Parameters
    ----------
    millimetres : int
        Its length.
    share : float
        Of the picture's width.
    """

    millimetres: int
    share: float

    @classmethod
    def across(cls, width: float) -> ScaleBar | None:
        """The longest round length up to two fifths of a picture so many millimetres wide; None where all are longer.

        Parameters
        ----------
        width : float
            Millimetres.
        """
        lengths = [length for length in _BAR_LENGTHS if length <= _LONGEST_BAR * width]
        return cls(lengths[-1], lengths[-1] / width) if lengths else None


@dataclass(frozen=True)
class FirstPicture:
    """A picture of the first row.

    Parameters
    ----------
    title : str
        Above it: "Mask", "Image", "Error bars".
    png : bytes
        One pixel each, as `plots.pixels_png` makes them.
    shape : tuple of int
        Rows and columns of the picture.
    caption : str
        Below it; also read out where the picture cannot be seen.
    proportion : float, optional
        Height over width of one pixel.
    bar : ScaleBar, optional
        Where the size of a pixel is known.
    ramp : bytes
        PNG of the colours from the least to the largest value; empty where colours mean no number.
    top : str
        The largest value, with its unit.
    """

    title: str
    png: bytes
    shape: tuple[int, int]
    caption: str
    _: KW_ONLY
    proportion: float = 1.0
    bar: ScaleBar | None = None
    ramp: bytes = b""
    top: str = ""

    @property
    def address(self) -> str:
        """The picture as an address."""
        return _address(self.png)

    @property
    def ramp_address(self) -> str:
        """The colours as an address; empty without them."""
        return _address(self.ramp) if self.ramp else ""

    @property
    def looks(self) -> str:
        """Its size, as a style: as wide as its place, but no higher than a screen has room for."""
        ratio = self.shape[1] / (self.shape[0] * self.proportion)
        pixels = "; image-rendering: pixelated" if max(self.shape) <= _CRISP else ""
        return f"width: min(100%, {_TALLEST * ratio:.2f}rem); aspect-ratio: {ratio:.4f}{pixels}"


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees without a click.

    Parameters
    ----------
    verdict : str
        One sentence, or two: what came out, in numbers.
    pictures : sequence of FirstPicture
        In one row; one below the other on a phone.
    facts : sequence of str
        Short, for one line: slice, matrix, field of view, coils, acceleration.
    explained : mapping of str to str
        Names that stand in the verdict, and what each of them means.
    reading : sequence of str
        Paragraphs on how to read the verdict and the pictures; folded away.
    command : str
        What was typed; stands behind the facts.
    """

    verdict: str
    pictures: Sequence[FirstPicture] = ()
    facts: Sequence[str] = ()
    explained: Mapping[str, str] = field(default_factory=dict)
    reading: Sequence[str] = ()
    command: str = ""


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"

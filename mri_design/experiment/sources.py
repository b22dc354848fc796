"""``INPUT#SLICES`` on the command line: a file or phantom, which of its slices, and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from mri_design.errors import InputError, UsageError, number_ranges, whole_number

if TYPE_CHECKING:
    from mri_design.scan.data import KSpaceData


@dataclass(frozen=True)
class MapsOfScan:
    """A scan, such as a prescan or an earlier one, whose coil maps another scan uses.

    Parameters
    ----------
    path : Path
        Its file, with the same coils in the same order.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file without its folders."""
        return self.path.name

    def __str__(self) -> str:
        return str(self.path)


GivenMaps = Path | MapsOfScan


def maps_origin(maps: GivenMaps) -> str:
    """What maps are, in front of the name of their file: ``maps``, or ``maps of`` a scan."""
    return "maps of" if isinstance(maps, MapsOfScan) else "maps"


MIDDLE, EVERY = "middle", "all"
_MOST_SPANS = 8


@dataclass(frozen=True)
class SliceChoice:
    """Slices by number, or one of the words ``middle`` and ``all``.

    Parameters
    ----------
    text : str
        ``0,3,6-9``, ``middle``, ``all``, or one number that counts from the end: ``-1``.

    Raises
    ------
    UsageError
        For anything else.
    """

    text: str

    def __post_init__(self) -> None:
        if self.text in (MIDDLE, EVERY) or self._from_the_end is not None:
            return
        ranges = number_ranges(self.text)
        if ranges is None:
            raise UsageError(f"slices {self.text!r}: give numbers as 0,3,6-9, or 'middle', or 'all'")
        for first, last in ranges:
            if last < first:
                raise UsageError(f"slices {self.text!r}: {first}-{last} holds no slice; write {last}-{first}")

    def indices(self, n_slices: int) -> list[int]:
        """The chosen slices of a scan, in order, each once.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        """
        if self.text == EVERY:
            return list(range(n_slices))
        if self.text == MIDDLE:
            return [n_slices // 2]
        if self._from_the_end is not None:
            if self._from_the_end > n_slices:
                raise InputError(field="slices", got=self.text, wanted=f"-{n_slices} to {n_slices - 1}")
            return [n_slices - self._from_the_end]
        chosen: list[int] = []
        for first, last in number_ranges(self.text) or []:
            if last >= n_slices:
                raise InputError(field="slices", got=self.text, wanted=f"0 to {n_slices - 1}")
            chosen += range(first, last + 1)
        return list(dict.fromkeys(chosen))

    @property
    def named(self) -> int | str:
        """The number of a single slice, else the text."""
        number = whole_number(self.text.removeprefix("-"))
        return self.text if number is None else int(self.text)

    @property
    def _from_the_end(self) -> int | None:
        number = whole_number(self.text[1:]) if self.text.startswith("-") else None
        return number or None


ALL_SLICES, FIRST_SLICE = SliceChoice(EVERY), SliceChoice("0")


@dataclass(frozen=True)
class ScanSource:
    """One input as the user named it.

    Parameters
    ----------
    path : str
        File or ``phantom:NAME``.
    slices : SliceChoice
        Which of its slices.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    loaded : KSpaceData, optional
        The scan, where it has been read already; ``path`` still says where it is from.
    companions : tuple of str
        Files of other images of the object.
    """

    path: str
    slices: SliceChoice
    maps: GivenMaps | None = None
    loaded: KSpaceData | None = None
    companions: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The input without its folders, for manifests."""
        beside = [] if self.maps is None else [f"{maps_origin(self.maps)} {self.maps.name}"]
        beside += [f"the image {Path(companion).name}" for companion in self.companions]
        said = f" with {' and '.join(beside)}" if beside else ""
        return f"{Path(self.path).name}#{self.slices.text}{said}"


def scan_sources(
    inputs: Sequence[str],
    slices: str,
    maps: Sequence[str] = (),
    maps_from: Sequence[str] = (),
    companions: Sequence[str] = (),
) -> list[ScanSource]:
    """``scan.h5#0,3-5`` and its like as sources.

    Parameters
    ----------
    inputs : sequence of str
        Files or phantoms, each with its slices behind ``#`` if wanted.
    slices : str
        Of inputs that do not name their own.
    maps : sequence of str
        ``INPUT=FILE`` for each input with a file of coil maps; FILE alone where there is one input.
    maps_from : sequence of str
        ``INPUT=SCAN`` likewise, for each input with the coil maps of another scan.
    companions : sequence of str
        ``INPUT=FILE`` likewise, for other images of an input's object, which may have several.

    Raises
    ------
    UsageError
        For slices that are no numbers, maps of an input that is none of these, or maps twice for one.
    """
    split = [_split(text, slices) for text in inputs]
    paths = list(dict.fromkeys(path for path, _ in split))
    known: dict[str, GivenMaps] = {}
    for flag, text in [*(("--maps", text) for text in maps), *(("--maps-from", text) for text in maps_from)]:
        path, file = _named_input(flag, text, paths)
        if path in known:
            raise UsageError(f"{flag} {text}: {path} has maps already")
        known[path] = Path(file) if flag == "--maps" else MapsOfScan(Path(file))
    beside: dict[str, tuple[str, ...]] = {}
    for text in companions:
        path, file = _named_input("--with", text, paths)
        beside[path] = (*beside.get(path, ()), file)
    return [ScanSource(path, choice, known.get(path), companions=beside.get(path, ())) for path, choice in split]


def require_no_slices(source: str, option: str) -> None:
    """Refuse ``scan.npz#2`` where one input is named and its slice is an option; a file of that name may exist.

    Raises
    ------
    UsageError
        With the option to give instead.
    """
    path, mark, slices = source.rpartition("#")
    if mark and not Path(source).exists():
        slices = "N" if whole_number(slices) is None else slices
        raise UsageError(f"{source}: slices behind # belong to verbs that take several; {option.format(path, slices)}")


def source_files(sources: Iterable[ScanSource]) -> list[str]:
    """Inputs and maps of some sources, each once; phantoms among them."""
    files = [name for source in sources for name in (source.path, source.maps) if name is not None]
    return list(dict.fromkeys(str(name) for name in files))


def _split(text: str, default: str) -> tuple[str, SliceChoice]:
    name, mark, slices = text.rpartition("#")
    return (name, SliceChoice(slices)) if mark else (text, SliceChoice(default))


def _named_input(flag: str, text: str, paths: Sequence[str]) -> tuple[str, str]:
    """The input that ``INPUT=FILE`` names, and the file."""
    path, mark, file = text.partition("=")
    if not mark and len(paths) == 1:
        path, file = paths[0], text
    matches = [named for named in paths if path in (named, Path(named).name)]
    if not file or len(matches) != 1:
        what = "SCAN" if flag == "--maps-from" else "FILE"
        raise UsageError(f"{flag} {text}: give INPUT={what}, with one of the inputs {', '.join(paths)}")
    return matches[0], file


def slices_text(numbers: Sequence[int]) -> str:
    """Numbers of slices in words, runs of them as ranges: "slices 0-9 and 12"."""
    runs = [list(group) for _, group in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])]
    spans = [f"{run[0][1]}-{run[-1][1]}" if len(run) > 1 else str(run[0][1]) for run in runs]
    if len(spans) > _MOST_SPANS:
        spans = [*spans[:_MOST_SPANS], f"{len(spans) - _MOST_SPANS} more ranges"]
    listed = " and ".join(filter(None, [", ".join(spans[:-1]), spans[-1]]))
    return f"slice{'s' * (len(numbers) > 1)} {listed}"

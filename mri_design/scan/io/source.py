"""A file as a source: its header is read when it is opened, its samples when they are asked for, slice by slice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from mri_design.errors import InputError, described, option, require_choice, require_counts
from mri_design.registry import Reader
from mri_design.scan.calibration import centred, find_centre, summary_with_its_centre, with_its_centre
from mri_design.scan.data import ImageStack, KSpaceData, ScanSummary, TrajectoryData, middle_slice, summarised
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits
from mri_design.scan.provenance import Centre
from mri_design.scan.sampling import Sampling

Content = KSpaceData | TrajectoryData | ImageStack
Summary = ScanSummary | TrajectoryData | ImageStack
DuplicatePolicy = Literal["refuse", "average", "first", "last"]
"""Policies for a line that was acquired more than once (averages, or a counter that repeats)."""
COUNTERS = ("contrast", "phase", "repetition", "set")
"""Counters of which one value is read. Averages are repeats of one line, so they are duplicates."""
ENCODING = "encoding"
"""Number of the encoding space of an MRD file, of which one is read, too: each has a matrix of its own."""


CORRECT_ECHOES = "Correct the phase of the echoes and grid them first, and write them as Cartesian lines."


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a file is to be read.

    Parameters
    ----------
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"refuse", "average", "first", "last"}
        Refuse a line or shot of raw data that comes twice, average its readouts, or keep the first or the last one.
    counters : mapping of str to int
        Which "contrast", "phase", "repetition" and "set" of raw data to read, and which "encoding" (space), by the
        file's own numbers; the first of those that are not named.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image of samples along a trajectory, instead of what the file says.
    centre : tuple of int, optional
        Line and sample of the centre of k-space on the grid that is read, counted from 0; by default what the file
        says, or else what the samples show (`find_centre`).
    noise : bool
        Whether to read what the arrays of a file say of the noise: not if it is given.
    only_noise : bool
        Whether to open raw data for their noise readouts alone: `Source.load` gives these, and there need be no image.
    dims : sequence of str, optional
        Names of the axes of an array, instead of what the file says.

    Raises
    ------
    InputError
        For another policy or counter, and numbers that are not whole or negative.
    """

    limits: ReadLimits = DEFAULT_LIMITS
    duplicates: DuplicatePolicy = "refuse"
    counters: Mapping[str, int] = field(default_factory=dict)
    matrix: tuple[int, int] | None = None
    centre: tuple[int, int] | None = None
    noise: bool = True
    only_noise: bool = False
    dims: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_choice(get_args(DuplicatePolicy), duplicates=self.duplicates)
        for name, number in self.counters.items():
            require_choice((*COUNTERS, ENCODING), counters=name)
            require_counts(least=0, most=65535, **{name: number})


def duplicates_cure() -> str:
    """What says what becomes of what comes several times."""
    return f"Say which counts: {option('duplicates', 'average')}, or first or last."


def counter_option(name: str) -> str:
    """The option, or Python's setting, of a counter or of the encoding space."""
    return option(f"input.series.{name}")


def require_counters(
    path: Path, counters: Mapping[str, int], series: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """Refuse numbers of repetitions, contrasts and the like that a file does not have.

    Raises
    ------
    InputError
        For a number beyond those of ``series``, and for another one than 0 where there is no such counter.
    """
    for name, number in counters.items():
        held = (series or {}).get(name, ())
        if number not in (held or (0,)):
            others = "".join(f" It has a {other}: --{other} N." for other in series or {} if other != name)
            cure = f"Change {counter_option(name)}, or leave it out.{others}"
            wanted, behind = f"0 to {len(held) - 1}" if held else "0, or none", ("encoding_space",) * (name == ENCODING)
            raise InputError(f"{path}: {name}", str(number), wanted, cure, behind)


@dataclass(frozen=True)
class SliceReader:
    """The slices of an open file, each of which is read when it is asked for.

    Parameters
    ----------
    count : int
        Slices of the file.
    read : function
        The slice of a number, named by it, as `load` and `select_slice` give it; refused where it holds no signal.
    whole : Content, optional
        All slices, where the file had to be read as a whole.
    series : mapping of str to tuple of int
        See `Source.series`.
    """

    count: int
    read: Callable[[int], Content]
    whole: Content | None = None
    series: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, whole: Content, series: Mapping[str, tuple[int, ...]] | None) -> SliceReader:
        """The slices of what was read as a whole."""
        return cls(whole.n_slices, whole.select_slice, whole, series or {})


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """An open file whose header was read and checked.

    Parameters
    ----------
    series : mapping of str to tuple of int, optional
        Numbers that the file holds, of each counter of which one is read.
    centre : tuple of int, optional
        Line and sample of the centre of k-space, where the file says that it is elsewhere than at ``N // 2``.
    """

    series: Mapping[str, tuple[int, ...]] | None = None
    centre: tuple[int, int] | None = None

    @abstractmethod
    def load(self) -> Content:
        """Read all samples.

        Raises
        ------
        InputError
            Where samples are missing, are not finite, or contradict the header.
        """

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one, without the others in memory where the format allows."""
        yield SliceReader.of(self.load(), self.series)

    def summary(self) -> Summary:
        """Summarise the file with as few samples in memory as the format allows.

        Raises
        ------
        InputError
            As `load`, but for samples that were not looked at.
        """
        return summarised(self.load())


class SlicedSource(Source):
    """A source of k-space on a grid whose slices can be read one by one."""

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice; None where the file does not say."""
        return None

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return len(self.samplings())

    @property
    def one_by_one(self) -> bool:
        """Whether a slice is read without those before it; not of a volume whose readouts bring a sample to each."""
        return True

    @abstractmethod
    def samplings(self) -> tuple[Sampling, ...]:
        """Which samples each slice holds, with a bounded number of slices in memory."""

    @abstractmethod
    def slice(self, index: int) -> KSpaceData:
        """One slice, without the others in memory."""

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one, each under its number and with the lines that it holds."""
        if not self.one_by_one:
            yield SliceReader.of(self.load(), self.series)
            return
        count = self.n_slices

        def named(number: int) -> KSpaceData:
            try:
                part = self.slice(number).select_slice(0)
            except InputError as error:
                raise error.about(f"slice {number}: {error.field}") from error
            known = part.known(slice=(number, count)) if count > 1 else part
            return replace(known, name=part.name if count == 1 else f"{part.name}[{number}]")

        yield SliceReader(count, named, series=self.series or {})

    def summary(self) -> ScanSummary:
        """The sampling of every slice, and the samples of the middle one."""
        samplings = self.samplings()
        index = middle_slice(samplings)
        part = self.slice(index)
        return ScanSummary(
            (*samplings[:index], *part.samplings, *samplings[index + 1 :]),
            part.n_coils,
            name=part.name,
            index=index,
            part=part,
            geometry=self.geometry,
            header=part.header,
            provenance=part.provenance,
            volume=part.volume,
        )


@dataclass(frozen=True)
class Loaded(Source):
    """A scan or images that a reader read as a whole, or noise readouts."""

    held: Any

    def load(self) -> Any:
        """What was read."""
        return self.held


@dataclass(frozen=True)
class CentredSource(Source):
    """A source whose k-space is read with its centre at ``N // 2``: one rule for every format.

    Parameters
    ----------
    source : Source
        As a reader opens it; ``centre`` is as the file says it, or as it is given.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image, if they are asked for: of samples along a trajectory alone.
    """

    source: Source
    matrix: tuple[int, int] | None = None

    def load(self) -> Content:
        """All samples."""
        return self._placed(self.source.load())

    def summary(self) -> Summary:
        """The summary of the source, with its samples and sampling moved."""
        return self._placed(self.source.summary())

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one; all are moved as the middle one of those that hold signal shows it."""
        with self.source.slice_reader() as slices:
            if slices.whole is not None:
                yield SliceReader.of(self._placed(slices.whole), slices.series)
                return
            found = list[Centre]()

            def read(number: int) -> Content:
                part = slices.read(number)
                if not isinstance(part, KSpaceData):
                    return self._placed(part)
                if not found:
                    found.append(self._found(slices, number, part))
                return centred(part, found[0])

            yield replace(slices, read=read)

    def _found(self, slices: SliceReader, number: int, part: KSpaceData) -> Centre:
        """The centre that the slice nearest to the middle shows which can be read, ``part`` being that of a number."""
        for near in sorted(range(slices.count), key=lambda other: abs(other - slices.count // 2)):
            with suppress(InputError):  # slices without signal
                middle = part if near == number else slices.read(near)
                assert isinstance(middle, KSpaceData)
                part = middle
                break
        return find_centre(part.kspace[0], part.samplings[0].samples, self.centre)

    def _placed(self, held: Any) -> Any:
        """Samples on a grid, or their summary, moved; of anything else no centre can be given."""
        if isinstance(held, KSpaceData):
            return with_its_centre(held, self.centre)
        if isinstance(held, ScanSummary):
            return summary_with_its_centre(held, self.centre)
        if self.centre is not None:
            cure = f"Leave out {option('input.centre')}, under [input] in the recipe and in the header file, too."
            raise InputError("centre", "a place in samples off the grid, or images", "k-space on a grid", cure)
        return held


@contextmanager
def opened_by(reader: Reader, path: Path, options: ReadOptions) -> Iterator[Source]:
    """The source that a file is for its reader, while it is open."""
    made = reader.opens(path, options)
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as held:
        if not isinstance(held, Source | KSpaceData | TrajectoryData | ImageStack):
            raise InputError(f"reader of {reader.says}", described(held), "a scan, an ImageStack or a Source")
        yield held if isinstance(held, Source) else Loaded(held)


REGISTERED: list[Reader] = []
"""Readers from outside the package, the newest first; they are asked before the package's own."""


def register_reader(
    says: str, begins: bytes | Callable[[Path], bool], *, series: bool = False, matrix: bool = False
) -> Callable[[Callable[[Path, ReadOptions], Any]], Callable[[Path, ReadOptions], Any]]:
    """Make a function the reader of a file format, for `read`, the command line's verbs and all that reads scans.

    Parameters
    ----------
    says : str
        The format, for people.
    begins : bytes or function
        The first bytes of such files, or a function of a path that says whether a file is one.
    series, matrix : bool
        As of a `mri_design.registry.Reader`.

    Returns
    -------
    decorator
        Of a function of a path and `ReadOptions`, which returns what the file holds (`KSpaceData`, `TrajectoryData` or
        `ImageStack`) or a `Source`. The function stays as it is.

    Examples
    --------
    >>> @register_reader("toy files (.toy)", b"TOY1")
    ... def read_toy(path, options):
    ...     kspace = np.frombuffer(path.read_bytes()[4:], np.complex64).reshape(1, 1, 8, 8)
    ...     return KSpaceData(kspace, np.any(kspace, axis=(0, 1, 3)), name=path.stem)
    """

    def register(opens: Callable[[Path, ReadOptions], Any]) -> Callable[[Path, ReadOptions], Any]:
        if not begins:
            raise InputError("begins", "no bytes", "the first bytes of such files, one at least")
        recognises = begins if callable(begins) else starting(begins)
        REGISTERED.insert(0, Reader(says, recognises, opens, series=series, matrix=matrix))
        return opens

    return register


def starting(*marks: bytes) -> Callable[[Path], bool]:
    """Whether a file starts with one of some marks, as a function of its path."""

    def recognises(path: Path) -> bool:
        with path.open("rb") as stream:
            return stream.read(max(map(len, marks))).startswith(marks)

    return recognises

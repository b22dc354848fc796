"""An open file as a source: its header is read when it is opened, its samples on request, slice by slice."""

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
"""Policies for a line that was acquired more than once (averages, or a repeated counter)."""
COUNTERS = ("contrast", "phase", "repetition", "set")
"""Counters of which one value is read. Averages repeat a line, so they are duplicates."""
ENCODING = "encoding"
"""Encoding space of an MRD file, of which one is read too: each has its own matrix."""


CORRECT_ECHOES = "Correct the phase of the echoes and grid them first, and write them as Cartesian lines."


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a file is to be read.

    Parameters
    ----------
    limits : ReadLimits
        Bounds that are checked before anything is allocated.
    duplicates : {"refuse", "average", "first", "last"}
        What to do with a line or shot of raw data that comes twice: refuse it, average its readouts, or keep the first
        or the last one.
    counters : mapping of str to int
        Which "contrast", "phase", "repetition", "set" and "encoding" (space) of raw data to read, by the file's own
        numbers; by default the first.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image of samples along a trajectory, if the file does not state them.
    centre : tuple of int, optional
        Line and sample of the centre of k-space on the grid, counted from 0; by default what the file says, or else
        what the samples show (`find_centre`).
    noise : bool
        Whether to read the noise that a file of arrays gives: not if the user gives it.
    only_noise : bool
        Whether `Source.load` gives the noise of raw data alone; the file needs no image then.
    dims : sequence of str, optional
        Names of the axes of an array, instead of what the file says.

    Raises
    ------
    InputError
        For another policy or counter, and for numbers that are negative or not whole.
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
    """How a user says which of several readouts counts."""
    return f"Say which counts: {option('duplicates', 'average')}, or first or last."


def counter_option(name: str, number: object = "") -> str:
    """The setting of a counter or of the encoding space, as on the command line or in Python; with an example."""
    return option(f"input.series.{name}", number)


def require_counters(
    path: Path, counters: Mapping[str, int], series: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """Refuse numbers of repetitions, contrasts and the like that a file does not have.

    Raises
    ------
    InputError
        For a number that ``series`` does not have; without the counter, for any number but 0.
    """
    for name, number in counters.items():
        held = (series or {}).get(name, ())
        if number not in (held or (0,)):
            others = "".join(
                f" It has a {other}: {counter_option(other, 'N')}." for other in series or {} if other != name
            )
            cure = f"Change {counter_option(name)}, or leave it out.{others}"
            wanted, behind = f"0 to {len(held) - 1}" if held else "0, or none", ("encoding_space",) * (name == ENCODING)
            raise InputError(f"{path}: {name}", str(number), wanted, cure, behind)


@dataclass(frozen=True)
class SliceReader:
    """The slices of an open file, each of which is read on request.

    Parameters
    ----------
    count : int
        Slices of the file.
    read : function
        Reads the slice with a number, named by it, as `load` and `select_slice` give it; refuses one without signal.
    whole : Content, optional
        All slices, if the file had to be read as a whole.
    series : mapping of str to tuple of int
        See `Source.series`.
    """

    count: int
    read: Callable[[int], Content]
    whole: Content | None = None
    series: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, whole: Content, series: Mapping[str, tuple[int, ...]] | None) -> SliceReader:
        """The slices of a scan that was read as a whole."""
        return cls(whole.n_slices, whole.select_slice, whole, series or {})


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """An open file whose header was read and checked.

    Parameters
    ----------
    series : mapping of str to tuple of int, optional
        All values in the file of each counter of which one is read.
    centre : tuple of int, optional
        Line and sample of the centre of k-space, if the file says that it is not at ``N // 2``.
    """

    series: Mapping[str, tuple[int, ...]] | None = None
    centre: tuple[int, int] | None = None

    @abstractmethod
    def load(self) -> Content:
        """Read all samples.

        Raises
        ------
        InputError
            If samples are missing, are not finite, or contradict the header.
        """

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one, without the others in memory if the format allows."""
        yield SliceReader.of(self.load(), self.series)

    def summary(self) -> Summary:
        """Summarise the file with as few samples in memory as the format allows.

        Raises
        ------
        InputError
            As `load`, except for samples that were not read.
        """
        return summarised(self.load())


class SlicedSource(Source):
    """A source of k-space on a grid whose slices can be read one by one."""

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice; None if the file does not say."""
        return None

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return len(self.samplings())

    @property
    def one_by_one(self) -> bool:
        """Whether slices can be read separately; not in a volume whose readouts have a sample in each."""
        return True

    @abstractmethod
    def samplings(self) -> tuple[Sampling, ...]:
        """Which samples each slice holds, with a bounded number of slices in memory."""

    @abstractmethod
    def slice(self, index: int) -> KSpaceData:
        """One slice, without the others in memory."""

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one, each named by its number and with its own lines."""
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
    """A scan, images or noise that were read as a whole."""

    held: Any

    def load(self) -> Any:
        """The scan, images or noise."""
        return self.held


@dataclass(frozen=True)
class CentredSource(Source):
    """A source of any format whose k-space is shifted so that its centre lies at ``N // 2``.

    Parameters
    ----------
    source : Source
        As a reader opens it; ``centre`` comes from the file or the user.
    """

    source: Source

    def load(self) -> Content:
        """All samples."""
        return self._placed(self.source.load())

    def summary(self) -> Summary:
        """The summary of the source, with its samples and sampling shifted."""
        return self._placed(self.source.summary())

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one, all shifted by the centre of the middle slice that holds signal."""
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
        """The centre in the readable slice nearest to the middle; ``part`` is the slice with a number."""
        for near in sorted(range(slices.count), key=lambda other: abs(other - slices.count // 2)):
            with suppress(InputError):  # slices without signal
                middle = part if near == number else slices.read(near)
                assert isinstance(middle, KSpaceData)
                part = middle
                break
        return find_centre(part.kspace[0], part.samplings[0].samples, self.centre)

    def _placed(self, held: Any) -> Any:
        """Samples on a grid, or their summary, shifted; nothing else can have a given centre."""
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
    """The open file as a source of its reader."""
    made = reader.opens(path, options)
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as held:
        if not isinstance(held, Source | KSpaceData | TrajectoryData | ImageStack):
            raise InputError(f"reader of {reader.says}", described(held), "a scan, an ImageStack or a Source")
        yield held if isinstance(held, Source) else Loaded(held)


REGISTERED: list[Reader] = []
"""Readers from outside the package, the newest first; they come before the package's own."""


def register_reader(
    says: str, begins: bytes | Callable[[Path], bool], *, series: bool = False
) -> Callable[[Callable[[Path, ReadOptions], Any]], Callable[[Path, ReadOptions], Any]]:
    """Make a function the reader of a file format for all functions and commands that read scans.

    Parameters
    ----------
    says : str
        The format in words.
    begins : bytes or function
        The first bytes of such files, or a function that recognises them by their path.
    series : bool
        As of a `mri_design.registry.Reader`.

    Returns
    -------
    decorator
        Of a function of a path and `ReadOptions` that returns a `KSpaceData`, a `TrajectoryData`, an `ImageStack` or a
        `Source`. The function itself does not change.

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
        REGISTERED.insert(0, Reader(says, recognises, opens, series=series))
        return opens

    return register


def starting(*marks: bytes) -> Callable[[Path], bool]:
    """A function of a path: whether the file starts with one of some marks."""

    def recognises(path: Path) -> bool:
        with path.open("rb") as stream:
            return stream.read(max(map(len, marks))).startswith(marks)

    return recognises

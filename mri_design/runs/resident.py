"""Slices that live in other processes for as long as a design lasts.

Each is sent to its process once and stays there with its warm starts and posteriors. For every line a request of a few
hundred bytes goes there, and the image and what the strategy asks for come back. Whoever holds the design remembers
what was asked since it last fetched where a slice stood, so that a slice whose process was lost is begun again from
there and asked the same: the design stays the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload
from uuid import uuid4

from mri_design.design.energies import KeptPosteriors
from mri_design.design.slices import Found, InferenceRequest, Keeper, KeptSlice
from mri_design.errors import MriDesignError
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.runs.workers import LostPieceError, Workers, lost_worker
from mri_design.variances.base import VarianceEstimator

Answer = TypeVar("Answer")

_TRIES = 3
"""Processes that may be lost over one call before the design gives up."""

Action = tuple[str, tuple[Any, ...]]
"""A method of `KeptSlice` that changes it, and its arguments."""
Question = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a `KeptSlice`, which leaves it as it is, and its further arguments."""


@dataclass(frozen=True)
class _Call:
    """Actions to do with one slice, and a question to ask of it.

    Parameters
    ----------
    key : tuple
        Design and number of the slice.
    version : int
        How many actions the slice has to have behind it.
    actions : tuple of Action
        To be done first.
    question : Question, optional
        Asked of the slice afterwards. Without one the answer is that of the last action.
    origin : tuple of KeptSlice and actions, optional
        From where the slice is begun again if it is not there as it has to be.
    """

    key: tuple[str, int]
    version: int
    actions: tuple[Action, ...]
    question: Question | None
    origin: tuple[KeptSlice, tuple[Action, ...]] | None


class _Missing:
    """The answer for a slice that is not there."""


_kept: dict[tuple[str, int], tuple[KeptSlice, int]] = {}
"""In a process that keeps slices: each with how many actions it has behind it."""


def _perform(calls: Sequence[_Call]) -> list[Any]:
    return [_performed(call) for call in calls]


def _performed(call: _Call) -> Any:
    kept, version = _kept.pop(call.key, (None, -1))  # one that fails half-way is not kept
    if kept is None or version != call.version:
        if call.origin is None:
            return _Missing()
        kept, done = call.origin
        for action in done:
            _do(kept, action)
    answer = None
    for action in call.actions:
        answer = _do(kept, action)
    _kept[call.key] = kept, call.version + len(call.actions)
    if call.question is not None:
        function, arguments = call.question
        answer = function(kept, *arguments)
    return answer


def _do(kept: KeptSlice, action: Action) -> Any:
    method, arguments = action
    return getattr(kept, method)(*arguments)


def _drop(design: str) -> None:
    for key in [key for key in _kept if key[0] == design]:
        del _kept[key]


def _asked(kept: KeptSlice, expecting: bool, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(kept.expecting if expecting else kept.posterior, *arguments)


def _itself(posterior: GaussianPosterior) -> GaussianPosterior:
    return posterior


def _warm_start(kept: KeptSlice) -> Any:
    return kept.warm


@dataclass
class _Remote:
    """A slice as those who hold the design know it: where it stood when it was last fetched, and what was done since.

    Parameters
    ----------
    key : tuple
        Design and number.
    origin : KeptSlice
        As it was; nothing is inferred with this copy.
    done : list of Action
        Since then.
    version : int
        Actions from the beginning on; -1 before the slice was sent.
    waiting : list of Action
        To be done with the next call.
    """

    key: tuple[str, int]
    origin: KeptSlice
    done: list[Action] = field(default_factory=list)
    version: int = -1
    waiting: list[Action] = field(default_factory=list)

    def call(self, question: Question | None, count: int, anew: bool) -> _Call:
        """The call that has the first ``count`` waiting actions done, and asks."""
        origin = (self.origin, tuple(self.done)) if anew or self.version < 0 else None
        return _Call(self.key, max(self.version, 0), tuple(self.waiting[:count]), question, origin)

    def answered(self, count: int) -> None:
        """The first ``count`` waiting actions have been done."""
        self.done += self.waiting[:count]
        self.version = max(self.version, 0) + count
        self.waiting = self.waiting[count:]

    def until_measured(self, behind: int) -> int | None:
        """How many waiting actions to do for the standing of ``behind`` measurements ago; None where it is too late."""
        marks = [i for i, (method, _) in enumerate(self.waiting) if method == "measured"]
        if behind > len(marks):
            return None
        return 0 if behind == len(marks) else marks[-1 - behind] + 1

    def fetched(self, warm: Any) -> None:
        """Inference goes on from where it stood after the last measurement; what was done since is remembered."""
        self.origin.warm = warm
        last = max((i for i, (method, _) in enumerate(self.done) if method == "measured"), default=-1)
        self.done = self.done[last + 1 :]


class ResidentSlices(Keeper):
    """Keeps the slices of one design in the processes of `Workers`, slice ``i`` always in the same one.

    Parameters
    ----------
    workers : Workers
        Workers in other processes than this one.
    """

    def __init__(self, workers: Workers[Any]) -> None:
        self._workers = workers
        self._design = uuid4().hex
        self._slices: list[_Remote] = []
        self._places: set[int] = set()
        self._found: list[Found] = []
        self._inferences = self._measurements = 0

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """See `Keeper`. The slices are sent with the first request."""
        self.close()
        self._slices = [_Remote((self._design, i), kept) for i, kept in enumerate(slices)]

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """See `Keeper`."""
        self._inferences += 1
        for remote, request in zip(self._slices, requests, strict=True):
            remote.waiting.append(("infer", (request,)))
        self._found = self._ask([None] * len(self._slices))
        return self._found

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """See `Keeper`."""
        for remote, seed in zip(self._slices, noise, strict=True):
            remote.waiting.append(("expect", (lines, estimator, seed)))
        return self._ask([None] * len(self._slices))

    @property
    def posteriors(self) -> Sequence[GaussianPosterior]:
        """See `Keeper`."""
        return _Posteriors(self, self._inferences, [found.mean for found in self._found], expecting=False)

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """See `Keeper`."""
        return _Posteriors(self, self._inferences, [found.mean for found in self._found], expecting=True)

    def measured(self) -> None:
        """See `Keeper`. It is told with the next request."""
        self._measurements += 1
        for remote in self._slices:
            remote.waiting.append(("measured", ()))

    @property
    def warm_starts(self) -> Sequence[Any]:
        """See `Keeper`. Whoever looks at them has to do so before more lines are measured."""
        return _WarmStarts(self, self._measurements, len(self._slices))

    def close(self, wait: bool = True) -> None:
        """Let the processes forget the slices."""
        if self._slices:
            with suppress(BrokenExecutor, LostPieceError):
                told = [self._workers.submit_at(place, _drop, self._design) for place in self._places]
                for future in told if wait else ():
                    self._workers.outcome(future)
        self._slices = []

    def fetch(self, measurements: int) -> list[Any]:
        """Where inference stood after so many measurements, unless they have been inferred from more of them since."""
        counts = [remote.until_measured(self._measurements - measurements) for remote in self._slices]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            raise MriDesignError("the design has gone on: its slices stand elsewhere now than when this state was made")
        found = self._ask([(_warm_start, ())] * len(self._slices), counts=known)
        for remote, warm in zip(self._slices, found, strict=True):
            remote.fetched(warm)
        return found

    def ask(self, inferences: int, questions: Mapping[int, Question]) -> list[Any]:
        """Answers to questions to some slices, by their numbers, unless they have been inferred anew since."""
        if inferences != self._inferences:
            raise MriDesignError("the design has gone on: these posteriors are no longer kept")
        return self._ask(list(questions.values()), list(questions))

    def _ask(
        self,
        questions: Sequence[Question | None],
        numbers: Sequence[int] | None = None,
        counts: Sequence[int] | None = None,
    ) -> list[Any]:
        """Do what is waiting and answer one question each; slices that were lost are begun again.

        With ``counts`` only so many of the waiting actions of each slice are done.
        """
        todo = [len(remote.waiting) for remote in self._slices] if counts is None else counts
        left = dict(zip(range(len(self._slices)) if numbers is None else numbers, questions, strict=True))
        order, answers = list(left), dict[int, Any]()
        for attempt in range(_TRIES + 1):
            if not left:
                break
            lost = self._attempt(left, todo, answers, anew=attempt > 0)
            for number in list(left):
                if number in answers:
                    self._slices[number].answered(todo[number])
                    del left[number]
            if lost is not None and attempt == _TRIES:
                raise lost_worker(lost) from lost
        return [answers[number] for number in order]

    def _attempt(
        self, left: dict[int, Any], todo: Sequence[int], answers: dict[int, Any], anew: bool
    ) -> BaseException | None:
        """Put all calls that are left, those of a place together; the answers that came, and why others did not."""
        places = self._workers.places
        groups = {place: [n for n in left if n % places == place] for place in {n % places for n in left}}
        lost: BaseException | None = None
        futures: dict[int, Future[Any]] = {}
        try:
            for place, group in groups.items():
                calls = [self._slices[n].call(left[n], todo[n], anew) for n in group]
                self._places.add(place)
                futures[place] = self._workers.submit_at(place, _perform, calls)
            for place, future in futures.items():
                try:
                    found = self._workers.outcome(future)
                except LostPieceError as error:
                    lost = error
                    continue
                answers.update({n: a for n, a in zip(groups[place], found, strict=True) if not isinstance(a, _Missing)})
        except BrokenExecutor as error:
            lost = error
            self._workers.renew()
        return lost


class _Posteriors(KeptPosteriors):
    """The posteriors of the last inference."""

    def __init__(self, keeper: ResidentSlices, inferences: int, means: Sequence[Array], expecting: bool) -> None:
        self._keeper, self._inferences, self._means, self._expecting = keeper, inferences, means, expecting
        self._whole: dict[int, GaussianPosterior] = {}

    def __len__(self) -> int:
        return len(self._means)

    @overload
    def __getitem__(self, index: int) -> GaussianPosterior: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[GaussianPosterior]: ...
    def __getitem__(self, index: int | slice) -> GaussianPosterior | Sequence[GaussianPosterior]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        number = range(len(self))[index]
        if number not in self._whole:
            (self._whole[number],) = self._ask(_itself, {number: ()})
        return self._whole[number]

    @property
    def means(self) -> Sequence[Array]:
        return self._means

    def each(self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]) -> list[Answer]:
        return self._ask(function, dict(enumerate(arguments)))

    def _ask(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        asked = {n: (_asked, (self._expecting, function, own)) for n, own in arguments.items()}
        return self._keeper.ask(self._inferences, asked)


class _WarmStarts(Sequence[Any]):
    """Where inference of the slices stood after a measurement, fetched when they are looked at for the first time."""

    def __init__(self, keeper: ResidentSlices, measurements: int, count: int) -> None:
        self._keeper, self._measurements, self._count = keeper, measurements, count
        self._fetched: list[Any] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if self._fetched is None:
            self._fetched = self._keeper.fetch(self._measurements)
        return self._fetched[index]


@contextmanager
def keeper_of(workers: Workers[Any], slices: int) -> Iterator[Keeper | None]:
    """A keeper for so many slices of a design in ``workers``; None where this process keeps them, as one slice."""
    if workers.places == 0 or slices < 2:
        yield None
        return
    keeper = ResidentSlices(workers)
    try:
        yield keeper
    except BaseException:
        keeper.close(wait=False)
        raise
    keeper.close()

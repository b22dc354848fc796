"""Slices that live in other processes for as long as a design lasts.

Each is sent to its process once and stays there with its warm starts and posteriors. For every line a request of a few
hundred bytes goes there, and the image and what the strategy asks for come back. Whoever holds the design remembers
what was asked since it last fetched where a slice stood, so that a slice whose process was lost is begun again from
there and asked the same: the design stays the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar
from uuid import uuid4

from mri_design.design.energies import KeptPosteriors
from mri_design.design.engine import Found, InferenceRequest, Keeper, KeptSlice
from mri_design.errors import MriDesignError
from mri_design.operators.base import Array
from mri_design.runs.workers import DaskCluster, LostPieceError, Processes, Workers, lost_worker
from mri_design.variances.base import VarianceEstimator

Answer = TypeVar("Answer")

_TRIES = 3
"""Processes that may be lost over one call before the design gives up."""

Action = tuple[Any, ...]
"""A method of `KeptSlice` that changes it, by name, and its arguments."""
Question = tuple[Any, ...]
"""A function of a `KeptSlice`, which leaves it as it is, and its further arguments."""
MEASURED: Action = ("measured",)


class _Missing:
    """The answer for a slice that is not there."""


_kept: dict[tuple[str, int], tuple[KeptSlice, int]] = {}
"""In a process that keeps slices, by design and number: each with how many actions it has behind it."""


def _performed(
    key: tuple[str, int],
    version: int,
    actions: Sequence[Action],
    question: Question | None,
    origin: tuple[KeptSlice, Sequence[Action]] | None,
) -> Any:
    """Do actions with a slice that has ``version`` behind it, and answer a question about it.

    Without a question the answer is that of the last action. From ``origin``, with what was done since then, the slice
    is begun again if it is not there as it has to be.
    """
    kept, done = _kept.pop(key, (None, -1))  # one that fails half-way is not kept
    before: Sequence[Action] = ()
    if kept is None or done != version:
        if origin is None:
            return _Missing
        kept, before = origin
    answer = None
    for method, *arguments in (*before, *actions):
        answer = getattr(kept, method)(*arguments)
    _kept[key] = kept, version + len(actions)
    if question is not None:
        function, *arguments = question
        answer = function(kept, *arguments)
    return answer


def _drop(design: str) -> None:
    for key in [key for key in _kept if key[0] == design]:
        del _kept[key]


def _of_posterior(kept: KeptSlice, which: str, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(getattr(kept, which), *arguments)


class _Remote:
    """A slice as those who hold the design know it.

    Attributes
    ----------
    origin : KeptSlice
        As it was when it was last fetched; nothing is inferred with this copy.
    actions : list of Action
        Since then, the first ``done`` of which have been done.
    before : int
        How many there were before these; -1 as long as the slice was not sent.
    """

    def __init__(self, origin: KeptSlice) -> None:
        self.origin, self.actions, self.done, self.before = origin, list[Action](), 0, -1

    def call(self, question: Question | None, end: int, anew: bool) -> tuple[Any, ...]:
        """Arguments of `_performed` that have actions done until ``end``, and ask; ``anew`` where it may be lost."""
        origin = (self.origin, self.actions[: self.done]) if anew or self.before < 0 else None
        return max(self.before, 0) + self.done, self.actions[self.done : end], question, origin

    def answered(self, end: int) -> None:
        """The actions until ``end`` have been done."""
        self.before, self.done = max(self.before, 0), end

    def until_measured(self, behind: int) -> int:
        """The end of the actions for the standing of ``behind`` measurements ago.

        Raises
        ------
        MriDesignError
            Where more has been done.
        """
        marks = [i + 1 for i, action in enumerate(self.actions) if i >= self.done and action == MEASURED]
        if behind > len(marks):
            raise MriDesignError("the design has gone on: its slices stand elsewhere than when this state was made")
        return [self.done, *marks][-1 - behind]

    def fetched(self, warm: Any) -> None:
        """Inference goes on from where it stood after the last measurement; what was done since is remembered."""
        self.origin.warm = warm
        last = max((i + 1 for i, action in enumerate(self.actions[: self.done]) if action == MEASURED), default=0)
        self.actions, self.done, self.before = self.actions[last:], self.done - last, self.before + last


class ResidentSlices(Keeper):
    """Keeps the slices of one design in other processes, slice ``i`` always in the same one.

    Parameters
    ----------
    executor : Processes or DaskCluster
        Of `Workers`.
    """

    def __init__(self, executor: Processes | DaskCluster) -> None:
        self._executor = executor
        self._design = uuid4().hex
        self._slices: list[_Remote] = []
        self._found: list[Found] = []
        self._inferences = self._measurements = 0

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """See `Keeper`. The slices are sent with the first request."""
        self.close()
        self._slices = [_Remote(kept) for kept in slices]

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """See `Keeper`."""
        self._inferences += 1
        self._found = self._done([("infer", request) for request in requests])
        return self._found

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """See `Keeper`."""
        return self._done([("expect", lines, estimator, seed) for seed in noise])

    def _done(self, actions: Sequence[Action]) -> list[Any]:
        """Answers of the slices to an action each."""
        for remote, action in zip(self._slices, actions, strict=True):
            remote.actions.append(action)
        return self._ask(dict.fromkeys(range(len(self._slices))))

    @property
    def posteriors(self) -> KeptPosteriors:
        """See `Keeper`."""
        return _Posteriors(self, "posterior", self._inferences, [found.mean for found in self._found])

    @property
    def expecting(self) -> KeptPosteriors:
        """See `Keeper`."""
        return _Posteriors(self, "expecting", self._inferences, [found.mean for found in self._found])

    def measured(self) -> None:
        """See `Keeper`. It is told with the next request."""
        self._measurements += 1
        for remote in self._slices:
            remote.actions.append(MEASURED)

    @property
    def warm_starts(self) -> Sequence[Any]:
        """See `Keeper`. Whoever looks at them has to do so before more lines are measured."""
        return _WarmStarts(self, self._measurements, len(self._slices))

    def close(self, wait: bool = True) -> None:
        """Let the processes forget the slices."""
        places = range(min(len(self._slices), self._executor.places))
        with suppress(LostPieceError):
            told = [self._executor.submit_at(place, _drop, self._design) for place in places]
            for future in told if wait else ():
                self._executor.outcome(future)
        self._slices = []

    def fetch(self, measurements: int) -> list[Any]:
        """Where inference stood after so many measurements, unless they have been inferred from more of them since."""
        behind = self._measurements - measurements
        ends = [remote.until_measured(behind) for remote in self._slices]
        found = self._ask({n: (getattr, "warm") for n in range(len(self._slices))}, ends)
        for remote, warm in zip(self._slices, found, strict=True):
            remote.fetched(warm)
        return found

    def ask(self, inferences: int, questions: Mapping[int, Question]) -> list[Any]:
        """Answers to questions to some slices, by their numbers, unless they have been inferred anew since."""
        if inferences != self._inferences:
            raise MriDesignError("the design has gone on: these posteriors are no longer kept")
        return self._ask(questions)

    def _ask(self, questions: Mapping[int, Question | None], ends: Sequence[int] | None = None) -> list[Any]:
        """Do what is left to do, or until ``ends``, and answer; slices that were lost are begun again."""
        ends = [len(remote.actions) for remote in self._slices] if ends is None else ends
        answers, places = dict[int, Any](), self._executor.places
        lost: LostPieceError | None = None
        for attempt in range(_TRIES + 1):
            calls = {
                n: self._slices[n].call(question, ends[n], anew=attempt > 0)
                for n, question in questions.items()
                if n not in answers
            }
            futures = {
                n: self._executor.submit_at(n % places, _performed, (self._design, n), *call)
                for n, call in calls.items()
            }
            for n, future in futures.items():
                try:
                    answer = self._executor.outcome(future)
                except LostPieceError as error:
                    lost = error
                    continue
                if answer is not _Missing:
                    answers[n] = answer
                    self._slices[n].answered(ends[n])
            if len(answers) == len(questions):
                return [answers[n] for n in questions]
        assert lost is not None
        raise lost_worker(lost) from lost


class _Posteriors(KeptPosteriors):
    """The posteriors of the last inference, which the slices have under the name ``which``."""

    def __init__(self, keeper: ResidentSlices, which: str, inferences: int, means: Sequence[Array]) -> None:
        self._keeper, self._which, self._inferences, self._means = keeper, which, inferences, means
        self._whole: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._means)

    def __getitem__(self, index: Any) -> Any:
        numbers = range(len(self))[index]
        if not isinstance(numbers, int):
            return [self[i] for i in numbers]
        if numbers not in self._whole:
            question = (getattr, self._which)
            (self._whole[numbers],) = self._keeper.ask(self._inferences, {numbers: question})
        return self._whole[numbers]

    @property
    def means(self) -> Sequence[Array]:
        return self._means

    def each(self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]) -> list[Answer]:
        questions = {n: (_of_posterior, self._which, function, *own) for n, own in enumerate(arguments)}
        return self._keeper.ask(self._inferences, questions)


class _WarmStarts(Sequence[Any]):
    """Where inference of the slices stood after a measurement, fetched when they are looked at for the first time."""

    def __init__(self, keeper: ResidentSlices, measurements: int, count: int) -> None:
        self._keeper, self._measurements, self._count = keeper, measurements, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._fetched[index]

    @cached_property
    def _fetched(self) -> list[Any]:
        return self._keeper.fetch(self._measurements)


@contextmanager
def keeper_of(workers: Workers[Any], slices: int) -> Iterator[Keeper | None]:
    """A keeper for so many slices of a design in ``workers``; None where this process keeps them, as one slice."""
    if workers.executor is None or slices < 2:
        yield None
        return
    keeper = ResidentSlices(workers.executor)
    try:
        yield keeper
    except BaseException:
        keeper.close(wait=False)
        raise
    keeper.close()

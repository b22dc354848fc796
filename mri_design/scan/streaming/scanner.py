"""Lines are asked for, waited for, asked for again, and given up; how long everything took is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mri_design.errors import InputError, positive_number, require_counts
from mri_design.scan.streaming.arrivals import Arrivals
from mri_design.scan.streaming.channel import Channel, Connected, Connection, Event, Gone
from mri_design.scan.streaming.messages import Closed, ScanHeader

_SILENCES = 3
"""Requests in a row that nothing at all came after, until the scanner counts as gone."""


@dataclass(frozen=True)
class Patience:
    """How long a readout is waited for.

    Parameters
    ----------
    seconds : float
        After a request, and after every line of it that arrives; and after a connection for the header.
    requests : int
        How often a line is asked for, until it counts as lost.

    Raises
    ------
    InputError
        For no time or no request.
    """

    seconds: float = 10.0
    requests: int = 3

    def __post_init__(self) -> None:
        positive_number("timeout", self.seconds)
        require_counts(least=1, requests=self.requests)


@dataclass(frozen=True)
class Exchange:
    """One decision as the scanner saw it.

    Parameters
    ----------
    order : int
        Lines asked for before.
    lines : tuple of int
        Those asked for.
    deciding, waiting : float
        Seconds from the last readout that was waited for to the request, and from there to the last line of it.
    processor : float
        Seconds of processor time in ``deciding``.
    requests : int
        How often it was made.
    lost : tuple of int
        Lines that did not come.
    """

    order: int
    lines: tuple[int, ...]
    deciding: float
    waiting: float
    processor: float
    requests: int
    lost: tuple[int, ...] = ()

    def as_row(self) -> dict[str, object]:
        """One row of a table."""
        return {
            "order": self.order,
            "lines": " ".join(map(str, self.lines)),
            "deciding_seconds": round(self.deciding, 6),
            "processor_seconds": round(self.processor, 6),
            "waiting_seconds": round(self.waiting, 6),
            "requests": self.requests,
            "lost": " ".join(map(str, self.lost)) or None,
        }

    @classmethod
    def of_row(cls, row: Mapping[str, str]) -> Exchange:
        """What `as_row` gave, after it was written as text.

        Raises
        ------
        InputError
            For anything else.
        """
        try:
            return cls(
                order=int(row["order"]),
                lines=tuple(map(int, row["lines"].split())),
                deciding=float(row["deciding_seconds"]),
                processor=float(row["processor_seconds"]),
                waiting=float(row["waiting_seconds"]),
                requests=int(row["requests"]),
                lost=tuple(map(int, row["lost"].split())),
            )
        except (KeyError, ValueError) as error:
            raise InputError(field="exchange", got=str(error)[:80], wanted="a row that adapt wrote") from error


class Scanner:
    """Whoever measures, at the other end of a channel.

    Parameters
    ----------
    channel : Channel
        Messages.
    arrivals : Arrivals
        Where readouts are put.
    patience : Patience
        How long to wait.
    say : callable
        Takes what people should know.
    note : callable
        Takes every message that is sent.
    before : sequence of Exchange
        Those of the run that is resumed; the last of them is replaced where its lines are asked for again.

    Attributes
    ----------
    exchanges : list of Exchange
        Every request, those before among them.
    ended : str
        Why nothing more will come; empty while it may.
    """

    def __init__(
        self,
        channel: Channel,
        arrivals: Arrivals,
        patience: Patience,
        say: Callable[[str], None],
        note: Callable[[Mapping[str, object]], None],
        before: Sequence[Exchange] = (),
    ) -> None:
        self.arrivals = arrivals
        self.exchanges = list(before)
        self.ended = ""
        self._channel, self._patience, self._say, self._note = channel, patience, say, note
        self._connected = self._met = False
        self._silent: tuple[Connection, float] | None = None
        self._said = set[str]()
        self._request: Mapping[str, object] | None = None
        self._free_since, self._processor_then = time.perf_counter(), time.process_time()
        self._silences = 0

    def header(self) -> ScanHeader:
        """The header; where none is known, it takes as long as it takes somebody to connect and send it.

        Whoever connects and has not sent it when the time for a readout is over is hung up on.

        Raises
        ------
        InputError
            Where nobody can send one any more.
        """
        self._wait_for(lambda: self.arrivals.header is not None)
        if self.arrivals.header is None:
            raise InputError(field="stream", got=self.ended, wanted="the header of a scan, then its readouts")
        self._free_since, self._processor_then = time.perf_counter(), time.process_time()
        return self.arrivals.header

    def measure(self, lines: Sequence[int], about: Mapping[str, object]) -> list[int]:
        """Have lines measured that have not arrived yet; those that do not come, in the end.

        The first time it waits until somebody is there.

        Parameters
        ----------
        lines : sequence of int
            In the order in which they are to be measured.
        about : mapping
            What else the scanner is told with them.
        """
        self._wait_for(lambda: self._met)
        while (event := self._channel.next(0)) is not None:  # what came while the lines were decided
            self._take(event)
        began = time.perf_counter()
        deciding, processor = began - self._free_since, time.process_time() - self._processor_then
        if self.exchanges and self.exchanges[-1].lines == tuple(lines):  # the run died before it was decided on
            self.exchanges.pop()
        order = sum(len(one.lines) - len(one.lost) for one in self.exchanges)
        missing = self._missing(lines)
        told = {"kind": "measure", "order": order, **about, "seconds": round(deciding, 6)}
        requests = heard = 0
        while not requests or (missing and not self.ended and requests < self._patience.requests):
            asked = list(lines) if not requests else missing
            here = {"arrived": sorted(set(lines) - set(missing))} if not requests and len(missing) < len(lines) else {}
            again = {"again": requests} if requests else {}
            self._request = {**told, "lines": asked, **self._channel.protocol.address(asked), **here, **again}
            self._tell(self._request)
            requests += 1
            heard += self._wait(lines)
            missing = self._missing(lines)
        if missing:
            self.arrivals.settle()
            missing = self._missing(lines)
        self._request = None
        self._silences = 0 if heard or not missing else self._silences + 1
        if missing and not self.ended and not self._connected:
            self.ended = "the scanner went away and did not come back"
        elif self._silences >= _SILENCES and not self.ended:
            self.ended = f"the scanner answered none of the last {_SILENCES} requests"
        if missing:
            self._tell({"kind": "lost", "lines": missing})
            self._say(f"lost: {_listed(missing)}" + (f" ({self.ended})" if self.ended else ""))
        now = time.perf_counter()
        self.exchanges.append(Exchange(order, tuple(lines), deciding, now - began, processor, requests, tuple(missing)))
        self._free_since, self._processor_then = now, time.process_time()
        return missing

    def finish(self, content: Mapping[str, object]) -> None:
        """Say how it ended."""
        self._tell({"kind": "done", **content})

    def _wait_for(self, there: Callable[[], bool]) -> None:
        """Take what comes, for as long as it takes, until something is there or cannot be any more."""
        while not there() and not self.ended:
            owed = self.arrivals.header is None and self._silent is not None
            event = self._channel.next(self._left_to_speak() if owed else None)
            if event is None:
                self._refuse_who_is_silent("the header")
            else:
                self._take(event)

    def _left_to_speak(self) -> float:
        """Seconds that whoever is there still has for the first message that is expected."""
        return 0.0 if self._silent is None else max(0.0, self._silent[1] + self._patience.seconds - time.monotonic())

    def _refuse_who_is_silent(self, wanted: str) -> None:
        """Hang up on somebody who has brought nothing since the connection, so that somebody else may come."""
        if self._silent is not None and not self._left_to_speak():
            connection, self._silent = self._silent[0], None
            self._channel.refuse(connection, f"{wanted} did not come within {self._patience.seconds:g} s")

    def _tell(self, content: Mapping[str, object]) -> None:
        self._note(content)
        self._channel.send(content)

    def _missing(self, lines: Sequence[int]) -> list[int]:
        return [line for line in lines if not self.arrivals.arrived[line]]

    def _wait(self, lines: Sequence[int]) -> int:
        """Take what comes until the lines are here, or the time since the last of them is over; how much came."""
        heard, left = 0, len(self._missing(lines))
        deadline = time.monotonic() + self._patience.seconds
        while left and not self.ended:
            event = self._channel.next(max(0.0, deadline - time.monotonic()))
            if event is None:
                self._refuse_who_is_silent("a readout")
                return heard
            heard += 1
            self._take(event)
            now = len(self._missing(lines))
            if now < left:
                left, deadline = now, time.monotonic() + self._patience.seconds
        return heard

    def _take(self, event: Event) -> None:
        if isinstance(event, Connected):
            self._connected = self._met = True
            self._silent = None if event.connection is None else (event.connection, time.monotonic())
            if self._request is not None:
                self._channel.send(self._request)
        elif isinstance(event, Gone):
            self._connected, self._silent = False, None
            self._say(event.why)
            if event.for_good:
                self._end(event.why)
        elif isinstance(event, Closed):
            self._end("the scanner closed the stream")
        else:
            if self.arrivals.header is not None or isinstance(event, ScanHeader):
                self._silent = None
            said = self.arrivals.take(event)
            if said and said not in self._said:  # all are counted, and a whole series may be left out for one reason
                self._said.add(said)
                self._say(said)

    def _end(self, why: str) -> None:
        self.ended = why
        self.arrivals.settle()


def _listed(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"

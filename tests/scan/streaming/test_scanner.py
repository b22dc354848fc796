"""Asking, waiting, asking again and giving up, with a scanner that a test plays."""

import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.streaming.channel import Channel, Connected, Connection, Event, Gone
from mri_design.scan.streaming.messages import Closed, JsonLines, LeftOut, LineReadout, ScanHeader
from mri_design.scan.streaming.scanner import Arrivals, Exchange, Patience, Scanner

ONE = np.ones((1, 16), np.complex64)
Answer = Callable[[Mapping[str, Any]], Iterator[Event]]


@pytest.fixture
def scanner(channel: Any, kspace: np.ndarray) -> Callable[..., Scanner]:
    """(answer to a request) -> a scanner whose header has come."""

    def make(answer: Answer, requests: int = 3, before: Sequence[Exchange] = ()) -> Scanner:
        channel.events.put(ScanHeader((12, 16)))
        made = Scanner(channel, Arrivals(), Patience(0.01, requests), [].append, [].append, before)
        assert made.header().shape == (12, 16)
        channel.answer = answer
        return made

    return make


@pytest.fixture
def lines(kspace: np.ndarray) -> Callable[..., Iterator[Event]]:
    """(lines) -> their readouts."""
    return lambda *numbers: (LineReadout(number, kspace[:, number]) for number in numbers)


def test_a_request_says_what_is_wanted_and_waits_for_it(
    scanner: Callable[..., Scanner], channel: Any, lines: Callable[..., Iterator[Event]]
) -> None:
    one = scanner(lambda told: lines(*told["lines"][::-1]))
    assert one.measure([6, 5], {"rule": "start"}) == []
    assert one.measure([9], {"rule": "calibrated", "scores": [2.0]}) == []
    (first, second) = channel.sent
    assert first["lines"] == [6, 5] and first["order"] == 0 and first["kind"] == "measure"
    assert second["lines"] == [9] and second["order"] == 2 and second["scores"] == [2.0] and second["seconds"] > 0
    assert [exchange.lines for exchange in one.exchanges] == [(6, 5), (9,)]
    assert all(e.requests == 1 and e.deciding > 0 and e.processor >= 0 and not e.lost for e in one.exchanges)


def test_exchanges_go_on_behind_those_of_the_run_that_is_resumed(
    scanner: Callable[..., Scanner], channel: Any, lines: Callable[..., Iterator[Event]]
) -> None:
    start, last = Exchange(0, (6, 5), 0.25, 1.5, 0.125, 2, (5,)), Exchange(1, (9,), 0.5, 0.5, 0.5, 1)
    told = [{name: "" if cell is None else str(cell) for name, cell in one.as_row().items()} for one in (start, last)]
    assert [Exchange.of_row(row) for row in told] == [start, last]
    one = scanner(lambda told: lines(*told["lines"]), before=[start, last])
    assert one.measure([9], {}) == []  # it was asked for, and the run died before it was decided on
    assert one.measure([7], {}) == []
    assert [told["order"] for told in channel.sent] == [1, 2]
    assert [exchange.lines for exchange in one.exchanges] == [(6, 5), (9,), (7,)]
    with pytest.raises(InputError, match="a row that adapt wrote"):
        Exchange.of_row({**told[0], "requests": "many"})


def test_lines_that_came_early_are_not_waited_for(
    scanner: Callable[..., Scanner], channel: Any, lines: Callable[..., Iterator[Event]]
) -> None:
    one = scanner(lambda told: iter(()))
    for event in lines(5, 9):
        channel.events.put(event)
    assert one.measure([9], {}) == []
    assert channel.sent[0]["arrived"] == [9]
    assert one.measure([5, 6], {}) == [6]
    assert channel.sent[1]["arrived"] == [5]


def test_what_is_missing_is_asked_for_again_and_given_up_at_last(
    scanner: Callable[..., Scanner], channel: Any, lines: Callable[..., Iterator[Event]]
) -> None:
    one = scanner(lambda told: lines(*(n for n in told["lines"] if n != 7 and (n != 6 or "again" in told))))
    assert one.measure([5, 6, 7], {}) == [7]
    assert [told.get("lines") for told in channel.sent] == [[5, 6, 7], [6, 7], [7], [7]]
    assert [told.get("again") for told in channel.sent[:3]] == [None, 1, 2]
    assert channel.sent[3]["kind"] == "lost"
    assert one.exchanges[0].lost == (7,) and one.exchanges[0].requests == 3
    assert not one.ended  # others may still come
    assert one.measure([8], {}) == [] and one.exchanges[1].order == 2


def test_a_scanner_that_answers_nothing_any_more_is_gone(scanner: Callable[..., Scanner]) -> None:
    one = scanner(lambda told: iter(()), requests=1)
    for line in (1, 2, 3):
        assert not one.ended
        assert one.measure([line], {}) == [line]
    assert one.ended == "the scanner answered none of the last 3 requests"


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Gone("the connection broke"), "did not come back"),
        (Gone("nothing more comes", for_good=True), "nothing more comes"),
        (Closed(), "closed the stream"),
    ],
)
def test_who_goes_away_is_not_waited_for(scanner: Callable[..., Scanner], event: Event, why: str) -> None:
    one = scanner(lambda told: iter((event,)), requests=2)
    assert one.measure([4], {}) == [4]
    assert why in one.ended
    before = len(one.exchanges)
    assert one.measure([5], {}) == [5] and one.exchanges[before].requests == 1


def test_who_comes_back_is_told_again(
    scanner: Callable[..., Scanner], channel: Any, lines: Callable[..., Iterator[Event]]
) -> None:
    answers = iter([[Gone("broken"), Connected()], [*lines(4)]])
    one = scanner(lambda told: iter(next(answers)))
    assert one.measure([4], {}) == []
    assert channel.sent[0] == channel.sent[1] and not one.ended


def test_without_a_header_there_is_no_scan(channel: Any) -> None:
    channel.events.put(LeftOut("a readout before the header"))
    channel.events.put(Gone("nothing more comes", for_good=True))
    with pytest.raises(InputError, match="nothing more comes; wanted the header"):
        Scanner(channel, Arrivals(), Patience(), [].append, [].append).header()


@pytest.mark.parametrize("settings", [(0.0, 1), (float("inf"), 1), (1.0, 0)])
def test_patience_is_some_time_and_some_requests(settings: tuple[float, int]) -> None:
    with pytest.raises(InputError):
        Patience(*settings)


class Doors:
    """Clients at a door: those that say nothing are replaced by the next, as `clients` has them."""

    def __init__(self, *clients: Iterator[Event]) -> None:
        self.waiting, self.refused, self.time = list(clients), list[str](), 0.0
        self.present: Iterator[Event] = iter(())
        self.connection: Connection | None = None

    def next(self, seconds: float | None) -> Event | None:
        if self.connection is None:
            if not self.waiting:
                return Gone("nothing more comes", for_good=True)
            self.present, self.connection = self.waiting.pop(0), Connection(io.BytesIO(), len, lambda: None, True)
            return Connected(self.connection)
        event = next(self.present, None)
        assert event is not None or seconds is not None, "it would wait for ever"
        if event is None:
            time.sleep(seconds or 0)
        return event

    def refuse(self, connection: Connection, why: str) -> None:
        assert connection is self.connection
        self.refused.append(why)
        self.connection, self.present = None, iter(())

    def send(self, content: Mapping[str, object]) -> bool:
        return True

    protocol = JsonLines()


def test_who_connects_and_says_nothing_makes_room_for_the_next() -> None:
    talker = iter([LeftOut(), LeftOut()])  # a text, but no header
    doors = Doors(iter(()), talker, iter([ScanHeader((12, 16))]))
    scanner = Scanner(doors, Arrivals(), Patience(0.05), [].append, [].append)  # type: ignore[arg-type]
    began = time.monotonic()
    assert scanner.header().shape == (12, 16)
    assert 0.1 <= time.monotonic() - began < 2
    assert doors.refused == ["the header did not come within 0.05 s"] * 2


def test_who_comes_back_in_silence_makes_room_for_the_next_too(kspace: np.ndarray) -> None:
    doors = Doors(iter(()), (LineReadout(line, kspace[:, line]) for line in (5, 6)))
    arrivals = Arrivals()
    arrivals.take(ScanHeader((12, 16)))
    scanner = Scanner(doors, arrivals, Patience(0.05, 3), [].append, [].append)  # type: ignore[arg-type]
    assert scanner.measure([5, 6], {}) == []
    assert doors.refused == ["a readout did not come within 0.05 s"]


def test_a_pipe_is_never_hung_up_on() -> None:
    refused = list[bool]()
    connection = Connection(io.BytesIO(), len, lambda: refused.append(True))
    channel = Channel(JsonLines(), iter([connection]), lambda raw: None)
    assert channel.next(5) == Connected()
    channel.refuse(connection, "too slow")
    assert not refused


def test_what_is_left_out_for_the_same_reason_is_said_once() -> None:
    said = list[str]()
    doors = Doors(iter([ScanHeader((12, 16)), LeftOut("a"), LeftOut("a"), LeftOut("b"), LineReadout(5, ONE)]))
    arrivals = Arrivals()
    scanner = Scanner(doors, arrivals, Patience(0.05, 1), said.append, [].append)  # type: ignore[arg-type]
    scanner.header()
    assert scanner.measure([5], {}) == []
    assert said == ["left out: a", "left out: b"] and arrivals.counts["left out"] == 3

"""Asking, waiting, asking again and giving up, with a scanner that a test plays; messages over real sockets."""

import io
import json
import queue
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from ismrmrd.serialization import ProtocolDeserializer

from mri_design.formats import ReadLimits
from mri_design.scan import SourceImage
from mri_design.scan import streaming as live
from mri_design.scan.streaming.mrd import CLOSE
from tests.refusals import refuses

ONE = np.ones((1, 16), np.complex64)
PIPE = live.Connection(io.BytesIO(), len, lambda: None)
Answer = Callable[[Mapping[str, Any]], Iterator[live.Event]]
Lines = Callable[..., Iterator[live.Event]]


class Recorded(live.LiveScanner):
    """A scanner whose events a test puts in, which keeps what is sent; a connection is there."""

    def __init__(self, patience: tuple[float, int] = (0.01, 3), arrivals: live.Arrivals | None = None) -> None:
        nothing = {name: [].append for name in ("keep", "say", "note")}
        super().__init__(live.MrdStream(), iter(()), arrivals or live.Arrivals(), patience=patience, **nothing)
        self.coming, self.sent = queue.Queue[live.Event](), list[Mapping[str, Any]]()
        self.answer: Answer | None = None
        self.coming.put(PIPE)

    def next(self, seconds: float | None) -> live.Event | None:
        try:
            return self.coming.get(block=False)
        except queue.Empty:
            return None

    def send(self, content: Mapping[str, object]) -> bool:
        self.sent.append(content)
        for event in self.answer(content) if self.answer is not None else ():
            self.coming.put(event)
        return True


def scanner(answer: Answer, requests: int = 3) -> Recorded:
    """A scanner whose header has come, and that answers requests."""
    made = Recorded((0.01, requests))
    made.coming.put(live.ScanHeader((12, 16)))
    assert made.header().shape == (12, 16)
    made.answer = answer
    return made


@pytest.fixture
def lines(kspace: np.ndarray) -> Callable[..., Iterator[live.Event]]:
    """(lines) -> their readouts."""
    return lambda *numbers: (live.LineReadout(number, kspace[:, number]) for number in numbers)


def test_a_request_says_what_is_wanted_and_waits_for_it(lines: Lines) -> None:
    one = scanner(lambda told: lines(*told["lines"][::-1]))
    assert one.measure([6, 5], {"rule": "start"}) == []
    assert one.measure([9], {"rule": "calibrated", "scores": [2.0]}) == []
    (first, second) = one.sent
    assert first["lines"] == [6, 5] and first["order"] == 0 and first["kind"] == "measure"
    assert second["lines"] == [9] and second["order"] == 2 and second["scores"] == [2.0] and second["seconds"] > 0
    assert [exchange.lines for exchange in one.exchanges] == [(6, 5), (9,)]
    assert all(told.requests == 1 and not told.lost for told in one.exchanges)
    assert all(told.deciding_seconds > 0 and told.processor_seconds >= 0 for told in one.exchanges)


def test_exchanges_go_on_behind_those_of_the_run_that_is_resumed(lines: Lines) -> None:
    start, last = live.LineRequest(0, (6, 5), 0.25, 0.125, 1.5, 2, (5,)), live.LineRequest(1, (9,), 0.5, 0.5, 0.5, 1)
    told = [{name: "" if cell is None else str(cell) for name, cell in one.as_row().items()} for one in (start, last)]
    assert [live.LineRequest.of_row(row) for row in told] == [start, last]
    one = scanner(lambda told: lines(*told["lines"]))
    one.exchanges.extend([start, last])
    assert one.measure([9], {}) == []  # it was asked for, and the run died before it was decided on
    assert one.measure([7], {}) == []
    assert [told["order"] for told in one.sent] == [1, 2]
    assert [exchange.lines for exchange in one.exchanges] == [(6, 5), (9,), (7,)]


def test_lines_that_came_early_are_not_waited_for(lines: Lines) -> None:
    one = scanner(lambda told: iter(()))
    for event in lines(5, 9):
        one.coming.put(event)
    assert one.measure([9], {}) == []
    assert one.sent[0]["arrived"] == [9]
    assert one.measure([5, 6], {}) == [6]
    assert one.sent[1]["arrived"] == [5]


def test_what_is_missing_is_asked_for_again_and_given_up_at_last(lines: Lines) -> None:
    one = scanner(lambda told: lines(*(n for n in told["lines"] if n != 7 and (n != 6 or "again" in told))))
    assert one.measure([5, 6, 7], {}) == [7]
    assert [told.get("lines") for told in one.sent] == [[5, 6, 7], [6, 7], [7], [7]]
    assert [told.get("again") for told in one.sent[:3]] == [None, 1, 2]
    assert one.sent[3]["kind"] == "lost"
    assert one.exchanges[0].lost == (7,) and one.exchanges[0].requests == 3
    assert not one.ended  # others may still come
    assert one.measure([8], {}) == [] and one.exchanges[1].order == 2


def test_a_scanner_that_answers_nothing_any_more_is_gone() -> None:
    one = scanner(lambda told: iter(()), requests=1)
    for line in (1, 2, 3):
        assert not one.ended
        assert one.measure([line], {}) == [line]
    assert one.ended


@pytest.mark.parametrize("event", [live.Gone("broken"), live.Gone("nothing more comes", for_good=True), live.CLOSED])
def test_who_goes_away_is_not_waited_for(event: live.Event) -> None:
    one = scanner(lambda told: iter((event,)), requests=2)
    assert one.measure([4], {}) == [4]
    assert one.ended
    before = len(one.exchanges)
    assert one.measure([5], {}) == [5] and one.exchanges[before].requests == 1


def test_who_comes_back_is_told_again(lines: Lines) -> None:
    answers = iter([[live.Gone("broken"), PIPE], [*lines(4)]])
    one = scanner(lambda told: iter(next(answers)))
    assert one.measure([4], {}) == []
    assert one.sent[0] == one.sent[1] and not one.ended


def test_without_a_header_there_is_no_scan() -> None:
    one = Recorded()
    one.coming.put("a readout before the header")
    one.coming.put(live.Gone("nothing more comes", for_good=True))
    refuses("stream", one.header)


class Doors(Recorded):
    """Clients at a door: those that say nothing are replaced by the next, as `clients` has them."""

    def __init__(self, *clients: Iterator[live.Event], arrivals: live.Arrivals | None = None) -> None:
        super().__init__((0.05, 3), arrivals)
        self.waiting, self.refused = list(clients), list[str]()
        self.present: Iterator[live.Event] = iter(())
        self.connection: live.Connection | None = None

    def next(self, seconds: float | None) -> live.Event | None:
        if self.connection is None:
            if not self.waiting:
                return live.Gone("nothing more comes", for_good=True)
            self.present, self.connection = self.waiting.pop(0), live.Connection(io.BytesIO(), len, lambda: None, True)
            return self.connection
        event = next(self.present, None)
        assert event is not None or seconds is not None, "it would wait for ever"
        if event is None:
            time.sleep(seconds or 0)
        return event

    def refuse(self, connection: live.Connection, why: str) -> None:
        assert connection is self.connection
        self.refused.append(why)
        self.connection, self.present = None, iter(())


def test_who_connects_and_says_nothing_makes_room_for_the_next() -> None:
    talker = iter(["", ""])  # a text, but no header
    doors = Doors(iter(()), talker, iter([live.ScanHeader((12, 16))]))
    began = time.monotonic()
    assert doors.header().shape == (12, 16)
    assert time.monotonic() - began >= 0.1
    assert len(doors.refused) == 2


def test_who_comes_back_in_silence_makes_room_for_the_next_too(kspace: np.ndarray) -> None:
    readouts = (live.LineReadout(line, kspace[:, line]) for line in (5, 6))
    doors = Doors(iter(()), readouts, arrivals=begun(kspace))
    assert doors.measure([5, 6], {}) == []
    assert len(doors.refused) == 1


def begun(kspace: np.ndarray, **settings: object) -> live.Arrivals:
    arrivals = live.Arrivals(**settings)  # type: ignore[arg-type]
    arrivals.take(live.ScanHeader(kspace.shape[1:]))
    return arrivals


def test_lines_in_any_order_fill_the_grid(kspace: np.ndarray) -> None:
    arrivals, source = live.Arrivals(), SourceImage({"PatientID": "77"}, image=False)
    arrivals.take(live.ScanHeader(kspace.shape[1:], source=source))
    for line in (6, 2, 9):
        assert arrivals.take(live.LineReadout(line, kspace[:, line])) == ""
    data = arrivals.data("scan")
    assert np.flatnonzero(data.measured).tolist() == [2, 6, 9] == sorted(arrivals.changed) and data.source == source
    np.testing.assert_array_equal(data.kspace[0][:, [2, 6, 9]], kspace[:, [2, 6, 9]])
    some = arrivals.data("scan", [6, 2])
    assert np.flatnonzero(some.measured).tolist() == [2, 6]
    assert not some.kspace[0][:, 9].any()
    np.testing.assert_array_equal(arrivals.lines([9, 6]), kspace[:, [9, 6]])


@pytest.mark.parametrize(("policy", "strength"), [("first", 1), ("last", 2)])
def test_one_readout_of_a_repeated_line_counts(kspace: np.ndarray, policy: str, strength: int) -> None:
    arrivals = begun(kspace, repeated=policy)
    for factor in (1, 2):
        arrivals.take(live.LineReadout(6, factor * kspace[:, 6]))
    np.testing.assert_array_equal(arrivals.lines([6])[:, 0], strength * kspace[:, 6])
    assert arrivals.counts["repeated"] == 1


def test_coils_are_those_of_the_lines_else_of_the_noise_else_of_the_header(kspace: np.ndarray) -> None:
    arrivals = live.Arrivals()
    assert arrivals.coils is None
    arrivals.take(live.ScanHeader((12, 16), coils=5))
    assert arrivals.coils == 5
    arrivals.take(live.NoiseReadout(kspace[:1, 0]))
    assert arrivals.coils == 1
    arrivals.take(live.LineReadout(6, kspace[:, 6]))
    assert arrivals.coils == 2
    assert arrivals.take(live.LineReadout(7, np.ones((3, 16), np.complex64)))
    assert not arrivals.arrived[7] and arrivals.counts["left out"] == 1


def test_noise_readouts_give_the_covariance_scaled_to_the_dwell_time(kspace: np.ndarray) -> None:
    arrivals, rng = begun(kspace), np.random.default_rng(0)
    noise = (rng.standard_normal((2, 40_000)) + 1j * rng.standard_normal((2, 40_000))).astype(np.complex64)
    arrivals.take(live.NoiseReadout(np.array([[2.0], [3.0]], np.float32) * noise, 5.0))
    arrivals.take(live.LineReadout(6, kspace[:, 6], 10.0))
    covariance = arrivals.data("scan").noise_covariance
    np.testing.assert_allclose(covariance, np.diag([4.0, 9.0]) * 5 / 10, atol=0.1)


@pytest.mark.parametrize("limits", [{"max_bytes": 1000}, {"max_coils": 1}])
def test_what_is_not_finite_or_too_large_is_left_out(kspace: np.ndarray, limits: dict[str, int]) -> None:
    arrivals = begun(kspace, limits=ReadLimits(**limits))
    assert arrivals.take(live.LineReadout(6, kspace[:, 6] * np.nan))
    assert arrivals.take(live.LineReadout(6, kspace[:, 6]))
    assert not arrivals.arrived.any() and arrivals.counts["left out"] == 2
    refuses("scan", arrivals.data, "scan")


def test_noise_does_not_fill_the_memory(kspace: np.ndarray) -> None:
    arrivals = begun(kspace)
    large = np.zeros((1, 4 * 2**20), np.complex64)
    assert [bool(arrivals.take(live.NoiseReadout(large))) for _ in range(3)] == [False, False, True]


def test_a_readout_of_zeros_is_no_measurement(kspace: np.ndarray) -> None:
    arrivals = live.Arrivals()
    arrivals.take(live.ScanHeader((12, 16)))
    assert arrivals.take(live.LineReadout(4, np.zeros_like(kspace[:, 4])))
    assert not arrivals.arrived.any() and arrivals.counts["left out"] == 1
    holed = kspace[:, 4].copy()
    holed[:, 3] = 0  # a single zero is a sample
    assert not arrivals.take(live.LineReadout(4, holed))
    assert arrivals.arrived[4] and arrivals.counts["repeated"] == 0


def test_round_off_of_zeros_is_no_measurement_once_the_signal_is_known(kspace: np.ndarray) -> None:
    arrivals = live.Arrivals()
    arrivals.take(live.ScanHeader((12, 16)))
    arrivals.take(live.LineReadout(0, np.float32(1e-14) * kspace[:, 0]))
    arrivals.take(live.LineReadout(6, kspace[:, 6]))
    assert arrivals.take(live.LineReadout(11, np.float32(1e-14) * kspace[:, 11]))
    assert np.flatnonzero(arrivals.arrived).tolist() == [6] and arrivals.counts["left out"] == 2
    assert not arrivals.data("scan").kspace[0, :, 0].any()
    assert not arrivals.take(live.LineReadout(0, kspace[:, 0])) and arrivals.arrived[0]


Said = Callable[..., bytes]
HEADER = live.ScanHeader((12, 16), 2)
BYE = struct.pack("<H", CLOSE)


def reading(connections: Iterator[live.Connection], keep: Callable[[bytes], None] = len) -> live.LiveScanner:
    return live.LiveScanner(live.MrdStream(), connections, live.Arrivals(), keep=keep, say=len, note=len)  # type: ignore[arg-type]


@contextmanager
def served(keep: Callable[[bytes], None] = len) -> Iterator[tuple[live.LiveScanner, Callable[[], socket.socket]]]:
    with live.listening("127.0.0.1", 0) as server, closing(reading(live.clients(server), keep)) as channel:
        yield channel, lambda: socket.create_connection(server.getsockname())


def came(channel: live.LiveScanner, count: int) -> list[live.Event | None]:
    return [channel.next(5) for _ in range(count)]


def heard(client: socket.socket) -> Iterator[dict[str, Any]]:
    """What a client is told, until it is hung up on."""
    try:
        for text in ProtocolDeserializer(client.makefile("rb")).deserialize():
            yield json.loads(str(text).split("\0", 1)[0])
    except EOFError:
        return


def test_what_arrives_is_kept_before_it_is_shown_and_answers_arrive(said: Said) -> None:
    kept: list[bytes] = []
    with served(kept.append) as (channel, connect), connect() as client:
        client.sendall(said("header") + BYE)
        assert came(channel, 3) == [ANY, HEADER, live.CLOSED]
        assert kept == [said("header")]
        client.shutdown(socket.SHUT_WR)  # it may still listen
        assert isinstance(came(channel, 1)[0], live.Gone)
        assert channel.send({"lines": [1]})
        assert next(heard(client)) == {"lines": [1]}


def test_one_client_after_another_and_a_message_that_is_cut_short_is_not_kept(said: Said) -> None:
    kept: list[bytes] = []
    with served(kept.append) as (channel, connect):
        assert not channel.send({})  # there is no connection
        with connect() as first:
            first.sendall(said("header") + b"\x03\x00\x01")
        *before, cut, gone = came(channel, 4)
        assert before == [ANY, HEADER] and isinstance(cut, str) and isinstance(gone, live.Gone)
        with connect() as second:
            second.sendall(said("header"))
            assert came(channel, 2) == [ANY, ""]
        assert kept == [said("header")] * 2


def test_who_sends_what_cannot_be_read_is_answered_and_hung_up_on() -> None:
    with served() as (channel, connect), connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert isinstance(channel.next(5), live.Connection)
        assert isinstance(channel.next(5), live.Gone)
        (answer,) = heard(client)
        assert answer["kind"] == "refused"


def test_who_is_refused_is_answered_and_the_next_one_comes(said: Said) -> None:
    with served() as (channel, connect), connect() as silent:
        connected = channel.next(5)
        assert isinstance(connected, live.Connection)
        channel.refuse(connected, "nothing came")
        gone = channel.next(5)
        assert isinstance(gone, live.Gone) and gone.why.endswith("nothing came")
        assert list(heard(silent)) == [{"kind": "refused", "why": "nothing came"}]
        with connect() as second:
            second.sendall(said("header"))
            assert came(channel, 2) == [ANY, HEADER]
            channel.refuse(connected, "late")  # it is not there any more: the other one stays
            assert channel.send({}) and next(heard(second)) == {}


def test_a_disk_that_takes_nothing_ends_it(said: Said) -> None:
    def full(raw: bytes) -> None:
        raise OSError(28, "No space left on device")

    with served(full) as (channel, connect), connect() as client:
        client.sendall(said("header"))
        assert isinstance(channel.next(5), live.Connection)
        with pytest.raises(OSError) as caught:
            channel.next(5)
        assert caught.value.errno == 28


def test_a_fast_sender_waits_and_a_file_is_answered_in_lines_of_json(said, capsys):
    text = said("text")
    source = io.BytesIO(text * 1000)
    channel = reading(live.one_stream(source))
    connected = channel.next(5)
    assert isinstance(connected, live.Connection) and source.tell() < 200 * len(text)
    while not (isinstance(event := channel.next(5), live.Gone) and event.for_good):
        assert event is not None
    channel.send({"kind": "done"})
    channel.close()
    assert capsys.readouterr().out == '{"kind": "done"}\n'


def test_a_stream_without_end_does_not_fill_the_disk(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.mrd, "STREAM_LIMITS", ReadLimits(max_readouts=2))
    channel = reading(live.one_stream(io.BytesIO(said("text", "text", "text"))))
    assert came(channel, 3) == [ANY, "", ""]
    refuses("stream", channel.next, 5)


def test_an_address_that_is_taken_is_refused() -> None:
    with live.listening("127.0.0.1", 0) as server:
        refuses("listen", live.listening, "127.0.0.1", server.getsockname()[1])


def test_a_pipe_is_closed_once_it_is_over_and_never_refused() -> None:
    closed: list[bool] = []
    connection = live.Connection(io.BytesIO(), lambda message: None, lambda: closed.append(True))
    channel = reading(iter([connection]))
    assert isinstance(channel.next(5), live.Connection)
    channel.refuse(connection, "too slow")
    assert not closed
    assert [type(channel.next(5)) for _ in range(2)] == [live.Gone, live.Gone]
    channel.close()
    assert closed == [True]

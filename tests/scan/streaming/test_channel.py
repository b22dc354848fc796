"""Messages over real sockets on the loopback address."""

import io
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mri_design import MriDesignError
from mri_design.scan.streaming.channel import (
    Channel,
    Connected,
    Connection,
    Event,
    Gone,
    clients,
    listening,
    one_stream,
)
from mri_design.scan.streaming.messages import Closed, CutShort, JsonLines, LeftOut, ScanHeader

HEADER = b'{"lines": 8, "samples": 4}\n'


@contextmanager
def served(keep: Callable[[bytes], object] = lambda raw: None) -> Iterator[tuple[Channel, Callable[[], socket.socket]]]:
    with listening("127.0.0.1", 0) as server:
        channel = Channel(JsonLines(), clients(server), keep)  # type: ignore[arg-type]
        yield channel, lambda: socket.create_connection(server.getsockname())
        channel.close()


def came(channel: Channel, count: int) -> list[Event | None]:
    return [channel.next(5) for _ in range(count)]


def test_what_arrives_is_kept_before_it_is_shown_and_answers_arrive() -> None:
    kept: list[bytes] = []
    with served(kept.append) as (channel, connect), connect() as client:
        client.sendall(HEADER + b'{"close": true}\n')
        assert came(channel, 3) == [Connected(), ScanHeader((8, 4)), Closed()]
        assert kept == [HEADER]
        assert channel.send({"lines": [1]})
        assert json.loads(client.makefile().readline()) == {"lines": [1]}


def test_one_client_after_another() -> None:
    with served() as (channel, connect):
        assert not channel.send({})  # nobody is there
        with connect() as first:
            first.sendall(HEADER)
            assert came(channel, 2) == [Connected(), ScanHeader((8, 4))]
        assert isinstance(channel.next(5), Gone)
        with connect() as second:
            second.sendall(HEADER)
            assert came(channel, 2) == [Connected(), LeftOut()]


def test_a_message_that_is_cut_short_is_shown_and_not_kept() -> None:
    kept: list[bytes] = []
    with served(kept.append) as (channel, connect):
        with connect() as client:
            client.sendall(HEADER + b'{"line": 3')
        *_, cut, gone = came(channel, 4)
        assert isinstance(cut, CutShort) and "10 bytes" in cut.why
        assert gone == Gone("the stream ended")
        assert kept == [HEADER]


def test_who_has_nothing_more_to_say_is_still_answered() -> None:
    with served() as (channel, connect), connect() as client:
        client.sendall(HEADER)
        client.shutdown(socket.SHUT_WR)
        assert came(channel, 3)[2] == Gone("the stream ended")
        assert channel.send({"lines": [1]})
        assert client.makefile().readline()


def test_who_sends_what_cannot_be_read_is_told_so_and_hung_up() -> None:
    with served() as (channel, connect), connect() as client:
        client.sendall(b"x" * (16 * 2**20 + 2))
        assert channel.next(5) == Connected()
        gone = channel.next(5)
        assert isinstance(gone, Gone) and gone.why.startswith("refused: line of JSON")
        stream = client.makefile()
        assert json.loads(stream.readline())["kind"] == "refused"
        assert stream.readline() == ""


def test_a_disk_that_takes_nothing_is_no_secret() -> None:
    def full(raw: bytes) -> None:
        raise OSError(28, "No space left on device")

    with served(full) as (channel, connect), connect() as client:
        client.sendall(HEADER)
        assert channel.next(5) == Connected()
        with pytest.raises(OSError, match="No space"):
            channel.next(5)


def test_a_fast_sender_waits() -> None:
    seen: list[bytes] = []
    source = io.BytesIO(b"{}\n" * 1000)
    channel = Channel(JsonLines(), one_stream(source, seen.append), lambda raw: None)
    assert channel.next(5) == Connected()
    assert source.tell() < 3 * 200
    while not (isinstance(event := channel.next(5), Gone) and event.for_good):
        assert event is not None
    channel.send({"kind": "done"})
    assert seen == [b'{"kind": "done"}\n']


def test_an_address_that_is_taken_is_said() -> None:
    with listening("127.0.0.1", 0) as server, pytest.raises(MriDesignError, match="cannot listen"):
        listening("127.0.0.1", server.getsockname()[1])


def test_a_connection_is_closed_once_it_is_over() -> None:
    closed: list[bool] = []
    connection = Connection(io.BytesIO(), lambda message: None, lambda: closed.append(True))
    channel = Channel(JsonLines(), iter([connection]), lambda raw: None)
    assert [type(channel.next(5)) for _ in range(3)] == [Connected, Gone, Gone]
    channel.close()
    assert closed == [True]


def test_who_is_refused_is_told_why_and_the_next_one_comes() -> None:
    with served() as (channel, connect), connect() as silent:
        connected = channel.next(5)
        assert isinstance(connected, Connected) and connected.connection is not None
        channel.refuse(connected.connection, "nothing came")
        assert channel.next(5) == Gone("refused: nothing came")
        stream = silent.makefile()
        assert json.loads(stream.readline()) == {"kind": "refused", "why": "nothing came"}
        assert stream.readline() == ""
        with connect() as second:
            second.sendall(HEADER)
            assert came(channel, 2) == [Connected(), ScanHeader((8, 4))]
            channel.refuse(connected.connection, "late")  # it is not there any more: the other one stays
            assert channel.send({}) and json.loads(second.makefile().readline()) == {}

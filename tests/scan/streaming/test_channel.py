"""Messages over real sockets on the loopback address."""

import io
import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ismrmrd.serialization import ProtocolDeserializer

from mri_design import MriDesignError
from mri_design.scan.streaming import (
    Channel,
    Closed,
    Connected,
    Connection,
    CutShort,
    Event,
    Gone,
    LeftOut,
    MrdStream,
    ScanHeader,
    clients,
    listening,
    one_stream,
)
from mri_design.scan.streaming.mrd import CLOSE

Said = Callable[..., bytes]
HEADER = ScanHeader((12, 16), 2)
BYE = struct.pack("<H", CLOSE)


@contextmanager
def served(keep: Callable[[bytes], object] = lambda raw: None) -> Iterator[tuple[Channel, Callable[[], socket.socket]]]:
    with listening("127.0.0.1", 0) as server:
        channel = Channel(MrdStream(), clients(server), keep)  # type: ignore[arg-type]
        yield channel, lambda: socket.create_connection(server.getsockname())
        channel.close()


def came(channel: Channel, count: int) -> list[Event | None]:
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
        assert came(channel, 3) == [Connected(), HEADER, Closed()]
        assert kept == [said("header")]
        client.shutdown(socket.SHUT_WR)  # it may still listen
        assert came(channel, 1) == [Gone("the stream ended")]
        assert channel.send({"lines": [1]})
        assert next(heard(client)) == {"lines": [1]}


def test_one_client_after_another_and_a_message_that_is_cut_short_is_not_kept(said: Said) -> None:
    kept: list[bytes] = []
    with served(kept.append) as (channel, connect):
        assert not channel.send({})  # there is no connection
        with connect() as first:
            first.sendall(said("header") + b"\x03\x00\x01")
        *before, cut, gone = came(channel, 4)
        assert before == [Connected(), HEADER] and isinstance(cut, CutShort) and gone == Gone("the stream ended")
        with connect() as second:
            second.sendall(said("header"))
            assert came(channel, 2) == [Connected(), LeftOut()]
        assert kept == [said("header")] * 2


def test_who_sends_what_cannot_be_read_is_answered_and_hung_up_on() -> None:
    with served() as (channel, connect), connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert channel.next(5) == Connected()
        assert isinstance(channel.next(5), Gone)
        (answer,) = heard(client)
        assert answer["kind"] == "refused"


def test_who_is_refused_is_answered_and_the_next_one_comes(said: Said) -> None:
    with served() as (channel, connect), connect() as silent:
        connected = channel.next(5)
        assert isinstance(connected, Connected) and connected.connection is not None
        channel.refuse(connected.connection, "nothing came")
        assert channel.next(5) == Gone("refused: nothing came")
        assert list(heard(silent)) == [{"kind": "refused", "why": "nothing came"}]
        with connect() as second:
            second.sendall(said("header"))
            assert came(channel, 2) == [Connected(), HEADER]
            channel.refuse(connected.connection, "late")  # it is not there any more: the other one stays
            assert channel.send({}) and next(heard(second)) == {}


def test_a_disk_that_takes_nothing_ends_it(said: Said) -> None:
    def full(raw: bytes) -> None:
        raise OSError(28, "No space left on device")

    with served(full) as (channel, connect), connect() as client:
        client.sendall(said("header"))
        assert channel.next(5) == Connected()
        with pytest.raises(OSError) as caught:
            channel.next(5)
        assert caught.value.errno == 28


def test_a_fast_sender_waits_and_a_file_is_answered_in_lines_of_json(
    said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said("text")
    source = io.BytesIO(text * 1000)
    channel = Channel(MrdStream(), one_stream(source), lambda raw: None)
    connected = channel.next(5)
    assert isinstance(connected, Connected) and source.tell() < 200 * len(text)
    while not (isinstance(event := channel.next(5), Gone) and event.for_good):
        assert event is not None
    channel.send({"kind": "done"})
    channel.close()
    assert capsys.readouterr().out == '{"kind": "done"}\n'


def test_an_address_that_is_taken_is_refused() -> None:
    with listening("127.0.0.1", 0) as server, pytest.raises(MriDesignError):
        listening("127.0.0.1", server.getsockname()[1])


def test_a_pipe_is_closed_once_it_is_over_and_never_refused() -> None:
    closed: list[bool] = []
    connection = Connection(io.BytesIO(), lambda message: None, lambda: closed.append(True))
    channel = Channel(MrdStream(), iter([connection]), lambda raw: None)
    assert channel.next(5) == Connected()
    channel.refuse(connection, "too slow")
    assert not closed
    assert [type(channel.next(5)) for _ in range(2)] == [Gone, Gone]
    channel.close()
    assert closed == [True]

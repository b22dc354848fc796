"""Where messages come from and go to: a file, a pipe or one TCP client after another, read by a thread of its own."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from mri_design.errors import InputError, MriDesignError
from mri_design.scan.streaming.mrd import Closed, CutShort, Message, MrdStream

_WAITING = 64
_SEND_SECONDS = 5


@dataclass(frozen=True)
class Connection:
    """Two directions of one conversation.

    Parameters
    ----------
    source : BinaryIO
        What is read.
    write : callable
        Sends bytes.
    close : callable
        Ends both directions; reading ends then too.
    replaceable : bool
        True for a client at a socket: another may come once it is closed, and it is answered in MRD messages. A file or
        a pipe is answered with lines of JSON.
    """

    source: BinaryIO
    write: Callable[[bytes], object]
    close: Callable[[], object]
    replaceable: bool = False


@dataclass(frozen=True)
class Connected:
    """A connection has been made; where it is given, it can be refused."""

    connection: Connection | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Gone:
    """The connection has ended; ``for_good`` where there will be no other."""

    why: str
    for_good: bool = False


Event = Message | Connected | Gone


class Channel:
    """Messages from one connection after another, each kept before it is handed on.

    A thread reads. It waits where more than a few messages have not been looked at, so that a fast sender waits too.

    Parameters
    ----------
    protocol : MrdStream
        How messages are written.
    connections : iterator of Connection
        The next one is asked for when the last has ended.
    keep : callable
        Takes the bytes of every message but the closing one, before `next` shows it.
    """

    def __init__(self, protocol: MrdStream, connections: Iterator[Connection], keep: Callable[[bytes], None]) -> None:
        self.protocol = protocol
        self._connections, self._keep = connections, keep
        self._events: queue.Queue[Event | Exception] = queue.Queue(_WAITING)
        self._present: Connection | None = None
        self._refused: tuple[Connection | None, str] = (None, "")
        self._stopped, self._sending = threading.Event(), threading.Lock()
        threading.Thread(target=self._read, name="readouts", daemon=True).start()

    def next(self, seconds: float | None) -> Event | None:
        """Wait for the next event, or None after so many seconds of silence; without a number it waits.

        Raises
        ------
        OSError
            Where a message could not be kept.
        """
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    def send(self, content: Mapping[str, object]) -> bool:
        """Send ``content`` to the present connection; whether it was taken."""
        present = self._present
        if present is None:
            return False
        line = json.dumps(content, allow_nan=False).encode() + b"\n"
        return self._write(present, self.protocol.text(content) if present.replaceable else line)

    def refuse(self, connection: Connection, why: str) -> None:
        """Tell whoever is there at ``connection`` that it is over, and hang up, so that somebody else may come.

        Nothing happens where it has ended already, or where nobody else can come.
        """
        if connection is self._present and connection.replaceable:
            self._refused = connection, why
            self.send({"kind": "refused", "why": why})
            connection.close()

    def _write(self, present: Connection, message: bytes) -> bool:
        try:
            with self._sending:
                present.write(message)
        except (OSError, ValueError):  # gone, or taking nothing any more
            present.close()
            return False
        return True

    def close(self) -> None:
        """Send a client the closing message, and stop."""
        present = self._present
        if present is not None and present.replaceable:
            self._write(present, self.protocol.closing())
        self._stopped.set()
        self._hang_up()

    def _hang_up(self) -> None:
        present, self._present = self._present, None
        if present is not None:
            present.close()

    def _read(self) -> None:
        try:
            for connection in self._connections:
                self._hang_up()
                self._present = connection
                self._events.put(Connected(connection))
                why = self._conversation(connection)
                if self._stopped.is_set():
                    return
                refused, reason = self._refused
                self._events.put(Gone(f"refused: {reason}" if refused is connection else why))
            self._events.put(Gone("nothing more comes", for_good=True))
        except Exception as error:  # whoever waits has to know, whatever it is
            self._events.put(error)

    def _conversation(self, connection: Connection) -> str:
        while not self._stopped.is_set():
            try:
                read = self.protocol.read(connection.source)
            except InputError as error:
                self.send({"kind": "refused", "why": str(error)})
                self._hang_up()
                return f"refused: {error}"
            except (OSError, ValueError) as error:
                self._hang_up()
                return f"the connection broke ({error})"
            if read is None:
                return "the stream ended"  # who says nothing more may still listen
            raw, message = read
            # A scan that is begun again goes on behind a closing message; one that is cut short counts for nothing.
            if not isinstance(message, Closed | CutShort):
                self._keep(raw)
            self._events.put(message)
        return ""


def one_stream(source: BinaryIO) -> Iterator[Connection]:
    """One conversation: messages from a file or a pipe, answers as lines of JSON to the standard output."""
    yield Connection(source, lambda line: print(line.decode(), end="", file=sys.stdout, flush=True), lambda: None)


def listening(host: str, port: int) -> socket.socket:
    """A socket that one client after another may connect to.

    Parameters
    ----------
    host : str
        Address to listen at; 127.0.0.1 is this machine alone.
    port : int
        0 takes any free one.

    Raises
    ------
    MriDesignError
        Where the address is not to be had.
    """
    try:
        return socket.create_server((host, port), backlog=1)
    except OSError as error:
        raise MriDesignError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error


def clients(server: socket.socket) -> Iterator[Connection]:
    """The clients of a socket, one after another, until it is closed."""
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        # A client that reads nothing would otherwise stop the design in the middle of a message.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Connection(client.makefile("rb"), client.sendall, partial(_hang_up, client), replaceable=True)


def _hang_up(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    client.close()

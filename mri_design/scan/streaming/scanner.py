"""A scan that arrives readout by readout, and the requests to the scanner for further lines.

Messages come from a file, a pipe or one TCP client after another; a separate thread reads them.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import ROUND_OFF, strongest_component
from mri_design.errors import InputError, require_counts
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.mrd_cartesian import UNSAID, calibration_data
from mri_design.scan.io.raw_data import covariance_of_data
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.provenance import Centre, NoiseOrigin, Provenance
from mri_design.scan.streaming import mrd

_WAITING = 64
_SEND_SECONDS = 5


@dataclass(frozen=True)
class Connection:
    """A connection to the scanner in both directions.

    Parameters
    ----------
    source : BinaryIO
        Stream that is read.
    write : callable
        Sends bytes.
    close : callable
        Ends both directions, reading included.
    replaceable : bool
        True for a client at a socket: another may connect after it is closed, and answers are MRD messages. The answers
        to a file or a pipe are lines of JSON.
    """

    source: BinaryIO
    write: Callable[[bytes], object]
    close: Callable[[], object]
    replaceable: bool = False


Event = mrd.Message | Connection


def one_stream(source: BinaryIO) -> Iterator[Connection]:
    """A single connection: messages from a file or a pipe, answers as lines of JSON on the standard output."""
    yield Connection(source, lambda line: print(line.decode(), end="", file=sys.stdout, flush=True), lambda: None)


def listening(host: str, port: int) -> socket.socket:
    """A socket to which one client after another may connect.

    Parameters
    ----------
    host : str
        Address; 127.0.0.1 accepts clients on this machine alone.
    port : int
        0 takes any free port.

    Raises
    ------
    InputError
        If the address is not available, about ``listen``.
    """
    try:
        return socket.create_server((host, port), backlog=1)
    except OSError as error:
        got, wanted = f"{host}:{port}, {error.strerror or error}", "an address of this machine that is free"
        raise InputError("listen", got, wanted, "Give another port, or 0 for a free one.") from error


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
        yield Connection(client.makefile("rb"), client.sendall, partial(_end_client, client), replaceable=True)


def _end_client(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    client.close()


RepeatPolicy = Literal["first", "last"]
"""Which readout counts if a line comes more than once."""
_NOISE_BYTES = 64 * 2**20


class Arrivals:
    """The grid of one slice, filled readout by readout in any order.

    Parameters
    ----------
    repeated : {"first", "last"}
        Which readout counts if a line comes again. The last may come after decisions that used the first.
    limits : ReadLimits
        Bounds of the grid.

    Attributes
    ----------
    header : ScanHeader or None
        None before it arrives.
    changed : set of int
        Lines that arrived, or arrived again, since the caller emptied it.
    noise : list of NoiseReadout
        Noise readouts that arrived.
    geometry : SliceGeometry or None
        Size and place of the slice, as the first line that knows them has it.
    counts : dict of str to int
        Numbers of readouts that were "repeated" or "left out".

    Notes
    -----
    As in a file, `calibration_data` says which calibration readouts are data. If the header does not say how
    calibration is acquired, the rest of the stream may show that it is a separate scan: they wait until `settle` is
    called.
    """

    def __init__(self, repeated: RepeatPolicy = "first", limits: ReadLimits = mrd.STREAM_LIMITS) -> None:
        self._repeated, self._limits = repeated, limits
        self.header: mrd.ScanHeader | None = None
        self.changed = set[int]()
        self.counts = {"repeated": 0, "left out": 0}
        self._kspace: NDArray[np.complex64] | None = None
        self.geometry: SliceGeometry | None = None
        self.noise, self._dwells = list[mrd.NoiseReadout](), list[float]()
        self._peaks = np.zeros(0)
        self._imaged, self._calibration = set[int](), dict[int, mrd.LineReadout]()
        self._centre: Centre | None = None

    def take(self, message: mrd.Message) -> str:
        """Take a message, and return why it was left out; empty if it was not."""
        why = ""
        if isinstance(message, mrd.ScanHeader):
            self.header, self._peaks = message, np.zeros(message.shape[0])
        elif isinstance(message, str):
            why = message
        elif isinstance(message, mrd.LineReadout | mrd.NoiseReadout) and not np.isfinite(message.samples).all():
            why = "a readout with NaN or infinite samples"
        elif isinstance(message, mrd.LineReadout):
            try:
                why = self._placed(self._moved(message))
            except InputError as error:
                why = str(error)
        elif isinstance(message, mrd.NoiseReadout):
            if sum(one.samples.nbytes for one in (*self.noise, message)) > _NOISE_BYTES:
                why = "a noise readout after more of them than are needed"
            else:
                self.noise.append(message)
        if not why:
            return ""
        self.counts["left out"] += 1
        return f"left out: {why}"

    def move(self, centre: Centre) -> None:
        """Shift the centre of k-space to ``N // 2``, in present and future lines; lines are numbered on that grid."""
        assert self._centre is None
        self._centre = centre
        down, across = centre.shift
        if self._kspace is not None:
            self._kspace = np.roll(self._kspace, (down, across), (-2, -1))
        self._peaks = np.roll(self._peaks, down)
        self.changed, self._imaged = (set(self._numbered(old, down)) for old in (self.changed, self._imaged))
        self._calibration = {one.line: one for one in map(self._moved, self._calibration.values())}

    def _numbered(self, lines: Iterable[int], by: int) -> list[int]:
        return [(line + by) % len(self._peaks) for line in lines]

    def _moved(self, readout: mrd.LineReadout) -> mrd.LineReadout:
        """A readout with its line and samples shifted to the centre of k-space."""
        if self._centre is None:
            return readout
        (line,), samples = self._numbered([readout.line], self._centre.shift[0]), readout.samples
        return replace(readout, line=line, samples=np.roll(samples, self._centre.shift[1], -1))

    def as_measured(self, lines: Iterable[int]) -> list[int]:
        """The numbers that the scanner has for lines of the grid."""
        return self._numbered(lines, 0 if self._centre is None else -self._centre.shift[0])

    def settle(self, lines: Iterable[int] | None = None) -> None:
        """Take waiting calibration readouts as data, because no further readout will show what they are.

        Parameters
        ----------
        lines : iterable of int, optional
            Those that are data because decisions used them; by default those of `calibration_data`.
        """
        if self.header is None:
            return
        chosen = (
            calibration_data(self.header.calibration_mode, self._imaged, self._calibration) if lines is None else lines
        )
        for line in sorted(set(chosen).intersection(self._calibration)):
            self._fill(self._calibration[line])

    def _placed(self, readout: mrd.LineReadout) -> str:
        """Put a readout on the grid, and return why that is not possible; empty if it is.

        A calibration readout is data at once if the header says so; otherwise it waits for `settle`.
        """
        assert self.header is not None  # no readout is read before the header
        mode, line, coils = self.header.calibration_mode, readout.line, len(readout.samples)
        if readout.calibration and not calibration_data(mode, (), (line,)):
            return "a readout of a separate calibration scan"
        if self._kspace is None:
            require_counts(least=1, most=self._limits.max_coils, coils=coils)
            shape = (coils, *self.header.shape)
            check_declared_shape("grid", shape, 8, self._limits)
            self._kspace = np.zeros(shape, np.complex64)
        if coils != len(self._kspace):
            return f"line {line} with {coils} coils instead of {len(self._kspace)}"
        if strongest_component(readout.samples) <= ROUND_OFF * self._peaks.max():
            return f"line {line} with zeros alone, which is no measurement"
        if line in (self._calibration if readout.calibration else self._imaged):
            self.counts["repeated"] += 1
            if self._repeated == "first":
                return ""
        if readout.calibration:
            self._calibration[line] = readout
            if mode in UNSAID or line in self._imaged:
                return ""
        else:
            self._imaged.add(line)
        self._fill(readout)
        return ""

    def _fill(self, readout: mrd.LineReadout) -> None:
        assert self._kspace is not None
        self._kspace[:, readout.line] = readout.samples
        self._peaks[readout.line] = strongest_component(readout.samples)
        self.changed.add(readout.line)
        self._dwells.append(readout.dwell)
        self.geometry = self.geometry or readout.geometry
        # Lines with no more than round-off, compared with the strongest sample so far, were not measured.
        empty = np.flatnonzero(self.arrived & (self._peaks <= ROUND_OFF * self._peaks.max()))
        self._kspace[:, empty] = self._peaks[empty] = 0
        self._imaged.difference_update(empty.tolist())
        self.counts["left out"] += len(empty)

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """Which lines have arrived, shape (ky,)."""
        return np.asarray(self._peaks > 0)

    @property
    def coils(self) -> int | None:
        """Number of coils: of the lines, else of the noise, else of the header; None if still unknown."""
        if self._kspace is not None:
            return len(self._kspace)
        if self.noise:
            return len(self.noise[0].samples)
        return None if self.header is None else self.header.coils

    def lines(self, lines: Sequence[int]) -> NDArray[np.complex64]:
        """Samples (coil, line, kx) of lines that have arrived."""
        assert self._kspace is not None
        return self._kspace[:, list(lines)]

    def data(self, name: str, lines: Sequence[int] | None = None) -> KSpaceData:
        """The scan so far, or some of its lines, with its noise covariance if noise readouts came.

        Raises
        ------
        InputError
            If the lines hold no signal.
        """
        chosen = self.arrived.copy()
        if lines is not None:
            chosen[:] = False
            chosen[list(lines)] = True
        if self._kspace is None or self.header is None:
            raise InputError(name, "no readout", "at least one line")
        covariance, noise = None, NoiseOrigin()
        if self.noise:
            coils, bandwidth = len(self._kspace), self.header.noise_bandwidth
            alike = [one for one in self.noise if len(one.samples) == coils]
            channels, kept = np.array([len(one.samples) for one in self.noise]), (one.samples for one in alike)
            dwells = np.array([one.dwell for one in alike]), np.array(self._dwells)
            covariance, noise = covariance_of_data(kept, channels, dwells, wanted=coils, bandwidth=bandwidth)
        notes = {"file": name, "format": "readouts as they came"}
        within = sum(bool(self.arrived[line]) and line not in self._imaged for line in self._calibration)
        number, count = self.header.place
        provenance = Provenance(
            noise=noise,
            centre=self._centre,
            slice=(number, count) if count > 1 else None,
            dwell=float(np.median(self._dwells)) if self._dwells else 0.0,
            read_as={"calibration_lines": (within,)} if within else {},
        )
        return KSpaceData(
            np.where(chosen[:, np.newaxis], self._kspace, 0)[np.newaxis],
            chosen,
            name=name,
            noise_covariance=covariance,
            header=notes,
            provenance=provenance,
            geometry=None if self.geometry is None else (self.geometry,),
            source=self.header.source,
        )


_SILENCES = 3
"""Requests in a row without any answer, after which the scanner counts as gone."""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


_CELLS: Mapping[str, Callable[[str], Any]] = {
    "order": int,
    "lines": _numbers,
    **dict.fromkeys(("deciding_seconds", "processor_seconds", "waiting_seconds"), float),
    "requests": int,
    "lost": _numbers,
}
"""Types of the columns of a table of requests."""


@dataclass(frozen=True)
class LineRequest:
    """One request for lines, as the scanner saw it.

    Parameters
    ----------
    order : int
        Number of lines that were requested before.
    lines : tuple of int
        Requested lines.
    deciding_seconds, processor_seconds : float
        Time from the last awaited readout to the request, and processor time in it.
    waiting_seconds : float
        Time from the request to its last line.
    requests : int
        How often the request was sent.
    lost : tuple of int
        Lines that did not come.
    """

    order: int
    lines: tuple[int, ...]
    deciding_seconds: float
    processor_seconds: float
    waiting_seconds: float
    requests: int
    lost: tuple[int, ...] = ()

    def as_row(self) -> dict[str, object]:
        """One row of a table."""
        rounded = {name: round(value, 6) for name, value in asdict(self).items() if name not in ("lines", "lost")}
        listed = {name: " ".join(map(str, value)) or None for name, value in vars(self).items() if name not in rounded}
        return {name: (rounded | listed)[name] for name in _CELLS}

    @classmethod
    def of_row(cls, row: Mapping[str, str]) -> LineRequest:
        """The request of a row that `as_row` made and a table holds as text.

        Raises
        ------
        KeyError, ValueError
            For any other row.
        """
        return cls(**{name: parse(row[name]) for name, parse in _CELLS.items()})


class LiveScanner:
    """The scanner: messages from one connection after another, and requests for lines.

    A thread reads the messages and records them before they are used. It waits if more than a few messages are unused,
    so that a fast sender waits too.

    Parameters
    ----------
    protocol : MrdStream
        Reads and writes messages.
    connections : iterator of Connection
        The next one is taken when the last has ended.
    arrivals : Arrivals
        Takes the readouts.
    keep : callable
        Takes the bytes of every message except the closing one.
    say : callable
        Takes notes for the user.
    note : callable
        Takes every message that is sent.
    patience : (float, int)
        Seconds to wait for a readout, after a request and after each of its lines, and for the header after a
        connection; and how often a line is requested until it counts as lost.

    Attributes
    ----------
    exchanges : list of LineRequest
        All requests. A resumed run puts the earlier ones here first; the last of these is replaced if its lines are
        requested again.
    ended : str
        Why no more messages will come; empty while they may.
    """

    def __init__(
        self,
        protocol: mrd.MrdStream,
        connections: Iterator[Connection],
        arrivals: Arrivals,
        *,
        keep: Callable[[bytes], None],
        say: Callable[[str], None],
        note: Callable[[Mapping[str, object]], object],
        patience: tuple[float, int] = (10.0, 3),
    ) -> None:
        self.arrivals, self.note = arrivals, note
        self.exchanges, self.ended = list[LineRequest](), ""
        self._protocol, self._connections = protocol, connections
        self._keep, self._report = keep, say
        self._timeout, self._requests = patience
        self._connected = self._met = False
        self._silent: tuple[Connection, float] | None = None  # a client that has sent nothing, and its deadline
        self._reported = set[str]()
        self._request: Mapping[str, Any] | None = None
        self._free_since, self._processor_then = time.perf_counter(), time.process_time()
        self._silences = self._kept = 0
        self._events: queue.Queue[Event | Exception] = queue.Queue(_WAITING)
        self._present: Connection | None = None
        self._refused: tuple[Connection | None, str] = (None, "")
        self._stopped, self._sending = threading.Event(), threading.Lock()
        threading.Thread(target=self._read, name="readouts", daemon=True).start()

    def header(self) -> mrd.ScanHeader:
        """The header of the scan, after waiting for it if necessary.

        A client that does not send it within the time for a readout is disconnected.

        Raises
        ------
        InputError
            If no client can send one any more.
        """
        self._wait_for(lambda: self.arrivals.header is not None)
        if self.arrivals.header is None:
            raise InputError("stream", self.ended, "the header of a scan, then its readouts")
        self._free_since, self._processor_then = time.perf_counter(), time.process_time()
        return self.arrivals.header

    def measure(self, lines: Sequence[int], about: Mapping[str, object]) -> list[int]:
        """Have lines measured that have not arrived yet, and return those that do not come.

        The first time it waits for a connection.

        Parameters
        ----------
        lines : sequence of int
            In the order in which they are to be measured.
        about : mapping
            Further fields of the message to the scanner.
        """
        self._wait_for(lambda: self._met)
        while (event := self.next(0)) is not None:  # messages that came while the lines were chosen
            self._take(event)
        began = time.perf_counter()
        deciding, processor = began - self._free_since, time.process_time() - self._processor_then
        if self.exchanges and self.exchanges[-1].lines == tuple(lines):  # the run died before it used them
            self.exchanges.pop()
        order = sum(len(one.lines) - len(one.lost) for one in self.exchanges)
        missing = self._missing(lines)
        request = {"kind": "measure", "order": order, **about, "seconds": round(deciding, 6)}
        requests = received = 0
        while not requests or (missing and not self.ended and requests < self._requests):
            asked = list(lines) if not requests else missing
            here = {"arrived": sorted(set(lines) - set(missing))} if not requests and len(missing) < len(lines) else {}
            again = {"again": requests} if requests else {}
            self._request = {**request, "lines": asked, **here, **again}
            self._tell(self._request)
            requests += 1
            received += self._wait(lines)
            missing = self._missing(lines)
        if missing:
            self.arrivals.settle()
            missing = self._missing(lines)
        self._request = None
        self._silences = 0 if received or not missing else self._silences + 1
        if missing:
            if not self.ended and not self._connected:
                self.ended = "the scanner went away and did not come back"
            elif not self.ended and self._silences >= _SILENCES:
                self.ended = f"the scanner answered none of the last {_SILENCES} requests"
            self._tell({"kind": "lost", "lines": missing})
            text = f"lost: line{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
            self._report(text + (f" ({self.ended})" if self.ended else ""))
        now = time.perf_counter()
        self.exchanges.append(
            LineRequest(order, tuple(lines), deciding, processor, now - began, requests, tuple(missing))
        )
        self._free_since, self._processor_then = now, time.process_time()
        return missing

    def finish(self, content: Mapping[str, object]) -> None:
        """Tell the scanner how the design ended."""
        self._tell({"kind": "done", **content})

    def send_images(self, images: Iterable[mrd.StreamedImage]) -> None:
        """Send a client the images, with the place of the slice; other listeners get none."""
        present = self._present
        for image in images if present is not None and present.replaceable else ():
            assert present is not None
            self._write(present, self._protocol.image(image, self.arrivals.geometry))

    def close(self) -> None:
        """Send a client the closing message, and stop."""
        present = self._present
        if present is not None and present.replaceable:
            self._write(present, self._protocol.closing())
        self._stopped.set()
        self._hang_up()

    def next(self, seconds: float | None) -> Event | None:
        """The next event, or None after so many seconds of silence; None as ``seconds`` waits without end.

        Raises
        ------
        OSError
            If a message could not be recorded.
        InputError
            If more messages came than the bounds allow.
        """
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    def send(self, content: Mapping[str, object]) -> bool:
        """Send ``content`` to the present connection, and return whether that was possible."""
        present = self._present
        if present is None:
            return False
        line = json.dumps(content, allow_nan=False).encode() + b"\n"
        return self._write(present, self._protocol.text(content) if present.replaceable else line)

    def refuse(self, connection: Connection, why: str) -> None:
        """Refuse the client of ``connection`` and close it, so that another may connect.

        Nothing happens if it has ended already, or if no other client can connect.
        """
        if connection is self._present and connection.replaceable:
            self._refused = connection, f"refused: {why}"
            self.send({"kind": "refused", "why": why})
            connection.close()

    def _write(self, present: Connection, message: bytes) -> bool:
        try:
            with self._sending:
                present.write(message)
        except (OSError, ValueError):  # the client is gone, or does not read
            present.close()
            return False
        return True

    def _hang_up(self) -> None:
        present, self._present = self._present, None
        if present is not None:
            present.close()

    def _read(self) -> None:
        try:
            for connection in self._connections:
                self._hang_up()
                self._present = connection
                self._events.put(connection)
                why = self._conversation(connection)
                if self._stopped.is_set():
                    return
                refused, reason = self._refused
                self._events.put(mrd.Gone(reason if refused is connection else why))
            self._events.put(mrd.Gone("nothing more comes", for_good=True))
        except Exception as error:  # raised where the next event is awaited
            self._events.put(error)

    def _conversation(self, connection: Connection) -> str:
        """Read a connection to its end, and return why it ended."""
        while not self._stopped.is_set():
            try:
                read = self._protocol.read(connection.source)
            except InputError as error:
                self.send({"kind": "refused", "why": str(error)})
                self._hang_up()
                return f"refused: {error}"
            except (OSError, ValueError) as error:
                self._hang_up()
                return f"the connection broke ({error})"
            if read is None:
                return "the stream ended"  # the client may still listen
            raw, message = read
            # A scan that starts again continues after a closing message; a message that is cut short has no bytes.
            if raw and message is not mrd.CLOSED:
                self._kept += 1  # a stream without end would fill the disk
                require_counts(least=0, most=mrd.STREAM_LIMITS.max_readouts, stream=self._kept)
                self._keep(raw)
            self._events.put(message)
        return ""

    def _wait_for(self, there: Callable[[], bool]) -> None:
        """Take events until ``there`` returns true or no more can come."""
        while not there() and not self.ended:
            owes = self._silent if self.arrivals.header is None else None
            self._take(self.next(None if owes is None else max(0.0, owes[1] - time.monotonic())), "the header")

    def _tell(self, content: Mapping[str, Any], *, again: bool = False) -> None:
        """Note a message with the line numbers of the grid, unless it is sent again; send it with the scanner's."""
        if not again:
            self.note(content)
        numbers = {name: self.arrivals.as_measured(content[name]) for name in ("lines", "arrived") if name in content}
        address = self._protocol.address(numbers["lines"]) if content["kind"] == "measure" else {}
        self.send({**content, **numbers, **address})

    def _missing(self, lines: Sequence[int]) -> list[int]:
        return [line for line in lines if not self.arrivals.arrived[line]]

    def _wait(self, lines: Sequence[int]) -> int:
        """Take events until the lines have arrived or time is up, and return the number of events."""
        received, left = 0, len(self._missing(lines))
        deadline = time.monotonic() + self._timeout
        while left and not self.ended:
            event = self.next(max(0.0, deadline - time.monotonic()))
            self._take(event)
            if event is None:
                return received
            received += 1
            now = len(self._missing(lines))
            if now < left:
                left, deadline = now, time.monotonic() + self._timeout
        return received

    def _take(self, event: Event | None, wanted: str = "a readout") -> None:
        """Take an event; without one, close the connection of a client that was silent for too long."""
        if event is None:
            if self._silent is not None and time.monotonic() >= self._silent[1]:
                (connection, _), self._silent = self._silent, None
                self.refuse(connection, f"{wanted} did not come within {self._timeout:g} s")
        elif isinstance(event, Connection):
            self._connected = self._met = True
            self._silent = (event, time.monotonic() + self._timeout) if event.replaceable else None
            if self._request is not None:
                self._tell(self._request, again=True)
        elif isinstance(event, mrd.Gone):
            self._connected, self._silent = False, None
            self._report(event.why)
            if event.for_good:
                self.ended = event.why
                self.arrivals.settle()
        else:
            if self.arrivals.header is not None or isinstance(event, mrd.ScanHeader):
                self._silent = None
            text = self.arrivals.take(event)
            if text and text not in self._reported:  # once for each reason; all are counted
                self._reported.add(text)
                self._report(text)

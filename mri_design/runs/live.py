"""A page that shows a design while it runs, to as many browsers as look at it; the standard library serves it.

The design hands over what it has at each decision and waits for nobody. Threads of the server draw the page when
somebody looks, always from the last state, and send it as server-sent events. Whoever reaches the address may read;
changes need the token that only the address in the terminal has.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
import socketserver
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from mri_design.design.engine import Amount, Moment
from mri_design.design.frames import Frame
from mri_design.design.trace import DesignTrace, StopRule, lines_expected
from mri_design.errors import InputError, whole_number
from mri_design.evaluation import plots
from mri_design.evaluation.page import html_of
from mri_design.evaluation.run_folder import command_line
from mri_design.evaluation.tables import percent
from mri_design.readouts import Readouts

MORE = 10
"""Lines that *ten more* adds."""
PACE = 8
"""Decisions over which the seconds a line are averaged."""
NOTES = 6
"""Notes for people that the page shows."""
MOST_CLIENTS = 64
PAUSE, SILENCE, PATIENCE, GOODBYE = 0.05, 15.0, 10.0, 2.0
"""Seconds between two states, until a silent stream gives a sign of life, that a client may take to read or write, and
that the last state has to reach the clients."""
WIDTH, HEIGHT = 640, 220
"""Of the curve, in its own units."""


@dataclass(frozen=True)
class Watched:
    """What a page knows of a design before its first decision.

    Parameters
    ----------
    name : str
        Of the scan.
    readouts : Readouts
        What is chosen from.
    picture : plots.Frame
        How images lie on the page.
    rule : StopRule, optional
        Ends the design.
    amount : Amount
        How many lines it has in the end; the page's buttons change it.
    facts : mapping of str to str
        Where noise and coil maps are from, by label.
    """

    name: str
    readouts: Readouts
    picture: plots.Frame
    rule: StopRule | None
    amount: Amount
    facts: Mapping[str, str]


@dataclass(frozen=True)
class State:
    """All that the page shows; a new one for every change.

    Parameters
    ----------
    watched : Watched, optional
        None before the design begins.
    trace : DesignTrace, optional
        Lines so far.
    frame : Frame, optional
        The last image.
    widest : float
        End of the scale of error bars: that of the largest so far, so that they are seen to shrink.
    following : tuple of int
        Lines that are measured now.
    error : float
        Predicted error of the image; NaN where it is not known.
    seconds : float
        For each of the last lines; NaN before there are two decisions.
    lost : tuple of int
        Lines that were given up.
    notes : tuple of str
        The last notes of the run.
    end : str
        How the run ended; empty while it lasts.
    report : str
        The command that opens the report, once it is written.
    wanted : Amount, optional
        As it is now.
    """

    watched: Watched | None = None
    trace: DesignTrace | None = None
    frame: Frame | None = None
    widest: float = 0.0
    following: tuple[int, ...] = ()
    error: float = float("nan")
    seconds: float = float("nan")
    lost: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    end: str = ""
    report: str = ""
    wanted: Amount | None = None

    def facts(self) -> dict[str, Any]:
        """Everything that the template of the page speaks of."""
        found: dict[str, Any] = {"state": self, "watched": self.watched, "pictures": {}, "curve": None, "left": None}
        if self.watched is None or self.trace is None or self.wanted is None:
            return found
        readouts, rule = self.watched.readouts, self.watched.rule
        count = len(self.trace.lines)
        expected = lines_expected(self.trace, rule, self.wanted.most, self.wanted.least)
        left = 0 if self.end or self.wanted.enough else min(expected, readouts.size) - count
        found |= {"count": count, "left": max(left, len(self.following)), "limit": rule.error if rule else None}
        found["next"] = readouts.frequencies[self.following[0]].tolist() if left and self.following else []
        return found | {"pictures": self._pictures(readouts, count), "curve": self._curve(found["limit"], expected)}

    def _pictures(self, readouts: Readouts, count: int) -> dict[str, Any]:
        """The image, its error bars, and the mask with the lines that are measured now."""
        assert self.watched is not None and self.trace is not None
        frame, drawn = self.watched.picture, dict[str, Any](image=None, bars=None)
        if self.frame is not None:
            white = plots.object_top([self.frame.magnitude])
            drawn["image"] = plots.pixels(frame, self.frame.magnitude, white, f"{white:.3g}", quick=True)
            if self.frame.deviation is not None:
                scale = percent(self.widest / white)
                drawn["bars"] = plots.pixels(frame, self.frame.deviation, self.widest, scale, error=True, quick=True)
        shades = np.zeros(readouts.grid)
        for numbers, shade in ((self.trace.lines, 0.55), (self.following, 1.0)):
            shades[readouts.cells(np.isin(np.arange(readouts.size), numbers))] = shade
        drawn["mask"] = plots.pixels(plots.Frame(frame.layout), shades, 1.0, error=True, quick=True)
        return drawn

    def _curve(self, limit: float | None, expected: int) -> dict[str, Any] | None:
        """Predicted errors along the design as a path, and where the wanted one lies; None before there are two."""
        assert self.trace is not None
        count, errors = len(self.trace.lines), [step.predicted_error for step in self.trace.steps]
        known = [(n, e) for n, e in enumerate([*errors, self.error], len(self.trace.start)) if np.isfinite(e)]
        if len(known) < 2:
            return None
        first, last = known[0][0], max(expected, count, known[0][0] + 1)
        top = 1.05 * max(*(error for _, error in known), limit or 0.0)
        points = [(WIDTH * (n - first) / (last - first), HEIGHT * (1 - error / top)) for n, error in known]
        target = None if limit is None else HEIGHT * (1 - limit / top)
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        return {"path": path, "end": points[-1], "target": target, "first": first, "last": last, "top": top}


class Live:
    """The page of one design and its server, which begins at once.

    Parameters
    ----------
    address : str
        ``PORT``, or ``HOST:PORT``; 0 takes a free port. The host is 127.0.0.1 unless another is given.

    Attributes
    ----------
    url : str
        With the token that changes need.
    report : bytes
        The report of the run as JSON text, which is the last that browsers get; empty until it is written.

    Raises
    ------
    InputError
        For an address that is none, or that cannot be had.
    """

    def __init__(self, address: str) -> None:
        host, port = _host_and_port(address)
        self.token = secrets.token_urlsafe(16)
        self._changed, self._drawing = threading.Condition(), threading.Lock()
        self._state, self._number, self._closed = State(), 0, False
        self._drawn, self._page = (-1, b""), b""
        self._times = deque[tuple[float, int]](maxlen=PACE + 1)
        self._streams, self.report = 0, b""
        try:
            self._server = _Server(host, port, self)
        except OSError as error:
            got, wanted = f"{host}:{port}, {error.strerror or error}", "an address of this machine that is free"
            raise InputError("live", got, wanted, "Give another port, or 0 for a free one.") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}/?token={self.token}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    # ---- what the run says ----

    def begins(self, watched: Watched) -> None:
        """The design begins, or goes on."""
        self._set(watched=watched)

    def show(self, moment: Moment, frame: Frame | None) -> None:
        """The design has come to a decision, or to its end."""
        self._times.append((time.monotonic(), len(moment.trace.lines)))
        (first, few), (now, count) = self._times[0], self._times[-1]
        following, error = tuple(step.line for step in moment.steps), moment.forecast.predicted_error
        seconds = (now - first) / (count - few) if count > few else float("nan")
        self._set(trace=moment.trace, frame=frame, following=following, error=error, seconds=seconds)

    def note(self, text: str) -> None:
        """A note for people."""
        self._set(notes=(*self._state.notes, text)[-NOTES:])

    def lose(self, lines: tuple[int, ...]) -> None:
        """Lines were given up."""
        self._set(lost=(*self._state.lost, *lines))

    def learns(self, facts: Mapping[str, str]) -> None:
        """More is known of noise and coils."""
        assert self._state.watched is not None
        self._set(watched=replace(self._state.watched, facts={**self._state.watched.facts, **facts}))

    def ends(self, frame: Frame, says: str) -> None:
        """The run has its image; with how it ended, in words."""
        self._set(frame=frame, following=(), end=says)

    def reported(self, report: Path) -> None:
        """The report of the run has been written."""
        self.report = json.dumps(report.read_text(encoding="utf-8")).encode()
        self._set(report=command_line(["open", str(report.parent)]))

    def breaks(self, why: str) -> None:
        """The run ends without an image."""
        self._set(following=(), end=why)

    def close(self) -> None:
        """End the page, once the last state has reached those who look."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._streams, GOODBYE)
        self._server.shutdown()
        self._server.server_close()

    def _set(self, **changes: Any) -> None:
        with self._changed:
            state = replace(self._state, **changes)
            if "frame" in changes and state.frame is not None and state.frame.deviation is not None:
                state = replace(state, widest=max(state.widest, plots.scale_top([state.frame.deviation])))
            wanted = None if state.watched is None else replace(state.watched.amount)
            self._state, self._number = replace(state, wanted=wanted), self._number + 1
            self._changed.notify_all()

    # ---- what browsers want ----

    def change(self, what: str) -> bool:
        """End the design after the lines that are measured now ("enough"), or add lines ("more"), if it still runs."""
        with self._changed:
            state = self._state
            if state.watched is None or state.trace is None or state.end or self._closed:
                return False
            if what == "enough":
                state.watched.amount.enough = True
            else:
                state.watched.amount.add(MORE, len(state.trace.lines))
            self._set()
        return True

    def page(self) -> bytes:
        """The page with the last state, which also browsers without scripts show."""
        return html_of("live", self._state.facts(), script="live").encode()

    def states(self) -> Iterator[bytes | None]:
        """The last state whenever it has changed, as a part of the page; None after a while without a change."""
        seen = -1
        while True:
            fresh, closed = self._news(seen)
            if fresh:
                seen, part = self._part()
                yield part
            elif closed:
                return
            else:
                yield None
            time.sleep(PAUSE)

    def _news(self, seen: int) -> tuple[bool, bool]:
        """Whether there is another state than the one with number ``seen``, and whether no other will follow."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != seen or self._closed, SILENCE)
            return self._number != seen, self._closed

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a stream while it lasts: `close` waits for its end."""
        with self._changed:
            self._streams += 1
        try:
            yield
        finally:
            with self._changed:
                self._streams -= 1
                self._changed.notify_all()

    def _part(self) -> tuple[int, bytes]:
        """Number and drawing of the last state: drawn once, for all who look."""
        with self._drawing:
            number, state = self._number, self._state
            if number != self._drawn[0]:
                self._drawn = number, json.dumps(html_of("live_now", state.facts())).encode()
            return self._drawn


def _host_and_port(address: str) -> tuple[str, int]:
    found = urlsplit(f"//{address}" if ":" in address else f"//127.0.0.1:{address}")
    with suppress(ValueError):
        host, port = found.hostname, found.netloc.rpartition(":")[2]
        if host and whole_number(port) is not None and found.port is not None:
            return host, found.port
    raise InputError("live", repr(address), "a port, or HOST:PORT", "Write --live 8080; 0 takes a free port.")


class _Server(ThreadingHTTPServer):
    """Serves one page; more clients than `MOST_CLIENTS` at a time are turned away."""

    daemon_threads = True
    block_on_close = allow_reuse_port = False

    def __init__(self, host: str, port: int, live: Live) -> None:
        self.live, self.names = live, {host, "localhost", socket.gethostname()}
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without asking a name server, which may take seconds."""
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away at any time; the design does not care."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    server: _Server
    timeout = PATIENCE
    server_version, sys_version = "mri-design", ""

    def do_GET(self) -> None:
        """The page, or its changes."""
        path = urlsplit(self.path).path
        if not self._is_meant():
            return
        if path == "/":
            page = self.server.live.page()
            self._answer(200, page, "text/html; charset=utf-8")
        elif path == "/events":
            self._head(200, {"Content-Type": "text/event-stream"})
            live = self.server.live
            with live.counted():
                for part in live.states():
                    self.wfile.write(b": nothing new\n\n" if part is None else b"data: " + part + b"\n\n")
                if live.report:
                    self.wfile.write(b"event: report\ndata: " + live.report + b"\n\n")
                self.wfile.write(b"event: end\ndata: \n\n")
        else:
            self._answer(404)

    def do_POST(self) -> None:
        """A change, by those who have the token."""
        what, given = urlsplit(self.path).path.lstrip("/"), self.headers.get("X-Token", "")
        origin = urlsplit(self.headers.get("Origin", "")).netloc
        if not self._is_meant():
            return
        if what not in ("enough", "more"):
            self._answer(404)
        elif origin not in ("", self.headers.get("Host")) or not self._has_token(given):
            self._answer(403)
        else:
            self._answer(204 if self.server.live.change(what) else 409)

    def _has_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.server.live.token.encode())

    def _is_meant(self) -> bool:
        """Whether the request names this machine: a name of somebody else's that leads here is refused."""
        with suppress(ValueError):
            name = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
            if name in self.server.names or ipaddress.ip_address(name):
                return True
        self._answer(421)
        return False

    def _answer(self, code: int, content: bytes = b"", kind: str = "text/plain") -> None:
        self._head(code, {"Content-Type": kind, "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _head(self, code: int, more: Mapping[str, str]) -> None:
        self.send_response(code)
        common = {
            "Content-Security-Policy": "frame-ancestors 'none'",  # the page has its own, with its script
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in (common | dict(more)).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal belongs to the design."""


@contextmanager
def opened(address: str) -> Iterator[Live]:
    """The page at an address while a run lasts."""
    live = Live(address)
    try:
        yield live
    except BaseException as error:
        live.breaks(str(error) or type(error).__name__)
        raise
    finally:
        live.close()

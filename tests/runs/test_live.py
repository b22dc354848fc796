"""The page of a design that runs: what it sends to whom, what it lets whom change, and that nobody slows the design."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Amount, DesignEngine, Moment
from mri_design.runs import live as live_page
from mri_design.runs.live import Live, opened
from tests.live_designs import ShownDesign
from tests.refusals import refused


@pytest.fixture
def page() -> Iterator[Live]:
    with opened("0") as found:
        yield found


def asked(page: Live, way: str, path: str, **headers: str) -> tuple[int, str]:
    """Code and content of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port_of(page), timeout=20)) as client:
        client.request(way, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = client.getresponse()
        return answer.status, answer.read().decode()


def port_of(page: Live) -> int:
    return int(page.url.rpartition(":")[2].partition("/")[0])


class Watcher(threading.Thread):
    """A browser, as far as it listens: the parts that came, and whether it was told that the design has ended."""

    def __init__(self, page: Live) -> None:
        super().__init__(daemon=True)
        self.parts, self.report, self.told = list[str](), "", False
        self.client = http.client.HTTPConnection("127.0.0.1", port_of(page), timeout=20)
        self.client.request("GET", "/events")
        self.stream = self.client.getresponse()
        self.start()

    def run(self) -> None:
        event = b""
        for line in self.stream:
            if line.startswith(b'data: "') and event == b"event: report\n":
                self.report = json.loads(line[6:])
            elif line.startswith(b'data: "'):
                self.parts.append(json.loads(line[6:]))
            event = line
            self.told |= line.startswith(b"event: end")


def test_every_watcher_gets_the_last_state_and_is_told_of_the_end() -> None:
    with opened("0") as page:
        watchers = [Watcher(page) for _ in range(3)]
        assert ShownDesign(page).run() == 12
    for watcher in watchers:
        watcher.join(10)
        assert watcher.told and len(watcher.parts) >= 1
        assert "12 of 16 lines" in watcher.parts[-1] and watcher.parts[-1].count("data:image/png") >= 3


def test_they_get_the_report_too_before_the_program_ends_and_no_other_file(tmp_path: Path) -> None:
    report = tmp_path / "run" / "report.html"
    report.parent.mkdir()
    report.write_text("<p>\u00fcber\n</p>", encoding="utf-8")
    with opened("0") as page:
        watcher = Watcher(page)
        ShownDesign(page).run()
        page.reported(report)
        for path in ("/report.html", "/run/report.html", "/../run/report.html"):
            assert asked(page, "GET", path)[0] == 404
    watcher.join(10)
    assert watcher.told and watcher.report == report.read_text(encoding="utf-8")
    assert "mri-design open run" in watcher.parts[-1] and str(tmp_path) not in watcher.parts[-1]


def test_a_browser_without_scripts_gets_the_last_state_and_comes_again(page: Live) -> None:
    ShownDesign(page).run()
    code, content = asked(page, "GET", "/")
    assert code == 200 and "12 of 16 lines" in content and content.count("data:image/png") >= 3
    assert "<noscript><meta http-equiv" in content and "<b>scan" not in content


def test_scripts_of_others_do_not_run_and_nothing_comes_from_elsewhere(page: Live) -> None:
    _, content = asked(page, "GET", "/")
    policy = content.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy and "unsafe-eval" not in policy
    assert "http://" not in content and "https://" not in content and content.count("<script") == 1


def test_only_the_token_of_the_terminal_changes_a_design(page: Live) -> None:
    design = ShownDesign(page, 8)

    def look(moment: Moment) -> None:
        if len(moment.trace.lines) == 5:
            token, host = page.token, f"127.0.0.1:{port_of(page)}"
            assert page.token in page.url and page.token not in asked(page, "GET", "/")[1]
            for headers in ({}, {"X_Token": "guess"}, {"X_Token": token, "Origin": "http://elsewhere"}):
                assert asked(page, "POST", "/more", **headers)[0] == 403
            assert asked(page, "POST", "/other", X_Token=token)[0] == 404
            assert design.amount == Amount(8)
            assert asked(page, "POST", "/more", X_Token=token, Origin=f"http://{host}")[0] == 204

    assert design.run(look) == 16  # eighteen were wanted, and there are sixteen


def test_enough_ends_the_design_after_the_lines_that_are_measured(page: Live) -> None:
    design = ShownDesign(page)

    def look(moment: Moment) -> None:
        if len(moment.trace.lines) == 6 and moment.steps:
            assert asked(page, "POST", "/enough", X_Token=page.token)[0] == 204

    assert design.run(look) == 7


def test_there_is_nothing_to_change_before_the_design_begins(page: Live) -> None:
    assert asked(page, "POST", "/more", X_Token=page.token)[0] == 409


@pytest.mark.parametrize(
    ("host", "code"),
    [("elsewhere.example", 421), ("", 421), ("127.0.0.1", 200), ("localhost:1", 200), ("[::1]", 200)],
)
def test_a_name_of_somebody_else_that_leads_here_is_refused(page: Live, host: str, code: int) -> None:
    assert asked(page, "GET", "/", Host=host)[0] == code


def test_clients_that_do_not_read_or_go_away_slow_nothing(page: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "GOODBYE", 0.2)
    silent = [socket.create_connection(("127.0.0.1", port_of(page))) for _ in range(3)]
    for client in silent:
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    silent.pop().close()
    began = time.monotonic()
    assert ShownDesign(page).run() == 12
    assert time.monotonic() - began < 20 and asked(page, "GET", "/")[0] == 200
    for client in silent:
        client.close()


def test_more_clients_than_it_has_room_for_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "MOST_CLIENTS", 2)
    with opened("0") as page:
        watchers = [Watcher(page) for _ in range(2)]
        with pytest.raises((OSError, http.client.HTTPException)):
            asked(page, "GET", "/")
    assert not any(watcher.join(10) for watcher in watchers)


def test_watchers_see_why_a_run_broke_off() -> None:
    with pytest.raises(OSError), opened("0") as page:
        watcher = Watcher(page)
        raise OSError("the disk is full")
    watcher.join(10)
    assert watcher.told and "the disk is full" in watcher.parts[-1]


def test_a_port_in_use_and_what_is_no_address_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, refused("live"):
        Live(str(taken.getsockname()[1]))
    for address in ("http", "127.0.0.1", "80800", ":1", "-1", "a b:80"):
        with refused("live"):
            Live(address)


def test_a_frame_of_a_strategy_that_infers_nothing_is_a_mask_alone(page: Live) -> None:
    design = ShownDesign(page)
    engine = DesignEngine(md.make_strategy("vd-polynomial"), watch=lambda moment: page.show(moment, moment.frame()))
    engine.run([design.one], engine.begin([design.one], (7, 8, 9)), 8)
    _, content = asked(page, "GET", "/")
    assert "7 of 16 lines" in content and content.count("data:image/png") == 1 and np.isnan(page._state.error)

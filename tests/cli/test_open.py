"""`open` shows the report of a run in the browser, and prints where it is."""

import webbrowser
from pathlib import Path

import pytest

from tests.cli.folders import Run


@pytest.mark.parametrize("display", ["", ":0"])
def test_the_browser_is_asked_only_where_there_is_a_display(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(webbrowser, "open", asked.append)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.setenv(name, display)
    report = tmp_path / "report.html"
    run("open", tmp_path, code=2)  # no report
    report.write_text("")
    for named in (tmp_path, report):
        assert run("open", named, code=0).stdout == f"{report}\n"
    assert asked == [report.as_uri()] * (2 if display else 0)

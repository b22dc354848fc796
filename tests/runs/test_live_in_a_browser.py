"""The page of a design in a browser: it follows the design, its buttons work, and it fits on a phone.

Needs playwright, which is no dependency, and a Chromium.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mri_design.design import Moment
from mri_design.runs.live import Live, opened
from tests.live_designs import BROWSER, ShownDesign

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page() -> Iterator[Live]:
    with opened("0") as found:
        yield found


class Paused:
    """A design in a thread of its own that waits at six lines until it may go on."""

    def __init__(self, page: Live) -> None:
        self.go, self.lines, design = threading.Event(), list[int](), ShownDesign(page)

        def look(moment: Moment) -> None:
            if len(moment.trace.lines) == 6:
                self.go.wait(60)

        self.thread = threading.Thread(target=lambda: self.lines.append(design.run(look)), daemon=True)
        self.thread.start()

    def end(self) -> int:
        self.go.set()
        self.thread.join(60)
        return self.lines[0]


def shown(chromium: Any, url: str, said: list[str], **settings: Any) -> Any:
    """The page of an address, and what its console says."""
    tab = chromium.new_page(**settings)
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(url)
    return tab


def says(tab: Any, text: str) -> None:
    """Wait until the page says it."""
    playwright.expect(tab.locator(".verdict")).to_contain_text(text, timeout=30_000)


def test_it_follows_the_design_and_its_buttons_work(chromium: Any, page: Live) -> None:
    said, design = list[str](), Paused(page)
    tab = shown(chromium, page.url, said)
    says(tab, "6 of 16 lines")
    before = tab.locator("img").first.get_attribute("src")
    tab.get_by_role("button", name="Ten more").click()
    playwright.expect(tab.locator(".orders output")).not_to_be_empty()
    design.go.set()
    says(tab, "16 of 16 lines")
    assert design.end() == 16 and tab.locator("img").first.get_attribute("src") != before
    assert tab.locator("svg path.error").count() == 1 and not said
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_its_report_is_there_when_the_program_has_ended(chromium: Any, tmp_path: Path) -> None:
    said, report = list[str](), tmp_path / "report.html"
    report.write_text("<p>\u00fcber</p>", encoding="utf-8")
    with opened("0") as page:
        tab = shown(chromium, page.url, said)
        ShownDesign(page).run()
        says(tab, "12 of 16 lines")
        assert not tab.get_by_text("Save the report").is_visible()
        page.reported(report)
    with tab.expect_download() as saved:
        tab.get_by_text("Save the report").click()
    assert saved.value.path().read_bytes() == report.read_bytes() and not said


def test_enough_is_enough(chromium: Any, page: Live) -> None:
    said, design = list[str](), Paused(page)
    tab = shown(chromium, page.url, said)
    says(tab, "6 of 16 lines")
    tab.get_by_role("button", name="Enough").click()
    playwright.expect(tab.locator(".orders output")).not_to_be_empty()
    assert design.end() == 7 and not said


def test_without_the_token_there_are_no_buttons_and_on_a_phone_nothing_sticks_out(chromium: Any, page: Live) -> None:
    said, design = list[str](), Paused(page)
    tab = shown(chromium, page.url.partition("?")[0], said, viewport={"width": 390, "height": 800})
    says(tab, "6 of 16 lines")
    assert not tab.get_by_role("button", name="Enough").is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    design.end()
    assert not said


def test_without_scripts_the_last_state_is_there(chromium: Any, page: Live) -> None:
    design = Paused(page)
    while not page._state.trace or len(page._state.trace.lines) < 6:
        design.thread.join(0.05)
    tab = shown(chromium, page.url, [], java_script_enabled=False)
    assert "6 of 16 lines" in tab.locator(".verdict").inner_text() and tab.locator("img").count() >= 3
    design.end()

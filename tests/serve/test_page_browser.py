"""The page in a browser: a kernel is pasted and analysed, a slider moves, and the time changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from drywarp.report.serve import Server

from .local import SAXPY, running

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = os.environ.get("DRYWARP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

PATIENT = 300_000  # ms; a first analysis may have to compile the simulation


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Any]:
    """At the end nothing may have been complained of, and nothing asked of anybody else."""
    complaints: list[str] = []
    asked: list[str] = []
    with sync_api.sync_playwright() as playwright:
        with_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=with_root)
        found = browser.new_page(viewport={"width": 1400, "height": 1000})
        found.on("console", lambda message: complaints.append(message.text))
        found.on("pageerror", lambda error: complaints.append(str(error)))
        found.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        found.on("request", lambda request: asked.append(request.url))
        found.goto(server.url)
        yield found
        browser.close()
    # The browser itself reports answers that say what is wrong with a kernel.
    assert [text for text in complaints if "422" not in text] == []
    assert [url for url in asked if not url.startswith((server.url, "data:"))] == []


def analyse(page: Any, source: str) -> None:
    page.fill("#source", source)
    page.select_option("#gpu", "a100")
    page.click("#analyse")
    page.wait_for_selector("#analyse:enabled", timeout=PATIENT)


def settled(page: Any) -> str:
    """The time once the exact answer of the last move is there."""
    page.wait_for_selector("#answer:not(.waiting)", timeout=PATIENT)
    return str(page.locator("#time").inner_text())


def test_a_slider_moves_time_curve_and_profile(page: Any) -> None:
    analyse(page, SAXPY)
    assert page.locator("#name").inner_text() == "saxpy"
    before = settled(page)
    assert before.split()[1] in ("µs", "ms")
    assert page.locator("#curve-chart path").count() == 2
    events = page.evaluate("drywarp.profile.data.last")
    assert events > 100
    slider = page.locator("#latency-long_scoreboard")
    slider.focus()
    slider.press("End")
    later = settled(page)
    assert later != before
    assert "× the original time" in page.locator("#ratio").inner_text()
    assert page.evaluate("drywarp.profile.data.last") > 1.2 * events
    drawn = page.locator("#curve-chart path").first.get_attribute("d"), page.locator("#curve-chart path").last
    assert drawn[0] != drawn[1].get_attribute("d"), "the curve as it is stays beside the new one"
    assert page.evaluate("drywarp.serve.stats.moves") >= 2
    page.click("#reset")
    assert settled(page) == before
    page.locator("#occupancy").press("Home")
    assert settled(page) != before
    assert page.locator("#occupancy-out").inner_text() == "4 warps"
    page.click("#by-warp")
    page.evaluate("drywarp.profile.select(3)")
    page.locator("#profile-about button", has_text="Show in source").click()
    assert page.evaluate("document.activeElement.id") == "source"


def test_a_compile_error_is_text(page: Any) -> None:
    analyse(page, SAXPY.replace("y[i]", "<img src=x onerror=alert(1)>"))
    assert "error" in page.locator("#problem-line").inner_text()
    assert "<img src=x" in page.locator("#problem-log").inner_text()
    assert page.locator("img").count() == 0
    analyse(page, SAXPY)
    assert not page.locator("#problem").is_visible()


def test_it_fits_a_narrow_window(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1400, "height": 1000})

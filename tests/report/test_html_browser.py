"""The HTML report in a browser: it opens offline, is used with mouse and keys, shows exact values, and stays quick."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import drywarp
from drywarp.program.result import ProgramRun
from drywarp.report.html.page import html_page, program_page

from ..effort import in_turn
from .html_answers import NASTY, answer, large, nasty
from .program_runs import run_of, small

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = os.environ.get("DRYWARP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        with_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=with_root)
        yield found
        found.close()


@pytest.fixture(scope="module")
def tab(browser: Any) -> Any:
    """One tab for all tests: to open another takes twice as long as to load a report."""
    return browser.new_page()


@pytest.fixture
def open_page(tab: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens an answer's report; at the end nothing may have been fetched, reported or thrown."""
    opened: list[Path] = []
    complaints: list[str] = []
    requests: list[str] = []
    expected = ["Canvas2D: Multiple readback"]  # tests look at pixels
    listeners = {
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "dialog": lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()),
    }

    def guard(route: Any) -> None:
        if route.request.url == opened[-1].as_uri():
            route.continue_()
        else:
            requests.append(route.request.url)
            route.abort()

    def open_(shown: drywarp.Analysis | ProgramRun, width: int = 1400, dark: bool = False, says: str = "") -> Any:
        expected.extend([says] if says else [])
        opened.append(tmp_path / f"report{len(opened)}.html")
        text = program_page(shown) if isinstance(shown, ProgramRun) else html_page(shown)
        opened[-1].write_text(text, encoding="utf-8")
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme="dark" if dark else "light")
        tab.goto(opened[-1].as_uri())
        frame(tab)
        return tab

    for event, listener in listeners.items():
        tab.on(event, listener)
    tab.route("**/*", guard)
    yield open_
    tab.evaluate("localStorage.clear()")  # the choice of a theme
    tab.mouse.move(0, 0)
    tab.unroute_all()
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    assert [text for text in complaints if not any(known in text for known in expected)] == []
    assert requests == []


def frame(page: Any) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize(("width", "dark"), in_turn([1400, 400], [False, True]))
def test_it_fits_the_window_in_light_and_dark(open_page: Open, width: int, dark: bool) -> None:
    page = open_page(answer(), width, dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for selector in (
        "#curve-chart svg path",
        "#roofline-chart svg line",
        "#instruction-roofline-chart svg line",
        "#benefits-chart svg circle",
        "#lines .row",
    ):
        assert page.locator(selector).count() > 3, selector
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark


def test_the_switch_changes_page_and_canvas(open_page: Open) -> None:
    page = open_page(answer())
    corner = "Array.from(drywarpPixel())"
    page.evaluate(
        """window.drywarpPixel = () =>
        document.querySelector('#profile-canvas').getContext('2d').getImageData(3, 3, 1, 1).data"""
    )
    assert page.evaluate(corner)[:3] == [255, 255, 255]
    page.click("#theme")
    frame(page)
    assert page.evaluate(corner)[:3] == [20, 23, 26]
    assert page.locator("#theme").inner_text() == "Light"
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def contrast(first: list[float], second: list[float]) -> float:
    """WCAG 2's contrast ratio of two sRGB colours."""

    def luminance(colour: list[float]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_the_contrast_that_wcag_asks_for(open_page: Open, dark: bool) -> None:
    page = open_page(answer(), dark=dark)
    names = "['bg', 'panel', 'mark', 'text', 'soft', 'accent', 'warn']"
    colours = page.evaluate(f"Object.fromEntries({names}.map((name) => [name, resolve(`var(--${{name}})`)]))")
    for ground in ("bg", "panel", "mark"):
        assert contrast(colours["text"], colours[ground]) >= 7
    for name in ("soft", "accent", "warn"):
        assert contrast(colours[name], colours["bg"]) >= 4.5
        assert contrast(colours[name], colours["panel"]) >= 4.5
    for number in range(10):  # of graphics 3 is asked for
        assert contrast(page.evaluate(f"resolve('var(--c{number})')"), colours["bg"]) >= 2.4


def test_a_line_shows_its_instructions_and_an_instruction_its_stalls(open_page: Open) -> None:
    given = answer()
    assert given.detail is not None
    page = open_page(given)
    page.locator("#lines .row", has_text="C[row * n + col] = sum;").click()
    own = [line for line in given.detail.code if line.line == 24]
    assert f"Line 24: {len(own)} instructions" in page.locator("#machine-title").inner_text()
    rows = page.locator("#machine .row")
    assert rows.count() == len(own)
    assert [text.split("k ")[-1].strip() for text in rows.all_inner_texts()][-1].endswith(own[-1].text)
    store = page.locator("#machine .row", has_text="STG").first
    store.click()
    about = page.locator("#machine-about").inner_text()
    line = next(line for line in own if line.text.startswith("STG"))
    assert f"issues to {line.subsystem}" in about
    for reason in line.stalls:
        assert reason in about
    page.click("#machine-all")
    assert page.locator("#machine-title").inner_text().startswith(f"All machine code: {len(given.detail.code)}")


def test_the_source_is_walked_with_the_keys(open_page: Open) -> None:
    page = open_page(answer())
    assert page.locator('#lines [aria-selected="true"]').inner_text().split()[0] == "21", "the costliest line is chosen"
    page.locator("#lines").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#machine-title").inner_text().startswith("Line 22:")
    page.keyboard.press("Home")
    assert page.locator("#machine-title").inner_text().startswith("Line 1: 0 instructions")
    active = page.locator("#lines").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"


def test_charts_tell_exact_values_to_mouse_and_keys(open_page: Open) -> None:
    given = answer()
    page = open_page(given)
    page.locator("#curve-chart svg").focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip")
    first = given.prediction.curve[0]
    assert tip.is_visible()
    assert f"{first.occupancy_warps} warps per SM" in tip.inner_text()
    assert "pipeline" in tip.inner_text()
    for _ in range(len(given.prediction.curve) - 1):
        page.keyboard.press("ArrowRight")
    assert f"{given.prediction.curve[-1].occupancy_warps} warps per SM" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    dot = page.locator("#roofline-chart circle").first.bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    page.locator("#roofline-chart").scroll_into_view_if_needed()
    dot = page.locator("#roofline-chart circle").first.bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    assert "FLOP per byte" in tip.inner_text()


def test_models_are_hidden_and_shown(open_page: Open) -> None:
    page = open_page(answer())
    before = page.locator("#curve-chart path").count()
    page.locator("#curve-models button", has_text="zhang_owens").click()
    assert page.locator("#curve-chart path").count() == before - 1
    page.click("#curve-all")
    page.click("#curve-all")
    assert page.locator("#curve-chart path").count() == 3


def test_events_are_found_where_they_are_drawn(open_page: Open) -> None:
    """A click on any event in view shows that event's figures."""
    given = answer()
    assert given.detail is not None
    events = given.detail.events
    assert events is not None
    page = open_page(given)
    page.locator("#profile-canvas").scroll_into_view_if_needed()
    code = {line.index: line for line in given.detail.code}
    for view, wanted in (("#by-warp", 1000), ("#by-lane", 1000), ("#by-lane", 4000)):
        page.click(view)
        start = (int(events.issue[wanted]) - int(events.issue[0])) / events.ticks_per_cycle
        page.evaluate(f"drywarp.profile.move({start} - 10, {start} + 15)")
        frame(page)
        place = page.evaluate(
            f"""(() => {{ const p = drywarp.profile, v = p.view, box = document.querySelector('#profile-canvas');
            document.querySelector('#profile-scroll').scrollTop = Math.max(0, p.data.row[{wanted}] * v.rowHeight - 60);
            v.top = document.querySelector('#profile-scroll').scrollTop; p.draw();
            return [v.labels + (p.data.start[{wanted}] + 0.4 - v.begin) * v.scale,
                    24 + (p.data.row[{wanted}] + 0.5) * v.rowHeight - v.top]; }})()"""
        )
        page.locator("#profile-canvas").click(position={"x": place[0], "y": place[1]})
        about = page.locator("#profile-about").inner_text()
        instruction = code[events.nodes[int(events.node[wanted])].instruction]
        assert about.startswith(instruction.text)
        assert f"{events.warp[wanted]}, {events.block[wanted]}" in about
        taken = (int(events.completion[wanted]) - int(events.issue[wanted])) / events.ticks_per_cycle
        assert f"{round(taken, 2):,g} after issue" in about
        assert events.reasons[int(events.reason[wanted])] in about


def test_the_profile_is_zoomed_and_panned(open_page: Open) -> None:
    page = open_page(answer())
    canvas = page.locator("#profile-canvas")
    canvas.scroll_into_view_if_needed()
    span = "drywarp.profile.view.end - drywarp.profile.view.begin"
    begin = "drywarp.profile.view.begin"
    page.click("#zoom-all")
    whole = page.evaluate(span)
    assert whole == pytest.approx(page.evaluate("drywarp.profile.data.last"))
    canvas.focus()
    page.keyboard.press("+")
    assert page.evaluate(span) == pytest.approx(0.6 * whole)
    at = page.evaluate(begin)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(begin) == pytest.approx(at + 0.15 * 0.6 * whole)
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert page.evaluate(span) == pytest.approx(whole)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 500, box["y"] + 200)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    frame(page)
    assert page.evaluate(span) == pytest.approx(whole / 2.718281828)
    at = page.evaluate(begin)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 200, steps=4)
    page.mouse.up()
    assert page.evaluate(begin) == pytest.approx(at + 100 / page.evaluate("drywarp.profile.view.scale"))
    page.click("#by-lane")
    page.evaluate("drywarp.profile.select(2000)")
    page.locator("#profile-about button", has_text="Next in warp").click()
    assert page.evaluate("drywarp.profile.data.before[drywarp.profile.view.selected]") == 2000
    page.locator("#profile-about button", has_text="Show in source").click()
    assert page.locator("#machine-about").is_visible()


def test_markup_in_names_and_source_does_nothing(open_page: Open) -> None:
    page = open_page(nasty())
    assert page.title().startswith(f"f{NASTY}".split("\u2028")[0])
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text().startswith("f</script><img src=x onerror=alert(1)><!--")
    page.locator("#lines .row").nth(20).click()
    page.locator("#machine .row").first.click()
    assert page.locator("img").count() == 0


def test_the_policy_stops_a_script_that_got_in(open_page: Open) -> None:
    """Not that one could; but if it did, the browser would refuse it."""
    page = open_page(answer(), says="Content Security Policy")
    refused = page.evaluate(
        """() => new Promise((done) => {
            document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.broken = 1";
            document.body.append(script);
        })"""
    )
    assert refused.startswith("script-src")
    assert page.evaluate("window.broken") is None


def test_a_very_large_kernel_opens_and_scrolls(open_page: Open) -> None:
    page = open_page(large())
    assert page.locator("#lines .row").count() < 200, "only rows in view exist"
    page.locator("#lines").focus()
    page.keyboard.press("End")
    assert page.locator("#machine-title").inner_text().startswith("Line 19999:")
    page.click("#machine-all")
    page.evaluate("document.querySelector('#machine').scrollTop = 20 * 30000")
    frame(page)
    page.locator("#machine .row", has_text=f"{16 * 30005:x}").click()
    assert page.locator("#machine-about").is_visible()


def test_without_events_source_or_curves(open_page: Open) -> None:
    whole = answer()
    assert whole.detail is not None
    open_page(replace(whole, detail=None))
    no_source = replace(
        whole.detail, sources=(), events=None, overlap=None, roofline=None, instruction_roofline=None, benefits={}
    )
    page = open_page(replace(whole, detail=no_source))
    assert page.locator("#machine .row").count() == len(whole.detail.code)
    page.locator("#machine .row").nth(5).click()
    assert page.locator("#machine-about").is_visible()
    bare = replace(whole.prediction, curve=(), stalls={})
    empty = replace(
        whole.detail,
        code=(),
        sources=(),
        curves=(),
        events=None,
        overlap=None,
        roofline=None,
        instruction_roofline=None,
        benefits={},
    )
    open_page(replace(whole, predictions={"pipeline": bare}, detail=empty, lines=()))


def test_a_hundred_thousand_events_stay_smooth(open_page: Open) -> None:
    """Every draw of a walk through zooms and pans, painted to the last pixel, on a software canvas."""
    page = open_page(answer(events=100_000))
    assert page.evaluate("drywarp.profile.data.count") == 100_000
    walk = """(warps) => {
        const p = drywarp.profile, last = p.data.last, times = [];
        document.querySelector(warps ? "#by-warp" : "#by-lane").click();
        p.stats.wait = true;
        for (let step = 0; step < 24; step++) {
            const span = last * Math.pow(0.7, step % 18), begin = (last - span) * ((step * 7) % 24) / 24;
            p.move(begin, begin + span);
            p.draw();
            times.push(p.stats.last);
        }
        p.stats.wait = false;
        return times.sort((a, b) => a - b);
    }"""
    for warps in (False, True):
        times = page.evaluate(walk, warps)
        print("warps" if warps else "subsystems", *(f"{times[at]:.1f} ms" for at in (0, 6, 12, 23)))
        # Other processes may hold up more than half of the draws; they do not make any quicker.
        assert times[6] < 33, "thirty frames a second on a processor alone"


# The page of a whole program -------------------------------------------------------------------------------------


def shown_range(page: Any) -> str:
    return str(page.locator("#range").inner_text())


@pytest.mark.parametrize(("width", "dark"), in_turn([1400, 400], [False, True]))
def test_a_programs_page_fits_the_window(open_page: Open, width: int, dark: bool) -> None:
    page = open_page(small(), width, dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#tracks rect.box").count() == 6
    page.locator("details.kernel summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_programs_timeline_is_zoomed_and_leads_to_its_kernels(open_page: Open) -> None:
    page = open_page(small())
    whole = shown_range(page)
    page.click("#zoom-in")
    assert shown_range(page) != whole
    page.click("#zoom-all")
    assert shown_range(page) == whole
    page.locator("#tracks svg").press("+")
    page.locator("#tracks svg").press("ArrowRight")
    moved = shown_range(page)
    assert moved != whole
    page.locator("#tracks svg").press("Home")
    assert shown_range(page) != moved
    page.locator("#tracks svg").press("0")
    box = page.locator("#tracks rect.kernel").first
    box.hover()
    assert page.locator("#tip").is_visible()
    assert "takes" in page.locator("#tip").inner_text()
    assert page.locator("details.kernel[open]").count() == 0
    box.click()
    assert page.locator("details.kernel[open]").count() == 1
    assert page.locator("details.kernel[open] dl.facts").is_visible()
    page.mouse.move(0, 0)


def test_dragging_pans_and_opens_nothing(open_page: Open) -> None:
    page = open_page(small())
    page.click("#zoom-in")
    before = shown_range(page)
    place = page.locator("#tracks svg").bounding_box()
    page.mouse.move(place["x"] + 700, place["y"] + 34)
    page.mouse.down()
    page.mouse.move(place["x"] + 500, place["y"] + 34, steps=4)
    page.mouse.up()
    assert shown_range(page) != before
    assert page.locator("details.kernel[open]").count() == 0


def test_a_timeline_of_many_launches_draws_no_more_than_the_screen_shows(open_page: Open) -> None:
    page = open_page(run_of([("ab"[number % 2], number % 3) for number in range(10_000)]))
    assert 3 <= page.locator("#tracks rect.box").count() < 3 * 1400
    for _ in range(20):
        page.click("#zoom-in")
    assert page.locator("#tracks rect.box").count() < 3 * 1400

"""The site: it builds, nothing in it leads nowhere, nothing is fetched, and text of others stays text."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the docs extra is absent: MkDocs builds the site")
pytest.importorskip("material", reason="the docs extra is absent: the Material theme is the site's look")

from docs.site.build import build
from docs.site.built import problems_of
from docs.site.escape import cell, code, inline
from docs.site.gpu_pages import gpu_pages

from drywarp.analysis.advice.rules import all_rules, rule_texts
from drywarp.hardware import gpu_names, load_gpu
from drywarp.models import model_names


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(folder) == []
    return folder


def words(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_there_is_a_page_for_each_model_rule_and_gpu(site: Path) -> None:
    for folder, names in (("models", model_names()), ("rules", all_rules()), ("gpus", gpu_names())):
        index = (site / folder / "index.html").read_text(encoding="utf-8")
        for name in names:
            assert (site / folder / f"{name}.html").is_file()
            assert f'href="{name}.html"' in index


def test_a_gpus_page_has_every_number_with_its_source(site: Path) -> None:
    for name in ("a100", "mi300x", "papers/volkov-maxwell"):
        gpu, text = load_gpu(name), words(site / "gpus" / f"{name}.html")
        for key, fact in gpu.facts():
            assert key.partition(".")[2] in text
            assert str(fact) in text
            assert fact.note in text
            assert gpu.sources[fact.source] in text


def test_all_gpus_have_their_latencies_and_needed_occupancies_in_one_table(site: Path) -> None:
    page = (site / "gpus" / "latencies.html").read_text(encoding="utf-8")
    for name in gpu_names():
        assert page.count(f'href="{name}.html"') >= 2
    row = page.partition("<code>papers/volkov-maxwell</code>")[2].partition("</tr>")[0]
    adds, memory = (html.unescape(each) for each in re.findall(r"<td>(.*?)</td>", row)[:2])
    assert adds == "0.25, 6"  # four adds per cycle and SM, 6 cycles of latency
    assert memory == "12.3, 368"  # the thesis's §3.4 gives 12.3 cycles for a coalesced access, its Table 4.1 368


def test_a_models_page_has_docstring_formulas_inputs_and_limits(site: Path) -> None:
    text = words(site / "models" / "mwp_cwp.html")
    for part in (
        "Eqs. 15 to 28",
        "MWP = Λ_mem / λ_mem",
        "Without memory instructions MWP and CWP are undefined",
        "def cpr_of",
    ):
        assert part in text


def test_a_rules_page_is_what_explain_prints(site: Path) -> None:
    for rule in rule_texts():
        text = words(site / "rules" / f"{rule.name}.html")
        assert rule.before in text
        assert rule.change in text


def test_a_notebook_is_a_page_with_its_outputs(site: Path) -> None:
    page = (site / "notebooks" / "latency_hiding.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") >= 5
    assert "from drywarp.models.cusp import" in words(site / "notebooks" / "latency_hiding.html")
    assert 'href="notebooks/latency_hiding.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_a_commands_page_has_its_options(site: Path) -> None:
    text = words(site / "commands" / "analyze.html")
    for option in ("--full-simulation", "--gpu", "--advice", "-D"):
        assert option in text
    assert (site / "commands" / "compare.html").is_file()


def test_pictures_are_within_their_page(site: Path) -> None:
    page = (site / "simulation.html").read_text(encoding="utf-8")
    assert page.count('<svg class="dw"') == 6


def test_files_that_pages_link_to_can_be_read(site: Path) -> None:
    text = words(site / "repository" / "examples" / "saxpy.cu.html")
    assert "__global__ void saxpy(int n, float a, const float* x, float* y)" in text
    assert (site / "repository" / "examples" / "ladders" / "sgemm" / "index.html").is_file()


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ('<a href="none.html">x</a>', "none.html: no such page"),
        ('<a href="a.html#none">x</a>', "a.html#none: no such anchor"),
        ('<script src="https://example.org/x.js"></script>', "fetches https://example.org/x.js"),
        ('<link href="//example.org/x.css">', "fetches //example.org/x.css"),
        ('<img src="none.png">', "none.png: no such file"),
        ("<p>- a list\n- that is none</p>", "Markdown is left as text"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(markup: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "404.html").write_text("")
    (tmp_path / "a.html").write_text('<p id="here">a</p>')
    (tmp_path / "b.html").write_text(f'<a href="a.html#here">fine</a>{markup}')
    (found,) = problems_of(tmp_path)
    assert found.startswith(f"b.html: {problem}")


def test_a_style_that_fetches_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'https://example.org/f.css'; a{background:url(data:x)}")
    assert problems_of(tmp_path) == ["a.css: fetches https://example.org/f.css"]


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    shutil.copytree(root / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs" / "serve.md").write_text("# Serve\n\n[a](nowhere.md) and [b](trace.md#nowhere)\n")
    monkeypatch.setattr("docs.site.build.CONFIG", tmp_path / "docs" / "site" / "mkdocs.yml")
    found = " ".join(build(tmp_path / "site"))
    assert "nowhere.md" in found
    assert "trace.md#nowhere" in found


NASTY = "<img src=x onerror=alert(1)> [a](b) *c* `d` | {e} _f_ &amp; ]]>"


def test_text_of_others_stays_text() -> None:
    import markdown

    made = markdown.markdown(f"{inline(NASTY)}\n\n{code('```' + NASTY)}", extensions=["pymdownx.superfences"])
    assert "<img" not in made
    assert "<a " not in made
    assert "<em>" not in made
    assert cell(NASTY) == html.escape(NASTY)
    assert cell("see https://example.org/a?b=1&c=2.") == (
        'see <a href="https://example.org/a?b=1&amp;c=2">https://example.org/a?b=1&amp;c=2</a>.'
    )


def test_a_gpu_file_with_markup_makes_a_page_without(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    gpu = load_gpu("a100")
    known = {key: replace(fact, note=NASTY) for key, fact in gpu.known.items()}
    monkeypatch.setattr("docs.site.gpu_pages.gpu_names", lambda: ["a100"])
    monkeypatch.setattr("docs.site.gpu_pages.load_gpu", lambda name: replace(gpu, title=NASTY, known=known))
    for page in gpu_pages():
        assert "<img" not in page.text


# In a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium: pages are not opened in a browser")
def test_the_site_opens_from_a_folder_searches_and_goes_dark(site: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright opens pages in Chromium")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in ("index", "simulation", "gpus/a100", "models/transit", "rules/divergence", "tutorial"):
            page.goto((site / f"{name}.html").as_uri())
        # The search listens to keys; a text that is put in at once is read after a millisecond, or never.
        page.locator(".md-search__input").press_sequentially("bank conflicts")
        page.wait_for_selector(".md-search-result__item")
        assert "bank" in page.inner_text(".md-search-result__list").lower()
        page.keyboard.press("Escape")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("label.md-header__button[for^=__palette]:visible")
        page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        browser.close()
    assert errors == []
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []

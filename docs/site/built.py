"""Reads built pages: links and anchors lead somewhere, nothing is fetched from elsewhere, no markup is left raw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {
    *(("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("use", "href")),
    *(("image", "href"), ("object", "data"), ("video", "src"), ("audio", "src")),
}
_STYLE_URL = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)\"']+)|@import\s+[\"']((?:https?:)?//[^\"']+)")
_RAW = re.compile(r"^(- |\* |\| |```|#{1,6} )", re.MULTILINE)


class _Reader(HTMLParser):
    """Anchors, links and what is fetched; the text of paragraphs."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.raw: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        self.fetched += [value for name, value in attrs if value and (tag, name) in _FETCHED]
        if tag in ("p", "pre"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "pre") and self._within:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if self._within[-1:] == ["p"] and _RAW.search(data):
            self.raw.append(" ".join(data.split())[:80])


def problems_of(folder: Path) -> list[str]:
    """A line for each problem of the pages below `folder`."""
    readers: dict[Path, _Reader] = {}
    for page in sorted(folder.rglob("*.html")):
        readers[page] = _Reader()
        readers[page].feed(page.read_text(encoding="utf-8"))
    return [
        f"{page.relative_to(folder)}: {problem}"
        for page, reader in readers.items()
        for problem in _page(page, reader, readers)
    ] + list(_styles(folder))


def _page(page: Path, reader: _Reader, readers: dict[Path, _Reader]) -> Iterator[str]:
    for address in reader.fetched:
        if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
            yield f"fetches {address}"
        elif not address.startswith("data:") and not _target(page, address).exists():
            yield f"{address}: no such file"
    # The page of errors is shown at any address, so that its links are absolute.
    for link in reader.links if page.name != "404.html" else ():
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = _target(page, link)
        if not target.exists():
            yield f"{link}: no such page"
        elif parts.fragment and target in readers and unquote(parts.fragment) not in readers[target].anchors:
            yield f"{link}: no such anchor"
    yield from (f"Markdown is left as text: {text}" for text in reader.raw)


def _target(page: Path, address: str) -> Path:
    path = unquote(urlsplit(address).path)
    if path.startswith("/"):
        path = path[1:]
        return (_root(page) / path).resolve()
    target = (page.parent / path).resolve() if path else page
    return target / "index.html" if target.is_dir() else target


def _root(page: Path) -> Path:
    return next(parent for parent in page.parents if (parent / "404.html").exists())


def _styles(folder: Path) -> Iterator[str]:
    for sheet in sorted(folder.rglob("*.css")):
        for found in _STYLE_URL.finditer(sheet.read_text(encoding="utf-8")):
            yield f"{sheet.relative_to(folder)}: fetches {found[1] or found[2]}"

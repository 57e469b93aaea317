"""What MkDocs asks while it builds: pages that are made now, links that leave `docs/`, and pictures within the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docs.site.command_pages import command_pages
from docs.site.gpu_pages import gpu_pages
from docs.site.links import ROOT, links
from docs.site.model_pages import model_pages
from docs.site.notebook_pages import notebook_pages
from docs.site.page import Page
from docs.site.repository import closure, rewritten, site_place
from docs.site.rule_pages import rule_pages
from mkdocs.structure.files import File, Files

ASSETS = Path(__file__).with_name("assets")
_PICTURE = re.compile(r"^!\[([^\]]*)\]\((pictures/[\w-]+\.svg)\)$", re.MULTILINE)


@cache
def made() -> dict[str, tuple[Page, ...]]:
    """Pages from docstrings and data, by folder; the list of each is its first."""
    return {
        "commands/": tuple(command_pages()),
        "models/": tuple(model_pages()),
        "rules/": tuple(rule_pages()),
        "gpus/": tuple(gpu_pages()),
        "notebooks/": tuple(notebook_pages()),
    }


def on_config(config: Any) -> Any:
    """Name the pages that are made in the navigation, where it has their folder, and at its end what it leaves out."""
    for section in config.nav:
        for title, place in section.items():
            if isinstance(place, str) and place in made():
                section[title] = [{page.title: page.uri} for page in made()[place]]
    written = {path.name for path in Path(config.docs_dir).glob("*.md")}
    if left := sorted(written - set(_named(config.nav))):
        config.nav.append({"More": left})
    return config


def _named(nav: Any) -> Iterator[str]:
    for item in nav.values() if isinstance(nav, dict) else nav:
        if isinstance(item, str):
            yield item
        else:
            yield from _named(item)


def on_files(files: Files, *, config: Any) -> Files:
    """Add them, with the files of the repository that pages link to, and the site's own style and script."""
    written = [file for file in files if file.src_uri.endswith(".md")]
    wanted = {
        target
        for file in written
        for _, link in links(file.content_string)
        if (target := site_place(link, f"docs/{file.src_uri}"))
    }
    pages = [page for group in made().values() for page in group] + closure(wanted)
    for page in pages:
        files.append(File.generated(config, page.uri, content=page.text))
    for asset in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, f"assets/drywarp/{asset.name}", content=asset.read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Links to the repository's files lead to pages of them; pictures become part of the page."""
    uri = page.file.src_uri
    if not uri.startswith(("repository/", *made())):
        markdown = rewritten(markdown, f"docs/{uri}", uri)
    return _PICTURE.sub(lambda found: _within(found[1], found[2]), markdown)


def _within(text: str, name: str) -> str:
    picture = (ROOT / "docs" / name).read_text(encoding="utf-8").replace("\n", "")
    return f'<figure class="picture">{picture}<figcaption>{text}</figcaption></figure>'

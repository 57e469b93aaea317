"""Files of the repository that pages link to, as pages: who has the site alone can read them too."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from .escape import code, inline
from .links import GENERATED, ROOT, links
from .page import Page

_LANGUAGES = {
    ".cu": "cuda",
    ".hip": "cuda",
    ".cl": "c",
    ".py": "python",
    ".toml": "toml",
    ".json": "json",
    ".yml": "yaml",
}
_OUTSIDE = re.compile(r"^([a-z][a-z0-9+.-]*:|#)", re.IGNORECASE)


def site_place(link: str, origin: str) -> str | None:
    """The repository path that a link of the file `origin` means, where that is no page of `docs/`; else None."""
    if _OUTSIDE.match(link):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link.partition("#")[0]))
    inside = path.startswith("docs/") and not path.startswith("docs/site/") and (ROOT / path).is_file()
    generated = path.startswith(tuple(f"docs/{folder}" for folder in GENERATED))
    if inside or generated or path.startswith("..") or not (ROOT / path).exists():
        return None  # a page, or nothing: the build says so
    return path


def page_of(path: str) -> str:
    """Where the page of a repository path lies."""
    if path == "docs":
        return "index.md"
    if (ROOT / path).is_dir():
        return f"repository/{path}/index.md"
    return f"repository/{path if path.endswith('.md') else f'{path}.md'}"


def rewritten(markdown: str, origin: str, uri: str) -> str:
    """The text with its links out of `docs/` led to pages; it stands at `uri` on the site and came from `origin`."""

    def place(found: re.Match[str]) -> str:
        link = found[2]
        target, anchor = site_place(link, origin), link.partition("#")[2]
        if target is None:
            if _OUTSIDE.match(link):
                return found[0]
            target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link.partition("#")[0]))
            if not target.startswith("docs/"):
                return found[0]
            to = target.removeprefix("docs/")
            if to.endswith(".ipynb") and not uri.startswith("notebooks/"):
                to = f"{to.removesuffix('.ipynb')}.md"
        else:
            to = page_of(target)
        near = posixpath.relpath(to, posixpath.dirname(uri) or ".")
        return f"{found[1]}({near}{f'#{anchor}' if anchor else ''})"

    wanted = {link for _, link in links(markdown)}
    return re.sub(r"(\])\(([^)\s]+)\)", lambda found: place(found) if found[2] in wanted else found[0], markdown)


def closure(wanted: Iterable[str]) -> list[Page]:
    """Pages of these paths, and of all that the Markdown among them links to in turn."""
    pages: dict[str, Page] = {}
    todo = sorted(wanted)
    while todo:
        path = todo.pop()
        if path == "docs" or page_of(path) in pages:
            continue
        page, more = _page(path)
        pages[page.uri] = page
        todo += more
    return list(pages.values())


def _page(path: str) -> tuple[Page, list[str]]:
    at, uri = ROOT / path, page_of(path)
    if at.is_dir():
        return _folder(path, at, uri)
    text = at.read_text(encoding="utf-8")
    if at.suffix != ".md":
        return Page(uri, at.name, f"# {inline(path)}\n\n{code(text, _LANGUAGES.get(at.suffix, ''))}\n"), []
    more = [target for _, link in links(text) if (target := site_place(link, path))]
    return Page(uri, at.name, rewritten(text, path, uri)), more


def _folder(path: str, at: Path, uri: str) -> tuple[Page, list[str]]:
    held = [p for p in sorted(at.iterdir()) if p.is_file() and not p.name.startswith(".")]
    intro, more = f"# {inline(path)}\n", []
    readme = at / "README.md"
    if readme in held:
        origin, text = f"{path}/README.md", readme.read_text(encoding="utf-8")
        intro = rewritten(text, origin, uri)
        more = [target for _, link in links(text) if (target := site_place(link, origin))]
    files = [f"{path}/{p.name}" for p in held if p != readme and p.suffix in (*_LANGUAGES, ".ptx", ".s")]
    here = posixpath.dirname(uri)
    names = "\n".join(f"- [`{posixpath.basename(f)}`]({posixpath.relpath(page_of(f), here)})" for f in files)
    return Page(uri, path, f"{intro}\n\n## Files\n\n{names}\n" if names else intro), [*more, *files]

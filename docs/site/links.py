"""Links of Markdown files in the repository: every file and every anchor that they name has to be there.

python -m docs.site.links       # lists those that are not, and ends with status 1 if there are any
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_FENCE = re.compile(r"^(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
GENERATED = ("commands/", "models/", "rules/", "gpus/", "repository/")
"""Folders of the site whose pages are made when it is built."""


def markdown_files() -> list[Path]:
    """README and its like, all of `docs`, and the READMEs beside examples and data."""
    folders = ("docs", "examples", "src", "benchmarks")
    return [*sorted(ROOT.glob("*.md")), *(p for name in folders for p in sorted((ROOT / name).rglob("*.md")))]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Line number and line of all that is not code; what stands between backticks is blanked."""
    fence, blank, indented = "", True, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif fence and line.startswith(fence) and not line.strip("`~ "):
            fence = ""
        elif not fence:
            indented = line.startswith("    ") and (blank or indented)
            if not indented:
                yield number, re.sub(r"(`+)(?:(?!\1).)+\1", "", line)
        blank = not line.strip()


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line number and target of each link and picture; a link may be broken over two lines."""
    lines = list(prose(text))
    for (number, line), (after, following) in zip(lines, [*lines[1:], (0, "")], strict=False):
        both = f"{line} {following}" if after == number + 1 else line
        for match in _LINK.finditer(both):
            if match.start() < len(line):
                yield number, match[1]


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it; the site makes the same."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.strip().lower()))


def site_slug(heading: str, separator: str) -> str:
    """The same as the site's table of contents asks for it."""
    return slug(heading).replace("-", separator)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Every anchor of a Markdown file; equal headings are numbered."""
    found: dict[str, int] = {}
    names = set()
    fence = False
    for line in path.read_text(encoding="utf-8").splitlines():
        fence ^= bool(_FENCE.match(line))
        if not fence and (heading := _HEADING.match(line)):
            name = slug(heading[2])
            names.add(f"{name}-{found[name]}" if name in found else name)
            found[name] = found.get(name, 0) + 1
    return frozenset(names)


def problem(target: str, origin: Path) -> str | None:
    """Why a link leads nowhere, as one clause, or None. What lies outside of the repository is not followed."""
    if _OUTSIDE.match(target):
        return None
    name, _, anchor = target.partition("#")
    docs = ROOT / "docs"
    if any((origin.parent / name).is_relative_to(docs / folder) for folder in GENERATED):
        return None
    path = (origin.parent / name).resolve() if name else origin
    if not path.is_relative_to(ROOT):
        return "leads out of the repository"
    if not path.exists():
        return "no such file"
    if anchor and (path.suffix != ".md" or anchor not in anchors(path)):
        return f"no heading of {path.relative_to(ROOT)} has this anchor"
    return None


def broken() -> Iterator[str]:
    """A line for each link that leads nowhere."""
    for path in markdown_files():
        for number, target in links(path.read_text(encoding="utf-8")):
            if clause := problem(target, path):
                yield f"{path.relative_to(ROOT)}: line {number}: {target}: {clause}"


def main() -> int:
    """Print them."""
    found = list(broken())
    print("\n".join(found) or f"every link of {len(markdown_files())} Markdown files leads somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

"""Links and tables of all Markdown files, checked without MkDocs; and the checker of links itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.site import links as checker
from docs.site.links import broken, links, markdown_files, slug


def test_every_link_of_every_markdown_file_leads_somewhere() -> None:
    assert {"README.md", "index.md", "tutorial.md"} <= {path.name for path in markdown_files()}
    assert list(broken()) == []


@pytest.mark.parametrize(
    ("target", "clause"),
    [
        ("other.md", None),
        ("other.md#a-heading", None),
        ("#here", None),
        ("https://example.org/none#x", None),
        ("sub/", None),
        ("none.md", "no such file"),
        ("other.md#none", "no heading"),
        ("#none", "no heading"),
        ("sub#none", "no heading"),
        ("../../etc/passwd", "leads out"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(
    target: str, clause: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\nSee [what\nis broken over lines](x.md) and [`this`]({target}), not `[that](no.md)`.\n")
    (tmp_path / "x.md").write_text("")
    (tmp_path / "other.md").write_text("```\n# none\n```\n\n# A *heading*\n")
    (tmp_path / "sub").mkdir()
    found = list(broken())
    assert len(found) == (clause is not None)
    for line in found:
        assert line.startswith(f"page.md: line 4: {target}: {clause}")


def test_code_holds_no_links() -> None:
    text = "a [b](c.md)\n\n    [d](e.md)\n\n```\n[f](g.md)\n```\n- [h](i.md) `[j](k.md)` ![p](q.svg)\n"
    assert list(links(text)) == [(1, "c.md"), (8, "i.md"), (8, "q.svg")]


def test_anchors_are_those_of_code_hosts() -> None:
    assert slug("What a *change* does, and which GPU?") == "what-a-change-does-and-which-gpu"
    assert slug("`[classes.NAME]`: λ and Λ") == "classesname-λ-and-λ"


def test_every_table_has_its_header() -> None:
    """Rows that a blank line cuts off from their table are shown as text."""
    lost = []
    for path in markdown_files():
        text = re.sub(r"(?ms)^(```|~~~).*?^\1", lambda code: "\n" * code[0].count("\n"), path.read_text("utf-8"))
        lines = ["", *text.splitlines(), ""]
        for number in range(1, len(lines) - 1):
            before, line, after = lines[number - 1 : number + 2]
            if (
                line.startswith("|")
                and not before.startswith("|")
                and not re.fullmatch(r"\|(\s*:?-+:?\s*\|)+\s*", after)
            ):
                lost.append(f"{path.name}: line {number}: {line[:60]}")
    assert lost == []

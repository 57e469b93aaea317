"""A page for each notebook of `docs/notebooks`, with the outputs that it was saved with."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .escape import code
from .links import ROOT
from .page import Page
from .repository import rewritten

FOLDER = ROOT / "docs" / "notebooks"


def notebook_pages() -> Iterator[Page]:
    """In the order of their names; a title is the first heading."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        uri = f"notebooks/{path.stem}.md"
        text = "\n\n".join(part for cell in cells for part in _parts(cell))
        heading, _, rest = text.partition("\n")
        whole = f"[The notebook]({path.name}), to run and change it.\n"
        title = heading.lstrip("# ")
        yield Page(uri, title, rewritten(f"{heading}\n\n{whole}{rest}\n", f"docs/notebooks/{path.name}", uri))


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif source.strip():
        yield code(source, "python")
        for output in cell["outputs"]:
            yield from _output(output)


def _output(output: Mapping[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    if output["output_type"] == "stream":
        yield code("".join(output["text"]), "text")
    elif "image/svg+xml" in data:
        packed = b64encode("".join(data["image/svg+xml"]).encode()).decode()
        yield f'<img class="output" alt="Figure drawn by the cell above" src="data:image/svg+xml;base64,{packed}">'
    elif "image/png" in data:
        packed = escape("".join(data["image/png"]).strip())
        yield f'<img class="output" alt="Figure drawn by the cell above" src="data:image/png;base64,{packed}">'
    elif "text/plain" in data:
        yield code("".join(data["text/plain"]), "text")

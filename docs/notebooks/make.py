"""Make the notebooks from their sources: `python docs/notebooks/make.py` runs each `.py` here and writes its `.ipynb`.

Sources are in jupytext's percent format. What depends on the machine or the moment is left out of the result, so that
the same source gives the same notebook.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SECONDS = 300
"""What one cell may take."""


def read(source: Path) -> Any:
    """The notebook of a source, not run. Names of cells count them, where jupytext draws lots."""
    import jupytext

    notebook = jupytext.read(source, fmt="py:percent")
    for number, cell in enumerate(notebook.cells, 1):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return notebook


def run(notebook: Any) -> Any:
    """The notebook with its outputs; a cell that fails raises nbclient's CellExecutionError."""
    from nbclient import NotebookClient

    NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # else what is printed falls into parts by chance
        resources={"metadata": {"path": FOLDER}},
    ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/svg+xml" in output.get("data", {}):
                output["data"].pop("text/plain", None)  # holds an address in memory
    notebook["metadata"]["language_info"] = {"name": "python"}
    return notebook


def main() -> None:
    """Run all sources."""
    import nbformat

    for source in sorted(FOLDER.glob("*.py")):
        if source.name != Path(__file__).name:
            made = run(read(source))
            nbformat.validate(made)
            nbformat.write(made, source.with_suffix(".ipynb"))
            print(source.with_suffix(".ipynb"), file=sys.stderr)


if __name__ == "__main__":
    main()

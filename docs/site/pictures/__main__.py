"""`python -m docs.site.pictures`: write the pictures that pages of `docs/` include."""

from __future__ import annotations

from .all import FOLDER, drawn

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"docs/pictures/{name}")

"""`python -m docs.site [FOLDER]`: build the documentation site, into `build/site` unless told.

Exit status 0: built; 1: a link, an anchor or a page is wrong, each on a line; 2: MkDocs is not installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .links import ROOT, broken


def main(arguments: list[str]) -> int:
    """Build, then read what was built."""
    if wrong := list(broken()):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    try:
        import material  # noqa: F401
        import mkdocs  # noqa: F401
    except ImportError:
        print("docs.site: MkDocs and its Material theme are needed: pip install 'drywarp[docs]'", file=sys.stderr)
        return 2
    from .build import build

    folder = Path(arguments[0]) if arguments else ROOT / "build" / "site"
    problems = build(folder.resolve())
    print("\n".join(problems) if problems else f"{folder / 'index.html'}", file=sys.stderr if problems else sys.stdout)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

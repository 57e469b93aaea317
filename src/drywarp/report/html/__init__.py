"""Results as HTML: every page is one file that opens offline and fetches nothing.

It holds a template, style, scripts and data, and a Content-Security-Policy.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

import msgspec

from ...errors import UsageError

_ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def json_for_script(value: Any) -> str:
    """JSON that is safe inside markup: markup characters, which occur only in strings, are escaped."""
    text = msgspec.json.encode(value).decode("utf-8")
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def asset(name: str) -> str:
    """A file of a page, by its path below `drywarp.report`."""
    return files("drywarp.report").joinpath(name).read_text(encoding="utf-8")


def document(
    template: str,
    styles: Sequence[str],
    script: str = "",
    *,
    what: str,
    data: Any = None,
    served: bool = False,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> tuple[str, str]:
    """The document, and its Content-Security-Policy: nothing but the page's own script and style may run.

    `template` and `styles` are files (see `asset`). The template finds `style`, `script`, `data` as JSON, `policy` and
    the `values`; all values are escaped as text. A page that is `served` may talk to its server. Raises UsageError,
    which says `what` needs it, if Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise UsageError(f"{what} needs Jinja2: pip install jinja2") from None
    style = "".join(map(asset, styles))
    policy = "; ".join(
        [
            "default-src 'none'",
            *([f"script-src '{_hash(script)}'"] if script else []),
            f"style-src '{_hash(style)}'; img-src data:",
            *(["connect-src 'self'"] if served else []),
            "base-uri 'none'; form-action 'none'",
            *(["frame-ancestors 'none'"] if served else []),
        ]
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(asset))
    environment.trim_blocks = environment.lstrip_blocks = environment.keep_trailing_newline = True
    environment.filters.update(filters or {})
    own = {"style": Markup(style), "script": Markup(script), "data": Markup(json_for_script(data))}
    return environment.get_template(template).render(policy=policy, **own, **values), policy


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")

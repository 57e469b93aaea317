"""A result as one JSON object."""

from __future__ import annotations

from typing import Any

import msgspec


def json_text(value: dict[str, Any]) -> str:
    """Indented JSON that ends with a newline; NaN and infinity become null."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"

"""A source without what only the host compiles."""

from __future__ import annotations

from drywarp.frontends.cuda.host_code import hide_host_includes, is_host_only, pieces, without


def device_part(text: str) -> str:
    """The source with its host functions, variables and library includes blanked; other directives stay."""
    text = hide_host_includes(text)
    return without(text, [(piece.start, piece.end) for piece in pieces(text) if is_host_only(piece)])

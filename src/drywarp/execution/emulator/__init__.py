"""Functional emulation of machine code: what every warp of some sampled blocks does, and at which addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .content import buffer_content
    from .run import emulate
    from .sampling import Limits, sample_blocks
    from .session import Emulation

_HOMES = {
    "Emulation": "session", "Limits": "sampling", "buffer_content": "content", "emulate": "run",
    "sample_blocks": "sampling",
}  # fmt: skip

__all__ = ["Emulation", "Limits", "buffer_content", "emulate", "sample_blocks"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: loading the engine takes longer than answering from the cache.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The input formats: one file each, found by looking in this folder."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...support.plugins import plugins_of
from .base import AMD, GROUP, NVIDIA, Format, Source


@cache
def formats() -> tuple[Format, ...]:
    """All formats in the order in which they are tried: those of other packages, then drywarp's, catch-alls last."""
    modules = [import_module(f".{file.name}", __name__) for file in iter_modules(__path__) if file.name != "base"]
    own = [one for module in modules for one in module.FORMATS]
    return (*plugins_of(GROUP, Format), *sorted(own, key=lambda one: one.catches_all))


__all__ = ["AMD", "GROUP", "NVIDIA", "Format", "Source", "formats"]

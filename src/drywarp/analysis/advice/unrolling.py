"""Other unroll factors, where the source has `#pragma unroll` or a macro with UNROLL in its name."""

from __future__ import annotations

import re
from pathlib import Path

from ...frontends.cuda.compile import read_source
from ..prepared import Prepared
from .builds import Build

FACTORS = (1, 2, 4, 8, 16)
_PRAGMA = re.compile(r"^([ \t]*#[ \t]*pragma[ \t]+unroll)\b[^\n]*$", re.MULTILINE)
_MACRO = re.compile(r"^([ \t]*#[ \t]*define[ \t]+(\w*UNROLL\w*)[ \t]+)(\d+)[ \t]*$", re.MULTILINE | re.IGNORECASE)


def unrolling(prepared: Prepared) -> list[Build]:
    """One build per factor, for all loops with a factor at once; or the reason why there is none."""
    text, folder = _source(prepared)
    if text is None:
        return [Build("other unroll factors", "build", reason="there is no CUDA C++ source")]
    macros = {match[2]: int(match[3]) for match in _MACRO.finditer(text)}
    if macros:
        others = [(name, factor) for name, now in macros.items() for factor in FACTORS if factor != now]
        return [_of_macro(text, folder, name, factor) for name, factor in others]
    if not _PRAGMA.search(text):
        return [Build("other unroll factors", "build", reason="the source has no #pragma unroll and no UNROLL macro")]
    return [_build(f"#pragma unroll {factor}", _PRAGMA.sub(rf"\g<1> {factor}", text), folder) for factor in FACTORS]


def _source(prepared: Prepared) -> tuple[str | None, Path | None]:
    if prepared.source:
        return prepared.source, None
    path = Path(prepared.kernel.source_file)
    if path.suffix not in (".cu", ".cuh") or not path.is_file():
        return None, None
    return read_source(path), path.resolve().parent


def _of_macro(text: str, folder: Path | None, name: str, factor: int) -> Build:
    changed = re.sub(rf"^([ \t]*#[ \t]*define[ \t]+{name}[ \t]+)\d+", rf"\g<1>{factor}", text, flags=re.MULTILINE)
    return _build(f"{name} = {factor}", changed, folder)


def _build(name: str, text: str, folder: Path | None) -> Build:
    changes: dict[str, object] = {"source": text}
    if folder is not None:
        changes["includes"] = (str(folder),)
    return Build(name, "build", changes, rule="unrolling", remedy=f"use {name}; compiled and predicted")

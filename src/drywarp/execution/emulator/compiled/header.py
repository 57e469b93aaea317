"""The layout as a C header, for the core: ``python -m drywarp.execution.emulator.compiled.header`` writes it again.

Columns become the fields of structs, all other numbers enumerators, so that they are stated once, in `layout`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from ....core.build import FOLDER
from . import layout

HEADER = FOLDER / "native" / "layout.h"
_STRUCTS = {"KIND": "Source", "MODE": "State", "BLOCK_NUMBER": "Entry", "REGION_START": "Region", "STATE": "Run"}
"""Structs by their first column; one for instructions, whose sources are nested, is put together below."""
_INSTRUCTION, _BEFORE_SOURCES, _SOURCES = "OP", ("REGION", "PATTERN", "PATTERN2"), ("A", "B", "C", "D")
_POINTERS = {
    "State": "state",
    "Instruction": "code",
    "Entry": "entries",
    "Region": "region_table",
    "Shape": "log_shapes",
    "uint8_t": "flags arena pending shared_memory log_step_lanes",
    "int8_t": "group_state log_space",
    "uint32_t": "register_words active scratch local_memory group_mask live barriers yielded arrived votes log_masks",
    "int32_t": "guards log_instruction log_warp log_pattern log_step_block log_step_warp log_table",
}
_TYPES = {name: kind for kind, names in _POINTERS.items() for name in names.split()}
"""What the addresses of a `Run` point to; int64_t if not stated."""
_FIRST = """// Generated from the emulator's `layout.py` by `header.py` beside it. Do not edit.
#ifndef DRYWARP_LAYOUT_H
#define DRYWARP_LAYOUT_H

#include <stdint.h>
"""


def header() -> str:
    """The text of the header."""
    structs: dict[str, str] = {}
    numbers: list[str] = []
    for names in _groups():
        if names[0] == _INSTRUCTION:
            fields = [*names, *_BEFORE_SOURCES]
            instruction = _struct("Instruction", [*map(_field, fields), f"Source {', '.join(_SOURCES).lower()}"])
        elif names[0] in _STRUCTS:
            name = _STRUCTS[names[0]]
            fields = (
                [f"{_TYPES.get(n.lower(), 'int64_t')} *{n.lower()}" for n in names]
                if name == "Run"
                else [*map(_field, names)]
            )
            structs[name] = _struct(name, fields)
        elif names[0] not in _BEFORE_SOURCES:
            numbers += _numbers(names)
    run = structs.pop("Run")
    return "\n".join([_FIRST, *numbers, "", *structs.values(), instruction, run, "#endif", ""])


def _groups() -> Iterator[list[str]]:
    """The names of numbers that each statement of `layout` assigns."""
    for statement in ast.parse(inspect.getsource(layout)).body:
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            names = [element.id for element in elements if isinstance(element, ast.Name)]
            if isinstance(getattr(layout, names[0]), int):
                yield names


def _field(name: str) -> str:
    return f"int64_t {name.lower()}"


def _struct(name: str, fields: list[str]) -> str:
    return "\n".join(["typedef struct {", *(f"  {field};" for field in fields), f"}} {name};", ""])


def _numbers(names: list[str]) -> list[str]:
    values = {name: getattr(layout, name) for name in names}
    large = [f"#define {n} INT64_C({v})" for n, v in values.items() if not -(1 << 31) <= v < 1 << 31]
    small = ", ".join(f"{n} = {v}" for n, v in values.items() if -(1 << 31) <= v < 1 << 31)
    return [*large, *([f"enum {{ {small} }};"] if small else [])]


if __name__ == "__main__":
    Path(HEADER).write_text(header(), encoding="utf-8")

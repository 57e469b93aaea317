"""Structures by value: fields as users write them become the bytes of a parameter, by its layout.

--arg p.n=1024 --arg p.v.data=f32[1024]:random --arg p.s[1]=2.5
--arg 'p={n=1024, v.data=f32[1024]:random, s=[0, 2.5, 0]}'       a TOML table; JSON too

In Python: nested dicts, with arrays as buffers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ...errors import UsageError
from ..kernel import Kernel, Parameter, Symbol
from .launch import Argument, Scalar, Structure
from .layout import (
    ARRAY,
    ENUMERATION,
    NUMBER,
    POINTER,
    Layout,
    Layouts,
    Leaf,
    is_table,
    leaves,
    members_text,
    part_at,
    parts_of,
    root_of,
    tables_in,
)
from .textures import MAP_TYPES, SURFACE_TYPES, TEXTURE_TYPES
from .values import as_buffer, is_number_type, number_of

Bind: TypeAlias = Callable[[Parameter, Any, str], Argument]
"""Turns the value of one field into an argument, as of a parameter; the text names the place in messages."""

_HANDLES = {*TEXTURE_TYPES, *SURFACE_TYPES, *MAP_TYPES}
_WORD = re.compile(r"(?!(?:true|false|inf|nan|null|nullptr)$)[A-Za-z_][\w:]*")
"""What may be an enumerator's name."""
_SHOWN_ELEMENTS = 8


def is_whole(held: Layout) -> bool:
    """Whether a type takes one value although it may have fields: `float4`, `half`, a tensor map, a handle."""
    return held.name in _HANDLES or (held.kind != ARRAY and is_number_type(held.name))


# Which arguments are fields, of which parameter.


def gives_fields(kernel: Kernel, arguments: Mapping[str, Any], constants: Mapping[str, Any]) -> bool:
    """Whether a launch states fields of structures, or enumerators by name."""
    names = {p.name or f"arg{p.ordinal}": p for p in kernel.parameters}
    known = {*names, *(f"arg{n}" for n in range(len(names)))}
    variables = {*kernel.symbols, *(name.rpartition("::")[2] for name in kernel.symbols)}
    for given, held in ((arguments, known), (constants, variables)):
        for name, value in given.items():
            root = root_of(name, held)
            if root in held and (root != name or is_table(value)):
                return True
    values = [(p, arguments.get(name, arguments.get(f"arg{n}"))) for n, (name, p) in enumerate(names.items())]
    return any(_is_unknown(p) and isinstance(value, str) and _WORD.fullmatch(value.strip()) for p, value in values)


def lacks_structure(kernel: Kernel, arguments: Mapping[str, Any]) -> bool:
    """Whether a launch has no value for a parameter that is passed by value and of a type that is not known."""
    names = [(p.name or f"arg{p.ordinal}", f"arg{n}") for n, p in enumerate(kernel.parameters)]
    return any(
        p.layout is None and _is_unknown(p) and not {*both} & arguments.keys()
        for p, both in zip(kernel.parameters, names, strict=True)
    )


def _is_unknown(parameter: Parameter) -> bool:
    name = parameter.type.split("::")[-1]
    return bool(name) and not parameter.pointer and not is_number_type(name) and name not in _HANDLES


def with_layouts(kernel: Kernel, layouts: Layouts) -> Kernel:
    """The kernel with the layouts of its parameters and variables, and with names and types where it had none.

    Raises UsageError if they contradict the machine code.
    """
    described = layouts.parameters
    if len(described) != len(kernel.parameters):
        raise UsageError(
            f"{kernel.name}: its debug information lists {len(described)} parameters, its machine code "
            f"{len(kernel.parameters)}"
        )
    parameters = []
    for one, (name, held) in zip(kernel.parameters, described, strict=True):
        if held.size != one.size:
            what = one.name or name or f"arg{one.ordinal}"
            raise UsageError(
                f"{kernel.name}: argument {what}: its layout ({held.text}) has {held.size} bytes, the machine code's "
                f"parameter {one.size}"
            )
        own = held.name if (held.members and not is_whole(held)) or held.kind == ENUMERATION else one.type
        typed = own or one.type or held.name.rstrip("*")
        pointer = one.pointer or (not one.type and held.kind == POINTER)
        parameters.append(replace(one, name=one.name or name, type=typed, pointer=pointer, layout=held))
    symbols = dict(kernel.symbols)
    for name, layout in layouts.variables.items():
        if name in symbols and symbols[name].size == layout.size:
            symbols[name] = replace(symbols[name], layout=layout)
    return replace(kernel, parameters=tuple(parameters), symbols=symbols)


# From values to bytes.


def structure(
    variable: Parameter, given: Iterable[tuple[str, Any]], place: str, bind: Bind, content: bytes = b""
) -> Structure:
    """A value from what is given for it: pairs of a path (empty for the whole) and a value; later ones prevail.

    `content` is what it holds before, by default zeros. Raises UsageError naming `place` and the field for a value that
    does not fit.
    """
    name = variable.name or f"arg{variable.ordinal}"
    if variable.layout is None:
        raise UsageError(
            f"{place}: the offsets of its fields are not known without CUDA C++ source or debug information "
            f"(nvcc -G); give all its bytes, as {name}=u8[{variable.size}] or a .npy file"
        )
    filled = _Filled(Leaf(name, 0, variable.layout), place.partition(" (")[0].removesuffix(name), bind, content)
    for path, value in given:
        filled.put(part_at(filled.root, path, place), value)
    parts = tuple((offset, path, part) for offset, (path, part) in sorted(filled.parts.items()))
    texts = [f"{path.removeprefix(name).removeprefix('.')}={text}" for path, text in filled.texts.items()]
    return Structure(bytes(filled.data), parts, f"{{{', '.join(texts)}}}", tuple(filled.unset()))


class _Filled:
    """The bytes of a value while its fields are put in."""

    def __init__(self, root: Leaf, before: str, bind: Bind, content: bytes) -> None:
        self.root, self._before, self._bind = root, before, bind
        self.data = bytearray(content or bytes(root.type.size))
        self.parts: dict[int, tuple[str, Argument]] = {}
        self.texts: dict[str, str] = {}
        self._given: dict[str, tuple[int, int]] = {}
        self._whole = False
        """Whether the elements of an array are put in that is noted as a whole."""

    def put(self, leaf: Leaf, value: Any) -> None:
        """Set a field, or all fields of a table."""
        place, held = self._place(leaf), leaf.type
        opening = ("{", "[") if held.kind == ARRAY else ("{",)
        if isinstance(value, str) and value.strip().startswith(opening):
            value = tables_in(value, place)
        if isinstance(value, Mapping):
            for key, one in value.items():
                self.put(part_at(leaf, str(key), place), one)
        elif held.kind == ARRAY:
            self._put_elements(leaf, value, place)
        elif held.kind in (NUMBER, POINTER, ENUMERATION) or is_whole(held):
            self._put_one(leaf, value, place)
        else:
            data = whole_bytes(value, held.size, place)
            if data is None:
                raise UsageError(
                    f"{place}: got {value!r}, expected its fields, as in {{{_example(held)}}}, or its bytes"
                )
            self._take(leaf, place)
            self.texts[leaf.path] = f"{len(data)} bytes"
            self._write(leaf, data)

    def unset(self) -> Iterator[str]:
        """The fields that nobody gave, as the user would write them."""
        for leaf in leaves(self.root, is_whole):
            first, end = leaf.span
            touching = [(low, high) for low, high in self._given.values() if low < end and first < high]
            partial = leaf.type.kind == ARRAY and not any(low <= first and end <= high for low, high in touching)
            if partial and touching:
                inside = [part for part in parts_of(leaf) if not self._is_touched(part)]
                yield from (part.path for part in inside)
            elif not touching:
                yield leaf.path

    def _is_touched(self, leaf: Leaf) -> bool:
        first, end = leaf.span
        return any(low < end and first < high for low, high in self._given.values())

    def _place(self, leaf: Leaf) -> str:
        return f"{self._before}{leaf.path} ({leaf.type.text or 'struct'})"

    def _take(self, leaf: Leaf, place: str) -> None:
        """Note that a field is given. Raises UsageError if another member of a union is."""
        if self._whole:
            return
        first, end = leaf.span
        for path, (low, high) in self._given.items():
            nested = _is_within(leaf.path, path) or _is_within(path, leaf.path)
            if low < end and first < high and not nested:
                raise UsageError(f"{place}: overlaps {path}, another member of a union; give one of them")
        for path in [one for one in self._given if _is_within(one, leaf.path)]:
            del self._given[path]
            self.texts.pop(path, None)
        self._given[leaf.path] = leaf.span
        for offset in [at for at in self.parts if first <= 8 * at < end]:
            del self.parts[offset]

    def _write(self, leaf: Leaf, data: bytes) -> None:
        self.data[leaf.offset : leaf.offset + len(data)] = data

    def _put_one(self, leaf: Leaf, value: Any, place: str) -> None:
        held = leaf.type
        given = value
        if held.kind == ENUMERATION:
            value = _enumerator(held, value, place)
        if leaf.bits is not None:
            self._put_bits(leaf, value, place)
            return
        made = self._bind(as_parameter(leaf), value, place)
        self._take(leaf, place)
        self.texts[leaf.path] = str(given) if held.kind == ENUMERATION else made.text
        if isinstance(made, Scalar):
            self._write(leaf, made.data)
        else:
            self._write(leaf, bytes(held.size))
            self.parts[leaf.offset] = leaf.path, made

    def _put_bits(self, leaf: Leaf, value: Any, place: str) -> None:
        assert leaf.bits is not None
        shift, width = leaf.bits
        signed = not leaf.type.name.startswith(("unsigned", "bool")) and leaf.type.kind == NUMBER
        number = number_of(value, place)
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        if number != int(number) or not low <= number <= high:
            raise UsageError(f"{place}: got {value}, expected a whole number from {low} to {high} for its {width} bits")
        self._take(leaf, place)
        self.texts[leaf.path] = str(int(number))
        unit = slice(leaf.offset, leaf.offset + leaf.type.size)
        mask = (1 << width) - 1
        held = int.from_bytes(self.data[unit], "little") & ~(mask << shift)
        self.data[unit] = (held | (int(number) & mask) << shift).to_bytes(leaf.type.size, "little")

    def _put_elements(self, leaf: Leaf, value: Any, place: str) -> None:
        elements = _elements(leaf.type, value, place)
        before = dict(self.texts)
        targets = parts_of(leaf)
        while (
            len(elements) != len(targets)
            and targets[0].type.kind == ARRAY
            and len(elements) == len(targets) * len(parts_of(targets[0]))
        ):
            targets = [inner for target in targets for inner in parts_of(target)]
        if len(elements) != len(targets):
            example = ",".join(["1"] * min(len(targets), 4)) + (",…" if len(targets) > 4 else "")
            raise UsageError(f"{place}: got {len(elements)} elements, expected {len(targets)}, as in [{example}]")
        outermost, plain = not self._whole, not parts_of(targets[0]) or is_whole(targets[0].type)
        if plain and outermost:
            self._take(leaf, place)
            self._whole = True
        for target, element in zip(targets, elements, strict=True):
            self.put(target, element)
        self._whole = self._whole and not outermost
        texts = [text for path, text in self.texts.items() if _is_within(path, leaf.path) and path not in before]
        self.texts = {path: text for path, text in self.texts.items() if not _is_within(path, leaf.path)}
        more = ["…"] if len(texts) > _SHOWN_ELEMENTS else []
        self.texts[leaf.path] = f"[{','.join([*texts[:_SHOWN_ELEMENTS], *more])}]"


def _is_within(inner: str, outer: str) -> bool:
    """Whether a path is another one, or leads into it."""
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def whole_bytes(value: Any, size: int, place: str) -> bytes | None:
    """The bytes of a value given as bytes, or as a buffer of its size; None for anything else."""
    if isinstance(value, np.void):
        value = value.tobytes()
    if not isinstance(value, bytes):
        buffer = as_buffer(value, place)
        if buffer is None or buffer.nbytes != size or buffer.fill not in ("zeros", "array"):
            return None
        value = bytes(size) if buffer.array is None else buffer.array.tobytes()
    return value if len(value) == size else None


def _enumerator(held: Layout, value: Any, place: str) -> Any:
    """The number of an enumerator that is given by name, with or without its scope."""
    if isinstance(value, str):
        known, name = dict(held.enumerators), value.strip().rpartition("::")[2]
        if name in known:
            return known[name]
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(f"{place}: no enumerator {name!r}; {hint}it has: {', '.join(known)}")
    number = number_of(value, place)
    if number != int(number):
        raise UsageError(f"{place}: got {value!r}, expected a whole number or an enumerator's name")
    return int(number)


def _elements(array: Layout, value: Any, place: str) -> list[Any]:
    """The elements of an array: a list, an array, `1,2,3`, or the text of an array of characters."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and array.element is not None and array.element.name == "char":
        data, room = value.encode(), array.extents[0]
        if len(data) > room:
            raise UsageError(f"{place}: got {len(data)} characters, expected at most {room}")
        return [byte - 256 * (byte > 127) for byte in data.ljust(room, b"\0")]
    buffer = as_buffer(value, place)
    if buffer is None:
        return str(value).split(",")
    if buffer.fill == "zeros":
        return [0] * buffer.count
    if buffer.array is None:
        raise UsageError(f"{place}: got {value!r}, expected a list of numbers, an array or @file.npy: not a buffer")
    return list(buffer.array.reshape(-1).tolist())


def _example(held: Layout) -> str:
    return members_text(held).partition(",")[0].split(" ")[-1] + "=1" if held.members else ""


# Fields in messages.


def fields_in(variable: Parameter | Symbol) -> list[Parameter]:
    """Every place in a structure, as a parameter of that name; none of anything else, or of an unknown layout."""
    held = variable.layout
    if held is None or not held.members or is_whole(held):
        return []
    places = leaves(Leaf("", 0, held), is_whole)
    return [as_parameter(replace(leaf, path=leaf.path.removeprefix("."))) for leaf in places]


def as_parameter(leaf: Leaf) -> Parameter:
    """A field, as if it was a parameter."""
    held = leaf.type
    # What a pointer to pointers points to has no type that a buffer could have; nor does an enumeration.
    plain = "" if held.kind == ENUMERATION or held.name.endswith("*") else held.name
    return Parameter(0, leaf.offset, held.size, leaf.path, plain, held.kind == POINTER, layout=held)

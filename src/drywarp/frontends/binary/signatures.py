"""What machine code says of a kernel's types: its mangled symbol, and debug information if there is any.

The C++ library's own demangler reads symbols; without one, they stay as they are.
"""

from __future__ import annotations

import ctypes
import inspect
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ...errors import InputFileError
from ...kernel.kernel import Parameter
from ...kernel.launch.layout import ARRAY, ENUMERATION, NUMBER, POINTER, STRUCTURE, UNION, Field, Layout, Layouts
from ...kernel.launch.textures import MAP_TYPES, SURFACE_TYPES, TEXTURE_TYPES
from ...kernel.launch.values import number_code
from ..cuda.source import Declared, parameters_of
from .elf import ElfFile, parse_elf


@cache
def _library() -> Any:
    try:
        found = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    found.__cxa_demangle.restype = ctypes.c_void_p
    return found


def demangled(symbol: str) -> str:
    """The declaration that a C++ symbol stands for, such as ``void saxpy<float>(float, float*)``; others unchanged."""
    library = _library() if symbol.startswith("_Z") else None
    if library is None:
        return symbol
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def without_parameters(signature: str) -> str:
    """The name without return type and parameters: `f<(int)4>` for `void f<(int)4>(float*)`."""
    opening = _opening(signature)
    depth, start = 0, 0
    for at, char in enumerate(signature[:opening]):
        if char == " " and depth == 0:
            start = at + 1
        depth += (char in "<(") - (char in ">)")
    return signature[start:opening]


def _opening(signature: str) -> int:
    """Where the parameters begin; the length if there are none."""
    depth = 0
    for at, char in enumerate(signature):
        if char == "(" and depth == 0 and at and signature[at - 1] not in "<, ":
            return at
        depth += (char in "<(") - (char in ">)")
    return len(signature)


def plain_name(symbol: str) -> str:
    """The function name in a mangled symbol, without parameters; other symbols are returned unchanged."""
    match = re.match(r"^_Z(N?)(\d{1,9})", symbol)
    if not match:
        return symbol
    if not match[1]:
        # The parameter types follow; they may start with a name too.
        return symbol[match.end() : match.end() + int(match[2])]
    names, rest = [], symbol[3:]
    while number := re.match(r"\d{1,9}", rest):
        length, start = int(number[0]), number.end()
        names.append(rest[start : start + length])
        rest = rest[start + length :]
    return "::".join(names)


def variable_name(symbol: str) -> str:
    """The name of a variable as the source spells it, without unnamed namespaces."""
    parts = plain_name(symbol).split("::")
    return "::".join(p for p in parts if not p.startswith(("_INTERNAL_", "_GLOBAL__N_")))


def declared_types(symbol: str) -> tuple[Declared, ...]:
    """The parameters of a C++ function by its symbol, without names; empty for other symbols."""
    signature = demangled(symbol)
    if signature == symbol:
        return ()
    listed = signature[_opening(signature) + 1 : signature.rfind(")")]
    # Pointers to arrays and functions need a name to be read as such: `float (*) [32]`.
    return tuple(parameters_of(re.sub(r"\(([*&])\)", r"(\1_)", listed)))


def with_types(parameters: Sequence[Parameter], symbol: str) -> tuple[Parameter, ...]:
    """The parameters of machine code with the types that the kernel's symbol states.

    Integers of eight bytes, and pointers to them, stay without a type: they may be textures or other handles. So do
    pointers to pointers, whose elements are addresses.
    """
    declared = declared_types(symbol)
    if len(declared) != len(parameters):
        return tuple(parameters)
    return tuple(
        replace(parameter, type="" if _is_opaque(one) else one.type, pointer=one.pointer)
        for parameter, one in zip(parameters, declared, strict=True)
    )


def _is_opaque(declared: Declared) -> bool:
    return declared.depth > 1 or number_code(declared.type).lower() == "<q"


# The layouts of parameters and variables, from debug information (DWARF).

_MOST_ENTRIES, _MOST_PLACES, _DEEPEST = 500_000, 1 << 17, 64
"""Limits for forged files: entries, places in one type that a value could fill, and types within types."""
_OPAQUE = {*TEXTURE_TYPES, *SURFACE_TYPES, *MAP_TYPES}
"""Typedefs that tell more than the type that they stand for."""
_KINDS = {
    "DW_TAG_base_type": NUMBER,
    "DW_TAG_enumeration_type": ENUMERATION,
    "DW_TAG_structure_type": STRUCTURE,
    "DW_TAG_class_type": STRUCTURE,
    "DW_TAG_union_type": UNION,
    "DW_TAG_pointer_type": POINTER,
    "DW_TAG_reference_type": POINTER,
    "DW_TAG_rvalue_reference_type": POINTER,
    "DW_TAG_ptr_to_member_type": POINTER,
    "DW_TAG_array_type": ARRAY,
}
_SAME = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type")
_ADDRESS_BYTES = 8


def layouts_in(cubin: bytes, symbol: str, origin: str) -> Layouts | None:
    """The layouts that a CUBIN's debug information states for a kernel and the variables; None if it has none of it.

    Raises InputFileError naming `origin` if the debug information is damaged.
    """
    elf = parse_elf(cubin, origin)
    if elf.section(".debug_info") is None or elf.section(".debug_abbrev") is None:
        return None
    try:
        return _DebugInformation(elf).layouts(symbol)
    except Exception as error:  # whatever the library and we make of forged bytes
        raise InputFileError(f"{origin}: damaged debug information ({type(error).__name__})") from None


@dataclass
class _Entry:
    tag: str
    attributes: Mapping[str, Any]
    inside: list[_Entry] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name as debug information spells it, often mangled."""
        held = (self.attributes.get(key) for key in ("MIPS_linkage_name", "linkage_name", "name"))
        return next((str(one, "utf-8", "replace") for one in held if one), "")

    def said(self, name: str, otherwise: Any = None) -> Any:
        """An attribute's value."""
        return self.attributes.get(name, otherwise)


class _DebugInformation:
    """All entries by their offset, and the layouts made of them so far."""

    def __init__(self, elf: ElfFile) -> None:
        from elftools.dwarf.die import DIE
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

        def section(name: str) -> DebugSectionDescriptor | None:
            held = elf.section(name)
            data = b"" if held is None else held.data
            return DebugSectionDescriptor(io.BytesIO(data), name, 0, len(data), 0) if held else None

        # The library reads entries only, from our own reader's sections: its reader of whole files has no bounds.
        known = {"debug_info_sec": ".debug_info", "debug_abbrev_sec": ".debug_abbrev", "debug_str_sec": ".debug_str"}
        parts: dict[str, Any] = dict.fromkeys(list(inspect.signature(DWARFInfo).parameters)[1:])
        parts |= {key: section(name) for key, name in known.items()}
        stream = parts["debug_info_sec"].stream
        read = DWARFInfo(DwarfConfig(True, "CUDA", _ADDRESS_BYTES), **parts)
        self._entries: dict[int, _Entry] = {}
        self._made: dict[int, tuple[Layout, int]] = {}
        self._top: list[_Entry] = []
        for unit in read.iter_CUs():
            at, end = unit.cu_die_offset, unit.cu_offset + unit.size
            around: list[_Entry] = []
            while at < end:
                die = DIE(unit, stream, at)
                if die.tag is None:
                    around = around[:-1]
                else:
                    entry = self._entries[at] = _Entry(str(die.tag), _attributes(die, unit.cu_offset))
                    (around[-1].inside if around else self._top).append(entry)
                    around += [entry] if die.has_children else []
                if len(self._entries) > _MOST_ENTRIES:
                    raise ValueError(at)
                at += die.size

    def layouts(self, symbol: str) -> Layouts | None:
        """The parameters of a kernel, and the variables; None if the kernel is not described."""
        held = [one for unit in self._top for one in unit.inside]
        kernel = next((one for one in held if one.tag == "DW_TAG_subprogram" and one.name == symbol), None)
        if kernel is None:
            return None
        taken = [one for one in kernel.inside if one.tag == "DW_TAG_formal_parameter"]
        variables = [one for one in held if one.tag == "DW_TAG_variable" and one.said("location") and one.name]
        return Layouts(
            tuple((one.said("name", b"").decode("utf-8", "replace"), self._layout(one.said("type"))) for one in taken),
            {variable_name(one.name): self._layout(one.said("type")) for one in variables},
        )

    def _layout(self, at: int | None, depth: int = 0) -> Layout:
        return self._weighed(at, depth)[0]

    def _weighed(self, at: int | None, depth: int) -> tuple[Layout, int]:
        """A type's layout and how many places it has."""
        entry = self._entries.get(-1 if at is None else at)
        if at is None or entry is None:
            return Layout(STRUCTURE, "void", 0), 1
        if at not in self._made:
            if depth > _DEEPEST:
                raise ValueError(at)
            made, places = self._make(entry, depth + 1)
            if places > _MOST_PLACES:
                raise ValueError(at)
            self._made[at] = made, places
        return self._made[at]

    def _make(self, entry: _Entry, depth: int) -> tuple[Layout, int]:
        if entry.tag in _SAME:
            made, places = self._weighed(entry.said("type"), depth)
            if entry.tag == "DW_TAG_typedef" and (not made.name or entry.name in _OPAQUE):
                made = replace(made, name=entry.name)
            return made, places
        kind, size = _KINDS.get(entry.tag, STRUCTURE), int(entry.said("byte_size", 0))
        if kind == POINTER:
            return Layout(POINTER, self._name_at(entry.said("type"), depth), _ADDRESS_BYTES), 1
        if kind == ARRAY:
            element, places = self._weighed(entry.said("type"), depth)
            ranges = [one for one in entry.inside if one.tag == "DW_TAG_subrange_type"]
            extents = tuple(int(one.said("count", one.said("upper_bound", -1) + 1)) for one in ranges)
            count = math.prod(extents)
            return Layout(ARRAY, "", element.size * count, (), element, extents), places * (
                count if element.fields else 1
            )
        fields = [
            self._field(one, size, depth) for one in entry.inside if one.tag in ("DW_TAG_member", "DW_TAG_inheritance")
        ]
        values = [one for one in entry.inside if one.tag == "DW_TAG_enumerator"]
        named = tuple((plain_name(one.name).rpartition("::")[2], int(one.said("const_value"))) for one in values)
        held = tuple(one for one, _ in fields if one is not None)
        return Layout(kind, _type_name(entry), size, held, enumerators=named), sum(n for _, n in fields) or 1

    def _field(self, entry: _Entry, size: int, depth: int) -> tuple[Field | None, int]:
        """A member and how many places it has; None for a static one, which lies elsewhere."""
        place = entry.said("data_member_location", None if entry.said("external") else 0)
        if place is None:
            return None, 0
        offset = place if isinstance(place, int) else _number(place)
        made, places = self._weighed(entry.said("type"), depth)
        bits = None
        if (width := entry.said("bit_size")) is not None:
            unit = int(entry.said("byte_size", made.size))
            # DWARF 2 counts bits from the highest one of the unit, later versions from the start of the structure.
            first = entry.said("data_bit_offset")
            shift = 8 * unit - int(entry.said("bit_offset", 0)) - width if first is None else first - 8 * offset
            bits = (int(shift), int(width))
        if not 0 <= offset <= offset + made.size <= size:
            raise ValueError(offset)
        name = entry.said("name", b"").decode("utf-8", "replace")
        base = entry.tag == "DW_TAG_inheritance" or name.startswith("__b_")
        return Field("" if base else name, offset, made, bits), places

    def _name_at(self, at: int | None, depth: int) -> str:
        """The name of the type that a pointer leads to, without its layout: it may hold such a pointer itself."""
        entry = self._entries.get(-1 if at is None else at)
        if entry is None or depth > _DEEPEST:
            return "void"
        if entry.tag in _SAME:
            return entry.name if entry.name in _OPAQUE else self._name_at(entry.said("type"), depth + 1) or entry.name
        if _KINDS.get(entry.tag) in (POINTER, ARRAY):
            return f"{self._name_at(entry.said('type'), depth + 1)}*"
        return "" if entry.tag == "DW_TAG_subroutine_type" else _type_name(entry)


def _attributes(die: Any, unit: int) -> dict[str, Any]:
    """The attributes by name, without prefix; references to types as offsets in the section."""
    found = {name.removeprefix("DW_AT_"): one.value for name, one in die.attributes.items()}
    kind = die.attributes.get("DW_AT_type")
    if kind is not None and kind.form != "DW_FORM_ref_addr":
        found["type"] = kind.value + unit
    return found


def _number(expression: Sequence[int]) -> int:
    """The constant that a location expression adds to an address (DW_OP_plus_uconst)."""
    if expression[0] != 0x23:
        raise ValueError(expression[0])
    return sum((byte & 0x7F) << 7 * n for n, byte in enumerate(expression[1:]))


def _type_name(entry: _Entry) -> str:
    """The type's name without mangling; empty for an unnamed one."""
    name = entry.said("name", b"").decode("utf-8", "replace")
    if re.match(r"^__C\d+$", name) or re.search(r"Ut\d*_E?$", name):
        return ""
    return plain_name(name)

"""Turn arguments as users write them into a `Launch` that matches the kernel's signature.

On the command line and in launch comments: `a=f32[1024,1024]:random`, `n=4096`, `x=@file.npy`, or `v=1.0,2.0` for a
vector type. In Python: NumPy arrays and scalars, or the same texts.
"""

from __future__ import annotations

import difflib
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import UsageError
from ..kernel import Kernel, Parameter, Symbol
from .launch import (
    DTYPES,
    MAP_BYTES,
    Argument,
    Buffer,
    Dim3,
    Launch,
    Scalar,
    Structure,
    TensorMap,
    Texture,
    TextureTable,
    buffers_in,
)
from .layout import ENUMERATION, is_table, root_of
from .structures import fields_in, structure, whole_bytes
from .textures import (
    MAP_TYPES,
    SURFACE_TYPES,
    TEXTURE_TYPES,
    completed,
    given_map,
    parse_texture,
    same_kind,
    texture_table,
)
from .values import BFLOAT, VECTOR, as_buffer, is_number_type, number_code, number_of, packed, scalar

_LARGEST_VALUE = 32
"""Size in bytes of the largest type that a single value can fill: four doubles."""
_NULL = {"0", "null", "nullptr", "NULL"}


def parse_dim3(text: str, what: str) -> Dim3:
    """Parse `64`, `64,32` or `64,32,1` as three extents. Raises UsageError naming `what`."""
    parts = text.split(",")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise UsageError(f"{what} {text!r}: expected one to three positive integers, as in 64,32")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def make_launch(
    kernel: Kernel,
    grid: Dim3,
    block: Dim3,
    arguments: Mapping[str, Any],
    *,
    dynamic_shared: int = 0,
    constants: Mapping[str, Any] | None = None,
    seed: int = 0,
    cluster: Dim3 | None = None,
) -> Launch:
    """Bind `arguments` (by parameter name, or `argN` for the one at position N from 0) to the kernel's parameters.

    `cluster` is how many blocks form a cluster; None: as the kernel's code states. Raises UsageError for an argument
    that is unknown, missing, or does not match its parameter, and for a cluster that fits neither kernel nor grid.
    """
    known = {parameter_name(p): p for p in kernel.parameters}
    given = bind_arguments(kernel, arguments)
    missing = [name for name in known if name not in given]
    if missing:
        hint = f"{missing[0]}=f32[1024]" if known[missing[0]].pointer else f"{missing[0]}=1"
        raise UsageError(f"{kernel.name}: no value for {', '.join(missing)}; give each, as in --arg {hint}")
    if dynamic_shared < 0:
        raise UsageError(f"dynamic shared memory {dynamic_shared}: expected a number of bytes, 0 or more")
    complete = _with_maps(given, kernel.name)
    values = tuple(complete[name] for name in known)
    variables = bind_constants(kernel, constants or {})
    return Launch(grid, block, values, dynamic_shared, variables, seed, cluster=cluster_for(kernel, grid, cluster))


def cluster_for(kernel: Kernel, grid: Dim3, given: Dim3 | None) -> Dim3:
    """The cluster of a launch: as given, or as the kernel's code states.

    Raises UsageError if the two differ, if the architecture has no clusters, or if the grid is no multiple.
    """
    stated = kernel.resources.cluster
    cluster = given or stated
    if given and stated not in (given, (1, 1, 1)):
        raise UsageError(f"{kernel.name}: --cluster {_extents(given)}: its __cluster_dims__ are {_extents(stated)}")
    if cluster == (1, 1, 1):
        return cluster
    if kernel.compute_capability < (9, 0):
        raise UsageError(f"{kernel.name}: --cluster {_extents(cluster)}: {kernel.arch} has no clusters, sm_90 is first")
    for axis, extent, size in zip("xyz", grid, cluster, strict=True):
        if extent % size:
            raise UsageError(
                f"{kernel.name}: a grid of {extent} blocks in {axis} with clusters of {size}: expected a multiple"
            )
    return cluster


def _extents(given: Dim3) -> str:
    return ",".join(map(str, given))


def bind_arguments(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Argument]:
    """The given arguments by name (`argN` if the source has no name); fields (`p.n`) make up their structure.

    Raises UsageError for an argument that is unknown or does not match its parameter.
    """
    known = {parameter_name(p): p for p in kernel.parameters}
    given: dict[str, list[tuple[str, Any]]] = {}
    for name, value in _by_name(kernel, arguments).items():
        root = root_of(name, known)
        if root not in known:
            raise unknown_argument(kernel, root)
        given.setdefault(root, []).append((name.removeprefix(root), value))
    return {name: _from_all(kernel, known[name], values) for name, values in given.items()}


def _from_all(kernel: Kernel, parameter: Parameter, given: list[tuple[str, Any]]) -> Argument:
    """The argument that one value makes, or several fields."""
    place = f"{kernel.name}: argument {parameter_name(parameter)} ({type_text(parameter)})"
    path, value = given[0]
    table = is_table(value)
    if len(given) > 1 or path or table or _is_enumeration(parameter):
        made = structure(parameter, given, place, _argument)
        plain = not made.parts and not made.zeroed and not table and len(given) == 1
        return Scalar(made.data, str(value)) if plain else made
    return _argument(parameter, value, place)


def _is_enumeration(parameter: Parameter) -> bool:
    return parameter.layout is not None and parameter.layout.kind == ENUMERATION


def _by_name(kernel: Kernel, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Rename positional arguments (`arg0`) to parameter names; a parameter with that exact name takes precedence."""
    names = [parameter_name(p) for p in kernel.parameters]
    places = {f"arg{place}": name for place, name in enumerate(names)}
    renamed = {}
    for name, value in arguments.items():
        root = root_of(name, {*names, *places})
        renamed[name if root in names else places.get(root, root) + name.removeprefix(root)] = value
    return renamed


def unknown_argument(kernel: Kernel, name: str) -> UsageError:
    """The error for an argument that the kernel does not take."""
    near = difflib.get_close_matches(name, [parameter_name(p) for p in kernel.parameters], 1)
    meant = f"did you mean {near[0]}? it" if near else "it"
    return UsageError(f"{kernel.name}: no parameter named {name!r}; {meant} takes: {signature(kernel)}")


def local_bytes(kernel: Kernel, arguments: Mapping[str, Argument]) -> int:
    """Bytes of shared memory per block for the buffers of OpenCL's local pointers, each aligned to 16 bytes."""
    shared = [arguments.get(parameter_name(p)) for p in kernel.parameters if p.space == "shared"]
    return sum(-(-buffer.nbytes // 16) * 16 for buffer in shared if isinstance(buffer, Buffer))


def bind_constants(kernel: Kernel, constants: Mapping[str, Any]) -> dict[str, Argument]:
    """Contents of `__constant__` and `__device__` variables by name. Raises UsageError for an unknown variable."""
    given: dict[str, list[tuple[str, Any]]] = {}
    for name, value in constants.items():
        root = root_of(name, kernel.symbols)
        given.setdefault(root, []).append((name.removeprefix(root), value))
    return dict(_constant(kernel, name, values) for name, values in given.items())


def parameter_name(parameter: Parameter) -> str:
    """The name by which a user sets a parameter; `argN` if the source has no name."""
    return parameter.name or f"arg{parameter.ordinal}"


def host_buffers(kernel: Kernel, launch: Launch) -> list[str]:
    """Names of the launch's buffers in host memory, as a profile's allocations have them."""
    found = list(launch.memory.host) if launch.memory else []
    for parameter, value in zip(kernel.parameters, launch.arguments, strict=True):
        parts = [(path, part) for _, path, part in value.parts] if isinstance(value, Structure) else []
        named = parts or [(parameter_name(parameter), value)]
        found += [name for name, part in named if any(buffer.host for buffer in buffers_in(part))]
    return found


_SHOWN_FIELDS = 12


def signature(kernel: Kernel, most: int = _SHOWN_FIELDS) -> str:
    """The parameters in readable form, with `most` fields of structures: `float* a, Range r {int low, int high}`."""
    fields = [f" {{{text}}}" if (text := fields_text(p, most)) else "" for p in kernel.parameters]
    parts = (f"{type_text(p)} {parameter_name(p)}{of}" for p, of in zip(kernel.parameters, fields, strict=True))
    return ", ".join(parts) or "none"


def fields_text(parameter: Parameter, most: int = _SHOWN_FIELDS) -> str:
    """The first fields of a structure with their types: `int low, float* v.data`; empty for anything else."""
    held = fields_in(parameter)
    more = f", and {len(held) - most} more" if len(held) > most else ""
    return ", ".join(f"{one.layout.text if one.layout else one.type} {one.name}" for one in held[:most]) + more


def type_text(parameter: Parameter) -> str:
    """The type in readable form: `float*`; its size where the source has no type."""
    base = parameter.type or f"{parameter.size}-byte"
    return base + ("*" if parameter.pointer else "")


def _argument(parameter: Parameter, value: Any, place: str) -> Argument:
    """The argument that a value makes for a parameter, or for a field. Raises UsageError naming `place`."""
    if (maps := _maps_in_memory(parameter, value, place)) is not None:
        return maps
    if (tensor := given_map(parameter, value, place, as_buffer)) is not None:
        return tensor
    if (object_ := _object(parameter, value, place)) is not None:
        return object_
    buffer = as_buffer(value, place)
    if (packed := _by_value(parameter, value, buffer)) is not None:
        return packed
    if buffer is not None:
        # Eight bytes of a type that we do not know may well be an address.
        known = number_code(parameter.type.split("::")[-1]) or VECTOR.match(parameter.type)
        if not parameter.pointer and not is_number_type(parameter.type) and parameter.size > 8:
            fill = "" if buffer.fill in ("zeros", "array") else f" filled with {buffer.fill}"
            raise UsageError(
                f"{place}: got {buffer.nbytes} bytes{fill}, expected the {parameter.size} bytes of the structure, as "
                f"u8[{parameter.size}] or a .npy file, or its fields"
            )
        if not parameter.pointer and (parameter.size != 8 or known):
            raise UsageError(f"{place}: got a buffer, expected a value, as in {parameter_name(parameter)}=1")
        _check_elements(parameter, buffer, place)
        return buffer
    if parameter.pointer and (value is None or str(value).strip() in _NULL):
        return Scalar(bytes(parameter.size), "null")
    if parameter.pointer:
        raise UsageError(f"{place}: got {value!r}, expected a buffer or null, as in f32[1024]:random or @file.npy")
    return scalar(parameter, value, place)


def _maps_in_memory(parameter: Parameter, value: Any, place: str) -> Structure | None:
    """Device memory with one or several tensor maps, as `const CUtensorMap*` takes it; None for anything else."""
    if not parameter.pointer or parameter.type.split("::")[-1] not in MAP_TYPES:
        return None
    if isinstance(value, str) and value.strip().startswith("["):
        value = [part.strip() for part in value.strip().removeprefix("[").removesuffix("]").split(";")]
    one = isinstance(value, TensorMap) or (isinstance(value, str) and value.strip().startswith("tensormap"))
    if not one and not isinstance(value, list | tuple):
        return None
    made = []
    for number, given in enumerate([value] if one else value):
        element = Parameter(0, 0, MAP_BYTES, f"{parameter_name(parameter)}[{number}]", parameter.type)
        found = given_map(element, given, place, as_buffer)
        assert found is not None
        made.append((number * MAP_BYTES, element.name, found))
    text = made[0][2].text if one else f"[{'; '.join(found.text for _, _, found in made)}]"
    return Structure(bytes(MAP_BYTES * len(made)), tuple(made), text, in_memory=True)


def _check_elements(parameter: Parameter, buffer: Buffer, place: str) -> None:
    """Raise UsageError if the element size does not match a pointer's type; byte buffers match any type."""
    name = parameter.type.split("::")[-1]
    code = number_code(name) if parameter.pointer else ""
    size = 2 if parameter.pointer and name in BFLOAT else struct.calcsize(code) if code else 1
    given = buffer.nbytes // max(1, buffer.count)
    # Zeros of a larger type are still zeros.
    larger = given > size and buffer.fill == "zeros"
    if size > 1 and given > 1 and given != size and not larger:
        same = [dtype for dtype in DTYPES if Buffer(dtype, (1,)).nbytes == size]
        raise UsageError(
            f"{place}: got {buffer.dtype}[…], whose elements have {given} bytes, expected {size} ({', '.join(same)}), "
            "or u8 for packed data"
        )


def _object(parameter: Parameter, value: Any, place: str) -> Texture | TextureTable | None:
    """The value as one or several textures or surfaces; None if it is something else that the parameter may take."""
    name = parameter.type.split("::")[-1]
    kind = "texture" if name in TEXTURE_TYPES else "surface" if name in SURFACE_TYPES else ""
    if parameter.pointer and kind:
        return texture_table(value, kind, place, as_buffer)
    given = value if isinstance(value, Texture) else None
    if isinstance(value, str):
        given = parse_texture(value, place, as_buffer)
    if given is None:
        if kind and (isinstance(value, Buffer | np.ndarray) or (isinstance(value, str) and as_buffer(value, place))):
            raise UsageError(f"{place}: got a buffer, expected a {kind}, as in {kind}:f32[1024,1024]")
        return None
    if parameter.pointer or parameter.size != 8 or not same_kind(given, name):
        got = "surface" if given.surface else "texture"
        raise UsageError(f"{place}: got a {got}, expected {f'a {kind}' if kind else 'a value or a buffer'}")
    return given


def _by_value(parameter: Parameter, value: Any, buffer: Buffer | None) -> Scalar | None:
    """The bytes of a structure, given as bytes or as a buffer of its size; None for other values."""
    data = whole_bytes(value if buffer is None else buffer, parameter.size, "")
    name = parameter.type.split("::")[-1]
    # Eight bytes of a type that we do not know may well be an address.
    address = buffer is not None and parameter.size == 8
    if data is None or parameter.pointer or is_number_type(name) or address:
        return None
    return Scalar(data, value if isinstance(value, str) else f"{len(data)} bytes")


def _constant(kernel: Kernel, name: str, given: list[tuple[str, Any]]) -> tuple[str, Argument]:
    """A `__constant__` or `__device__` variable and its content: an array, a value, fields, or a texture."""
    held = {n: s for n, s in kernel.symbols.items() if s.space in ("constant", "global")}
    meant = [n for n in held if n == name] or [n for n in held if n.rpartition("::")[2] == name]
    if len(meant) != 1:
        raise UsageError(
            f"{kernel.name}: no __constant__ or __device__ variable named {name!r}; it has: {', '.join(held) or 'none'}"
        )
    symbol = held[meant[0]]
    path, value = given[0]
    if len(given) == 1 and not path and not is_table(value):
        return meant[0], _constant_value(name, symbol, value)
    return meant[0], _constant_fields(kernel, name, symbol, given)


def _constant_fields(kernel: Kernel, name: str, symbol: Symbol, given: list[tuple[str, Any]]) -> Scalar:
    """A variable of which some fields are given; the others keep what the source gives them."""
    place = f"{kernel.name}: constant {name}"
    bank = kernel.constant_banks.get(3, b"") if symbol.space == "constant" else kernel.global_image
    content = bank[symbol.offset : symbol.offset + symbol.size].ljust(symbol.size, b"\0")
    moved = [r.offset for r in kernel.relocations if r.bank == 3 and symbol.space == "constant"]
    variable = Parameter(0, symbol.offset, symbol.size, name, symbol.type, layout=symbol.layout)
    made = structure(variable, given, place, _argument, content)
    if made.parts or any(symbol.offset <= offset < symbol.offset + symbol.size for offset in moved):
        what = f"{made.parts[0][1]} is" if made.parts else "some of its fields are"
        raise UsageError(f"{place}: {what} a pointer or a handle, which fields of variables cannot be given")
    return Scalar(made.data, made.text)


def _listed(symbol: Symbol, value: Any, place: str) -> Scalar | None:
    """An array of numbers given as a list, `1,2,3`, whose rest is zero; None if its elements are no plain numbers."""
    code = number_code(symbol.type.removesuffix("[]").strip())
    numbers = str(value).strip("[] ").split(",") if isinstance(value, str) else value
    if not code or not isinstance(numbers, list | tuple):
        return None
    most = symbol.size // struct.calcsize(code)
    if len(numbers) > most:
        raise UsageError(f"{place}: got {len(numbers)} numbers, expected at most {most}")
    data = b"".join(packed(code, [number_of(one, place)], one, place) for one in numbers)
    return Scalar(data.ljust(symbol.size, b"\0"), str(value))


def _constant_value(name: str, symbol: Symbol, value: Any) -> Argument:
    place = f"constant {name}" + (f" ({symbol.type})" if symbol.type else "")
    pointer = symbol.type.endswith("*")
    variable = Parameter(0, symbol.offset, symbol.size, name, symbol.type.rstrip("*").strip())
    if (object_ := _object(variable, value, place)) is not None:
        return object_
    buffer = as_buffer(value, place)
    if buffer is not None:
        if pointer:
            raise UsageError(f"{place}: got a buffer, but variables that hold pointers are not supported")
        if buffer.nbytes > symbol.size:
            raise UsageError(f"{place}: got {buffer.nbytes} bytes, but the variable has {symbol.size}")
        return buffer
    if symbol.type.endswith("[]") and (listed := _listed(symbol, value, place)) is not None:
        return listed
    if symbol.size > _LARGEST_VALUE or symbol.type.endswith("]"):
        raise UsageError(f"{place}: got {value!r}, expected a buffer, as in f32[9]:ones or @file.npy")
    return scalar(variable, value, place)


def _with_maps(values: Mapping[str, Argument], kernel: str) -> dict[str, Argument]:
    """The arguments by name, with every tensor map completed and checked against its buffer."""
    held: dict[str, Argument] = {}

    def collect(name: str, value: Argument) -> None:
        held[name] = value
        for _, path, part in value.parts if isinstance(value, Structure) else ():
            collect(path, part)

    def complete(name: str, value: Argument) -> Argument:
        if isinstance(value, Structure):
            return replace(value, parts=tuple((at, path, complete(path, part)) for at, path, part in value.parts))
        if not isinstance(value, TensorMap) or value.buffer is not None:
            return value
        place = f"{kernel}: argument {name}"
        of = held.get(value.of)
        buffer = of.buffer if isinstance(of, TensorMap) else of
        if not isinstance(buffer, Buffer):
            raise UsageError(f"{place}: {value.of!r} is not an argument with a buffer")
        return completed(value, buffer, place)

    for name, value in values.items():
        collect(name, value)
    return {name: complete(name, value) for name, value in values.items()}

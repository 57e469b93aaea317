"""What AMD assembly says of a kernel beside its code: registers, memory, arguments, and the registers' first contents.

The directives and the metadata are those of LLVM's AMDGPU backend for the HSA code objects of version 3 and
later (llvm.org/docs/AMDGPUUsage).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import InputFileError
from ..kernel.kernel import Parameter, Resources

_DIRECTIVE = re.compile(r"^\s*\.amdhsa_(\w+)\s+(.*?)\s*(?:;.*)?$")
_ENTRY = re.compile(r"^( *)(- )?\.?([\w.]+):\s*(.*)$")
_HIDDEN = "hidden_"

_USER_REGISTERS = (
    ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1),
)  # fmt: skip
"""What a kernel may find in its first scalar registers, in this order, with the number of registers."""


@dataclass
class KernelMetadata:
    """One kernel's directives, and its entry of the metadata: plain keys, and its arguments."""

    directives: dict[str, str] = field(default_factory=dict)
    entry: dict[str, str] = field(default_factory=dict)
    arguments: list[dict[str, str]] = field(default_factory=list)


def read_metadata(lines: Sequence[str]) -> dict[str, KernelMetadata]:
    """All kernels of an assembly file by symbol, with what directives and metadata say of them."""
    kernels: dict[str, KernelMetadata] = {}
    current: KernelMetadata | None = None
    for line in lines:
        stripped = line.strip()
        if stripped.startswith(".amdhsa_kernel "):
            current = kernels.setdefault(stripped.removeprefix(".amdhsa_kernel").strip(), KernelMetadata())
        elif stripped.startswith(".end_amdhsa_kernel"):
            current = None
        elif current is not None and (match := _DIRECTIVE.match(line)):
            current.directives[match[1]] = match[2]
    for found in _metadata_entries(lines):
        name = found.entry.get("symbol", "").removesuffix(".kd") or found.entry.get("name", "")
        if name in kernels:
            kernels[name].entry, kernels[name].arguments = found.entry, found.arguments
    return kernels


def _metadata_entries(lines: Sequence[str]) -> list[KernelMetadata]:
    """The list `amdhsa.kernels` of the metadata, which is YAML of one regular shape."""
    found: list[KernelMetadata] = []
    inside = in_kernels = in_arguments = False
    for line in lines:
        stripped = line.strip()
        if stripped in (".amdgpu_metadata", ".end_amdgpu_metadata"):
            inside = stripped == ".amdgpu_metadata"
            continue
        match = _ENTRY.match(line) if inside else None
        if match is None:
            continue
        indent, item, key, value = len(match[1]), bool(match[2]), match[3], _text(match[4])
        if indent == 0 and not item:
            in_kernels = key == "amdhsa.kernels"
        if not in_kernels or indent == 0:
            continue
        if indent == 2 and item:
            found.append(KernelMetadata())
            in_arguments = False
        if not found:
            continue
        if indent >= 6 and in_arguments:
            if item or not found[-1].arguments:
                found[-1].arguments.append({})
            found[-1].arguments[-1][key] = value
        elif indent <= 4:
            in_arguments = key == "args"
            found[-1].entry[key] = value
    return found


def _text(value: str) -> str:
    """A value of the metadata; LLVM marks texts that YAML would read as something else (`!str n`)."""
    return value.removeprefix("!str ").strip("'\" ")


def _number(fields: Mapping[str, str], key: str, place: str) -> int:
    text = fields.get(key, "")
    if not text.isdigit():
        raise InputFileError(f"{place}: the metadata states no .{key} (expected assembly of LLVM's AMDGPU backend)")
    return int(text)


def resources_of(metadata: KernelMetadata, place: str) -> Resources:
    """What a work-item or work-group takes. Vector registers are all that a lane holds, accumulation ones included."""

    def number(key: str) -> int:
        return _number(metadata.entry, key, place)

    spills = metadata.entry.get("vgpr_spill_count", "")
    return Resources(
        registers=max(1, number("vgpr_count")),
        shared_bytes=number("group_segment_fixed_size"),
        local_bytes=number("private_segment_fixed_size"),
        spill_bytes=4 * int(spills) if spills.isdigit() else None,
        max_threads=number("max_flat_workgroup_size"),
        scalar_registers=number("sgpr_count"),
    )


def wavefront_size(metadata: KernelMetadata, place: str) -> int:
    """Lanes of a warp: 64, or 32 where the machine has both."""
    size = _number({"wavefront_size": "64", **metadata.entry}, "wavefront_size", place)
    if size not in (32, 64):
        raise InputFileError(f"{place}: .wavefront_size {size} (expected 32 or 64)")
    return size


def parameters_of(metadata: KernelMetadata, place: str) -> tuple[Parameter, ...]:
    """The arguments that the user gives. Names and types are known for OpenCL C only."""
    explicit = [a for a in metadata.arguments if not a.get("value_kind", "").startswith(_HIDDEN)]
    return tuple(_parameter(ordinal, argument, place) for ordinal, argument in enumerate(explicit))


def _parameter(ordinal: int, argument: Mapping[str, str], place: str) -> Parameter:
    kind = argument.get("value_kind", "")
    return Parameter(
        ordinal=ordinal,
        offset=_number(argument, "offset", place),
        size=_number(argument, "size", place),
        name=argument.get("name", ""),
        type=argument.get("type_name", "").rstrip("*"),
        pointer=kind in ("global_buffer", "dynamic_shared_pointer"),
        space="shared" if kind == "dynamic_shared_pointer" else "global",
    )


def abi_of(metadata: KernelMetadata, arch: str, place: str) -> dict[str, int]:
    """Where a kernel finds what it is given: scalar register numbers, and byte offsets of the hidden arguments.

    ``kernarg_segment_ptr`` and ``dispatch_ptr`` are pairs of registers, ``workgroup_id_x`` … single ones;
    ``packed_work_item_id`` is 1 where v0 holds all three coordinates in 10 bits each, and
    ``work_item_dimensions`` is how many of them the kernel asks for. Hidden arguments keep
    their metadata names (``hidden_block_count_x``).
    """
    directives = metadata.directives
    abi: dict[str, int] = {}
    register = 0
    for name, count in _USER_REGISTERS:
        if _is_set(directives, f"user_sgpr_{name}"):
            abi[name] = register
            register += count
    stated = directives.get("user_sgpr_count", "")
    register = int(stated) if stated.isdigit() else register
    for axis in "xyz":
        if _is_set(directives, f"system_sgpr_workgroup_id_{axis}", default="1" if axis == "x" else "0"):
            abi[f"workgroup_id_{axis}"] = register
            register += 1
    abi["packed_work_item_id"] = int(packs_work_item_id(arch))
    told = directives.get("system_vgpr_workitem_id", "")
    abi["work_item_dimensions"] = 1 + int(told) if told.isdigit() else 3
    for argument in metadata.arguments:
        kind = argument.get("value_kind", "")
        if kind.startswith(_HIDDEN):
            abi[kind] = _number(argument, "offset", place)
    return abi


def _is_set(directives: Mapping[str, str], name: str, default: str = "0") -> bool:
    return directives.get(name, default) not in ("0", "")


def packs_work_item_id(arch: str) -> bool:
    """GFX90A, the GFX94 and GFX95 families and GFX11 on have one register for a work-item's coordinates."""
    digits = arch.removeprefix("gfx")
    if len(digits) == 4:
        return digits >= "1100"
    return digits == "90a" or digits[:2] in ("94", "95")

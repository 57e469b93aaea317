"""Kernel metadata in AMD assembly: registers, memory, arguments and initial register contents.

Directives and metadata follow LLVM's AMDGPU backend for HSA code objects of version 3 and later
(llvm.org/docs/AMDGPUUsage). This module also locates the clang that compiles for AMD GPUs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ...errors import InputFileError, ToolError
from ...kernel.kernel import Parameter, Resources
from ...support.by_name import folders_of, version_of

_DIRECTIVE = re.compile(r"^\s*\.amdhsa_(\w+)\s+(.*?)\s*(?:;.*)?$")
_ENTRY = re.compile(r"^( *)(- )?\.?([\w.]+):\s*(.*)$")
_HIDDEN = "hidden_"

_USER_REGISTERS = (
    ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1),
)  # fmt: skip
"""Possible contents of a kernel's first scalar registers, in this order, with the number of registers."""


@dataclass
class KernelMetadata:
    """One kernel's directives and its metadata entry: plain keys, and its arguments."""

    directives: dict[str, str] = field(default_factory=dict)
    entry: dict[str, str] = field(default_factory=dict)
    arguments: list[dict[str, str]] = field(default_factory=list)


def read_metadata(lines: Sequence[str]) -> dict[str, KernelMetadata]:
    """Directives and metadata of all kernels in an assembly file, by symbol."""
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
    """The `amdhsa.kernels` list of the metadata, which is YAML with a fixed layout."""
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
    """A metadata value; LLVM tags strings that YAML would parse as another type (`!str n`)."""
    return value.removeprefix("!str ").strip("'\" ")


def _number(fields: Mapping[str, str], key: str, place: str) -> int:
    text = fields.get(key, "")
    if not text.isdigit():
        raise InputFileError(f"{place}: the metadata has no .{key} (expected assembly from LLVM's AMDGPU backend)")
    return int(text)


def resources_of(metadata: KernelMetadata, place: str) -> Resources:
    """Resources of a work-item and a work-group. Vector registers include accumulation registers."""

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
    """Lanes per warp: 64, or 32 on architectures that support both."""
    size = _number({"wavefront_size": "64", **metadata.entry}, "wavefront_size", place)
    if size not in (32, 64):
        raise InputFileError(f"{place}: .wavefront_size {size} (expected 32 or 64)")
    return size


def parameters_of(metadata: KernelMetadata, place: str) -> tuple[Parameter, ...]:
    """The explicit arguments. Names and types are known for OpenCL C only."""
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
    """Where a kernel finds its inputs: scalar register numbers, and byte offsets of the hidden arguments.

    ``kernarg_segment_ptr`` and ``dispatch_ptr`` are pairs of registers, ``workgroup_id_x`` … single registers;
    ``packed_work_item_id`` is 1 if v0 holds all three coordinates in 10 bits each, and ``work_item_dimensions``
    is the number of coordinates that the kernel requests. Hidden arguments keep their metadata names
    (``hidden_block_count_x``).
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
    """Whether one register holds all work-item coordinates: on GFX90A, GFX94, GFX95, and GFX11 and later."""
    digits = arch.removeprefix("gfx")
    if len(digits) == 4:
        return digits >= "1100"
    return digits == "90a" or digits[:2] in ("94", "95")


# Find the clang that compiles OpenCL C and HIP for AMD GPUs.
#
# Search order: `$DRYWARP_CLANG`; the package `ziglang` (extra `amd`), whose program contains a complete clang with the
# AMDGPU backend; a clang on PATH, newest first; ROCm's own. Clang 18 and later support the features that drywarp's
# headers need.

OLDEST = 18
_NEWEST_TRIED = 30
_ROCM = "/opt/rocm/llvm/bin/clang"
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Clang:
    """A clang: the command, its origin (``ziglang 0.17.1``, a path), and its version text."""

    command: tuple[str, ...]
    origin: str
    version: str

    @property
    def major(self) -> int:
        """The major version number; 0 if the text has none."""
        match = re.search(r"clang version (\d+)", self.version)
        return int(match[1]) if match else 0


@cache
def find_clang() -> Clang | None:
    """The first clang that works; None if there is none. Raises ToolError if `$DRYWARP_CLANG` does not work."""
    if named := os.environ.get("DRYWARP_CLANG"):
        found = _ask((named,), named)
        if found is None:
            raise ToolError(f"DRYWARP_CLANG={named}: not a working clang with the AMDGPU backend")
        return found
    for command, origin in _candidates():
        found = _ask(command, origin)
        if found is not None and found.major >= OLDEST:
            return found
    return None


def require_clang() -> Clang:
    """The clang to use. Raises ToolError if none is found."""
    found = find_clang()
    if found is None:
        raise ToolError(
            f"no clang for AMD GPUs found (expected: pip install 'drywarp[amd]', or clang {OLDEST} or later on PATH)"
        )
    return found


def _candidates() -> list[tuple[tuple[str, ...], str]]:
    candidates: list[tuple[tuple[str, ...], str]] = []
    for place in folders_of("ziglang"):
        if (program := place / "zig").is_file():
            candidates.append(((str(program), "clang"), f"ziglang {version_of('ziglang')}"))
    names = [f"clang-{major}" for major in range(_NEWEST_TRIED, OLDEST - 1, -1)]
    for name in (*names, "clang", _ROCM):
        if path := shutil.which(name):
            candidates.append(((path,), path))
    return candidates


def _ask(command: tuple[str, ...], origin: str) -> Clang | None:
    """Query a clang for its version and targets; None if it fails or cannot compile for AMD GPUs."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
        targets = subprocess.run(
            [*command, "-print-targets"], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    version = done.stdout.partition("\n")[0].strip()
    return Clang(command, origin, version) if "amdgcn" in targets.stdout else None


def amd_tool_versions() -> dict[str, str]:
    """The clang in use, as reported in results; ``missing`` if there is none (assembly input needs none)."""
    try:
        found = find_clang()
    except ToolError:
        found = None
    return {"clang": f"{found.version} ({found.origin})" if found else "missing"}

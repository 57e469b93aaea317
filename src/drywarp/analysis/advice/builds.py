"""Rebuilt kernels: which fields of the request differ, and what must hold for the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...frontends.cuda.compile import read_source
from ...hardware import load_gpu
from ...kernel.instruction import Constant, Operand
from ..prepared import Prepared
from .resimulate import register_steps
from .rules.base import without_limit


@dataclass(frozen=True)
class Build:
    """Prepare the kernel with `changes`. `rule` is the rule whose remedy this is; empty for none.

    `kind` is as in `drywarp.analysis.result.detail.WhatIfAnswer`. `remedy` is the sentence for a finding. `refuse`
    returns why the result is not what was asked for, or an empty text. `reason` is why the build is not attempted.
    """

    name: str
    kind: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    remedy: str = ""
    reason: str = ""
    refuse: Callable[[Prepared], str] = lambda made: ""


# Other block sizes, where the same threads do the same work in blocks of another size.
#
# That is certain only for one-dimensional launches whose threads do not interact: no barrier, no shared memory, and
# indices computed from blockDim. Anything else may have its block size compiled in.

SIZES = (32, 64, 128, 256, 512, 1024)
_SAME = 1e-3
"""Two launches do the same work if their global-memory accesses differ by no more than this fraction."""


def block_sizes(prepared: Prepared) -> list[Build]:
    """Every other size that divides the number of threads, or the reason why there is none."""
    if reason := compiled_in(prepared):
        return [Build("other block sizes", "launch", reason=reason)]
    launch = prepared.launch
    threads, now = launch.grid[0] * launch.block[0], launch.block[0]
    most = min(prepared.gpu.occupancy.max_threads_per_block, prepared.kernel.resources.max_threads or SIZES[-1])
    fitting = [size for size in SIZES if size != now and size <= most and threads % size == 0]
    if not fitting:
        return [
            Build(
                "other block sizes", "launch", reason=f"{threads} threads cannot be divided into blocks of another size"
            )
        ]
    return [_sized(prepared, threads // size, size) for size in fitting]


def compiled_in(prepared: Prepared) -> str:
    """Why the block size cannot be changed, as far as the machine code shows; empty if it can."""
    launch, kernel = prepared.launch, prepared.kernel
    if prepared.gpu.is_amd:
        return "only for NVIDIA machine code"
    if launch.block[1:] != (1, 1) or launch.grid[1:] != (1, 1):
        return "the launch has more than one dimension"
    if kernel.resources.shared_bytes or launch.dynamic_shared:
        return "blocks use shared memory, whose size may depend on the block size"
    if any(instruction.class_ in ("barrier", "mbarrier") for instruction in kernel.instructions):
        return "threads of a block synchronize, so their work may depend on the block size"
    operands = [operand for instruction in kernel.instructions for operand in instruction.operands]
    if not any(_is_block_size(operand, kernel.compute_capability) for operand in operands):
        return "the code does not read blockDim: the block size is compiled in"
    return ""


def _is_block_size(operand: Operand, capability: tuple[int, int]) -> bool:
    inside = operand.offset if isinstance(operand, Constant) and operand.bank == 0 else None
    return inside == (0x360 if capability >= (10, 0) else 0x0)


def _sized(prepared: Prepared, grid: int, block: int) -> Build:
    work = _accesses(prepared)

    def refuse(made: Prepared) -> str:
        return (
            ""
            if abs(_accesses(made) - work) <= _SAME * work
            else "it does different work: the code depends on the block size"
        )

    return Build(
        f"blocks of {block} threads",
        "launch",
        {"grid": grid, "block": block},
        rule="occupancy-block-size",
        remedy=f"launch {grid} blocks of {block} threads; emulated and predicted",
        refuse=refuse,
    )


def _accesses(prepared: Prepared) -> float:
    """Thread-level global-memory accesses of the whole grid."""
    lanes, code = prepared.profile.thread_instructions, prepared.kernel.instructions
    touching = [n for n, ins in enumerate(code) if ins.memory and ins.memory.space in ("global", "generic")]
    return float(sum(block.weight * lanes[row, touching].sum() for row, block in enumerate(prepared.profile.blocks)))


# The same kernel on another GPU.

USUAL = ("h100", "rtx4090")
"""Default GPUs to compare with: one for data centres, one for desktops."""


def other_gpus(prepared: Prepared, names: Sequence[str]) -> list[Build]:
    """One build for each GPU except the kernel's own."""
    for name in names:
        load_gpu(name)  # an unknown name is an error, not an impossible what-if
    if prepared.gpu.is_amd:
        return [Build("another GPU", "gpu", reason="only between NVIDIA GPUs")]
    return [Build(f"on {name}", "gpu", {"gpu": name}) for name in names or USUAL if name != prepared.gpu.name]


# A register cap at each occupancy step that it allows.


def register_caps(prepared: Prepared) -> list[Build]:
    """One build for each higher number of blocks per SM that registers prevent."""
    if "registers" not in prepared.fits.limiting:
        return [Build("fewer registers", "build", reason="registers do not limit the occupancy")]
    most = without_limit(prepared.fits, "registers")
    steps = register_steps(prepared.gpu.occupancy, prepared.kernel, prepared.launch, most)
    if not steps:
        return [Build("fewer registers", "build", reason="another resource limits the blocks per SM as well")]
    return [_capped(prepared, blocks, registers) for blocks, registers in steps.items()]


def _capped(prepared: Prepared, blocks: int, registers: int) -> Build:
    def refuse(made: Prepared) -> str:
        taken = made.kernel.resources.registers
        return f"it still uses {taken}: given as machine code, or the source sets bounds" if taken > registers else ""

    bounds = f"__launch_bounds__({prepared.launch.threads_per_block}, {blocks})"
    return Build(
        f"at most {registers} registers: {blocks} blocks per SM",
        "build",
        {"max_registers": registers},
        rule="occupancy-registers",
        remedy=f"cap registers at {registers}, as with {bounds}; compiled and predicted",
        refuse=refuse,
    )


# Other unroll factors, where the source has `#pragma unroll` or a macro with UNROLL in its name.

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

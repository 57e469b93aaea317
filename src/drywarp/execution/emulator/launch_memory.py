"""The device memory and the constant banks of a launch, before its first block runs."""

from __future__ import annotations

from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Argument, Buffer, Launch, Structure, TensorMap, Texture, TextureTable
from ...kernel.profile import GRID_BARRIER_AREA
from .constants import AREA_BYTES, PARAMETERS, ConstantBanks, build_banks, parameter_bytes, uses_grid_barrier
from .control import BUFFER_BYTES, BUFFERS, HEAP, HEAP_BYTES, MOST_BUFFERS, launches_kernels, needs_heap
from .memory import DeviceMemory

_MOST_ORDINALS = 1 << 16
"""Above every argument ordinal: random texels of several textures differ."""
_STACK_LIMIT = 1 << 20
_STACK_MARGIN = 4096
"""Bytes of local memory beyond the kernel's own frame, for calls and recursion."""


def device_memory(kernel: Kernel, launch: Launch, strict: bool) -> tuple[DeviceMemory, ConstantBanks]:
    """The launch's buffers and what the driver adds to them, and the constant banks that point there.

    With `strict` no read beyond the end of a buffer is served. Raises UsageError if arguments do not fit the
    parameters, or if a constant is unknown or too large.
    """
    memory = DeviceMemory(
        _buffers(kernel, launch), kernel.global_image, launch.seed, _scratch(kernel), strict, launch.memory
    )
    return memory, build_banks(kernel, launch, memory, local_bytes(kernel))


def local_bytes(kernel: Kernel) -> int:
    """Local memory per thread. A compiler that cannot bound a recursion states a meaningless size."""
    frame = kernel.resources.local_bytes
    return -(-((frame if frame < _STACK_LIMIT else 0) + _STACK_MARGIN) // 16) * 16


def _buffers(kernel: Kernel, launch: Launch) -> list[tuple[str, int, Buffer]]:
    """Name, ordinal and content of the launch's buffers, those of textures and tensor maps included."""
    names = [p.name or f"arg{n}" for n, p in enumerate(kernel.parameters)]
    names += [f"arg{n}" for n in range(len(names), len(launch.arguments))]
    buffers = [area for n, argument in enumerate(launch.arguments) for area in _areas(names[n], n, argument)]
    textures = [(name, value.buffer) for name, value in launch.constants.items() if isinstance(value, Texture)]
    return buffers + [(name, len(names) + n, buffer) for n, (name, buffer) in enumerate(textures)]


def _areas(name: str, ordinal: int, argument: Argument) -> list[tuple[str, int, Buffer]]:
    """The device memory areas of an argument: a buffer, texels, handles and the texels of several, fields' buffers."""
    if isinstance(argument, TextureTable):
        first = _MOST_ORDINALS * (ordinal + 1)
        texels = [(f"{name}[{n}]", first + n, made.buffer) for n, made in enumerate(argument.objects)]
        return [(name, ordinal, Buffer("u64", (len(texels),))), *texels]
    if isinstance(argument, Structure):
        first = _MOST_ORDINALS * (ordinal + 1)
        own = [(name, ordinal, Buffer("u8", (len(argument.data),)))] if argument.in_memory else []
        parts = enumerate(argument.parts)
        return own + [area for n, (_, path, part) in parts for area in _areas(path, first + n, part)]
    buffer = argument.buffer if isinstance(argument, Texture | TensorMap) else argument
    return [(name, ordinal, buffer)] if isinstance(buffer, Buffer) else []


def _scratch(kernel: Kernel) -> list[tuple[str, int]]:
    """Device memory areas that the driver provides, by name and bytes."""
    areas = [(HEAP, HEAP_BYTES)] if needs_heap(kernel) else []
    areas += [(BUFFERS, BUFFER_BYTES * MOST_BUFFERS)] if launches_kernels(kernel) else []
    areas += [(GRID_BARRIER_AREA, AREA_BYTES)] if uses_grid_barrier(kernel) else []
    return [*areas, (PARAMETERS, parameter_bytes(kernel))] if parameter_bytes(kernel) else areas

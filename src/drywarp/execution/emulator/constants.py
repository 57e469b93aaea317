"""Constant banks of a launch: bank 0 with launch state and parameters, and the module's own; and grid-wide barriers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ...errors import EmulationError, UsageError
from ...kernel.cfg import jump_target
from ...kernel.instruction import Constant
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Argument, Buffer, Launch, Scalar, Structure, TensorMap, Texture, TextureTable
from ...kernel.profile import GRID_BARRIER_AREA
from .content import buffer_content
from .memory import DeviceMemory, Region
from .tensor_maps import encode

BANK_BYTES = 1 << 16
PARAMETERS = "kernel parameters"
SHARED_WINDOW = 0x7E0100000000
"""Generic address of shared memory byte 0. Its low half is zero: from sm_90 on, code reads only the high half."""
LOCAL_WINDOW = 0x7E0200000000
"""Generic address of local memory byte 0."""
WINDOW_BYTES = 1 << 24
EXTERNAL_BASE, EXTERNAL_STRIDE = 0x7D0000000000, 16
"""Address that represents a kernel's first external function, and the distance to the next one's."""
_USER_CONSTANT_BANK = 3


class ConstantBanks:
    """The banks by number, each 64 KiB and zero where nothing is stored."""

    def __init__(self, banks: Mapping[int, npt.NDArray[np.uint8]]) -> None:
        self._banks = dict(banks)

    def bank(self, number: int) -> npt.NDArray[np.uint8]:
        """Bytes of a bank, shape (65536,). Raises EmulationError if the kernel has no such bank."""
        if number not in self._banks:
            raise EmulationError(f"constant bank {number} is not part of this kernel")
        return self._banks[number]

    def word(self, number: int, offset: int) -> int:
        """The 32-bit word at a byte offset."""
        return int(self.bank(number)[offset : offset + 4].view(np.uint32)[0])


def build_banks(kernel: Kernel, launch: Launch, memory: DeviceMemory, stack_bytes: int) -> ConstantBanks:
    """Lay out all banks for a launch. `memory` must hold its buffers, in the order of the arguments.

    Raises UsageError if arguments do not fit the parameters, or if a constant is unknown or too large.
    """
    banks = {0: np.zeros(BANK_BYTES, np.uint8), _USER_CONSTANT_BANK: np.zeros(BANK_BYTES, np.uint8)}
    for number, data in kernel.constant_banks.items():
        banks[number] = np.zeros(BANK_BYTES, np.uint8)
        banks[number][: len(data)] = np.frombuffer(data[:BANK_BYTES], np.uint8)
    _launch_state(banks[0], kernel, launch, stack_bytes)
    _parameters(banks[0], kernel, launch, memory)
    for relocation in kernel.relocations:
        if relocation.bank in banks:
            _put(banks[relocation.bank], relocation.offset, "<Q", memory.image.start + relocation.image_offset)
    for number, external in enumerate(kernel.externals):
        if external.bank in banks:
            _put(banks[external.bank], external.offset, "<Q", EXTERNAL_BASE + EXTERNAL_STRIDE * number)
    if uses_grid_barrier(kernel):
        put_area(banks[0], kernel, memory.region_named(GRID_BARRIER_AREA).start)
    for ordinal, (name, value) in enumerate(launch.constants.items()):
        symbol = kernel.symbols.get(name)
        if symbol is None or symbol.space not in ("constant", "global"):
            known = sorted(n for n, s in kernel.symbols.items() if s.space in ("constant", "global"))
            raise UsageError(
                f"constant {name}: no such variable in {kernel.name} (it has {', '.join(known) or 'none'})"
            )
        data_bytes = _constant_bytes(name, value, ordinal, launch.seed, memory)
        if len(data_bytes) > symbol.size > 0:
            raise UsageError(f"constant {name}: {len(data_bytes)} bytes given, the variable holds {symbol.size}")
        variables = banks[_USER_CONSTANT_BANK] if symbol.space == "constant" else memory.bytes_of(memory.image)
        variables[symbol.offset : symbol.offset + len(data_bytes)] = data_bytes
    return ConstantBanks(banks)


def _constant_bytes(name: str, value: Argument, ordinal: int, seed: int, memory: DeviceMemory) -> npt.NDArray[np.uint8]:
    """The value of a variable: the elements of a buffer, a number, or the handle of a texture."""
    if isinstance(value, Buffer):
        return np.ascontiguousarray(buffer_content(value, ordinal, seed)).reshape(-1).view(np.uint8)
    if isinstance(value, Texture):
        region = next(r for r in memory.regions if r.buffer is value.buffer and r.name == name)
        return np.frombuffer(struct.pack("<Q", memory.bind(value, region)), np.uint8)
    if isinstance(value, TextureTable):
        raise UsageError(f"constant {name}: several textures, expected one")
    if isinstance(value, TensorMap):
        raise UsageError(f"constant {name}: got a tensor map, which is allowed only as a parameter")
    if isinstance(value, Structure):
        raise UsageError(f"constant {name}: got a structure with buffers, which is allowed only as a parameter")
    return np.frombuffer(value.data, np.uint8)


def _put(bank: npt.NDArray[np.uint8], offset: int, form: str, *values: int) -> None:
    data = struct.pack(form, *values)
    bank[offset : offset + len(data)] = np.frombuffer(data, np.uint8)


def _launch_state(bank: npt.NDArray[np.uint8], kernel: Kernel, launch: Launch, stack_bytes: int) -> None:
    """Block and grid dimensions, stack pointer and windows, at each architecture's offsets."""
    if kernel.compute_capability >= (9, 0):
        _cluster_state(bank, kernel, launch)
    if kernel.compute_capability >= (10, 0):
        block_at, grid_at, stack_at, local_at = 0x360, 0x370, 0x37C, 0x2F8
    else:
        block_at, grid_at, stack_at, local_at = 0x0, 0xC, 0x28, 0x20
        _put(bank, 0x18, "<Q", SHARED_WINDOW)
    _put(bank, block_at, "<3I", *launch.block)
    _put(bank, grid_at, "<3I", *launch.grid)
    _put(bank, stack_at, "<I", stack_bytes)
    _put(bank, local_at, "<Q", LOCAL_WINDOW)


def _cluster_state(bank: npt.NDArray[np.uint8], kernel: Kernel, launch: Launch) -> None:
    """Extents of a cluster, their inverses, clusters in the grid, blocks in one, and whether clusters were asked for.

    Without clusters every block is its own. From sm_100 on, the table is reached through SR_CgaSize, which reads 1.
    """
    base = 0x200 if kernel.compute_capability >= (10, 0) else 0x144
    size_at = 0x22C if kernel.compute_capability >= (10, 0) else 0x188
    grid_at = 0x220 if kernel.compute_capability >= (10, 0) else 0x15C
    inverse_at = 0x210 if kernel.compute_capability >= (10, 0) else 0x150
    flag_at = 0x36C if kernel.compute_capability >= (10, 0) else 0x140
    _put(bank, base, "<3I", *launch.cluster)
    _put(bank, inverse_at, "<3f", *(1 / extent for extent in launch.cluster))  # type: ignore[arg-type]
    _put(bank, grid_at, "<3I", *launch.clusters)
    _put(bank, size_at, "<I", launch.cluster_blocks)
    _put(bank, flag_at, "<I", int(launch.cluster_blocks > 1))


def _bytes_of(argument: Argument, regions: Iterator[Region], memory: DeviceMemory) -> bytes:
    """What an argument, or a field, holds; `regions` are those of its buffers and the following ones."""
    if isinstance(argument, Scalar):
        return argument.data
    if isinstance(argument, TensorMap):
        return encode(argument, (next(regions) if argument.buffer is not None else _named(argument.of, memory)).start)
    if not isinstance(argument, Structure):
        return struct.pack("<Q", _handed(argument, regions, memory))
    own = next(regions) if argument.in_memory else None
    data = bytearray(argument.data)
    for offset, _, part in argument.parts:
        held = _bytes_of(part, regions, memory)
        data[offset : offset + len(held)] = held
    if own is None:
        return bytes(data)
    memory.bytes_of(own)[...] = np.frombuffer(data, np.uint8)
    return struct.pack("<Q", own.start)


def _handed(argument: Argument, regions: Iterator[Region], memory: DeviceMemory) -> int:
    """The address of a buffer, the handle of a texture, the address of the handles of several."""
    region = next(regions)
    if isinstance(argument, Texture):
        return memory.bind(argument, region)
    if isinstance(argument, TextureTable):
        handles = [memory.bind(made, next(regions)) for made in argument.objects]
        memory.bytes_of(region)[...] = np.array(handles, np.uint64).view(np.uint8)
    return region.start


def _parameters(bank: npt.NDArray[np.uint8], kernel: Kernel, launch: Launch, memory: DeviceMemory) -> None:
    if len(launch.arguments) != len(kernel.parameters):
        raise UsageError(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, the launch gives {len(launch.arguments)}"
        )
    regions = iter(memory.regions)
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=True):
        data = _bytes_of(argument, regions, memory)
        if len(data) > parameter.size:
            name = parameter.name or f"arg{parameter.ordinal}"
            raise UsageError(f"argument {name}: {len(data)} bytes given, the parameter takes {parameter.size}")
        at = kernel.parameter_base + parameter.offset
        bank[at : at + len(data)] = np.frombuffer(data, np.uint8)
    if taken := parameter_bytes(kernel):
        # Code that takes a parameter's address expects the parameters in memory, too.
        region = memory.region_named(PARAMETERS)
        memory.bytes_of(region)[...] = bank[kernel.parameter_base :][:taken]
        _put(bank, parameter_address(kernel), "<Q", region.start)


def parameter_address(kernel: Kernel) -> int:
    """The offset in bank 0 of the parameters' address; -1 if there is none."""
    if kernel.compute_capability < (9, 0):
        return -1
    return 0x348 if kernel.compute_capability >= (10, 0) else 0x198


def parameter_bytes(kernel: Kernel) -> int:
    """Bytes of parameters that must be in memory because the code takes the address of one; else 0."""
    at = parameter_address(kernel)
    taken = any(
        isinstance(o, Constant) and o.bank == 0 and o.bank_register is None and o.offset == at
        for instruction in kernel.instructions
        for o in instruction.operands
    )
    return max((p.offset + p.size for p in kernel.parameters), default=0) if taken else 0


def _named(name: str, memory: DeviceMemory) -> Region:
    """The region of an argument's or a field's buffer, or of the buffer in its tensor map."""
    return next(region for region in memory.regions if region.buffer is not None and region.name == name)


# Grid-wide barriers (`this_grid().sync()` of cooperative groups): the word in memory with their counter.
#
# The driver hands a cooperative launch the address of a small area, in two words of bank 0 that CUDA calls environment
# registers 2 and 1. A thread of each block adds to a counter there and waits until the last one has flipped its top
# bit, so all blocks of the grid must run at once.

AREA_BYTES = 64
WHOLE_GRID_NOTE = "blocks wait for each other: the whole grid was emulated at once"
_MOST_WARPS = 1 << 14
"""Most warps that are run at once: more than any GPU holds, and a cooperative grid must fit on one."""
CLUSTER_SIZE = 1
"""The content of the cluster-size register; from sm_100 on it shifts the two words."""
_CLUSTER_STRIDE = 0xA0


def _places(kernel: Kernel) -> tuple[int, int]:
    """Offsets in bank 0 of the low and the high half of the area's address, as the code names them."""
    if kernel.compute_capability >= (10, 0):
        return 0x258, 0x254
    return (0x48, 0x44) if kernel.compute_capability >= (9, 0) else (0x90, 0x8C)


def uses_grid_barrier(kernel: Kernel) -> bool:
    """Whether the code reads the words that hold the area's address."""
    places = set(_places(kernel))
    shifted = kernel.compute_capability >= (10, 0)
    read = {
        operand.offset
        for instruction in kernel.instructions
        for operand in instruction.operands
        if isinstance(operand, Constant) and operand.bank == 0 and (operand.register is not None) == shifted
    }
    return places <= read


def put_area(bank: npt.NDArray[np.uint8], kernel: Kernel, address: int) -> None:
    """Write the area's address where the code looks for it."""
    shift = CLUSTER_SIZE * _CLUSTER_STRIDE if kernel.compute_capability >= (10, 0) else 0
    for offset, half in zip(_places(kernel), struct.unpack("<II", struct.pack("<Q", address)), strict=True):
        bank[offset - shift : offset - shift + 4] = np.frombuffer(struct.pack("<I", half), np.uint8)


def fits_at_once(launch: Launch) -> bool:
    """Whether all blocks of a grid can be emulated together."""
    return launch.blocks * launch.warps_per_block <= _MOST_WARPS


def check_whole_grid(kernel: Kernel, launch: Launch) -> None:
    """Raise UsageError for a grid whose blocks cannot all be emulated at once."""
    if not fits_at_once(launch):
        raise UsageError(
            f"{kernel.name}: its blocks wait for each other at a grid-wide barrier, but {launch.blocks} blocks of"
            f" {launch.warps_per_block} warps cannot run at once; expected at most {_MOST_WARPS} warps"
        )


def names_outside(kernel: Kernel) -> tuple[bool, bool]:
    """Whether a kernel may take the address of a variable of its module; and of a function outside its code.

    Both addresses stand in constant banks, for all kernels of the module.
    """
    used = [o for i in kernel.instructions for o in i.operands if isinstance(o, Constant)]
    exact = {(o.bank, o.offset) for o in used}
    vague = {o.bank for o in used if o.register or o.bank_register}
    places = [[(one.bank, one.offset) for one in some] for some in (kernel.relocations, kernel.externals)]
    found = [any(place in exact or place[0] in vague for place in some) for some in places]
    unplaced = bool(kernel.global_image) and not kernel.relocations
    calls = any(i.opcode == "CALL" and jump_target(i) is None for i in kernel.instructions)
    return found[0] or unplaced, found[1] or (calls and bool(kernel.externals))

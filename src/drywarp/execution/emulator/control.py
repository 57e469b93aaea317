"""Branches, calls, returns and exits; and the functions outside the code that it calls, launches among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import EmulationError, UnsupportedInstructionError
from ...kernel.cfg import function_start, jump_target
from ...kernel.instruction import URZ, Immediate, Instruction, Label, Predicate, Register
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Dim3
from .bits import LANES
from .constants import EXTERNAL_BASE, EXTERNAL_STRIDE
from .convergence import MOVED, Finish, condition_of, finish, member_values, words_of
from .decode import Decoder, place
from .frame import Frame
from .operands import ZERO, Fetch
from .printf import Words, formatted, string_at

if TYPE_CHECKING:
    from .convergence import Scheduling

_RETURN_REGISTER = 20
"""First register of the return address in the device's calling convention."""


@finish("BRA", "U DIV CONV ANY ALL")
def _branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    target = jump_target(i)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    if "DIV" in i.modifiers or "CONV" in i.modifiers:
        return _branch_on_presence(d, i, fall, target)
    if "ANY" in i.modifiers or "ALL" in i.modifiers:
        return _branch_together(d, i, fall, target)
    extra = next((o for o in i.operands if isinstance(o, Predicate)), None)
    if i.guard is None and extra is None:
        return lambda s, f: target
    condition = condition_of(d, i, extra)

    def branch(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        total = f.total if lanes is None else int(np.count_nonzero(lanes))
        if total == 0:
            return fall
        if total == f.total:
            return target
        s.split(words_of(f, lanes), target, fall)
        return MOVED

    return branch


def _branch_on_presence(d: Decoder, i: Instruction, fall: int, target: int) -> Finish:
    """BRA.DIV jumps if live lanes of the mask are missing here, BRA.CONV if all are present.

    The guard says which lanes count as present (compilers use one that is false if lanes name different masks); either
    all executing lanes jump or none.
    """
    # Without a mask, as on sm_75, the whole warp is meant.
    everyone = Register(URZ, True, invert=True)
    wanted = d.word(next((o for o in i.operands if isinstance(o, Register)), everyone))
    condition = condition_of(d, i)
    divergent = "DIV" in i.modifiers

    def branch(s: Scheduling, f: Frame) -> int:
        mask = member_values(f, wanted(f))
        absent = (mask & f.machine.live[s.warps] & ~words_of(f, condition(f))) != ZERO
        taken = absent if divergent else ~absent
        if not taken.any():
            return fall
        if taken.all():
            return target
        s.split(np.where(taken, words_of(f, None), ZERO), target, fall)
        return MOVED

    return branch


def _branch_together(d: Decoder, i: Instruction, fall: int, target: int) -> Finish:
    """BRA.U.ANY and BRA.U.ALL: all executing lanes jump if any of them, or all, would."""
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))
    every = "ALL" in i.modifiers

    def branch(s: Scheduling, f: Frame) -> int:
        active, would = words_of(f, None), words_of(f, condition(f))
        taken = would == active if every else would != ZERO
        if not taken.any():
            return fall
        if taken.all():
            return target
        s.split(np.where(taken, active, ZERO), target, fall)
        return MOVED

    return branch


@finish("CALL", "REL ABS NOINC INC")
def _call(d: Decoder, i: Instruction, fall: int) -> Finish:
    # A call is only a jump: the caller has already put the return address into registers.
    target = jump_target(i)
    registers = [o for o in i.operands if isinstance(o, Register)]
    if "ABS" in i.modifiers:
        return _absolute_call(d, i, fall, registers)
    if registers:
        return _jump_to_register(d, i, _relative(d, i, registers[0]), fall)
    if target is None:
        raise UnsupportedInstructionError("unknown target")
    condition = condition_of(d, i)

    def call(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is None:
            return target
        s.split(words_of(f, lanes), target, fall)
        return MOVED

    return call


def _absolute_call(d: Decoder, i: Instruction, fall: int, registers: list[Register]) -> Finish:
    """A call by address: of a driver function, which returns immediately, or of code in the kernel."""
    condition = condition_of(d, i)
    names = {name for label in i.operands if isinstance(label, Label) for name in (label.name,)}
    back = _jump_to(d.word(Register(_RETURN_REGISTER)), d, i)
    register = (d.pair(registers[0]), _jump_to(d.word(registers[0]), d, i)) if registers else None
    # Decoded with the block, so the registers that they use are known.
    outside = {name: external_call(d, i, name) for name in {*names, *(e.name for e in d.kernel.externals)}}

    def call(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        words = words_of(f, lanes)
        if not words.any():
            return fall
        if lanes is not None and (words != words_of(f, None)).any():
            # The calling lanes return here on their own.
            s.split(words, i.pc, fall)
            return MOVED
        if register is None:
            outside[next(iter(names))](f)
            return back(s, f, None)
        target, inside = register
        addresses = f.spread(target(f))[f.lanes()]
        if addresses.max() < d.kernel.instructions[-1].pc:
            return inside(s, f, None)
        name = external_at(d.kernel, int(addresses[0]))
        if name is None or (addresses != addresses[0]).any():
            raise EmulationError(
                f"{place(d.kernel, i)}: call of {int(addresses[0]):#x}, which is not a function: {i.text}"
            )
        outside[name](f)
        return back(s, f, None)

    return call


@finish("RET", "REL ABS NODEC INC")
def _return(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    return _jump_to_register(d, i, _relative(d, i, register), fall)


def _relative(d: Decoder, i: Instruction, register: Register) -> Fetch:
    """The target in a register, which counts from the start of the function that the instruction names."""
    held, base = d.word(register), np.uint32(function_start(i))
    return (lambda f: held(f) + base) if base else held


@finish("BRX BRXU")
def _indexed_branch(d: Decoder, i: Instruction, fall: int) -> Finish:
    register = next(o for o in i.operands if isinstance(o, Register))
    offset = next((int(o.value) for o in i.operands if isinstance(o, Immediate)), 0)
    base, start = d.word(register), np.uint32((fall + offset) & 0xFFFFFFFF)
    return _jump_to_register(d, i, lambda f: base(f) + start, fall)


def _jump_to_register(d: Decoder, i: Instruction, target: Fetch, fall: int) -> Finish:
    condition = condition_of(d, i)
    jump = _jump_to(target, d, i)

    def finish(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is not None:
            if not lanes.any():
                return fall
            if not lanes[f.lanes()].all():
                # Those that jump return here on their own.
                s.split(words_of(f, lanes), i.pc, fall)
                return MOVED
        return jump(s, f, None)

    return finish


def _jump_to(target: Fetch, d: Decoder, i: Instruction) -> Callable[[Scheduling, Frame, None], int]:
    """Go to per-lane code addresses, relative to the kernel."""
    count = len(d.kernel.instructions)

    def jump(s: Scheduling, f: Frame, _: None) -> int:
        lanes = f.lanes()
        targets = f.spread(target(f))
        different = np.unique(targets[lanes]).tolist()
        for pc in different:
            if pc % 16 or pc // 16 >= count:
                raise EmulationError(f"{place(d.kernel, i)}: jump to {pc:#x}, which is not in the kernel: {i.text}")
        if len(different) == 1:
            return int(different[0])
        s.scatter([(pc, words_of(f, lanes & (targets == np.uint32(pc)))) for pc in different])
        return MOVED

    return jump


@finish("EXIT KILL", "KEEPREFCOUNT PREEMPTED NO_ATEXIT")
def _exit(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition = condition_of(d, i, next((o for o in i.operands if isinstance(o, Predicate)), None))

    def leave(s: Scheduling, f: Frame) -> int:
        lanes = condition(f)
        if lanes is not None and not lanes.any():
            return fall
        words = words_of(f, lanes)
        warps = s.warps
        s.split(words, fall, fall, keep_taken=False)
        s.groups.retire(warps, words)
        s.groups.release(warps)
        s.groups.release_barriers(warps)
        return MOVED

    return leave


# Functions that the code calls but does not contain: the device's printf, assert, malloc and launches.
#
# They come with the driver. A call goes through a word of a constant bank that the loader fills with the function's
# address; here the address identifies the function's name.

_VALUE_REGISTER = 4
"""First register of arguments and results in the device's calling convention."""
_ALLOCATION = np.uint64(16)
HEAP = "the device's heap"
HEAP_BYTES = 8 << 20
"""The default heap of `malloc` in device code (cudaLimitMallocHeapSize)."""
_HEAP_NOTE = (
    f"malloc and free: served from a heap of {HEAP_BYTES >> 20} MiB; free returns nothing to it; both take zero time"
)

Call = Callable[[Frame], None]


def external_at(kernel: Kernel, address: int) -> str | None:
    """The name of the external function at an address; None if there is none."""
    number, rest = divmod(address - EXTERNAL_BASE, EXTERNAL_STRIDE)
    return kernel.externals[number].name if not rest and 0 <= number < len(kernel.externals) else None


def needs_heap(kernel: Kernel) -> bool:
    """Whether the kernel allocates memory."""
    return any(external.name == "malloc" for external in kernel.externals)


def external_call(d: Decoder, i: Instruction, name: str) -> Call:
    """The effect of a call to an external function on the executing lanes, besides returning."""
    result = d.put(Register(_VALUE_REGISTER))
    if name == "malloc":
        return _allocate(d)
    left_out = {
        "vprintf": "printf was skipped",
        "free": _HEAP_NOTE,
        "__assertfail": f"an assertion failed at {place(d.kernel, i)}; the run continued",
    }.get(name, f"{name} was skipped at {place(d.kernel, i)}: its code is not in the kernel; it returned 0")

    if launching := {GIVES_BUFFER: _buffer_call, TAKES_BUFFER: _launch_call}.get(name):
        return launching(d, i)
    asked = {"vprintf": _print_call, "__assertfail": _assert_call}.get(name)
    really = asked(d, i) if asked else None

    def leave_out(f: Frame) -> None:
        if really is not None and f.machine.prints is not None:
            return really(f)
        f.machine.notes.add(left_out)
        return result(f, ZERO)

    return leave_out


def _allocate(d: Decoder) -> Call:
    """Memory from a heap that only grows, lane after lane; a null pointer if it is exhausted."""
    size = d.pair(Register(_VALUE_REGISTER))
    result = d.put_pair(Register(_VALUE_REGISTER))
    memory = d.memory
    used_up = f"malloc returned null pointers: the device's heap of {HEAP_BYTES >> 20} MiB was exhausted"

    def allocate(f: Frame) -> None:
        f.machine.notes.add(_HEAP_NOTE)
        lanes = f.lanes()
        wanted = f.spread(size(f))
        possible = wanted <= np.uint64(HEAP_BYTES)
        pieces = (np.maximum(wanted, np.uint64(1)) + _ALLOCATION - np.uint64(1)) // _ALLOCATION
        taken = np.where(lanes & possible, pieces * _ALLOCATION, np.uint64(0))
        ends = np.cumsum(taken, dtype=np.uint64).reshape(f.rows, LANES) + np.uint64(memory.heap_used)
        fits = possible & (ends <= np.uint64(HEAP_BYTES))
        if not fits[lanes].all():
            f.machine.notes.add(used_up)
        memory.heap_used = int(ends[fits & lanes].max(initial=memory.heap_used))
        start = np.uint64(memory.region_named(HEAP).start)
        result(f, np.where(fits, start + ends - taken, np.uint64(0)))

    return allocate


# Launches of other kernels.
#
# A launch is two calls, which the device's runtime makes for `<<<>>>` since CUDA 12: one gives a buffer for parameters,
# which the code then fills; the other takes that buffer and a stream.

GIVES_BUFFER, TAKES_BUFFER = "__cuda_syscall_cnpv2GetParameterBufferV2", "__cuda_syscall_cnpv2LaunchDeviceV2"
BUFFERS, BUFFER_BYTES, MOST_BUFFERS = "parameters of launches", 1 << 12, 1 << 11
"""Room for all parameters that a launch may have, and for as many launches as may wait in CUDA by default
(cudaLimitDevRuntimePendingLaunchCount)."""
_BUFFER, _STREAM, _EXTENTS, _TAIL = 4, 6, 6, 3
"""First registers of the kernel's or the buffer's address, of the stream, and of two extents and the dynamic shared
memory; `cudaStreamTailLaunch`."""
_LAUNCHES = "it launches other kernels, which are no part of its time"


@dataclass(frozen=True)
class DeviceLaunch:
    """A launch that device code asks for, of the kernel with this symbol.

    `parameters` are the bytes of the buffer, of which the kernel's come first. A `tail` launch waits for all others.
    """

    symbol: str
    grid: Dim3
    block: Dim3
    shared: int
    parameters: bytes
    tail: bool


def launches_kernels(kernel: Kernel) -> bool:
    """Whether the code of a kernel, or what it calls, launches other kernels."""
    return any(external.name == GIVES_BUFFER for external in kernel.externals)


def _buffer_call(d: Decoder, i: Instruction) -> Callable[[Frame], None]:
    """The effect of asking for the buffer of a launch: its address, 0 if as many as there may be are taken."""
    words = [d.word(Register(number)) for number in (_BUFFER, *range(_EXTENTS, _EXTENTS + 7))]
    result, memory = d.put_pair(Register(_BUFFER)), d.memory

    def call(f: Frame) -> None:
        f.machine.notes.add(_LAUNCHES)
        start = memory.region_named(BUFFERS).start
        values = np.stack([f.spread(word(f)) for word in words], axis=-1)
        found = np.zeros((f.rows, LANES), np.uint64)
        for row, lane in np.argwhere(f.lanes()).tolist():
            free = next((n for n in range(MOST_BUFFERS) if n not in memory.launching), None)
            if free is not None:
                memory.launching[free] = tuple(values[row, lane].tolist())
                found[row, lane] = start + free * BUFFER_BYTES
        result(f, found)

    return call


def _launch_call(d: Decoder, i: Instruction) -> Callable[[Frame], None]:
    """The effect of a launch with a buffer; returns CUDA's `invalid value` for what is none."""
    buffer, stream = d.pair(Register(_BUFFER)), d.pair(Register(_STREAM))
    result, memory = d.put(Register(_BUFFER)), d.memory
    symbols = {symbol.offset: name for name, symbol in d.kernel.symbols.items() if symbol.space == "code"}
    symbols.setdefault(0, d.kernel.symbol)

    def call(f: Frame) -> None:
        region = memory.region_named(BUFFERS)
        buffers, streams = f.spread(buffer(f)), f.spread(stream(f))
        status = np.zeros(buffers.shape, np.uint32)
        for row, lane in np.argwhere(f.lanes()).tolist():
            number, rest = divmod(int(buffers[row, lane]) - region.start, BUFFER_BYTES)
            asked = memory.launching.pop(number, None) if not rest else None
            if asked is None:
                status[row, lane] = 1
                continue
            address, *extents = asked
            if address not in symbols:
                raise EmulationError(f"{place(d.kernel, i)}: launch of {address:#x}, which is not a kernel: {i.text}")
            content = memory.bytes_of(region)[number * BUFFER_BYTES : (number + 1) * BUFFER_BYTES].tobytes()
            grid, block = (extents[0], extents[1], extents[2]), (extents[3], extents[4], extents[5])
            tail = int(streams[row, lane]) == _TAIL
            memory.launched.append(DeviceLaunch(symbols[address], grid, block, extents[6], content, tail))
        result(f, status)

    return call


_FORMAT, _ARGUMENTS = 4, 6
"""First registers of the two addresses in the device's calling convention; the result is in the first one's."""
_MESSAGE, _LINE = 4, 8


def _print_call(d: Decoder, i: Instruction) -> Callable[[Frame], None]:
    """The effect of vprintf on the executing lanes, in their order; returns the number of arguments as CUDA does."""
    format_at, arguments_at = d.pair(Register(_FORMAT)), d.pair(Register(_ARGUMENTS))
    result = d.put(Register(_FORMAT))

    def call(f: Frame) -> None:
        prints = f.machine.prints
        assert prints is not None
        formats, places = f.spread(format_at(f)), f.spread(arguments_at(f))
        counts = np.zeros(formats.shape, np.uint32)
        for row, lane in np.argwhere(f.lanes()).tolist():
            words = Words(f, row, lane, int(places[row, lane]))
            text = string_at(d.memory, int(formats[row, lane]))
            prints.append(formatted(text, words, d.memory))
            counts[row, lane] = words.taken
        result(f, counts)

    return call


def _assert_call(d: Decoder, i: Instruction) -> Callable[[Frame], None]:
    """The effect of a failed assertion: the launch ends, and the message says what does not hold, and where."""
    message, line = d.pair(Register(_MESSAGE)), d.word(Register(_LINE))

    def call(f: Frame) -> None:
        row, lane = (int(n) for n in np.argwhere(f.lanes())[0])
        text = string_at(d.memory, int(f.spread(message(f))[row, lane]))
        number = int(f.spread(line(f))[row, lane])
        thread = f.machine.thread_name(int(f.warps[row]), lane)
        raise EmulationError(f"{place(d.kernel, i)}: assertion `{text}` (line {number}) failed in {thread}")

    return call

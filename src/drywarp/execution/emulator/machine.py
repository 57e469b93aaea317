"""The state of the thread blocks that are emulated together: registers, shared and local memory.

Arrays have one row per register and one column per warp of all these blocks, so one NumPy call executes an instruction
for every warp that has reached it: general registers (register, warp, 32), uniform ones (register, warp, 1), which
broadcast against them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.instruction import RZ, Address, Constant, Instruction, Operand, Register
from ...kernel.isa.nvidia.registers import accessed
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Dim3, Launch
from .bits import LANE, LANES, pack

U32 = npt.NDArray[np.uint32]
PREDICATES = 7
BARRIER_REGISTERS = 16
BLOCK_BARRIERS = 17
"""The barriers of BAR, and one for a cluster that is a single block."""
RANK_SHIFT = 24
"""From this bit on, an address in the shared memory of a cluster is the rank of the block that it belongs to."""
CLUSTER_PHASES = -1
"""Stands for the cluster barrier where barriers go by block and address; its block is the cluster's first."""
SPECIAL_ROWS = (
    "SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_LANEID", "SR_LTMASK",
    "SR_LEMASK", "SR_EQMASK", "SR_GTMASK", "SR_GEMASK", "SR_VIRTID", "SR_CgaCtaId",
)  # fmt: skip
"""Special registers that differ between warps or lanes, in the order of their rows."""
_OF_A_WARP = frozenset({"SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_VIRTID", "SR_CgaCtaId"})


def thread_registers(launch: Launch, thread: U32, lane: U32) -> dict[str, npt.NDArray[Any]]:
    """Special registers of threads by their number in the block, and by lane."""
    x, y, _ = launch.block
    below = (np.uint32(1) << lane) - np.uint32(1)
    upto = below * np.uint32(2) + np.uint32(1)
    return {
        "SR_TID.X": thread % np.uint32(x),
        "SR_TID.Y": thread // np.uint32(x) % np.uint32(y),
        "SR_TID.Z": thread // np.uint32(x * y),
        "SR_LANEID": lane,
        "SR_LTMASK": below,
        "SR_LEMASK": upto,
        "SR_EQMASK": np.uint32(1) << lane,
        "SR_GTMASK": ~upto,
        "SR_GEMASK": ~below,
    }


_REACH_MEMORY = frozenset({"async_copy", "bulk_copy", "call", "mbarrier", "texture"})
"""Classes whose instructions may write to shared or local memory without saying so."""
_PLAIN = frozenset({"load", "store", "atomic", "reduction"})


@dataclass(frozen=True)
class Needs:
    """What a kernel's code needs of a machine.

    `registers` is how many general and uniform ones, `local_bytes` local memory per thread. `guards` numbers the
    instructions under a guard, -1 for the others. `writes` are those of shared and local memory that the code may
    change.
    """

    registers: tuple[int, int]
    local_bytes: int
    guards: npt.NDArray[np.int32]
    writes: frozenset[str]

    @classmethod
    def of(cls, instructions: Sequence[Instruction], registers: tuple[int, int], local_bytes: int) -> Needs:
        """The needs of some code."""
        under = np.array([instruction.guard is not None for instruction in instructions], np.bool_)
        guards = np.where(under, np.cumsum(under) - 1, -1).astype(np.int32)
        writes = {space for space in ("shared", "local") if any(_may_write(i, space) for i in instructions)}
        return cls(registers, local_bytes, guards, frozenset(writes))


def _may_write(instruction: Instruction, space: str) -> bool:
    access = instruction.memory
    if access is None or access.kind not in _PLAIN:
        return access is not None or instruction.class_ in _REACH_MEMORY
    return access.space in (space, "generic") and access.kind != "load"


class Store:
    """Arrays of the waves that ran before, for those that follow: fresh pages cost more than zeroing old ones.

    A wave must have ended before the next one takes its arrays. What was `unwritten` holds zeros still, or may hold
    anything.
    """

    def __init__(self) -> None:
        self._held: dict[str, npt.NDArray[Any]] = {}
        self._special: tuple[int, int, int] | None = None

    def special(self, words: U32, base: int, warps: int) -> bool:
        """Whether the special registers from `base` on are those of a wave before, with as many warps."""
        before, self._special = self._special, (words.ctypes.data, base, warps)
        return before == self._special

    def zeros(self, name: str, size: int, kind: type, unwritten: bool = False) -> npt.NDArray[Any]:
        """An array of zeros."""
        held = self._held.get(name)
        if held is None or len(held) < size:
            self._held[name] = held = np.zeros(size, kind)
        elif not unwritten:
            held[:size] = 0
        return held[:size]


TENSOR_LANES, TENSOR_COLUMNS, TENSOR_UNIT = 128, 512, 32
"""Tensor memory of an SM: rows, columns of 32-bit words, and the columns that allocation counts in (PTX ISA)."""


class TensorMemory:
    """The tensor memories of blocks, each as if it had an SM to itself.

    `used` has a bit per allocated unit of columns for each block, `most` is the highest number of columns that a block
    held at once. The words appear when they are first asked for: most kernels have none.
    """

    def __init__(self, blocks: int) -> None:
        self.used = [0] * blocks
        self.most = 0
        self._words: U32 | None = None

    @property
    def words(self) -> U32:
        """All words, shape (blocks, columns, lanes): the lanes of a column lie together, as a warp reads them."""
        if self._words is None:
            self._words = np.zeros((len(self.used), TENSOR_COLUMNS, TENSOR_LANES), np.uint32)
        return self._words

    def allocate(self, blocks: Sequence[int], units: int) -> int:
        """Allocate columns at the same place in some blocks; returns the first unit, or -1 if there is no room."""
        taken = 0
        for block in blocks:
            taken |= self.used[block]
        wanted = (1 << units) - 1
        for first in range(0, TENSOR_COLUMNS // TENSOR_UNIT - units + 1, units):
            if not taken & wanted << first:
                for block in blocks:
                    self.used[block] |= wanted << first
                    self.most = max(self.most, self.used[block].bit_count() * TENSOR_UNIT)
                return first
        return -1

    def holds(self, block: int, column: int, count: int) -> bool:
        """Whether a block has allocated all of some columns."""
        first, last = column // TENSOR_UNIT, (column + count - 1) // TENSOR_UNIT
        wanted = (1 << (last + 1)) - (1 << first)
        return self.used[block] & wanted == wanted


class _ProgramCounters(dict[str, U32]):
    """The halves of the program counter registers, zeros until one is asked for: hardly a kernel has them."""

    def __init__(self, warps: int) -> None:
        super().__init__()
        self._warps = warps

    def __missing__(self, name: str) -> U32:
        if name not in ("Rpc.LO", "Rpc.HI"):
            raise KeyError(name)
        self[name] = np.zeros((self._warps, LANES), np.uint32)
        return self[name]


class Machine:
    """State of a wave: `blocks` are linear block indices, emulated in parallel; whole clusters, in the order of ranks.

    Warp w of the machine is warp w % warps_per_block of block w // warps_per_block. `live` has a bit
    per lane that exists and has not exited. `guarded` counts the lanes that executed instructions under a guard, by the
    instruction's number among these and warp. `store` holds the arrays. `prints` takes what the kernel prints; None if
    nobody asks for it.
    """

    def __init__(
        self,
        kernel: Kernel,
        launch: Launch,
        blocks: Sequence[int],
        needs: Needs,
        store: Store,
        prints: list[str] | None = None,
    ) -> None:
        self.kernel = kernel
        self.launch = launch
        self.store = store
        self.blocks = list(blocks)
        self.warps_per_block = launch.warps_per_block
        self.cluster_blocks = launch.cluster_blocks
        self.warps = warps = len(self.blocks) * self.warps_per_block
        self._register_files(needs.registers)
        self.barriers: U32 = np.zeros((BARRIER_REGISTERS, warps), np.uint32)
        self.yielded: U32 = np.zeros(warps, np.uint32)  # Lanes that no convergence barrier waits for.
        self.program_counters = _ProgramCounters(warps)
        self.guards = needs.guards
        rows = int(needs.guards.max(initial=-1)) + 1
        self.guarded = store.zeros("guarded", rows * warps, np.int64).reshape(rows, warps)
        linear = np.arange(self.warps_per_block * LANES, dtype=np.uint32)
        self.live = np.tile(pack((linear < launch.threads_per_block).reshape(-1, LANES)), len(self.blocks))
        self._special(linear)
        self._shared_memory(launch, kernel, "shared" not in needs.writes)
        self._local_memory(needs.local_bytes, "local" not in needs.writes)
        # Results of the latest barrier reduction, per block: threads with a true predicate, and the result.
        self.barrier_result = np.zeros(len(self.blocks), np.uint32)
        self.clock = 0
        # How often the barriers of each block have released their warps.
        self.barrier_phases = np.zeros((BLOCK_BARRIERS, len(self.blocks)), np.int64)
        # Barriers in shared memory, by block and address: how many phases have completed, and whether one just has.
        self.phases: dict[tuple[int, int], int] = {}
        self.phase_completed = False
        # Lanes that have arrived at the barrier of their cluster in its present phase, and each warp's latest phase.
        self.cluster_arrived: U32 = np.zeros(warps, np.uint32)
        self.cluster_phase = np.zeros(warps, np.int64)
        self.tensor = TensorMemory(len(self.blocks))
        # How often a block, or a cluster, has drawn from each counter in turn.
        self.drawn = Counter[tuple[int, int]]()
        # How many clusters each one has taken over, and those that were told that none is left.
        self.taken, self.told_none = Counter[int](), set[int]()
        self.notes: set[str] = set()
        self.prints = prints
        # Where and how many bytes copies to shared memory were left out, and the row of the record from which on.
        self.uncopied: dict[tuple[int, int], int] = {}

    def _register_files(self, registers: tuple[int, int]) -> None:
        """All registers in one array and all predicates in another, which compiled code takes as a whole."""
        general, uniform, special = registers[0] * LANES, registers[1], len(SPECIAL_ROWS) * LANES
        self.words: U32 = self.store.zeros("words", (general + uniform + special) * self.warps, np.uint32, True)
        self.uniform_base, self.special_base = general * self.warps, (general + uniform) * self.warps
        self.words[: self.special_base] = 0
        self.registers = self.words[: self.uniform_base].reshape(-1, self.warps, LANES)
        self.uniform = self.words[self.uniform_base : self.special_base].reshape(-1, self.warps, 1)
        self.flags = self.store.zeros("flags", PREDICATES * (LANES + 1) * self.warps, np.uint8)
        self.uniform_flags = PREDICATES * LANES * self.warps
        flags = self.flags.view(np.bool_)
        self.predicates = flags[: self.uniform_flags].reshape(-1, self.warps, LANES)
        self.uniform_predicates = flags[self.uniform_flags :].reshape(-1, self.warps, 1)

    def _special(self, linear: U32) -> None:
        """Special registers that differ between warps or lanes: shape (warp, 32) or (warp, 1)."""
        blocks = np.array(self.blocks, np.int64)
        places = zip("XYZ", self.launch.coordinates(blocks), strict=True)
        values: dict[str, npt.NDArray[Any]] = {f"SR_CTAID.{axis}": at[:, None, None] for axis, at in places}
        if not self.store.special(self.words, self.special_base, self.warps):
            values |= self._same_everywhere(linear)
        held = self.words[self.special_base :].reshape(-1, len(blocks), self.warps_per_block, LANES)
        self.special: dict[str, U32] = {}
        for row, name in zip(held, SPECIAL_ROWS, strict=True):
            value = values.get(name)
            if value is not None:
                row[...] = value if value.ndim > 1 or len(value) == LANES else value.reshape(-1, LANES)
            self.special[name] = row.reshape(self.warps, LANES)[:, : 1 if name in _OF_A_WARP else LANES]

    def _same_everywhere(self, linear: U32) -> dict[str, npt.NDArray[Any]]:
        """What does not depend on the blocks."""
        return thread_registers(self.launch, linear, LANE) | {
            "SR_VIRTID": (np.arange(self.warps_per_block, dtype=np.uint32) << np.uint32(8))[:, None],
            "SR_CgaCtaId": (np.arange(len(self.blocks)) % self.cluster_blocks)[:, None, None],
        }

    def _shared_memory(self, launch: Launch, kernel: Kernel, unwritten: bool) -> None:
        resources = kernel.resources
        static = resources.shared_reserved + resources.shared_bytes
        # Dynamic shared memory follows the static part, aligned for its widest type.
        self.shared_bytes = -(-static // 16) * 16 + launch.dynamic_shared if launch.dynamic_shared else static
        stride = -(-max(self.shared_bytes, 16) // 16) * 16
        memory = self.store.zeros("shared", len(self.blocks) * stride, np.uint8, unwritten)
        self.shared: dict[int, npt.NDArray[Any]] = {
            1: memory, 2: memory.view(np.uint16), 4: memory.view(np.uint32), 8: memory.view(np.uint64),
            16: memory.view(np.complex128),
        }  # fmt: skip
        self.shared_stride = stride
        self.shared_base = np.repeat(np.arange(len(self.blocks), dtype=np.int64) * stride, self.warps_per_block)
        # The address of the first byte of a warp's own shared memory.
        ranks = np.arange(len(self.blocks), dtype=np.int64) % self.cluster_blocks
        self.shared_first = np.repeat(ranks << RANK_SHIFT, self.warps_per_block)

    def _local_memory(self, size: int, unwritten: bool) -> None:
        """Local memory is interleaved as in hardware, (word, thread), so that touched pages are dense."""
        self.local_bytes = size
        self.threads = self.warps * LANES
        # Most of it is never touched, so zeroing all of what a wave before has written would take longer.
        words = (size // 4) * self.threads
        held = self.store.zeros("local", words, np.uint32, True) if unwritten else np.zeros(words, np.uint32)
        self.local: U32 = held
        self.thread = np.arange(self.threads, dtype=np.int64).reshape(self.warps, LANES)

    def block_of(self, warp: int) -> int:
        """Position in `blocks` of the block that a warp belongs to."""
        return warp // self.warps_per_block

    def owner(self, warp: int, address: int) -> tuple[int, int]:
        """The block, as a position in `blocks`, and the offset that an address in the cluster's shared memory means.

        The position is -1 if the cluster of this warp has no such block.
        """
        rank, block = address >> RANK_SHIFT, self.block_of(warp)
        inside = 0 <= rank < self.cluster_blocks
        return block - block % self.cluster_blocks + rank if inside else -1, address & ((1 << RANK_SHIFT) - 1)

    def leave_out(self, start: int, size: int, row: int) -> None:
        """Note that a copy to a run of shared memory, which starts there in the byte view, was left out."""
        self.uncopied.setdefault((start, size), row)

    def arrive_at_cluster(self, warps: npt.NDArray[np.int64], lanes: U32) -> None:
        """Record that lanes, a word per warp, have arrived at the barrier of their cluster."""
        self.cluster_arrived[warps] |= lanes
        first = warps // self.warps_per_block // self.cluster_blocks * self.cluster_blocks
        self.cluster_phase[warps] = [self.phases.get((block, CLUSTER_PHASES), 0) for block in first.tolist()]
        self.complete_clusters()

    def complete_clusters(self) -> bool:
        """Complete the phases of the clusters whose live lanes have all arrived; whether there were any."""
        per_cluster = self.warps_per_block * self.cluster_blocks
        there = self.cluster_arrived.reshape(-1, per_cluster)
        done = there.any(axis=1) & ~(self.live.reshape(-1, per_cluster) & ~there).any(axis=1)
        for cluster in np.flatnonzero(done).tolist():
            key = (cluster * self.cluster_blocks, CLUSTER_PHASES)
            self.phases[key] = self.phases.get(key, 0) + 1
            there[cluster] = 0
            self.phase_completed = True
        return bool(done.any())

    def thread_name(self, warp: int, lane: int) -> str:
        """Block and thread coordinates of a lane, for messages."""
        block, thread = self.thread_at(warp, lane)
        return f"block {block} thread {thread}"

    def thread_at(self, warp: int, lane: int) -> tuple[Dim3, Dim3]:
        """Block and thread coordinates of a lane."""
        linear = warp % self.warps_per_block * LANES + lane
        x, y, _ = self.launch.block
        thread = (linear % x, linear // x % y, linear // (x * y))
        return self.launch.coordinates(self.blocks[self.block_of(warp)]), thread


_CONVENTION_REGISTERS = 21
"""Registers used by calls of code outside the kernel, named or not (see `control`)."""


_WIDEST_VECTOR = 8


def _registers_of(operand: Operand) -> tuple[Register | None, ...]:
    if isinstance(operand, Register):
        return (operand,)
    if isinstance(operand, Address):
        return operand.base, operand.uniform, operand.descriptor
    return (operand.register,) if isinstance(operand, Constant) else ()


def register_counts(instructions: tuple[Instruction, ...]) -> tuple[int, int]:
    """The number of general and uniform registers that a kernel may use.

    One more than the highest named by any operand, plus room for the widest vector that starts there.
    """
    highest = [_CONVENTION_REGISTERS, 0]
    for instruction in instructions:
        if instruction.class_ in ("wgmma", "tensor_load", "tensor_store"):
            touched = accessed(instruction)
            highest[0] = max([highest[0], *(index for file, index in touched.writes | touched.reads if file == "R")])
        for operand in instruction.operands:
            for register in _registers_of(operand):
                if register is not None and register.index != RZ and register.index > highest[register.uniform]:
                    highest[register.uniform] = register.index
    return highest[0] + _WIDEST_VECTOR, highest[1] + _WIDEST_VECTOR

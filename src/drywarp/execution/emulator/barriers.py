"""Barriers between the warps of a thread block, named ones and reductions included, and of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import UnsupportedInstructionError
from ...kernel.instruction import Instruction, Predicate, Register
from ...kernel.profile import SYNC_SIGNAL, SYNC_SKIP, SYNC_WAIT
from .convergence import MOVED, Finish, condition_of, finish, member_values, words_of
from .decode import Decoder, Step, opcode
from .frame import Frame
from .groups import AT_BARRIER, RUN, PhaseWait
from .machine import BLOCK_BARRIERS, CLUSTER_PHASES, Machine
from .operands import ZERO

if TYPE_CHECKING:
    from .convergence import Scheduling

CLUSTER_BARRIER = BLOCK_BARRIERS - 1


@finish("BAR", "SYNC ARV RED DEFER_BLOCKING POPC AND OR SYNCALL")
def _block_barrier(d: Decoder, i: Instruction, fall: int) -> Finish:
    condition, index = condition_of(d, i), i.pc // 16
    numbers = [o for o in i.operands if not isinstance(o, Predicate)]
    arrive_only, reduces = "ARV" in i.modifiers, "RED" in i.modifiers
    kind = next((n for n in i.modifiers if n in ("POPC", "AND", "OR")), "") if reduces else ""
    vote = d.predicate(i.operands[-1]) if reduces else None
    known = [d.known(o) for o in numbers]
    fetches = [d.word(o) for o in numbers]
    simple = known == [0] and not arrive_only and not reduces and i.guard is None

    def arrive(s: Scheduling, f: Frame) -> int:
        groups, warps = s.groups, s.warps
        if simple and s.whole_blocks(f) and not groups.arrived[0].any():
            if groups.passed:
                per_block = s.machine.warps_per_block
                for block in np.unique(warps // per_block).tolist():
                    groups.passed(list(range(block * per_block, (block + 1) * per_block)), 0)
            return fall
        words = words_of(f, condition(f))
        number = member_values(f, fetches[0](f)).astype(np.int64) & 15 if fetches else np.zeros(len(warps), np.int64)
        threads = member_values(f, fetches[1](f)).astype(np.int64) if len(fetches) > 1 else np.int64(0)
        for used in np.unique(number).tolist():
            groups.reduction[used] = kind
        if len(fetches) > 1:
            _record(s, number, words, arrive_only)
        elif i.guard is not None:
            for warp in s.warps[words == 0].tolist():
                s.recorder.sync(warp, index, SYNC_SKIP, -1, 0)
        if vote is not None:
            given = f.spread(vote(f)) & f.lanes()
            groups.votes[number, warps] |= words_of(f, given) & words
        if arrive_only:
            groups.arrive(number, warps, words)
            s.park(words_of(f, None), fall, RUN, 0)
        else:
            s.park(words, fall, AT_BARRIER, number | threads << 8)
        groups.release_barriers(warps)
        return MOVED

    def _record(s: Scheduling, number: npt.NDArray[np.int64], words: npt.NDArray[np.uint32], arrive_only: bool) -> None:
        """Record the participants of a barrier with a stated number of threads: it need not be the whole block."""
        phases, recorder, some = s.machine.barrier_phases, s.recorder, words != 0
        for warp, which in zip(s.warps[some].tolist(), number[some].tolist(), strict=True):
            phase = int(phases[which, s.machine.block_of(warp)])
            recorder.sync(warp, index, SYNC_SIGNAL, ~which, phase)
            if not arrive_only:
                recorder.sync(warp, index, SYNC_WAIT, ~which, phase)

    return arrive


@opcode("UCGABAR_ARV")
def _arrive_at_cluster(d: Decoder, i: Instruction) -> Step:
    """Arrival at the barrier of the cluster. With one block per cluster, the wait that follows does it all."""
    index = i.pc // 16

    def arrive(f: Frame) -> None:
        machine, words = f.machine, f.words()
        if machine.cluster_blocks == 1:
            return
        acting = np.flatnonzero(words)
        warps = f.warps[acting]
        for warp in warps.tolist():
            d.recorder.sync(warp, index, SYNC_SIGNAL, ~CLUSTER_BARRIER, _cluster_phases(machine, warp))
        machine.arrive_at_cluster(warps, words[acting])

    return arrive


def _cluster_phases(machine: Machine, warp: int) -> int:
    """Phases of the barrier of a warp's cluster that have completed."""
    return machine.phases.get((machine.owner(warp, 0)[0], CLUSTER_PHASES), 0)


@finish("UCGABAR_WAIT")
def _wait_for_cluster(d: Decoder, i: Instruction, fall: int) -> Finish:
    """The wait for all threads of the cluster to have arrived as often as this one."""
    condition, index = condition_of(d, i), i.pc // 16

    def wait(s: Scheduling, f: Frame) -> int:
        machine, words = s.machine, words_of(f, condition(f))
        if machine.cluster_blocks == 1:
            s.park(words, fall, AT_BARRIER, CLUSTER_BARRIER)
            s.groups.release_barriers(s.warps)
            return MOVED
        waits: list[PhaseWait | None] = []
        for warp, word in zip(s.warps.tolist(), words.tolist(), strict=True):
            phase = int(machine.cluster_phase[warp])
            event = d.recorder.sync(warp, index, SYNC_WAIT, ~CLUSTER_BARRIER, phase) if word else []
            must_wait = bool(word) and _cluster_phases(machine, warp) <= phase
            barrier = (machine.owner(warp, 0)[0], CLUSTER_PHASES)
            waits.append(PhaseWait({barrier: (phase + 1, np.zeros(0, np.bool_))}, -1, event) if must_wait else None)
        if not any(waits):
            return fall
        stay = np.array([one is not None for one in waits])
        return s.park_for_phases(np.where(stay, words, np.uint32(0)), fall, waits)

    return wait


@opcode("B2R", "RESULT")
def _barrier_result(d: Decoder, i: Instruction) -> Step:
    registers = [d.put(o) for o in i.operands if isinstance(o, Register)]
    predicates = [d.put_predicate(o) for o in i.operands if isinstance(o, Predicate)]
    if "RESULT" not in i.modifiers:
        raise UnsupportedInstructionError("barrier state")

    def read(f: Frame) -> None:
        machine = f.machine
        value = machine.barrier_result[f.warps // machine.warps_per_block][:, None]
        for put in registers:
            put(f, value)
        for put in predicates:
            put(f, value != ZERO)

    return read


@opcode("USETMAXREG", "TRY_ALLOC DEALLOC CTAPOOL")
def _register_pool(d: Decoder, i: Instruction) -> Step:
    """Registers passed from warps to others of the block: any request is granted."""
    puts = [d.put_predicate(o) for o in i.operands if isinstance(o, Predicate)]

    def ask(f: Frame) -> None:
        for put in puts:
            put(f, np.True_)

    return ask

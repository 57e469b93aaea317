"""Brief runs of blocks for their addresses in global memory alone.

Instructions that affect neither an address nor a branch are omitted, which leaves a tenth of the time. If, in
addition, loops run one iteration, less than a hundredth remains: this shows how the first accesses of every loop move
from block to block. The caller must confirm that later ones move alike, on blocks whose loops were run to their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...errors import DrywarpError
from ...kernel.cfg import ControlFlowGraph, Loop, jump_target, kept_for
from ...kernel.dataflow import Dataflow
from ...kernel.draws import with_draws_in_turn
from ...kernel.instruction import RZ, Instruction, Label, Register
from ...kernel.isa.nvidia.registers import Place, accessed, address_places
from ...kernel.kernel import Kernel
from ...kernel.launch.launch import Launch
from ...kernel.profile import SPACE_GLOBAL, Profile
from .brief import Brief, reads_back
from .bulk_copy import UNREAD
from .sampling import Limits
from .session import Session
from .tcgen05_form import FORMATS

_COMPUTES = frozenset(
    "fp32 fp32_compare fp16 fp64 int imad imad_wide shift move bit sfu convert convert_fast predicate vote shuffle"
    " reduce uniform special_register constant_load tensor wgmma"
    " tcgen05 tensor_load tensor_store".split()
)
"""Classes whose instructions have no effect except writing their results."""
_UNFOLLOWED = ("wgmma", "tensor_load")
"""Classes whose results depend on memory through which values are not followed."""
_CERTAIN = 1.25
"""How far past a limit on accesses the blocks that were run in full say that others are, for these not to be run."""
_WITHIN_A_BLOCK = frozenset({"shared", "local"})
_MAY_STAY_UNREAD = frozenset({"UTMALDG", "UBLKCP"})
"""Copies to shared memory that can be left out, so that only their accesses and signals remain."""
_BRING_NOTHING = frozenset({"UTMASTG", "UTMAREDG", "UBLKRED", "UTMAPF", "UBLKPF"})
"""Copies that write nothing to shared memory."""


class Skim:
    """Runs blocks of a launch, with the loops in `once` for one iteration if it is clear how to exit them.

    `once` is then reduced to those loops. `seen` are blocks of it that were run in full, if any were. If `lasting`, the
    blocks of all calls are one run, with one limit.
    """

    def __init__(
        self,
        kernel: Kernel,
        launch: Launch,
        cfg: ControlFlowGraph,
        limits: Limits,
        once: Sequence[Loop] = (),
        seen: Profile | None = None,
        lasting: bool = False,
    ) -> None:
        self._drawing = with_draws_in_turn(kernel, cfg)
        wanted = "brief run", tuple(loop.header for loop in once)
        self._brief, self.once = kept_for(
            self._drawing.instructions, cfg, wanted, lambda: skimmed(self._drawing, cfg, once)
        )
        self._accesses = _least_accesses(self._brief.code, cfg, self.once, seen) if seen else 0.0
        self._kernel, self._launch, self._cfg = replace(kernel, instructions=self._brief.code), launch, cfg
        self._limits = limits
        self._lasting, self._before = lasting, list[int]()
        self._session: Session | None = None

    def __call__(self, blocks: Sequence[int]) -> Profile | None:
        """The behaviour of these blocks; None if the rest of the kernel cannot run, or not within the limits.

        The profile counts no lanes.
        """
        every = [*self._before, *blocks]
        if self._accesses * len(every) > _CERTAIN * self._limits.accesses:
            return None
        session, self._session = self._session, None
        try:
            session = session or Session(self._kernel, self._launch, self._limits, cfg=self._cfg)
            session.run(every)
            profile = session.finish(dict.fromkeys(blocks, 1.0), "chosen", lanes=False).profile
        except DrywarpError:
            return None
        if reads_back(profile.accesses, self._brief.watched, self._brief.wrong):
            self._brief, _ = skimmed(self._drawing, self._cfg, self.once, computed=True)
            self._kernel = replace(self._kernel, instructions=self._brief.code)
            return self(blocks)
        if self._lasting:
            self._session, self._before = session, every
        return profile


def _least_accesses(code: Sequence[Instruction], cfg: ControlFlowGraph, once: Sequence[Loop], seen: Profile) -> float:
    """The mean number of accesses to global memory that a block's brief run records outside the loops in `once`."""
    log = seen.accesses
    inside = {b for loop in once for b in loop.blocks}
    counted = [i.memory is not None and cfg.block_of[at] not in inside for at, i in enumerate(code)]
    rows = np.flatnonzero((log.space == SPACE_GLOBAL) & np.array(counted, np.bool_)[log.instruction])
    weights = np.array([sample.weight for sample in seen.blocks])
    each = weights[log.warp[rows] // seen.launch.warps_per_block]
    return float(each.sum() / weights.sum())


def skimmed(
    kernel: Kernel, cfg: ControlFlowGraph, once: Sequence[Loop], computed: bool = False
) -> tuple[Brief, tuple[Loop, ...]]:
    """The code of a brief run, as long as the kernel's, and the loops that it runs once.

    It leaves out what affects no address in global memory and no branch, through any computation. Values stored to
    global memory are not followed. `computed`: what products store to shared memory is computed if it may be read.
    """
    code, left = run_once(kernel.instructions, cfg, once)
    if _makes_maps(code):
        return Brief(tuple(code)), left
    stays = {index for index, i in enumerate(code) if _stays(i)}
    ends = [(index, _which_matter(code[index])) for index in stays]
    needed, wrong = _needed(Dataflow(code, cfg), ends, computed)
    kept = stays | needed | wrong
    watched = frozenset(index for index in needed if wrong and _reads(code[index], _WITHIN_A_BLOCK | {"generic"}))
    return Brief(tuple(i if at in kept else _nothing(i) for at, i in enumerate(code)), watched, wrong), left


def run_once(
    instructions: Sequence[Instruction], cfg: ControlFlowGraph, once: Sequence[Loop]
) -> tuple[list[Instruction], tuple[Loop, ...]]:
    """The code with these loops left after one iteration, and those of them for which it is clear how."""
    code, left = list(instructions), []
    for loop in once:
        changed = _without_back_edges(code, cfg, loop)
        if changed is not None:
            left.append(loop)
            for index, instruction in changed.items():
                code[index] = instruction
    return code, tuple(left)


def _needed(
    flow: Dataflow, ends: Sequence[tuple[int, set[Place] | None]], computed: bool = False
) -> tuple[set[int], frozenset[int]]:
    """What affects the ends (see `Dataflow.slice_of`), and stores to shared memory whose data is not among that.

    These are the stores of what products compute, if products matter only where something may read that. There are none
    if all is to be `computed`.
    """
    needed = flow.slice_of(ends)
    if computed or not any(_is_product(flow.instructions[index]) for index in needed):
        return needed, frozenset()
    wrong = frozenset(index for index in _computed(flow) if _is_shared_store(flow.instructions[index]))
    addresses = [(index, address_places(flow.instructions[index])) for index in wrong]
    fewer = flow.slice_of([*ends, *addresses], wrong)
    return (needed, frozenset()) if any(_is_product(flow.instructions[index]) for index in fewer) else (fewer, wrong)


def _computed(flow: Dataflow) -> set[int]:
    """Instructions that what products compute reaches."""
    return flow.reached_by(index for index, i in enumerate(flow.instructions) if _is_product(i))


def _is_product(instruction: Instruction) -> bool:
    return instruction.class_ in _UNFOLLOWED and instruction.memory is None


def _is_shared_store(instruction: Instruction) -> bool:
    memory = instruction.memory
    return memory is not None and (memory.kind, memory.space) == ("store", "shared") and instruction.opcode != "STAS"


def _reads(instruction: Instruction, spaces: frozenset[str]) -> bool:
    """Whether it may read from one of these memory spaces."""
    return instruction.memory is not None and instruction.memory.kind != "store" and _touches(instruction, spaces)


def _without_back_edges(
    code: Sequence[Instruction], cfg: ControlFlowGraph, loop: Loop
) -> dict[int, Instruction] | None:
    """The branches back to the loop's header changed to exit it; None if their target is unclear."""
    header = cfg.blocks[loop.header].start * 16
    exits = {s for b in loop.blocks for s in cfg.blocks[b].successors if s not in loop.blocks}
    changed: dict[int, Instruction] = {}
    for block in (cfg.blocks[b] for b in loop.blocks if loop.header in cfg.blocks[b].successors):
        last = code[block.end - 1]
        if last.opcode != "BRA" or jump_target(last) != header:
            return None
        if len(block.successors) > 1:
            changed[block.end - 1] = _nothing(last)  # falls through
        elif len(exits) == 1:
            target = cfg.blocks[next(iter(exits))].start * 16
            operands = tuple(replace(o, target=target) if isinstance(o, Label) else o for o in last.operands)
            changed[block.end - 1] = replace(last, operands=operands)
        else:
            return None
    return changed or None


def without_results(kernel: Kernel, cfg: ControlFlowGraph) -> Brief | None:
    """The kernel's code without computations that reach neither an address nor a branch; None if there is none to omit.

    All paths and accesses stay as they are, and counts of lanes too, since what has a guard stays, unless the guard
    depends on a warp-group product or a load from tensor memory. None as well if one of these reaches an address or a
    branch, or, in a kernel without them, what is read from global memory that the kernel might write, its tensor maps
    among it: values are not followed through these.
    """
    code = kernel.instructions
    return kept_for(code, cfg, "without results", lambda: _without_results(code, cfg))


def _without_results(code: tuple[Instruction, ...], cfg: ControlFlowGraph) -> Brief | None:
    if _makes_maps(code) or any(i.opcode == "CALL" and jump_target(i) is None for i in code):
        return None  # what routines outside the code read, such as where they return to, is not known
    stays = {index for index, i in enumerate(code) if i.guard or i.memory is not None or i.class_ not in _COMPUTES}
    flow = Dataflow(code, cfg)
    uncounted = _guarded_by_products(flow, stays)
    stays -= uncounted
    needed, wrong = _needed(flow, [(index, _by_address(code[index])) for index in stays])
    writes = any(_touches(i, _BETWEEN) and i.memory is not None and i.memory.kind != "load" for i in code)
    read = [index for index in needed if (i := code[index]).memory is None or i.memory.kind != "store"]
    reads = [code[index] for index in read]
    if any(map(_is_product, reads)):
        return None
    changed = frozenset(index for index in read if writes and _touches(code[index], _BETWEEN)
                        and "CONSTANT" not in code[index].modifiers)  # fmt: skip
    if changed and not any(map(_is_product, code)):
        return None
    unread, watched = not any(_touches(i, frozenset({"shared", "generic"})) for i in reads), changed
    copies = {i.opcode for i in code if i.class_ in ("bulk_copy", "async_copy")} - _BRING_NOTHING
    if not unread and ((writes and copies) or wrong):
        if not copies <= _MAY_STAY_UNREAD or any(_touches(i, frozenset({"generic"})) for i in reads):
            return None
        unread = True
        watched |= frozenset(index for index in read if _touches(code[index], frozenset({"shared"})))
    if changed:
        wrong |= frozenset(index for index, i in enumerate(code) if i.memory is not None and _touches(i, _BETWEEN)
                           and i.memory.kind not in ("load", "atomic", "copy", "bulk_load"))  # fmt: skip
    left_out = set(range(len(code))) - stays - needed
    brief = [_nothing(i) if index in left_out else i for index, i in enumerate(code)]
    for index, i in enumerate(code):
        if i.opcode == "SYNCS" and index not in needed and isinstance(i.operands[0], Register):
            brief[index] = replace(i, operands=(replace(i.operands[0], index=RZ), *i.operands[1:]))
        elif (unread and i.opcode in _MAY_STAY_UNREAD) or (i.opcode in FORMATS and index not in left_out):
            brief[index] = replace(i, modifiers=(*i.modifiers, UNREAD))
    return Brief(tuple(brief), watched, wrong, uncounted - needed) if brief != list(code) else None


def _guarded_by_products(flow: Dataflow, some: Iterable[int]) -> frozenset[int]:
    """Those of some instructions that only compute, under a guard that depends on what products compute."""
    reached, found = _computed(flow), set[int]()
    for index in reached.intersection(some):
        i = flow.instructions[index]
        if i.guard is not None and i.memory is None and i.class_ in _COMPUTES:
            place = ("UP" if i.guard.uniform else "P", i.guard.index)
            if not reached.isdisjoint(flow.producers_of(index, [place])):
                found.add(index)
    return frozenset(found)


def follows_data(kernel: Kernel, cfg: ControlFlowGraph) -> bool:
    """Whether an address or a branch may depend on what the kernel reads from global memory."""
    code = kernel.instructions
    if any(i.opcode == "CALL" and jump_target(i) is None for i in code):
        return True
    stays = {index for index, i in enumerate(code) if i.memory is not None or i.class_ not in _COMPUTES}
    needed = Dataflow(code, cfg).slice_of((index, _by_address(code[index])) for index in stays)
    reads = (code[index] for index in needed if _touches(code[index], _BETWEEN))
    return any(i.memory is not None and i.memory.kind != "store" for i in reads)


def _makes_maps(code: Sequence[Instruction]) -> bool:
    """Whether copies may go by tensor maps that the kernel itself writes, as data: it fetches them anew."""
    return any(i.opcode == "UTMACCTL" and "IV" in i.modifiers for i in code)


def _touches(instruction: Instruction, spaces: frozenset[str]) -> bool:
    return instruction.memory is not None and instruction.memory.space in spaces


_BETWEEN = frozenset({"global", "generic"})


def _by_address(instruction: Instruction) -> set[Place] | None:
    """Places that an instruction must read correctly if only its addresses count; None: all."""
    memory = instruction.memory
    if memory is None:
        return None
    plain = memory.kind in ("load", "store", "reduction") and memory.space in _BETWEEN | _WITHIN_A_BLOCK
    return address_places(instruction) | (set() if plain else accessed(instruction).reads)


def _nothing(instruction: Instruction) -> Instruction:
    return replace(instruction, opcode="NOP", modifiers=(), operands=(), guard=None, class_="nop", memory=None)


def _which_matter(instruction: Instruction) -> set[Place] | None:
    """Places that an executed instruction must read correctly; None: all."""
    memory = instruction.memory
    given = memory is not None and memory.kind in ("store", "reduction") and memory.space in ("global", "generic")
    return address_places(instruction) if given else None


def _stays(instruction: Instruction) -> bool:
    """Whether an instruction is executed regardless of its results."""
    memory = instruction.memory
    if memory is not None and memory.space in _WITHIN_A_BLOCK:
        # A store that reports to a barrier is waited for.
        return memory.kind not in ("load", "store") or instruction.opcode == "STAS"
    return instruction.class_ not in _COMPUTES

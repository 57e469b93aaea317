"""Which constants a warp does not find in the first cache that serves them.

An SM has two kinds of such caches: for loads of constants, and for constants that an instruction reads as an operand
(NVIDIA's developer forum, 306586). Loads with a fixed latency, those of uniform registers up to Hopper, are taken to be
served like operands, since nothing could wait for their result. Both are taken to have the geometry that was measured
with loads: which of a chain's hit on a 2080 Ti, a T1000 and an A100 is what sets of four lines give that replace by a
tree (caps-tum/mt4g @4cc5566, sample results); LRU would miss more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..core.library import Function
from ..kernel.instruction import RZ, Constant, Instruction
from ..kernel.profile import ASKED_INSTRUCTION, ASKED_REQUEST, ASKED_WARP, ASKED_WORD, Profile
from .table import MemoryGeometry

Ints = npt.NDArray[np.int64]

_LOADS = ("LDC", "LDCU", "ULDC")
_WORD, _BANK_LINES = 4, 1 << 32
_MOST_ACCESSES, _MOST_PATHS = 1 << 18, 64
"""Most accesses of one warp that are followed, and most paths."""

_constant_misses = Function("constant_misses", "annnaaa")


def waits_at_issue(instruction: Instruction) -> bool:
    """Whether a constant that it reads must be there before it issues; else it is a load, whose result comes later."""
    fixed = instruction.control.write_barrier is None and instruction.opcode != "LDC"
    return fixed or instruction.opcode not in _LOADS


def constant_misses(profile: Profile, geometry: MemoryGeometry) -> dict[int, float]:
    """How often a mean execution of each instruction misses its cache of constants, 0..1, where that is not 0.

    Each warp is followed alone, all of its way twice, and counted the second time: what it reads first others have read
    before it; apart from that they neither help nor hurt. Constants at addresses in the code are followed apart from
    those at addresses in registers, which a static answer does not know. A load whose lanes ask for several lines
    misses at most once.
    """
    if not geometry.constant_ways:
        return {}
    count = len(profile.kernel.instructions)
    at_issue = np.array([waits_at_issue(one) for one in profile.kernel.instructions], np.bool_)
    known, asked = _known_lines(profile, geometry), _lines_asked(profile, geometry)
    missed, requests = np.zeros(count), np.zeros(count)
    for kind in (False, True):
        in_code = np.where(at_issue == kind, known, -1)
        in_registers = asked[at_issue[asked[:, ASKED_INSTRUCTION]] == kind]
        streams: list[tuple[float, Ints, Ints, Ints]] = []
        if _too_many(in_code[in_code >= 0], geometry):
            streams += _along_paths(profile, in_code)
        if _too_many(in_registers[:, ASKED_WORD], geometry):
            streams += _as_asked(in_registers)
        for weight, instruction, request, line in streams:
            first = np.flatnonzero(np.diff(request, prepend=-1))
            found = np.maximum.reduceat(misses(line, geometry.constant_sets, geometry.constant_ways), first)
            requests += weight * np.bincount(instruction[first], minlength=count)
            missed += weight * np.bincount(instruction[first], found, minlength=count)
    return {int(n): float(missed[n] / requests[n]) for n in np.flatnonzero(missed)}


def misses(line: Ints, sets: int, ways: int) -> npt.NDArray[np.uint8]:
    """Which accesses to lines miss the second time that all are made, in a cache with a tree for each set.

    Lines lie in the sets in turn; `ways` is a power of two up to 64. From the root of a tree each bit tells in which
    half of the ways the next line is replaced: not in that of the latest access.
    """
    missed = np.zeros(len(line), np.uint8)
    held, trees = np.empty(sets * ways, np.int64), np.empty(sets, np.int64)
    _constant_misses(np.ascontiguousarray(line, np.int64), len(line), sets, ways, held, trees, missed)
    return missed


def constant_of(instruction: Instruction) -> Constant | None:
    """The constant that an instruction reads from a bank with a number."""
    return next((o for o in instruction.operands if isinstance(o, Constant) and o.bank_register is None), None)


def _known_lines(profile: Profile, geometry: MemoryGeometry) -> Ints:
    """The line of the constant that each executed instruction reads at an address in the code, -1 for others."""
    lines = np.full(len(profile.kernel.instructions), -1, np.int64)
    executed = np.zeros(len(profile.cfg.blocks), np.bool_)
    for path in profile.paths:
        executed[path.blocks] = True
    for block in np.flatnonzero(executed).tolist():
        for index in range(profile.cfg.blocks[block].start, profile.cfg.blocks[block].end):
            constant = constant_of(profile.kernel.instructions[index])
            if constant is not None and (constant.register is None or constant.register.index == RZ):
                lines[index] = constant.bank * _BANK_LINES + max(constant.offset, 0) // geometry.constant_line_bytes
    return lines


def _lines_asked(profile: Profile, geometry: MemoryGeometry) -> Ints:
    """`Profile.constants` with lines in the place of words."""
    rows = profile.constants.copy()
    constants = [constant_of(one) for one in profile.kernel.instructions]
    banks = np.array([one.bank if one else 0 for one in constants], np.int64)
    rows[:, ASKED_WORD] //= geometry.constant_line_bytes // _WORD
    rows[:, ASKED_WORD] += banks[rows[:, ASKED_INSTRUCTION]] * _BANK_LINES
    return rows


def _too_many(lines: Ints, geometry: MemoryGeometry) -> bool:
    """Whether any set is asked for more lines than it has ways; otherwise all stay."""
    sets = np.bincount(np.unique(lines) % geometry.constant_sets, minlength=1)
    return int(sets.max()) > geometry.constant_ways


def _as_asked(rows: Ints) -> Iterator[tuple[float, Ints, Ints, Ints]]:
    """For each warp with rows of `_lines_asked` 1, and its accesses: instruction, number of the request, line."""
    for warp in np.unique(rows[:, ASKED_WARP]).tolist():
        its = rows[rows[:, ASKED_WARP] == warp]
        yield 1.0, its[:, ASKED_INSTRUCTION], its[:, ASKED_REQUEST], its[:, ASKED_WORD]


def _along_paths(profile: Profile, lines: Ints) -> Iterator[tuple[float, Ints, Ints, Ints]]:
    """For the most frequent paths how many warps take each, and as `_as_asked` its accesses to lines that are known."""
    weights = np.zeros(len(profile.paths))
    for sample in profile.blocks:
        np.add.at(weights, np.array(sample.paths, np.intp), sample.weight)
    within = [block.start + np.flatnonzero(lines[block.start : block.end] >= 0) for block in profile.cfg.blocks]
    lengths, known = np.array([len(one) for one in within], np.int64), np.concatenate(within)
    begins = np.cumsum(lengths) - lengths
    for path in np.argsort(-weights, kind="stable")[:_MOST_PATHS].tolist():
        blocks = profile.paths[path].blocks
        blocks = blocks[: np.searchsorted(np.cumsum(lengths[blocks]), _MOST_ACCESSES, side="right")]
        many = lengths[blocks]
        number = np.arange(int(many.sum()))
        step = np.repeat(np.arange(len(blocks)), many)
        instruction = known[begins[blocks][step] + number - (np.cumsum(many) - many)[step]]
        if len(number):
            yield float(weights[path]), instruction, number, lines[instruction]

"""Loads, stores and atomics without memory: the addresses they access, and stand-ins for the data.

Each element of memory is assumed to hold its own index. So data used as an index lead to neighbouring places in
neighbouring lanes, unless the code scatters them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import UnsupportedInstructionError
from ....kernel.instruction import RZ, Address, Instruction, Predicate, Register
from ...emulator.constants import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ...emulator.memory_ops import address32, address64
from ..parameters import Addresses, RecordedAccesses, element, offset_in_slot
from ..report import Record
from ..state import DATA, VARYING, Batch, Value
from ..words import Step
from .compare import places
from .copies import CopySteps
from .decoder import FILES, StaticDecoder

_ROW_LANES = {"1": 8, "2": 16, "4": 32}


class MemorySteps(RecordedAccesses):
    """Builds the steps of memory instructions of one kernel."""

    windows, window_bytes = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}, WINDOW_BYTES

    def __init__(
        self, d: StaticDecoder, record: Record, patterns: Mapping[int, str], slots: int, wide: Mapping[int, str]
    ) -> None:
        super().__init__(record, patterns, slots, wide)
        self.d, self.copies = d, CopySteps(d, self)

    def step(self, i: Instruction, needed: bool) -> Step:
        """The step of one instruction; `needed` says whether its result is required."""
        assert i.memory is not None
        if i.memory.space == "texture":
            return self._result(i)
        operands = [replace(o, symbol="") for o in i.operands if isinstance(o, Address)]
        try:
            if i.class_ == "bulk_copy":
                return self.copies.step(i)
            if i.memory.kind == "copy" and len(operands) == 2:
                return self._copy(i, operands)
            if not operands:
                return self._result(i)
            return self._access(i, operands[0], needed)
        except UnsupportedInstructionError:
            return self.copies.refused(i) if i.class_ == "bulk_copy" else self._result(i)

    def _copy(self, i: Instruction, operands: list[Address]) -> Step:
        """Global to shared memory; lanes whose source predicate is false only write."""
        predicates = [o for o in i.operands if isinstance(o, Predicate)]
        valid = self.d.test(predicates[-1])[0] if predicates else None
        addresses = (self._address(i, operands[1], "global"), self._address(i, operands[0], "shared"))

        def copy(batch: Batch) -> None:
            lanes = batch.lanes()
            reads = lanes if valid is None else lanes & batch.spread(np.asarray(valid(batch)))
            for space, address, there in zip(("global", "shared"), addresses, (reads, lanes), strict=True):
                where, flags = address(batch)
                self.note(i, batch, space, where, flags, there)

        return copy

    def _access(self, i: Instruction, operand: Address, needed: bool) -> Step:
        memory = i.memory
        assert memory is not None
        address = self._address(i, operand, memory.space)
        tiles = i.opcode in ("LDSM", "STSM")
        lowest = next((_ROW_LANES[m] for m in i.modifiers if m in _ROW_LANES), 8) if tiles else None
        results = places(i)[1] if memory.kind in ("load", "atomic") and (needed or memory.space == "local") else []

        def access(batch: Batch) -> None:
            (where, flags), lanes = address(batch), batch.lanes()
            if lowest is not None:
                lanes = lanes & (np.arange(batch.state.lanes) < lowest)
            for space, inside, part in self.by_space(memory.space, where, lanes):
                noted = self.note(i, batch, space, inside, flags, part)
                saved = batch.narrow(part) if part is not lanes else None
                self._data(i, batch, space, noted, flags, results)
                if saved is not None:
                    batch.restore(saved)

        return access

    def _result(self, i: Instruction) -> Step:
        """An access whose address cannot be computed: only a stand-in for its result is written."""
        results = places(i)[1]

        def step(batch: Batch) -> None:
            for file, index in results:
                batch.put_flags(FILES[file], index, np.uint16(DATA | VARYING))

        return step

    def _address(self, i: Instruction, operand: Address, space: str) -> Any:
        """A function of a batch: addresses, shape (rows, lanes), and flags that broadcast."""
        wide = space == "global" or (space == "generic" and "E" in i.modifiers)
        fetch: Any = address64(self.d, operand) if wide else address32(self.d, operand)
        registers = [r for r in (operand.base, operand.uniform) if r is not None and r.index != RZ]
        halves = (0, 1) if wide and not operand.base_unsigned32 else (0,)
        named = [Register(r.index + part, r.uniform) for r in registers for part in halves]

        def address(batch: Batch) -> tuple[Addresses, Value]:
            flags: Value = np.uint16(0)
            for register in named:
                flags = flags | self.d.operand_flags(batch, register)
            return batch.spread(np.asarray(fetch(batch)).astype(np.uint64)), flags

        return address

    def _data(
        self, i: Instruction, batch: Batch, space: str, where: Addresses, flags: Value, results: list[Any]
    ) -> None:
        """Write the result of an access to its registers, and store what is put on the stack."""
        assert i.memory is not None
        if (space == "local" and self._stack(i, batch, where, results)) or not results:
            return
        offset = offset_in_slot(where) if space == "global" else where
        atomic = i.memory.kind == "atomic"
        varying = np.asarray(flags, np.uint16) & VARYING | np.uint16(DATA | VARYING * atomic)
        kind = self._wide.get(i.pc // 16, "")
        word = 0
        for file, index in results:
            if file in ("R", "UR"):
                value = element(kind, self._loaded.get(i.pc // 16, 0), offset, i.memory.width, word)
                if atomic:
                    # Each thread finds a different value, as with a counter.
                    value = value + batch.state.thread[batch.warps].astype(np.uint32)
                row = getattr(batch, FILES[file])[index]
                if file == "R":
                    batch.write(row, value)
                else:
                    batch.write_uniform(row, value[:, :1])
                word += 1
            batch.put_flags(FILES[file], index, varying)

    def _stack(self, i: Instruction, batch: Batch, where: Addresses, results: list[Any]) -> bool:
        """Register spills and reloads: stack locations that are the same for all threads."""
        assert i.memory is not None
        addresses, words = where[batch.lanes()], i.memory.width // 4
        if not len(addresses) or not words or (addresses != addresses[0]).any():
            return False
        if i.memory.kind == "store":
            data = next((o for o in i.operands if isinstance(o, Register)), None)
            if data is None:
                return False
            batch.spill(int(addresses[0]), [None if data.index == RZ else data.index + word for word in range(words)])
            return True
        registers = [index for file, index in results if file == "R"]
        return len(registers) == words and batch.reload(int(addresses[0]), registers)

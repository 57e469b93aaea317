"""Values: what an instruction computes, from the emulator's own opcode functions, or a stand-in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....errors import DrywarpError, UnsupportedInstructionError
from ....kernel.instruction import PT, RZ, Constant, Instruction, Operand, Predicate, Register
from ....kernel.isa.nvidia.registers import Place
from ....kernel.kernel import Kernel
from ...emulator.bulk_copy import uniform_registers
from ...emulator.decode import Decoder
from ...emulator.machine import U32
from ...emulator.program import HANDLER_MODULES
from ..state import Batch, Flags, Value
from ..words import Step
from .reads import StaticBanks

FILES = {"R": "R", "UR": "U", "P": "P", "UP": "UP"}
"""Names of the register files, in places and in the emulator's frames."""
_OF_THE_BLOCK = ("wgmma", "mbarrier", "tcgen05", "tensor_load", "tensor_store")
"""Classes whose operands lie in shared or tensor memory, which a walk does not have."""
assert HANDLER_MODULES, "their import registers the functions of opcodes"


class StaticDecoder(Decoder):
    """The emulator's decoder without memory: operand values and opcode functions, with flags."""

    def __init__(self, kernel: Kernel, banks: StaticBanks) -> None:
        nothing: Any = None
        super().__init__(kernel, banks.words, nothing, nothing)
        self.bank_flags = banks

    def values(self, instruction: Instruction) -> Step | None:
        """The function of an instruction on a batch; None if the emulator does not support it, or it reads memory."""
        if instruction.class_ in _OF_THE_BLOCK or instruction.opcode == "UTCATOMSWS":
            return None
        try:
            step: Step = _of_batch(self._step(instruction))
            return step
        except (DrywarpError, ArithmeticError, LookupError, ValueError, TypeError, AssertionError, AttributeError):
            return None

    def number(self, operand: Operand) -> Callable[[Batch], Value]:
        """A function of a batch for the words of an operand."""
        words: Callable[[Batch], Value] = _of_batch(self.word(operand))
        return words

    def writer(self, operand: Operand) -> Callable[[Batch, Value], None]:
        """A function that writes words to a register, or booleans to a predicate."""
        put = self.put_predicate(operand) if isinstance(operand, Predicate) else self.put(operand)
        writer: Callable[[Batch, Value], None] = _of_batch(put)
        return writer

    def constant_flags(self, operand: Operand, width: int) -> int:
        """Flags of a constant operand of this many bytes."""
        if not isinstance(operand, Constant):
            return 0
        if operand.register is not None or operand.bank_register is not None:
            return self.bank_flags.anywhere(operand.bank, operand.offset)
        return self.bank_flags.flags(operand.bank, operand.offset, width)

    def place_of(self, operand: Operand) -> Place | None:
        """The register that an operand names; None for a constant or a register that never changes."""
        if isinstance(operand, Register) and operand.index != RZ:
            return ("UR" if operand.uniform else "R", operand.index)
        if isinstance(operand, Predicate) and operand.index not in (PT, -1):
            return ("UP" if operand.uniform else "P", operand.index)
        return None

    def operand_flags(self, batch: Batch, operand: Operand, width: int = 4) -> Value:
        """Flags of one operand: an array that broadcasts, or a number."""
        place = self.place_of(operand)
        if place is not None:
            found: Value = batch.flags[FILES[place[0]]][place[1]]
            return found
        flags: Value = self.constant_flags(operand, width)
        if isinstance(operand, Constant) and operand.register is not None:
            flags = flags | self.operand_flags(batch, operand.register)
        return flags

    def words_of(self, operand: Operand, count: int) -> tuple[Callable[[Batch], U32], Callable[[Batch], Flags]]:
        """Functions of a batch for the uniform registers of an operand and their flags, shape (rows, count)."""
        registers = uniform_registers(operand, count)
        fetches = [self.number(register) for register in registers]

        def words(batch: Batch) -> U32:
            found: U32 = _side_by_side(batch, [fetch(batch) for fetch in fetches], np.uint32)
            return found

        def flags(batch: Batch) -> Flags:
            of_each = [self.operand_flags(batch, register) for register in registers]
            found: Flags = _side_by_side(batch, of_each, np.uint16)
            return found

        return words, flags

    def test(self, operand: Operand) -> tuple[Callable[[Batch], Value], Callable[[Batch], Value]]:
        """Functions of a batch for the booleans of a predicate operand, and their flags."""
        try:
            value = _of_batch(self.predicate(operand))
        except UnsupportedInstructionError:
            value = lambda f: np.bool_(False)  # noqa: E731
        return value, lambda batch: self.operand_flags(batch, operand)


def _of_batch(function: Any) -> Any:
    """The emulator's functions of a frame work on a batch: it has the same attributes."""
    return function


def _side_by_side(batch: Batch, values: list[Value], kind: type[np.generic]) -> Value:
    return np.concatenate([np.broadcast_to(np.asarray(value, kind), (batch.rows, 1)) for value in values], axis=1)


def joined_flags(batch: Batch, places: Iterable[Place], constant: int) -> Flags | int:
    """Flags of everything that an instruction reads."""
    total: Any = constant
    for file, index in places:
        total = total | batch.flags[FILES[file]][index]
    return total  # type: ignore[no-any-return]


def stand_in(batch: Batch, sources: Iterable[Place], results: Iterable[Place]) -> None:
    """Write a stand-in for a result that cannot be computed: its first source.

    A value that is the same in all lanes stays so, and one that counts up with the lanes still does.
    """
    first: Value = np.uint32(0)
    for file, index in sources:
        if file in ("R", "UR"):
            first = getattr(batch, FILES[file])[index].copy()
            break
    for file, index in results:
        row = getattr(batch, FILES[file])[index]
        if file == "R":
            batch.write(row, first)
        elif file == "UR":
            batch.write_uniform(row, first[:, :1] if np.ndim(first) else first)

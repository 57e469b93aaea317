"""Constant banks of a launch without data, and values: what an instruction computes, or a stand-in for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....errors import DrywarpError, UnsupportedInstructionError
from ....kernel.instruction import PT, RZ, Constant, Instruction, Operand, Predicate, Register
from ....kernel.isa.nvidia.registers import Place
from ....kernel.kernel import Kernel
from ....kernel.launch.launch import (
    MAP_BYTES,
    Argument,
    Buffer,
    Launch,
    Scalar,
    Structure,
    TensorMap,
    Texture,
    TextureTable,
)
from ...emulator.bulk_copy import uniform_registers
from ...emulator.constants import BANK_BYTES, ConstantBanks, build_banks, parameter_bytes
from ...emulator.decode import Decoder
from ...emulator.machine import U32
from ...emulator.program import HANDLER_MODULES
from ..parameters import StaticLaunch, places_of, slot
from ..state import DATA, Batch, Flags, Value
from ..words import Step

_USER_BANK = 3
_STACK_BYTES = 1 << 16


def _without_textures(launch: Launch, kernel: Kernel, held: Collection[str]) -> Launch:
    """The launch with zeros for textures, surfaces and maps of tensors that are not `held`: none enters addresses."""
    sizes = {Texture: 8, TextureTable: 8, TensorMap: MAP_BYTES}

    def follows(part: Argument) -> bool:
        known = isinstance(part, TensorMap) and (part.buffer is not None or part.of in held)
        return isinstance(part, Buffer) or known

    def without(a: Argument) -> Argument:
        if isinstance(a, Structure):
            parts = tuple(part for part in a.parts if follows(part[2]))
            return Scalar(bytes(8), "0") if a.in_memory else replace(a, parts=parts)
        leaves = isinstance(a, Texture | TextureTable | TensorMap) and not follows(a)
        return Scalar(bytes(sizes[type(a)]), "0") if leaves else a

    arguments = tuple(without(a) for a in launch.arguments)
    constant = {n for n, symbol in kernel.symbols.items() if symbol.space == "constant"}
    constants = {n: value for n, value in launch.constants.items() if n in constant and not isinstance(value, Texture)}
    return replace(launch, arguments=arguments, constants=constants)


class StaticBanks:
    """The banks' words, as the emulator lays them out, and a flag for each byte."""

    def __init__(self, kernel: Kernel, given: StaticLaunch) -> None:
        # The memory only has to provide addresses. Parameters whose address the code takes lie in the very last slot.
        regions = _regions(kernel, given)
        launch = _without_textures(given.launch, kernel, {region.name for region in regions})
        in_memory = SimpleNamespace(start=slot(len(given.places) + 2))
        memory: Any = SimpleNamespace(
            regions=regions,
            image=SimpleNamespace(start=given.image),
            region_named=lambda name: in_memory,
            bytes_of=lambda region: np.zeros(parameter_bytes(kernel), np.uint8),
        )
        self.words: ConstantBanks = build_banks(kernel, launch, memory, _STACK_BYTES)
        self._in_memory, self._parameters = in_memory.start, (kernel.parameter_base, parameter_bytes(kernel))
        self._flags: dict[int, Flags] = {}
        for parameter, flag in zip(kernel.parameters, given.flags, strict=True):
            at = kernel.parameter_base + parameter.offset
            self._bank(0)[at : at + parameter.size] = flag
        if any(symbol.space == "constant" for symbol in kernel.symbols.values()):
            self._bank(_USER_BANK)[:] = DATA
            for name, value in launch.constants.items():
                symbol = kernel.symbols[name]
                size = value.nbytes if isinstance(value, Buffer) else symbol.size
                self._bank(_USER_BANK)[symbol.offset : symbol.offset + size] = 0

    def tensor_map(self, address: int) -> bytes | None:
        """The bytes at an address among the parameters that hold a tensor map; None for other addresses."""
        base, size = self._parameters
        at = address - self._in_memory
        if not 0 <= at <= size - MAP_BYTES or self.flags(0, base + at, MAP_BYTES):
            return None
        return self.words.bank(0)[base + at :][:MAP_BYTES].tobytes()

    def _bank(self, number: int) -> Flags:
        return self._flags.setdefault(number, np.zeros(BANK_BYTES, np.uint16))

    def flags(self, bank: int, offset: int, width: int) -> int:
        """Flags of `width` bytes at an offset."""
        held = self._flags.get(bank)
        return 0 if held is None else int(np.bitwise_or.reduce(held[offset : offset + width], initial=0))

    def anywhere(self, bank: int, offset: int) -> int:
        """Flags of everything that an index from `offset` on may reach."""
        held = self._flags.get(bank)
        return 0 if held is None else int(np.bitwise_or.reduce(held[max(offset, 0) :], initial=0))


def _regions(kernel: Kernel, given: StaticLaunch) -> list[Any]:
    """Name, buffer and address of the launch's buffers, in the order of the arguments."""
    found = []
    for number, (argument, own) in enumerate(zip(given.launch.arguments, given.places, strict=True)):
        name = kernel.parameters[number].name if number < len(kernel.parameters) else ""
        for path, (start, _) in places_of(number, argument, own):
            found.append(SimpleNamespace(name=path or name or f"arg{number}", start=start, buffer=True))
    return found


# Values: what an instruction computes, from the emulator's own opcode functions, or a stand-in for it.

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

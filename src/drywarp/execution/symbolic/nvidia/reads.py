"""Constant banks of a launch without data: the words, and how certain each is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

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
from ...emulator.constants import BANK_BYTES, ConstantBanks, build_banks, parameter_bytes
from ..parameters import StaticLaunch, places_of, slot
from ..state import DATA, Flags

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

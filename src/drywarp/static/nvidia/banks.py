"""Constant banks as a launch without data sees them: the words, and how sure each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...emulator.constants import BANK_BYTES, ConstantBanks, build_banks, parameter_bytes
from ...kernel.kernel import Kernel
from ...kernel.launch import Buffer, Launch, Scalar
from ...kernel.tensor_map import MAP_BYTES, TensorMap
from ...kernel.texture import Texture, TextureTable
from ..parameters import StaticLaunch, slot
from ..words import DATA, Flags

_USER_BANK = 3
_STACK_BYTES = 1 << 16


def _without_textures(launch: Launch) -> Launch:
    """The launch with zeros for textures, surfaces and tensor maps: no address is made of them."""
    sizes = {Texture: 8, TextureTable: 8, TensorMap: MAP_BYTES}
    arguments = tuple(
        Scalar(bytes(sizes[type(a)]), "0") if isinstance(a, Texture | TextureTable | TensorMap) else a
        for a in launch.arguments
    )
    constants = {name: value for name, value in launch.constants.items() if not isinstance(value, Texture)}
    return replace(launch, arguments=arguments, constants=constants)


class StaticBanks:
    """The banks' words, as the emulator lays them out, and a flag for each byte."""

    def __init__(self, kernel: Kernel, given: StaticLaunch) -> None:
        launch = _without_textures(given.launch)
        regions = [SimpleNamespace(start=start) for start, _ in _buffers(given)]
        # Only addresses are asked of the memory.
        # Parameters of which code takes the address lie in the last slot of all.
        in_memory = SimpleNamespace(start=slot(len(given.places) + 2))
        memory: Any = SimpleNamespace(
            regions=regions,
            image=SimpleNamespace(start=given.image),
            region_named=lambda name: in_memory,
            bytes_of=lambda region: np.zeros(parameter_bytes(kernel), np.uint8),
        )
        self.words: ConstantBanks = build_banks(kernel, launch, memory, _STACK_BYTES)
        self._flags: dict[int, Flags] = {}
        for parameter, flag in zip(kernel.parameters, given.flags, strict=True):
            at = kernel.parameter_base + parameter.offset
            if isinstance(flag, int):
                self._bank(0)[at : at + parameter.size] = flag
            else:
                self._bank(0)[at : at + parameter.size] = flag
        if any(symbol.space == "constant" for symbol in kernel.symbols.values()):
            self._bank(_USER_BANK)[:] = DATA
            for name, value in launch.constants.items():
                symbol = kernel.symbols[name]
                size = value.nbytes if isinstance(value, Buffer) else symbol.size
                self._bank(_USER_BANK)[symbol.offset : symbol.offset + size] = 0

    def _bank(self, number: int) -> Flags:
        return self._flags.setdefault(number, np.zeros(BANK_BYTES, np.uint16))

    def flags(self, bank: int, offset: int, width: int) -> int:
        """Flags of `width` bytes at an offset."""
        held = self._flags.get(bank)
        return 0 if held is None else int(np.bitwise_or.reduce(held[offset : offset + width], initial=0))

    def anywhere(self, bank: int, offset: int) -> int:
        """Flags of all that an index from `offset` on may reach."""
        held = self._flags.get(bank)
        return 0 if held is None else int(np.bitwise_or.reduce(held[max(offset, 0) :], initial=0))


def _buffers(given: StaticLaunch) -> Sequence[tuple[int, int]]:
    """Start and size of the launch's buffers, in the order of the arguments."""
    return [
        place
        for argument, place in zip(given.launch.arguments, given.places, strict=True)
        if isinstance(argument, Buffer) and place is not None
    ]

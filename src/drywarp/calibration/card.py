"""A card: our kernels compiled with NVRTC, launched through the driver, and its clocks read meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .. import device
from ..errors import ToolError
from ..frontends.cuda import CudaOptions, compile_cuda, machine_code_of
from ..kernel.kernel import Kernel
from .device import CLOCK_WORDS, ENTRY, Attributes, Program, Run, Timing, Value, Zeros

OLDEST = 75
"""The oldest architecture that NVRTC compiles for."""
WARM_UP_S = 0.3
"""How long the card works before the first timing, so that its clock has risen."""
_WORK, _TURNS = Program("chain", (("OP_FFMA", ""), ("LENGTH", "256"))), 1 << 14


class Card:
    """A GPU of this machine by the driver's number. Raises ToolError where there is none. Changes no setting of it."""

    def __init__(self, number: int = 0, card: device.Card | None = None) -> None:
        try:
            self._card = card or device.open_card(number)
        except ToolError as error:
            raise ToolError(f"{error}; --simulated NAME_OR_FILE measures drywarp's own simulation of a GPU") from None
        stated = self._card.attributes
        major, _, minor = stated.compute_capability.partition(".")
        if int(major) * 10 + int(minor) < OLDEST:
            raise ToolError(
                f"{stated.name} is of compute capability {stated.compute_capability}: expected 7.5 or later"
            )
        self.attributes = Attributes(
            name=stated.name,
            driver=stated.driver,
            simulated=False,
            compute_capability=stated.compute_capability,
            arch=stated.arch,
            sm_count=stated.sm_count,
            max_warps_per_sm=stated.max_warps_per_sm,
            max_threads_per_block=stated.max_threads_per_block,
            shared_bytes_per_block_optin=stated.shared_bytes_per_block_optin,
            shared_bytes_per_block_default=stated.shared_bytes_per_block_default,
            l2_bytes=stated.l2_bytes,
            clock_mhz=stated.clock_mhz,
            # As the driver's own samples count it: two transfers a clock.
            memory_peak_gbs=2 * stated.memory_clock_mhz * stated.memory_bus_bits / 8 / 1000,
        )
        self._functions: dict[Program, device.CardFunction] = {}
        self._kernels: dict[Program, Kernel] = {}
        self._buffers: dict[str, tuple[int, int]] = {}
        self._warm = False

    def code(self, program: Program) -> Kernel:
        """The machine code that is launched."""
        if program not in self._kernels:
            options = CudaOptions(dict(program.defines))
            self._kernels[program] = compile_cuda(program.path, arch=self.attributes.arch, entry=ENTRY, options=options)
        return self._kernels[program]

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        """Launch `repeats` times and once before, each time with other data in the L2.

        Buffers are filled with zeros before the first launch alone: later ones find what earlier ones left.
        """
        if not self._warm:
            self._warm = True
            self._warm_up()
        return self._launched(run, repeats + 1)[1:]

    def _launched(self, run: Run, times: int) -> list[Timing]:
        function = self._function(run.program)
        given: Mapping[str, Value] = {**run.arguments, "clocks": Zeros(run.clock_bytes)}
        zeros = {name: value.nbytes for name, value in given.items() if isinstance(value, Zeros)}
        places = {name: self._buffer(name, nbytes) for name, nbytes in zeros.items()}
        values = []
        for parameter in self.code(run.program).parameters:
            value = places.get(parameter.name, given[parameter.name])
            assert not isinstance(value, Zeros)
            values.append((value or 0).to_bytes(parameter.size, "little"))
        for name, nbytes in zeros.items():
            self._card.fill(places[name], nbytes)
        timings = []
        for _ in range(times):
            self._flush()
            self._card.start_timing()
            self._card.launch(function, (run.grid, 1, 1), (run.block, 1, 1), values, run.shared)
            self._card.stop_timing()
            mhz = self._card.clocks().sm_mhz or self.attributes.clock_mhz
            ns = self._card.elapsed_s() * 1e9
            words = np.zeros(zeros["clocks"] // 8, np.uint64)
            self._card.download(places["clocks"], words)
            timings.append(Timing(cycles_of(words), ns, mhz))
        return timings

    def _function(self, program: Program) -> device.CardFunction:
        if program not in self._functions:
            options = CudaOptions(dict(program.defines))
            made = machine_code_of(program.path, self.attributes.arch, ENTRY, options)
            self._functions[program] = self._card.load(made.compiled.cubin, made.symbol)
        return self._functions[program]

    def _buffer(self, name: str, nbytes: int) -> int:
        """Memory of a parameter's name, kept from launch to launch and grown where it is too small."""
        place, size = self._buffers.get(name, (0, 0))
        if size < nbytes:
            if size:
                self._card.free(place)
            place = self._card.allocate(nbytes)
            self._buffers[name] = place, nbytes
        return place

    def _flush(self) -> None:
        """Put other data into the L2."""
        nbytes = 2 * self.attributes.l2_bytes
        self._card.fill(self._buffer("flush", nbytes), nbytes, 1)

    def _warm_up(self) -> None:
        run = Run(_WORK, self.attributes.sm_count, 1024, {"turns": _TURNS, "every": 1, "a": 3, "b": 5, "out": None})
        spent = 0.0
        while spent < WARM_UP_S:
            spent += max(1e-3, self._launched(run, 1)[0].ns * 1e-9)


def cycles_of(words: npt.NDArray[np.uint64]) -> float:
    """Cycles from the first start to the last end on the SM where that is longest.

    `words` are `CLOCK_WORDS` for each warp: SM, first and last clock; a warp that took no part left zeros.
    """
    rows = words.reshape(-1, CLOCK_WORDS)
    rows = rows[rows[:, 2] > 0]
    if not len(rows):
        raise ToolError("a kernel left no clocks: it did not run")
    sms = rows[:, 0]
    return max(float(rows[sms == sm, 2].max() - rows[sms == sm, 1].min()) for sm in np.unique(sms))

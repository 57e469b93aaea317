"""A GPU as a device: compiles our kernels with NVRTC, launches them through the driver, and reads its clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...analysis.prepare import prepare_kernel
from ...analysis.prepared import Prepared
from ...errors import ToolError
from ...frontends.cuda import CudaOptions
from ...frontends.cuda.compile import compile_cuda, machine_code_of
from ...kernel.kernel import Kernel
from ...models.pipeline import Pipeline
from ...pipeline import share_of, simulate
from ...workload.cost import TICKS_PER_CYCLE, CostedWorkload
from .. import device
from ..measure.simulated import NOISE, noisy, simulated_gpu
from .device import CLOCK_WORDS, ENTRY, LATENCIES, Attributes, Program, Run, Timing, Value, Watched, Zeros
from .journal import key_of

OLDEST = 75
"""The oldest architecture that NVRTC compiles for."""
WARM_UP_S = 0.3
"""How long the GPU runs before the first timing, so that its clock has ramped up."""
_WORK, _ITERATIONS = Program("chain", (("OP_FFMA", ""), ("LENGTH", "256"))), 1 << 14


class Card:
    """A GPU of this machine by the driver's index. Raises ToolError if there is none. Changes no GPU setting."""

    def __init__(self, number: int = 0, card: device.Card | None = None) -> None:
        try:
            self._card = card or device.open_card(number)
        except ToolError as error:
            raise ToolError(
                f"{error}; --simulated NAME_OR_FILE measures drywarp's simulation of a GPU instead"
            ) from None
        stated = self._card.attributes
        major, _, minor = stated.compute_capability.partition(".")
        if int(major) * 10 + int(minor) < OLDEST:
            raise ToolError(f"{stated.name} has compute capability {stated.compute_capability}: expected 7.5 or later")
        # As in the CUDA samples: two transfers per clock.
        peak_gbs = 2 * stated.memory_clock_mhz * stated.memory_bus_bits / 8 / 1000
        alike = {f.name: getattr(stated, f.name) for f in fields(Attributes) if hasattr(stated, f.name)}
        self.attributes = Attributes(**alike, simulated=False, memory_peak_gbs=peak_gbs)
        self._functions: dict[Program, device.CardFunction] = {}
        self._kernels: dict[Program, Kernel] = {}
        self._buffers: dict[str, tuple[int, int]] = {}
        self._warm = False

    def code(self, program: Program) -> Kernel:
        """The machine code of a program."""
        if program not in self._kernels:
            options = CudaOptions(dict(program.defines))
            self._kernels[program] = compile_cuda(program.path, arch=self.attributes.arch, entry=ENTRY, options=options)
        return self._kernels[program]

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        """Launch once to warm up and then `repeats` times, each time with other data in the L2.

        Buffers are zeroed before the first launch only: later launches see the previous results.
        """
        if not self._warm:
            self._warm = True
            self._warm_up()
        return self._launched(run, repeats + 1)[1:]

    def watch(self, run: Run) -> Watched:
        """Launch twice, the first time to warm up, and read the second launch's clocks and latencies."""
        self.time(run, 1)
        words = self._words("clocks", run.clock_bytes, np.uint64).reshape(-1, CLOCK_WORDS)
        given = run.arguments.get(LATENCIES)
        took = self._words(LATENCIES, given.nbytes, np.uint32) if isinstance(given, Zeros) else np.zeros(0, np.uint32)
        return Watched(lives_of(words), tuple(map(float, np.sort(took[took > 0]))))

    def _words(self, buffer: str, nbytes: int, kind: type[np.unsignedinteger[Any]]) -> npt.NDArray[Any]:
        words = np.zeros(nbytes // np.dtype(kind).itemsize, kind)
        self._card.download(self._buffers[buffer][0], words)
        return words

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
        """The buffer of a parameter by name, reused between launches and grown if too small."""
        place, size = self._buffers.get(name, (0, 0))
        if size < nbytes:
            if size:
                self._card.free(place)
            place = self._card.allocate(nbytes)
            self._buffers[name] = place, nbytes
        return place

    def _flush(self) -> None:
        """Fill the L2 with other data."""
        nbytes = 2 * self.attributes.l2_bytes
        self._card.fill(self._buffer("flush", nbytes), nbytes, 1)

    def _warm_up(self) -> None:
        run = Run(
            _WORK, self.attributes.sm_count, 1024, {"iterations": _ITERATIONS, "every": 1, "a": 3, "b": 5, "out": None}
        )
        spent = 0.0
        while spent < WARM_UP_S:
            spent += max(1e-3, self._launched(run, 1)[0].ns * 1e-9)


def cycles_of(words: npt.NDArray[np.uint64]) -> float:
    """Cycles from the first start to the last end on an SM; the maximum over SMs.

    `words` are `CLOCK_WORDS` for each warp: SM, first and last clock; an unused warp leaves zeros.
    """
    rows = words.reshape(-1, CLOCK_WORDS)
    rows = rows[rows[:, 2] > 0]
    if not len(rows):
        raise ToolError("a kernel recorded no clocks: it did not run")
    sms = rows[:, 0]
    return max(float(rows[sms == sm, 2].max() - rows[sms == sm, 1].min()) for sm in np.unique(sms))


def lives_of(rows: npt.NDArray[np.uint64]) -> tuple[tuple[float, float], ...]:
    """Start and end of each warp of the SM that ran the most, from its first start; an unused warp leaves zeros."""
    rows = rows[rows[:, 2] > 0].astype(np.int64)
    if not len(rows):
        raise ToolError("a kernel recorded no clocks: it did not run")
    sms, many = np.unique(rows[:, 0], return_counts=True)
    own = rows[rows[:, 0] == sms[many.argmax()], 1:]
    return tuple((float(start), float(end)) for start, end in own - own[:, 0].min())


# drywarp's own simulation in place of a GPU: the same kernels, with noise on the times.
#
# The experiments and fits see the same as for a real GPU. What a driver would report (SMs, warps, memory sizes, clock)
# comes from the GPU file; λ, Λ, bandwidths and everything else that is measured only show in the times.


class SimulatedCard:
    """A simulated GPU by name or file. `seed` seeds the noise; the same seed gives the same timings."""

    def __init__(self, name_or_file: str, seed: int = 0, noise: float = NOISE) -> None:
        gpu = simulated_gpu(name_or_file)
        self._gpu, self._seed, self._noise = gpu, seed, noise
        limits = gpu.occupancy
        self.attributes = Attributes(
            name=gpu.title,
            driver=f"simulated by drywarp, GPU file {gpu.file_hash[:12]}",
            simulated=True,
            compute_capability=gpu.compute_capability,
            arch=gpu.arch,
            sm_count=gpu.device.sm_count,
            max_warps_per_sm=limits.max_warps_per_sm,
            max_threads_per_block=limits.max_threads_per_block,
            shared_bytes_per_block_optin=limits.shared_bytes_per_block_optin,
            shared_bytes_per_block_default=limits.shared_bytes_per_block_default,
            l2_bytes=gpu.memory.l2.bytes,
            clock_mhz=gpu.device.boost_clock_mhz,
            memory_peak_gbs=gpu.memory.dram.peak_gbs,
        )

    def code(self, program: Program) -> Kernel:
        """Compile for the GPU's architecture."""
        return _compiled(program, self.attributes.arch)

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        """Simulate the launch once with a cold L2; every repetition has its own noise."""
        cycles = Pipeline().predict(self._prepared(run).costed, ()).cycles
        mhz = self.attributes.clock_mhz
        drawn = noisy(cycles, self._noise, repeats, f"{self._seed} {key_of(run)}")
        return [Timing(each, each * 1000 / mhz, mhz) for each in drawn]

    def watch(self, run: Run) -> Watched:
        """Simulate one SM's share with a cold L2, without noise; every access to global memory is timed."""
        prepared = self._prepared(run)
        work = prepared.costed
        result = simulate(work, share_of(work, work.blocks_per_sm), profile=True)
        starts = np.repeat(result.block_starts, work.warps_per_block)
        warps = np.stack([starts, result.warp_ends], axis=1) / TICKS_PER_CYCLE
        latencies: npt.NDArray[np.float64] = np.zeros(0)
        if LATENCIES in run.arguments and result.profile is not None:
            loads = [n for n, (path, node) in enumerate(result.profile.paths_nodes) if _is_load(work, path, node)]
            rows = np.isin(result.profile.column("node"), loads)
            took = result.profile.column("completion")[rows] - result.profile.column("issue")[rows]
            latencies = np.sort(took) / TICKS_PER_CYCLE
        return Watched(tuple((float(start), float(end)) for start, end in warps), tuple(map(float, latencies)))

    def _prepared(self, run: Run) -> Prepared:
        arguments = {name: f"u8[{v.nbytes}]" if isinstance(v, Zeros) else v for name, v in run.arguments.items()}
        return prepare_kernel(
            run.program.path,
            gpu=self._gpu,
            entry=ENTRY,
            grid=run.grid,
            block=run.block,
            args={**arguments, "clocks": f"u64[{run.clock_bytes // 8}]"},
            shared=run.shared,
            defines=dict(run.program.defines),
        )


def _is_load(work: CostedWorkload, path: int, node: int) -> bool:
    return work.paths[path].nodes[node].class_ == "global_load"


@cache
def _compiled(program: Program, arch: str) -> Kernel:
    return compile_cuda(program.path, arch=arch, entry=ENTRY, options=CudaOptions(dict(program.defines)))

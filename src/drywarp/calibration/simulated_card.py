"""drywarp's own simulation of a GPU in the place of a card: the same kernels, with noise on the times.

The experiments and fits see of it what they see of a card. What a driver would state (SMs, warps, sizes of memories,
clock) is taken from the GPU file; λ, Λ, bandwidths and everything else that is measured show in the times alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..api import bind_kernel
from ..frontends.cuda import CudaOptions, compile_cuda
from ..kernel.kernel import Kernel
from ..models.pipeline import Pipeline
from ..simulated_times import NOISE, noisy, simulated_gpu
from .device import ENTRY, Attributes, Program, Run, Timing, Zeros
from .journal import key_of


class SimulatedCard:
    """A GPU of a name or file, simulated. `seed` makes the noise; the same seed gives the same timings."""

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
        """Simulate the launch once, cold; every repetition has noise of its own."""
        arguments = {name: f"u8[{v.nbytes}]" if isinstance(v, Zeros) else v for name, v in run.arguments.items()}
        ready = bind_kernel(
            run.program.path,
            gpu=self._gpu,
            entry=ENTRY,
            grid=run.grid,
            block=run.block,
            args={**arguments, "clocks": f"u64[{run.clock_bytes // 8}]"},
            shared=run.shared,
            defines=dict(run.program.defines),
        )
        cycles = Pipeline().predict(ready.bound, ()).cycles
        mhz = self.attributes.clock_mhz
        drawn = noisy(cycles, self._noise, repeats, f"{self._seed} {key_of(run)}")
        return [Timing(each, each * 1000 / mhz, mhz) for each in drawn]


@cache
def _compiled(program: Program, arch: str) -> Kernel:
    return compile_cuda(program.path, arch=arch, entry=ENTRY, options=CudaOptions(dict(program.defines)))

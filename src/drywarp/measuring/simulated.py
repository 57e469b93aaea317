"""drywarp's own prediction in the place of a card: the whole command without a GPU, with noise on the times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from ..api import Options, bind_kernel
from ..arguments import make_launch
from ..device import Clocks
from ..emulator import emulate
from ..errors import UsageError
from ..frontends.cuda import CudaOptions, compile_cuda
from ..hardware import Gpu, occupancy
from ..kernel.kernel import Kernel
from ..models.pipeline import Pipeline
from ..simulated_times import NOISE, noisy, simulated_gpu
from .configuration import Configuration
from .references import check_arguments, difference, expected_outputs, inputs_of, load_reference
from .runner import Timing


@dataclass
class SimulatedRunner:
    """A GPU by name or file. `whole` runs every block on the emulator, so that outputs can be compared.

    The same `seed` gives the same times. Raises UsageError for a GPU that takes no NVIDIA machine code.
    """

    name_or_file: str
    samples: int
    seed: int = 0
    whole: bool = False
    noise: float = NOISE
    gpu: Gpu = field(init=False)
    simulated: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.gpu = simulated_gpu(self.name_or_file)

    @property
    def device(self) -> str:
        """The GPU's name, marked as simulated."""
        return f"{self.gpu.name} (simulated)"

    @property
    def driver(self) -> str:
        """What was in the place of the card."""
        return f"drywarp, GPU file {self.gpu.file_hash[:12]}, seed {self.seed}"

    @contextmanager
    def prepare(self, configuration: Configuration) -> Iterator[Simulated]:
        """As `Runner.prepare`."""
        kernel = compile_cuda(
            configuration.source,
            arch=self.gpu.arch,
            entry=configuration.kernel.entry.entry,
            options=CudaOptions(configuration.defines),
        )
        load_reference(configuration)
        yield Simulated(self, configuration, kernel)


@dataclass
class Simulated:
    """A configuration on the simulated GPU."""

    runner: SimulatedRunner
    configuration: Configuration
    kernel: Kernel

    @cached_property
    def off_by(self) -> dict[str, float] | None:
        """How far the emulated outputs are from NumPy's; None where not every block is run."""
        configuration, kernel = self.configuration, self.kernel
        launch = make_launch(
            kernel, configuration.grid, configuration.block, configuration.args, dynamic_shared=configuration.shared
        )
        check_arguments(kernel, launch)
        if not self.runner.whole:
            return None
        inputs = inputs_of(kernel, launch)
        expected = expected_outputs(configuration, kernel, launch, inputs)
        run = emulate(kernel, launch, blocks="all")
        return {name: difference(run.buffer(name), wanted) for name, wanted in expected.items()}

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self.kernel.resources.registers

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes that a block may have beside its static shared memory."""
        return self.runner.gpu.occupancy.shared_bytes_per_block_optin - self.kernel.resources.shared_bytes

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """By the rules of the occupancy calculator."""
        shared = self.kernel.resources.shared_bytes + dynamic_shared
        try:
            limits, threads = self.runner.gpu.occupancy, self.configuration.threads
            return occupancy(limits, self.kernel.resources.registers, shared, threads).blocks_per_sm
        except UsageError:
            return 0

    def time(self, dynamic_shared: int) -> Timing:
        """The Pipeline model's time, as in a loop of launches, with noise."""
        runner, configuration = self.runner, self.configuration
        ready = bind_kernel(
            configuration.source,
            gpu=runner.gpu,
            entry=configuration.kernel.entry.entry,
            grid=configuration.grid,
            block=configuration.block,
            args=configuration.args,
            shared=dynamic_shared,
            defines=configuration.defines,
            options=Options(warm_l2=True),
        )
        time_us = Pipeline().predict(ready.bound, ()).time_s * 1e6
        key = f"{runner.seed} {configuration.name} {configuration.launch_text(dynamic_shared)}"
        device = runner.gpu.device
        clocks = Clocks(sm_mhz=device.boost_clock_mhz)
        return Timing(tuple(noisy(time_us, runner.noise, runner.samples, key)), 1, clocks, self.off_by)

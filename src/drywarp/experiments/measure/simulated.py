"""What kernels are measured on: a GPU, or drywarp's own prediction in place of one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from ...analysis.prepare import prepare_kernel
from ...analysis.request import Options
from ...errors import UsageError
from ...execution.emulator import emulate
from ...frontends.cuda.compile import compile_cuda
from ...hardware import Gpu, load_gpu, occupancy
from ...kernel.kernel import Kernel
from ...kernel.launch.arguments import make_launch
from ...models.pipeline import Pipeline
from ..device import Clocks
from .configuration import Configuration
from .row import check_arguments, difference, expected_outputs, inputs_of, load_reference


@dataclass(frozen=True)
class Timing:
    """Samples of one launch's time in microseconds, each the mean of `launches` in a row, and the clocks during them.

    `off_by` is each output's deviation from NumPy's (`row.difference`), None if outputs were not computed.
    """

    samples_us: tuple[float, ...]
    launches: int
    clocks: Clocks
    off_by: Mapping[str, float] | None


class Prepared(Protocol):
    """A compiled configuration with its data."""

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        ...

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a block may have."""
        ...

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """Blocks that an SM holds at once; 0 if none fits."""
        ...

    def time(self, dynamic_shared: int) -> Timing:
        """Launch it repeatedly. Raises DrywarpError if it cannot be launched."""
        ...


class Runner(Protocol):
    """Prepares configurations on a device; `simulated` means that there is no real GPU."""

    simulated: bool

    @property
    def device(self) -> str:
        """The device's name in the table."""
        ...

    @property
    def driver(self) -> str:
        """The driver's version, or what replaces the GPU."""
        ...

    def prepare(self, configuration: Configuration) -> AbstractContextManager[Prepared]:
        """Compile for this device, and create the data. Raises DrywarpError."""
        ...


# Shared by the simulated devices: the GPUs that they accept, and noise on times.

NOISE = 0.01
"""Standard deviation of a time, as a fraction of it."""


def simulated_gpu(name_or_file: str) -> Gpu:
    """The GPU with a name or file. Raises UsageError if it does not run NVIDIA machine code."""
    gpu = load_gpu(name_or_file)
    if gpu.abstract_only or gpu.is_amd:
        raise UsageError(f"GPU {gpu.name} cannot be simulated here: expected one that runs NVIDIA machine code")
    return gpu


def noisy(value: float, noise: float, count: int, key: str) -> list[float]:
    """`count` normally distributed values around `value`, with relative deviation `noise`; `key` seeds them."""
    draw = np.random.default_rng(list(hashlib.sha256(key.encode()).digest())).standard_normal(count)
    return [float(value * (1 + noise * each)) for each in draw]


# drywarp's own prediction in place of a GPU: the whole command without a GPU, with noise on the times.


@dataclass
class SimulatedRunner:
    """A simulated GPU by name or file. `whole` runs every block on the emulator, so that outputs can be compared.

    The same `seed` gives the same times. Raises UsageError for a GPU that does not run NVIDIA machine code.
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
        """What replaces the GPU and its driver."""
        return f"drywarp, GPU file {self.gpu.file_hash[:12]}, seed {self.seed}"

    @contextmanager
    def prepare(self, configuration: Configuration) -> Iterator[Simulated]:
        """As `Runner.prepare`."""
        kernel = compile_cuda(
            configuration.source,
            arch=self.gpu.arch,
            entry=configuration.kernel.entry.entry,
            options=configuration.options,
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
        """The emulated outputs' deviations from NumPy's; None unless every block is run."""
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
        """Bytes that a block may have in addition to its static shared memory."""
        return self.runner.gpu.occupancy.shared_bytes_per_block_optin - self.kernel.resources.shared_bytes

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """Computed by the rules of the occupancy calculator."""
        shared = self.kernel.resources.shared_bytes + dynamic_shared
        try:
            limits, threads = self.runner.gpu.occupancy, self.configuration.threads
            return occupancy(limits, self.kernel.resources.registers, shared, threads).blocks_per_sm
        except UsageError:
            return 0

    def time(self, dynamic_shared: int) -> Timing:
        """The Pipeline model's time with a warm L2, as in a loop of launches, with noise."""
        runner, configuration = self.runner, self.configuration
        prepared = prepare_kernel(
            configuration.source,
            gpu=runner.gpu,
            entry=configuration.kernel.entry.entry,
            grid=configuration.grid,
            block=configuration.block,
            args=configuration.args,
            shared=dynamic_shared,
            defines=configuration.defines,
            compiler_options=configuration.kernel.entry.compiler_options,
            options=Options(warm_l2=True, fall_back=False),
        )
        time_us = Pipeline().predict(prepared.costed, ()).time_s * 1e6
        key = f"{runner.seed} {configuration.name} {configuration.launch_text(dynamic_shared)}"
        device = runner.gpu.device
        clocks = Clocks(sm_mhz=device.boost_clock_mhz)
        return Timing(tuple(noisy(time_us, runner.noise, runner.samples, key)), 1, clocks, self.off_by)

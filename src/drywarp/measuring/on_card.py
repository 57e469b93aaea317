"""Kernels measured on a card: outputs first, then warm-up, then samples, with the clocks read while it is at work."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..arguments import make_launch
from ..device import Card, CardFunction, Clocks, DeviceError
from ..frontends.cuda import CudaOptions, compile_cuda, machine_code_of
from ..kernel.kernel import Kernel
from ..kernel.launch import Buffer, Launch, Scalar
from .configuration import Configuration
from .references import Arrays, check_arguments, difference, expected_outputs, inputs_of, load_reference
from .runner import Timing

WARM_UP_S = 0.05
"""How long a kernel runs before it is timed, so that clocks have risen."""
SAMPLE_S = 0.002
"""Least length of a sample: the events' resolution, half a microsecond, and their own cost are then nothing."""
MOST_LAUNCHES = 2000


@dataclass
class CardRunner:
    """Runs on this card. `samples` is how many samples are taken of each launch."""

    card: Card
    samples: int
    simulated: bool = field(default=False, init=False)

    @property
    def device(self) -> str:
        """The card's name."""
        return self.card.attributes.name

    @property
    def driver(self) -> str:
        """The driver's version."""
        return self.card.attributes.driver

    @contextmanager
    def prepare(self, configuration: Configuration) -> Iterator[OnCard]:
        """As `Runner.prepare`; memory and code are given back at the end."""
        load_reference(configuration)
        arch, options = self.card.attributes.arch, CudaOptions(configuration.defines)
        entry = configuration.kernel.entry.entry
        kernel = compile_cuda(configuration.source, arch=arch, entry=entry, options=options)
        made = machine_code_of(configuration.source, arch, entry, options)
        launch = make_launch(
            kernel, configuration.grid, configuration.block, configuration.args, dynamic_shared=configuration.shared
        )
        check_arguments(kernel, launch)
        function = self.card.load(made.compiled.cubin, made.symbol)
        prepared = OnCard(self.card, self.samples, configuration, function, kernel, launch)
        try:
            yield prepared
        finally:
            prepared.free()


@dataclass
class OnCard:
    """A configuration on the card: its code and, once it is launched, its buffers and what they are to hold."""

    card: Card
    samples: int
    configuration: Configuration
    function: CardFunction
    kernel: Kernel
    launch: Launch
    held: dict[str, int] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> Arrays:
        """Every buffer before a launch."""
        return inputs_of(self.kernel, self.launch)

    @cached_property
    def expected(self) -> Arrays:
        """What NumPy says of the outputs."""
        return expected_outputs(self.configuration, self.kernel, self.launch, self.inputs)

    def free(self) -> None:
        """Give memory and code back; a card on which a kernel failed takes nothing back, and that is no news."""
        with suppress(DeviceError):
            for address in self.held.values():
                self.card.free(address)
            self.card.unload(self.function)

    @property
    def registers(self) -> int:
        """Registers of a thread, as the driver says."""
        return self.function.registers

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes that a block may have beside its static shared memory."""
        return self.card.attributes.shared_bytes_per_block_optin - self.function.static_shared_bytes

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """The driver's own calculation."""
        return self.card.blocks_per_sm(self.function, self.launch.threads_per_block, dynamic_shared)

    def time(self, dynamic_shared: int) -> Timing:
        """Outputs of the first run on fresh data are compared; later runs find what the ones before left."""
        off_by = self._compared(dynamic_shared)
        once = self._sample(dynamic_shared, 1)[0]
        launches = max(1, min(MOST_LAUNCHES, int(SAMPLE_S / max(once, 1e-9)) + 1))
        run = 0.0
        while run < WARM_UP_S:
            run += self._sample(dynamic_shared, launches)[0] * launches
        found = [self._sample(dynamic_shared, launches) for _ in range(self.samples)]
        clocks = _typical([clocks for _, clocks in found])
        return Timing(tuple(seconds * 1e6 for seconds, _ in found), launches, clocks, off_by)

    def profile(self, dynamic_shared: int, warm_up: int) -> None:
        """Launch so many times and once more, and wait: for a profiler that looks on."""
        self._upload()
        self._launch(dynamic_shared, warm_up + 1)
        self.card.wait()

    def _compared(self, dynamic_shared: int) -> dict[str, float]:
        self._upload()
        self._launch(dynamic_shared, 1)
        self.card.wait()
        off_by = {}
        for name, wanted in self.expected.items():
            actual = np.empty_like(self.inputs[name])
            self.card.download(self.held[name], actual)
            off_by[name] = difference(actual, wanted)
        return off_by

    def _upload(self) -> None:
        for name, array in self.inputs.items():
            if name not in self.held:
                self.held[name] = self.card.allocate(array.nbytes)
            self.card.upload(self.held[name], array)

    def _sample(self, dynamic_shared: int, launches: int) -> tuple[float, Clocks]:
        """Seconds of one launch, and the clocks while the card was at it."""
        self.card.start_timing()
        self._launch(dynamic_shared, launches)
        self.card.stop_timing()
        clocks = self.card.clocks()
        return self.card.elapsed_s() / launches, clocks

    def _launch(self, dynamic_shared: int, times: int) -> None:
        parameters = [
            self.held[parameter.name].to_bytes(8, "little") if isinstance(argument, Buffer) else _bytes(argument)
            for parameter, argument in zip(self.kernel.parameters, self.launch.arguments, strict=True)
        ]
        self.card.launch(self.function, self.launch.grid, self.launch.block, parameters, dynamic_shared, times)


def _bytes(argument: object) -> bytes:
    assert isinstance(argument, Scalar), "textures and tensor maps are not measured"
    return argument.data


def _typical(readings: Sequence[Clocks]) -> Clocks:
    """The median of each reading, of those that the card gave."""

    def median(values: Sequence[float | None]) -> float | None:
        given = [value for value in values if value is not None]
        return statistics.median(given) if given else None

    return Clocks(
        sm_mhz=median([clocks.sm_mhz for clocks in readings]),
        memory_mhz=median([clocks.memory_mhz for clocks in readings]),
        temperature_c=median([clocks.temperature_c for clocks in readings]),
        power_w=median([clocks.power_w for clocks in readings]),
    )

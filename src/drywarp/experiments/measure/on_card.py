"""Measures kernels on a GPU: checks outputs, warms up, then takes samples and reads the clocks during the runs."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DrywarpError, UsageError
from ...frontends.cuda.compile import compile_cuda, machine_code_of
from ...frontends.profiles.ncu import parse_ncu
from ...kernel.kernel import Kernel
from ...kernel.launch.arguments import make_launch
from ...kernel.launch.launch import Buffer, Launch, Scalar
from ..device import Card, CardFunction, Clocks, DeviceError, open_card
from .configuration import Configuration, Occupied, configurations, read_suite
from .row import COUNTERS, Arrays, check_arguments, difference, expected_outputs, inputs_of, load_reference
from .simulated import Timing

WARM_UP_S = 0.05
"""How long a kernel runs before it is timed, so that the clocks have ramped up."""
SAMPLE_S = 0.002
"""Minimum length of a sample, so that the events' resolution (half a microsecond) and overhead are negligible."""
MOST_LAUNCHES = 2000


@dataclass
class CardRunner:
    """Runs on this GPU. `samples` is the number of samples of each launch."""

    card: Card
    samples: int
    simulated: bool = field(default=False, init=False)

    @property
    def device(self) -> str:
        """The GPU's name."""
        return self.card.attributes.name

    @property
    def driver(self) -> str:
        """The driver's version."""
        return self.card.attributes.driver

    @contextmanager
    def prepare(self, configuration: Configuration) -> Iterator[OnCard]:
        """As `Runner.prepare`; memory and code are released at the end."""
        load_reference(configuration)
        arch, options = self.card.attributes.arch, configuration.options
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
    """A configuration on the GPU: its code and, once launched, its buffers and their expected content."""

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
        """The outputs as computed by NumPy."""
        return expected_outputs(self.configuration, self.kernel, self.launch, self.inputs)

    def free(self) -> None:
        """Release memory and code; errors are ignored, because a GPU on which a kernel failed rejects this."""
        with suppress(DeviceError):
            for address in self.held.values():
                self.card.free(address)
            self.card.unload(self.function)

    @property
    def registers(self) -> int:
        """Registers per thread, as reported by the driver."""
        return self.function.registers

    @property
    def most_dynamic_shared(self) -> int:
        """Bytes that a block may have in addition to its static shared memory."""
        return self.card.attributes.shared_bytes_per_block_optin - self.function.static_shared_bytes

    def blocks_per_sm(self, dynamic_shared: int) -> int:
        """The driver's own calculation."""
        return self.card.blocks_per_sm(self.function, self.launch.threads_per_block, dynamic_shared)

    def time(self, dynamic_shared: int) -> Timing:
        """Time the launch. Checks the outputs of the first run on fresh data; later runs continue from its results."""
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
        """Launch `warm_up` times and once more, and wait: for an attached profiler."""
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
        """Seconds per launch, and the clocks during the run."""
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
    """The median of each reading, over those that the GPU reported."""

    def median(values: Sequence[float | None]) -> float | None:
        given = [value for value in values if value is not None]
        return statistics.median(given) if given else None

    return Clocks(
        sm_mhz=median([clocks.sm_mhz for clocks in readings]),
        memory_mhz=median([clocks.memory_mhz for clocks in readings]),
        temperature_c=median([clocks.temperature_c for clocks in readings]),
        power_w=median([clocks.power_w for clocks in readings]),
    )


# Hardware counters of a launch, if Nsight Compute is installed: it profiles a process that launches the kernel.

WARM_UP = 3
"""Launches before the profiled one, which leave the L2 as in a loop of launches."""
TIME_LIMIT_S = 300.0


def find_ncu() -> str | None:
    """The path of Nsight Compute's command, if it is on PATH."""
    return shutil.which("ncu")


@dataclass
class Counters:
    """A `Profile` for `measure`. After the first failure it stops trying, and `note` gives the reason."""

    ncu: str
    device: int = 0
    small: bool = False
    note: str = field(default="", init=False)

    def __call__(self, configuration: Configuration, occupied: Occupied) -> Mapping[str, float]:
        """Counters of a launch at this occupancy; empty if they are unavailable."""
        if self.note:
            return {}
        what = {
            "described": str(configuration.kernel.described),
            "kernel": configuration.name,
            "variant": configuration.variant,
            "dynamic_shared": occupied.dynamic_shared,
            "small": self.small,
            "device": self.device,
        }
        # Leave clocks and caches alone: by default ncu would lock the clocks and flush the caches.
        command = [self.ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        command += ["--cache-control", "none", "--launch-skip", str(WARM_UP), "--launch-count", "1"]
        command += ["--metrics", ",".join(COUNTERS), sys.executable, "-m", "drywarp.experiments.measure.on_card"]
        try:
            done = subprocess.run(
                [*command, json.dumps(what)], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
            )
            found = parse_ncu(done.stdout, str(Path(self.ncu).name))
        except (OSError, subprocess.TimeoutExpired) as error:
            self.note = f"no counters: {error}"
            return {}
        except DrywarpError:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("==ERROR==")]
            reason = said[0].removeprefix("==ERROR==").strip() if said else f"exit status {done.returncode}"
            self.note = f"no counters: {self.ncu}: {reason}"
            return {}
        return {name: found[0].metrics[name] for name in COUNTERS if name in found[0].metrics}


# The process that Nsight Compute profiles: `python -m drywarp.experiments.measure.on_card JSON` launches one kernel.


def configuration_of(what: dict[str, Any]) -> Configuration:
    """The described configuration. Raises UsageError if the suite does not have it."""
    for kernel in read_suite(Path(what["described"])):
        for configuration in configurations(kernel, small=what["small"]):
            if (configuration.name, configuration.variant) == (what["kernel"], what["variant"]):
                return configuration
    raise UsageError(f"{what['described']}: no kernel {what['kernel']!r} with {what['variant']!r}")


def main(text: str) -> int:
    """Launch the kernel that the JSON object describes."""
    what = json.loads(text)
    try:
        with open_card(what["device"]) as card, CardRunner(card, 1).prepare(configuration_of(what)) as prepared:
            prepared.profile(what["dynamic_shared"], WARM_UP)
    except DrywarpError as error:
        print(f"==ERROR== {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

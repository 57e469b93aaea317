"""Cases for the rules made by hand: a listing, its accesses, and where a prediction says that the time goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from drywarp.analysis.advice.case import Case, Setting
from drywarp.analysis.advice.rules import rule_named
from drywarp.analysis.advice.rules.base import Suspicion
from drywarp.hardware import Gpu, occupancy
from drywarp.kernel.launch.launch import Dim3
from drywarp.kernel.profile import Profile
from drywarp.memory.behaviour import MemoryBehaviour, analyse_memory
from drywarp.models.base import Prediction
from drywarp.workload.build import build_workload
from drywarp.workload.cost_model import Conditions
from tests.memory.profiles import Access, geometry, profile
from tests.round_gpu import MIB, round_gpu

A, B = 1 * MIB, 64 * MIB
BUFFERS = {"a": (A, 32 * MIB), "b": (B, 32 * MIB)}


def lines_of(code: Sequence[str | tuple[str, int]], numbers: Sequence[int]) -> list[str | tuple[str, int]]:
    """Each instruction on its source line of `k.cu`."""
    found: list[str | tuple[str, int]] = []
    for number, line in zip(numbers, code, strict=True):
        found += [f'//## File "k.cu", line {number}', line]
    return found


def setting(
    *code: str | tuple[str, int],
    accesses: Sequence[Access] | Callable[[Dim3, int], Sequence[Access]] = (),
    grid: int = 40,
    warps: int = 1,
    resident: int | None = None,
    registers: int = 32,
    shared: int = 0,
    threads: int | None = None,
    samples: Sequence[int] | None = (0,),
    weights: Sequence[float] | None = None,
    gpu: Gpu | None = None,
    behaviour: MemoryBehaviour | None = None,
    numbers: Sequence[int] | None = None,
    change: Callable[[Profile], Profile] = lambda made: made,
) -> Setting:
    """A kernel on the GPU of round numbers: 10 SMs with 4 partitions. Every lane's guard holds.

    `numbers` are the source lines of the code, by default one for each.
    """
    of = accesses if callable(accesses) else lambda block, warp: accesses
    made = profile(
        lines_of(code, numbers or range(1, len(code) + 1)),  # type: ignore[arg-type]
        (grid, 1, 1),
        of,
        samples=samples,
        weights=weights,
        warps=warps,
        allocations=BUFFERS,
        local_bytes=64,
    )
    resources = replace(made.kernel.resources, registers=registers, shared_bytes=shared)
    launch = replace(made.launch, block=(threads or 32 * warps, 1, 1))
    lanes = np.full((len(made.blocks), len(made.kernel.instructions)), 32 * warps, np.int64)
    kernel = replace(made.kernel, resources=resources)
    made = change(replace(made, kernel=kernel, launch=launch, thread_instructions=lanes))
    machine = gpu or round_gpu()
    fits = occupancy(machine.occupancy, registers, shared, launch.threads_per_block)
    blocks = resident or fits.blocks_per_sm
    conditions = Conditions(machine.device.boost_clock_mhz, "oldest_first", blocks)
    memory = behaviour or analyse_memory(made, geometry())
    return Setting(made, build_workload(made), memory, machine, fits, conditions)


def case(
    made: Setting,
    stalls: Mapping[str, float] | None = None,
    use: Mapping[str, float] | None = None,
    nodes: Mapping[int, Mapping[str, float]] | None = None,
    limiter: str = "latency",
) -> Case:
    """`stalls` and `nodes` are warp-cycles, `use` fractions of the time."""
    prediction = Prediction(
        "pipeline",
        1000.0,
        1e-6,
        limiter,
        (),
        utilization=dict(use or {}),
        stalls=dict(stalls or {"selected": 1.0}),
        node_stalls={index: dict(reasons) for index, reasons in (nodes or {0: {"selected": 1.0}}).items()},
    )
    return Case(made, prediction)


def look(rule: str, made: Setting, **prediction: Any) -> Suspicion | None:
    """What a rule sees."""
    return rule_named(rule).look(case(made, **prediction))


def seen(rule: str, made: Setting, **prediction: Any) -> Suspicion:
    """What a rule that must see something sees."""
    found = look(rule, made, **prediction)
    assert found is not None
    return found


def places(found: Suspicion) -> list[int]:
    """The lines that it names."""
    return [place.line for place in found.places]

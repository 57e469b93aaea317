"""A device made of formulas: each kernel's time is known, among them things that the simulation does not have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd

from drywarp.experiments.calibrate.device import ENTRY, LATENCIES, Attributes, Program, Run, Timing, Watched
from drywarp.experiments.calibrate.fits import distinct
from drywarp.experiments.calibrate.journal import cycles_between_loads
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.kernel.kernel import Kernel

SMS, PARTITIONS, MHZ = 10, 4, 1000.0
FIXED, FLAT, SLOPE = 700.0, 16.0, 0.5
"""Launch and prologue; Λ of every chain; λ of the SM."""
NEAR, FAR, TLB_MISS, L2_TO_DRAM = 200.0, 400.0, 150.0, 300.0
LOOP = 18.0
"""What an iteration of a loop takes besides."""
UNDER_WAY, LOADED = 12, 500.0
"""Accesses that one SM may have under way, and Λ of each."""
SYNC_COST = 7.0
"""What a barrier adds to each warp."""
L2_END = 3 << 20
"""Bytes of the L2 that a walk finds, of the 4 MiB that the driver states; of more than that nothing is kept."""
RANDOM_L2, RANDOM_DRAM = 40.0, 7.0
"""Sectors a cycle of random access."""
WARP_TAKES = 1000.0
"""Life of the first warp of a block."""
REPLACED = 300.0
"""From the end of a block to the start of the next."""


@cache
def compiled(program: Program, arch: str) -> Kernel:
    return compile_cuda(program.path, arch=arch, entry=ENTRY, options=CudaOptions(dict(program.defines)))


class ModelCard:
    def __init__(self, arch: str = "sm_80", capability: str = "8.0") -> None:
        self.attributes = Attributes(
            "Model card", "none", True, capability, arch, SMS, 48, 1024, 1 << 16, 49152, 1 << 22, MHZ, 900.0
        )

    def code(self, program: Program) -> Kernel:
        return compiled(program, self.attributes.arch)

    def time(self, run: Run, repeats: int) -> Sequence[Timing]:
        cycles = FIXED + self._work(run)
        return [Timing(cycles, cycles * 1000 / MHZ, MHZ)] * repeats

    def watch(self, run: Run) -> Watched:
        """Blocks in turn on one SM, as many at a time as fit; each of their warps takes a cycle more than the last."""
        warps = run.block // 32
        resident = 1 if run.shared else max(1, self.attributes.max_warps_per_sm // warps)
        lives = []
        for block in range(max(1, run.grid // SMS)):
            start = block // resident * (WARP_TAKES + warps)
            lives += [(start, start + WARP_TAKES + warp) for warp in range(warps)]
        latencies = [LOADED + number for number in range(201)] if LATENCIES in run.arguments else []
        return Watched(tuple(lives), tuple(latencies))

    def _work(self, run: Run) -> float:
        given = {name: value for name, value in run.arguments.items() if isinstance(value, int)}
        macros = dict(run.program.defines)
        length = int(macros.get("LENGTH", 1))
        warps = max(1, run.grid // SMS) * run.block // 32
        iterations = given.get("iterations", 1) * length
        if run.program.template == "chase":
            return iterations * (self._walk(given, macros) + cycles_between_loads(self.code(run.program), "LDG"))
        if run.program.template == "shared":
            degree = gcd(given["stride"], 32)
            return iterations * max(FLAT + degree - 1, SLOPE * degree * warps)
        if run.program.template == "load":
            accesses = warps * int(macros.get("ILP", 1))
            return given["steps"] * LOADED * max(1.0, accesses / UNDER_WAY)
        if run.program.template == "sync":
            barrier = SYNC_COST * warps if "SYNC" in macros else 0.0
            return given["steps"] * (cycles_between_loads(self.code(run.program), "LDG") + LOADED + barrier)
        if run.program.template == "stream":
            moved = given["steps"] * run.grid * run.block * 16 * (2 if "COPY" in macros else 1)
            return moved / 500 * MHZ / 1000
        if run.program.template == "reread":
            return given["iterations"] * 32 * 1024 * 16 * run.grid / (1000 if run.grid > 1 else 60)
        if run.program.template == "random":
            held = given["words"] * 4 <= L2_END
            # Lanes of a request that meet in a sector are one; so are they of the whole launch where none is held.
            sectors, asked = given["words"] / 8, iterations * run.grid * run.block
            different = asked / 32 * distinct(32, sectors) if held else distinct(asked, sectors)
            return given["rounds"] * run.grid * run.block * 16 / 500 + different / (RANDOM_L2 if held else RANDOM_DRAM)
        if run.program.template == "sweep":
            held = given["steps"] * given["parts"] * 1024 <= L2_END
            generations = run.grid // given["parts"]
            return generations * (REPLACED + given["steps"] * (NEAR if held else NEAR + L2_TO_DRAM))
        if run.shared > 49152:
            return run.grid / SMS * (iterations * FLAT + FIXED) + (run.grid / SMS - 1) * REPLACED - FIXED
        kinds = 3 if "THREE" in macros else 2 if "TWO" in macros else 1
        active = warps / given.get("every", 1)
        own = SLOPE * PARTITIONS * (active if given.get("every", 1) > 1 else -(-warps // PARTITIONS))
        return given["iterations"] * LOOP + kinds * iterations * max(FLAT / int(macros.get("ILP", 1)), own / kinds)

    def _walk(self, given: dict[str, int], macros: dict[str, str]) -> float:
        if given["footprint"] > self.attributes.l2_bytes:
            missed = TLB_MISS if given["stride"] >= 1 << 15 else 0.0
            return (NEAR + FAR) / 2 + L2_TO_DRAM + missed
        if macros["CACHE"] == '"ca"' and given["footprint"] <= 1 << 16:
            return 30.0
        return FAR if given["place"] // 4352 % 32 else NEAR

"""The L2 and DRAM: Λ of hits and misses, read, write, copy and random-access rates, and the size of the L2."""

from __future__ import annotations

from .device import Program, Run, Value, Zeros
from .fits import distinct, fit_capacity, plateaus, two_kinds
from .journal import Session, cycles_between_loads
from .result import Estimate, Findings

# The L2: Λ of a hit over footprints, and its bandwidth to all SMs and to one SM.

STEPS = 16
"""Steps per iteration of the walk."""
ITERATIONS = (64, 320)
LINE = 128
FOOTPRINTS = tuple(1 << power for power in range(12, 21))
PLACES = 12
"""One-line footprints, far apart, whose Λ distinguishes two halves of an L2."""
BLOCK, LINES_EACH, PASSES = 1024, 32, (4, 12)


def measure_l2(session: Session, findings: Findings) -> None:
    """Measure ``memory.l2.near_latency_ns``, ``far_latency_ns``, ``bytes_per_cycle``, ``bytes_per_cycle_per_sm``."""
    _latency(session, findings)
    _bandwidth(session, findings)


def walk(
    session: Session, cache: str, footprint: int, stride: int, place: int = 0, iterations: tuple[int, int] = ITERATIONS
) -> Estimate:
    """Cycles per load in a chain of one lane over a footprint, `place` bytes from the start of the buffer.

    The short and the long run make so many `iterations` of `STEPS` loads.
    """
    program = Program("chase", (("CACHE", f'"{cache}"'), ("LENGTH", str(STEPS))))
    session.check(program, {"LDG": STEPS}, at_most=10 * STEPS)
    data = Zeros(max(footprint, 1 << 20) + place + (1 << 12))
    arguments: dict[str, Value] = {
        "stride": stride,
        "footprint": footprint,
        "own": 0,
        "place": place,
        "data": data,
        "out": None,
    }
    times = [session.cycles(Run(program, 1, 32, {"iterations": t, **arguments})) for t in iterations]
    step = (times[1] - times[0]) / (STEPS * (iterations[1] - iterations[0]))
    return step - cycles_between_loads(session.device.code(program), "LDG")


def _whole_passes(footprint: int) -> tuple[int, int]:
    """Iterations of a run that covers the footprint at least once, and of one that covers it twice more."""
    once = -(-footprint // (LINE * STEPS))
    return max(ITERATIONS[0], once), max(ITERATIONS[0], once) + max(ITERATIONS[1] - ITERATIONS[0], 2 * once)


def _latency(session: Session, findings: Findings) -> None:
    for cache, way in (("ca", "through the L1"), ("cg", "past the L1")):
        points = [walk(session, cache, size, LINE, iterations=_whole_passes(size)) for size in FOOTPRINTS]
        levels = plateaus([float(f) for f in FOOTPRINTS], [p.value for p in points])
        told = "; ".join(f"{low / 1024:.0f} to {high / 1024:.0f} KiB: {level:.1f}" for low, high, level in levels)
        labels, told = ("footprint, bytes", "cycles"), f"levels: {told}" if told else ""
        title = f"Λ of a load over footprints, {way}"
        findings.plot(f"walk {cache}", title, labels, FOOTPRINTS, points, formula=told)
    places = [walk(session, "cg", LINE, LINE, place * 4352 * 16) for place in range(PLACES)]
    near, far = two_kinds([p.value for p in places])
    spread = max(p.spread for p in places) / PLACES**0.5
    mhz = findings.clock_mhz
    kinds = "one latency" if near == far else "two distinct latencies"
    for key, value in (("near_latency_ns", near), ("far_latency_ns", far)):
        estimate = Estimate(value, spread) * (1000 / mhz)
        how = f"chains of loads past the L1 at {PLACES} places, {kinds}; {value:.1f} cycles"
        findings.add(f"memory.l2.{key}", estimate, "ns", how, ns=estimate.value)
    if near == far:
        findings.silent["two halves of the L2"] = "all places have the same Λ"


def _bandwidth(session: Session, findings: Findings) -> None:
    sms = session.device.attributes.sm_count
    each = BLOCK * 16 * LINES_EACH * (PASSES[1] - PASSES[0])
    for key, grid, blocks in (("bytes_per_cycle", sms, sms), ("bytes_per_cycle_per_sm", 1, 1)):
        arguments: dict[str, Value] = {"steps": LINES_EACH, "data": Zeros(BLOCK * 16 * LINES_EACH), "out": Zeros(64)}
        program = Program("reread")
        session.check(program, {"LDG": 4}, at_most=40)
        times = [session.cycles(Run(program, grid, BLOCK, {"iterations": t, **arguments})) for t in PASSES]
        rate = (times[1] - times[0]).into(each * blocks)
        whom = "all SMs" if grid > 1 else "one SM"
        how = f"{whom} reading {BLOCK * 16 * LINES_EACH >> 10} KiB repeatedly"
        findings.add(f"memory.l2.{key}", rate, "B/cycle", how)


DRAM_BLOCK, BLOCKS_EACH = 256, 8
DRAM_STEPS = (32, 128)
"""16-byte accesses per thread in the two runs whose difference is used."""
STRIDES = tuple(1 << power for power in range(7, 19, 2))
APART = 512
REACH = 1 << 30
"""Bytes covered by the walks, each line once."""


def measure_dram(session: Session, findings: Findings) -> None:
    """Measure ``memory.dram.latency_ns``, ``read_gbs``, ``write_gbs`` and ``copy_gbs``."""
    _dram_latency(session, findings)
    _dram_bandwidth(session, findings)
    gbs = session.device.attributes.memory_peak_gbs
    if gbs:
        findings.add("memory.dram.peak_gbs", Estimate(gbs), "GB/s", "reported by the driver, not measured")


def _dram_latency(session: Session, findings: Findings) -> None:
    points = [walk(session, "cg", REACH, stride) for stride in STRIDES]
    # Lines that are apart, on pages that the TLB still holds.
    near = points[STRIDES.index(APART)]
    ns = near * (1000 / findings.clock_mhz)
    how = f"chain of loads {APART} bytes apart that miss the L2; {near.value:.1f} cycles"
    findings.add("memory.dram.latency_ns", ns, "ns", how, ns=ns.value)
    if max(p.value for p in points) < 1.05 * min(p.value for p in points):
        findings.silent["TLB"] = "Λ is the same at every stride: no TLB misses visible"
    title = "Λ of a load that misses the L2, over strides"
    findings.plot("walk dram", title, ("stride, bytes", "cycles"), STRIDES, points)


def _dram_bandwidth(session: Session, findings: Findings) -> None:
    grid = session.device.attributes.sm_count * BLOCKS_EACH
    width = grid * DRAM_BLOCK * 16
    buffer = Zeros(width * DRAM_STEPS[1])
    for macro, key, moved in (("READ", "read_gbs", 1), ("WRITE", "write_gbs", 1), ("COPY", "copy_gbs", 2)):
        program = Program("stream", ((macro, ""),))
        session.check(program, {"LDG": 0 if macro == "WRITE" else 4, "STG": 0 if macro == "READ" else 4}, at_most=48)
        arguments = {"from": buffer, "to": buffer, "out": Zeros(64)}
        times = [session.nanoseconds(Run(program, grid, DRAM_BLOCK, {"steps": s, **arguments})) for s in DRAM_STEPS]
        rate = (times[1] - times[0]).into(moved * width * (DRAM_STEPS[1] - DRAM_STEPS[0]))
        how = f"{macro.lower()} of {width * DRAM_STEPS[1] >> 20} MiB, 16 bytes per lane"
        findings.add(f"memory.dram.{key}", rate, "GB/s", how)


# Random access: sectors per cycle from L2 and DRAM to all SMs when every lane reads a different sector.
#
# Only for the report: a GPU file has one bandwidth per level, that of coalesced accesses.

LOADS, LANES, SECTOR = 8, 32, 32
"""Loads per iteration; lanes per warp; bytes per sector."""
PRIMED = 16
"""Bytes of a thread's access when a footprint is first loaded into the L2."""
FULL = 32
"""Warps of the saturating block."""
WARPS = (1, 2, 4, 8, 16, 32)
INSIDE, BEYOND = 1 << 20, 1 << 31
"""Footprints that certainly fit in the L2, and far beyond it."""
OF_L2, OUTSIDE = (0.25, 0.5, 0.75), (1 << 28, 1 << 29)
"""Further footprints: fractions of the L2 size that the driver reports, and bytes; `l2-size` covers its limit."""
ITERATIONS_INSIDE, ITERATIONS_BEYOND = (2, 6), (1, 3)
"""Iterations of a full block in the two runs whose difference is used. The shorter one already evicts most of the lines
that a launch finds in the L2, so both include writing those back."""


def measure_random_access(session: Session, findings: Findings) -> None:
    """Measure random sectors per cycle from the L2 and from DRAM, over occupancies and over footprints."""
    _footprints(session, findings)
    for name, size, coalesced in (
        ("L2", INSIDE, findings.value("memory.l2.bytes_per_cycle", 0.0) / SECTOR),
        ("DRAM", BEYOND, findings.value("memory.dram.read_gbs", 0.0) * 1000 / findings.clock_mhz / SECTOR),
    ):
        points = [_rate(session, size, warps) for warps in WARPS]
        best = max(points, key=lambda point: point.value)
        how = f"every lane of {WARPS[points.index(best)]} warps per SM reads a different sector of {size >> 20} MiB"
        if coalesced:
            how += f"; {best.value / coalesced:.0%} of the coalesced rate, {coalesced:.4g} sectors/cycle"
        findings.add(f"random sectors from {name}", best, "sectors/cycle", how, in_file=False)
        title, labels = f"Random access to {size >> 20} MiB, over occupancies", ("warps per SM", "sectors per cycle")
        told = f"coalesced rate: {coalesced:.4g} sectors/cycle" if coalesced else ""
        findings.plot(f"random {name}", title, labels, WARPS, points, formula=told)


def _footprints(session: Session, findings: Findings) -> None:
    of_l2 = {int(part * session.device.attributes.l2_bytes) // 4096 * 4096 for part in OF_L2}
    outside = {size for size in OUTSIDE if size > session.device.attributes.l2_bytes}
    sizes = sorted({INSIDE, BEYOND} | {size for size in of_l2 if size > INSIDE} | outside)
    points = [_rate(session, size, FULL) for size in sizes]
    title, labels = f"Random access by {FULL} warps per SM, over footprints", ("footprint, bytes", "sectors per cycle")
    told = f"the driver reports {session.device.attributes.l2_bytes / (1 << 20):.4g} MiB of L2"
    findings.plot("random footprints", title, labels, sizes, points, formula=told)


def _rate(session: Session, footprint: int, warps: int) -> Estimate:
    """Requested sectors per cycle; beyond the L2, only those not requested before."""
    sms = session.device.attributes.sm_count
    held = footprint <= session.device.attributes.l2_bytes
    program = Program("random", (("LENGTH", str(LOADS)),))
    session.check(program, {"LDG": LOADS}, at_most=8 * LOADS)
    iterations = [t * FULL // warps for t in (ITERATIONS_INSIDE if held else ITERATIONS_BEYOND)]
    width = sms * warps * 32 * PRIMED
    rounds = -(-footprint // width) if held else 0
    arguments: dict[str, Value] = {
        "words": footprint // 4,
        "rounds": rounds,
        "data": Zeros(max(footprint, rounds * width)),
        "out": Zeros(64),
    }
    times = [session.cycles(Run(program, sms, warps * 32, {"iterations": t, **arguments})) for t in iterations]
    requests = [sms * warps * LOADS * t for t in iterations]
    places = footprint / SECTOR
    # Beyond the L2, a place drawn twice may be cached or refetched; this is rare, and rarer for larger footprints.
    asked = [n * distinct(LANES, places) if held else distinct(n * LANES, places) for n in requests]
    return (times[1] - times[0]).into(asked[1] - asked[0])


# The L2 capacity: all SMs walk repeatedly over footprints up to twice the L2 size that the driver reports.
#
# Each pass over the footprint is a generation of blocks, one one-warp block per SM: few enough that Λ dominates. Only
# for the report: the GPU file has the driver's figure.

PARTS_OF_L2 = (0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0)
TIMES_OVER = (1, 5)
"""Passes over the footprint: the first finds none of it in the L2, and is part of both runs."""
REQUEST = 1024
"""Bytes of a warp's access: one 32-byte sector per lane."""
UNROLLED = 4
MIB = 1 << 20


def measure_l2_size(session: Session, findings: Findings) -> None:
    """Measure the footprint beyond which a walk no longer always hits the L2."""
    attributes = session.device.attributes
    row = attributes.sm_count * REQUEST
    steps = sorted({max(1, round(part * attributes.l2_bytes / row / UNROLLED)) * UNROLLED for part in PARTS_OF_L2})
    sizes = [float(n * row) for n in steps]
    times = [_another_pass(session, n) for n in steps]
    fit = fit_capacity(sizes, times)
    stated = attributes.l2_bytes
    if fit.capacity is None:
        findings.silent["end of the L2"] = (
            f"the walk is as fast at {sizes[-1] / MIB:.4g} MiB as at {sizes[0] / MIB:.4g}"
        )
        told = "no limit visible"
    else:
        end = fit.capacity / MIB
        beyond = "only the excess misses" if fit.keeps else "everything misses"
        told = f"end at {end.value:.4g} MiB, the driver reports {stated / MIB:.4g}; beyond it {beyond}"
        how = (
            f"all SMs walking over footprints; {fit.capacity.value / stated:.0%} of the reported {stated / MIB:.4g} MiB"
        )
        findings.add("end of the L2", end, "MiB", how, in_file=False)
    title = "Λ of a load over footprints up to twice the L2"
    each = [Estimate((t.value - fit.overhead) / n, t.spread / n) for t, n in zip(times, steps, strict=True)]
    fitted = [(fit.at(size) - fit.overhead) / n for size, n in zip(sizes, steps, strict=True)]
    findings.plot("walk l2 size", title, ("footprint, bytes", "cycles"), sizes, each, fitted, told)


def _another_pass(session: Session, steps: int) -> Estimate:
    """Cycles of one more pass over a footprint of `steps` requests per SM."""
    attributes = session.device.attributes
    sms = attributes.sm_count
    program = Program("sweep")
    session.check(program, {"LDG": UNROLLED}, at_most=12 * UNROLLED)
    arguments: dict[str, Value] = {"steps": steps, "parts": sms, "data": Zeros(steps * sms * REQUEST), "out": Zeros(64)}
    # Enough shared memory that each block has an SM to itself.
    shared = attributes.shared_bytes_per_block_optin
    times = [session.cycles(Run(program, n * sms, 32, arguments, shared)) for n in TIMES_OVER]
    return (times[1] - times[0]) / (TIMES_OVER[1] - TIMES_OVER[0])

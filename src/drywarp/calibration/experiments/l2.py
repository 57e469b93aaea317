"""The L2: Λ of a hit over a footprint, and what all SMs and one SM can take from it."""

from __future__ import annotations

from ..device import Program, Run, Value, Zeros
from ..estimate import Estimate
from ..fits.steps import plateaus, two_kinds
from ..machine_code import cycles_between_loads
from ..result import Curve, Findings
from ..session import Session

STEPS = 16
"""Steps of a turn of the walk."""
TURNS = (64, 320)
LINE = 128
FOOTPRINTS = tuple(1 << power for power in range(12, 21))
PLACES = 12
"""Footprints of one line, far from each other, whose Λ tells two halves of an L2 apart."""
BLOCK, LINES_EACH, PASSES = 1024, 32, (4, 12)


def measure(session: Session, findings: Findings) -> None:
    """Find ``memory.l2.near_latency_ns``, ``far_latency_ns``, ``bytes_per_cycle`` and ``bytes_per_cycle_per_sm``."""
    _latency(session, findings)
    _bandwidth(session, findings)


def walk(
    session: Session, cache: str, footprint: int, stride: int, place: int = 0, turns: tuple[int, int] = TURNS
) -> Estimate:
    """Cycles of a load in a chain of one lane over a footprint, `place` bytes from the start of the buffer.

    The short and the long run make so many `turns` of `STEPS` loads.
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
    times = [session.cycles(Run(program, 1, 32, {"turns": t, **arguments})) for t in turns]
    step = (times[1] - times[0]) / (STEPS * (turns[1] - turns[0]))
    return step - cycles_between_loads(session.device.code(program), "LDG")


def _whole_passes(footprint: int) -> tuple[int, int]:
    """Turns of a run that goes over all of a footprint once at least, and of one that does so twice more."""
    once = -(-footprint // (LINE * STEPS))
    return max(TURNS[0], once), max(TURNS[0], once) + max(TURNS[1] - TURNS[0], 2 * once)


def _latency(session: Session, findings: Findings) -> None:
    for cache, title in (("ca", "through the L1"), ("cg", "past the L1")):
        points = [walk(session, cache, size, LINE, turns=_whole_passes(size)) for size in FOOTPRINTS]
        levels = plateaus([float(f) for f in FOOTPRINTS], [p.value for p in points])
        told = "; ".join(f"{low / 1024:.0f} to {high / 1024:.0f} KiB: {level:.1f}" for low, high, level in levels)
        findings.curves.append(
            Curve(
                f"walk {cache}",
                f"Λ of a load over footprints, {title}",
                "footprint, bytes",
                "cycles",
                tuple(map(float, FOOTPRINTS)),
                tuple(p.value for p in points),
                tuple(p.spread for p in points),
                formula=f"levels: {told}" if told else "",
            )
        )
    places = [walk(session, "cg", LINE, LINE, place * 4352 * 16) for place in range(PLACES)]
    near, far = two_kinds([p.value for p in places])
    spread = max(p.spread for p in places) / PLACES**0.5
    mhz = findings.clock_mhz
    kinds = "one kind of line" if near == far else "lines of two kinds"
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
        times = [session.cycles(Run(program, grid, BLOCK, {"turns": t, **arguments})) for t in PASSES]
        rate = (times[1] - times[0]).into(each * blocks)
        whom = "all SMs" if grid > 1 else "one SM"
        how = f"{whom} reading {BLOCK * 16 * LINES_EACH >> 10} KiB over and over"
        findings.add(f"memory.l2.{key}", rate, "B/cycle", how)

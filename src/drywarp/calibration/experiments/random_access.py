"""Random access: sectors a cycle that all SMs get from L2 and DRAM where every lane reads another sector.

All of it is for the report: a GPU file has one bandwidth for each level, that of coalesced accesses.
"""

from __future__ import annotations

from ..device import Program, Run, Value, Zeros
from ..estimate import Estimate
from ..fits.distinct import distinct
from ..result import Curve, Findings
from ..session import Session

LOADS, LANES, SECTOR = 8, 32, 32
"""Loads of a turn; lanes of a warp; bytes of a sector."""
PRIMED = 16
"""Bytes of a thread's access where a footprint is first brought into the L2."""
FULL = 32
"""Warps of the block that saturates."""
WARPS = (1, 2, 4, 8, 16, 32)
INSIDE, BEYOND = 1 << 20, 1 << 31
"""Footprints that are in the L2 for certain, and far beyond it."""
OF_L2, OUTSIDE = (0.25, 0.5, 0.75), (1 << 28, 1 << 29)
"""Further footprints: parts of the L2 that the driver states, and bytes. Nearer to its end `l2_size` looks."""
TURNS_INSIDE, TURNS_BEYOND = (2, 6), (1, 3)
"""Turns of a full block in the two runs whose difference counts. The shorter one already replaces most of the lines
that a launch finds in the L2, so that writing those back is in both."""


def measure(session: Session, findings: Findings) -> None:
    """Find the random sectors a cycle from the L2 and from DRAM, over occupancies and over footprints."""
    _footprints(session, findings)
    for name, size, coalesced in (
        ("L2", INSIDE, findings.value("memory.l2.bytes_per_cycle", 0.0) / SECTOR),
        ("DRAM", BEYOND, findings.value("memory.dram.read_gbs", 0.0) * 1000 / findings.clock_mhz / SECTOR),
    ):
        points = [_rate(session, size, warps) for warps in WARPS]
        best = max(points, key=lambda point: point.value)
        how = f"every lane of {WARPS[points.index(best)]} warps per SM another sector of {size >> 20} MiB"
        if coalesced:
            how += f"; {best.value / coalesced:.0%} of what coalesced reading gets, {coalesced:.4g} sectors/cycle"
        findings.add(f"random sectors from {name}", best, "sectors/cycle", how, in_file=False)
        findings.curves.append(
            Curve(
                f"random {name}",
                f"Random access to {size >> 20} MiB, over occupancies",
                "warps per SM",
                "sectors per cycle",
                tuple(map(float, WARPS)),
                tuple(p.value for p in points),
                tuple(p.spread for p in points),
                formula=f"coalesced reading: {coalesced:.4g} sectors/cycle" if coalesced else "",
            )
        )


def _footprints(session: Session, findings: Findings) -> None:
    of_l2 = {int(part * session.device.attributes.l2_bytes) // 4096 * 4096 for part in OF_L2}
    outside = {size for size in OUTSIDE if size > session.device.attributes.l2_bytes}
    sizes = sorted({INSIDE, BEYOND} | {size for size in of_l2 if size > INSIDE} | outside)
    points = [_rate(session, size, FULL) for size in sizes]
    findings.curves.append(
        Curve(
            "random footprints",
            f"Random access by {FULL} warps per SM, over footprints",
            "footprint, bytes",
            "sectors per cycle",
            tuple(map(float, sizes)),
            tuple(p.value for p in points),
            tuple(p.spread for p in points),
            formula=f"the driver states {session.device.attributes.l2_bytes / (1 << 20):.4g} MiB of L2",
        )
    )


def _rate(session: Session, footprint: int, warps: int) -> Estimate:
    """Sectors per cycle that requests ask for; beyond the L2, only those that none asked for before."""
    sms = session.device.attributes.sm_count
    held = footprint <= session.device.attributes.l2_bytes
    program = Program("random", (("LENGTH", str(LOADS)),))
    session.check(program, {"LDG": LOADS}, at_most=8 * LOADS)
    turns = [t * FULL // warps for t in (TURNS_INSIDE if held else TURNS_BEYOND)]
    width = sms * warps * 32 * PRIMED
    rounds = -(-footprint // width) if held else 0
    arguments: dict[str, Value] = {
        "words": footprint // 4,
        "rounds": rounds,
        "data": Zeros(max(footprint, rounds * width)),
        "out": Zeros(64),
    }
    times = [session.cycles(Run(program, sms, warps * 32, {"turns": t, **arguments})) for t in turns]
    requests = [sms * warps * LOADS * t for t in turns]
    places = footprint / SECTOR
    # Beyond the L2 a place that is drawn twice may still be held, or be fetched again: few are, the fewer the farther.
    asked = [n * distinct(LANES, places) if held else distinct(n * LANES, places) for n in requests]
    return (times[1] - times[0]).into(asked[1] - asked[0])

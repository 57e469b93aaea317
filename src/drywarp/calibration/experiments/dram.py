"""DRAM: Λ of a miss in the L2, and what reading, writing and copying reach."""

from __future__ import annotations

from ..device import Program, Run, Zeros
from ..estimate import Estimate
from ..result import Curve, Findings
from ..session import Session
from .l2 import walk

BLOCK, BLOCKS_EACH = 256, 8
STEPS = (32, 128)
"""Accesses of 16 bytes of each thread, in the two runs whose difference counts."""
STRIDES = tuple(1 << power for power in range(7, 19, 2))
APART = 512
REACH = 1 << 30
"""Bytes over which the walks go, each line once."""


def measure(session: Session, findings: Findings) -> None:
    """Find ``memory.dram.latency_ns``, ``read_gbs``, ``write_gbs`` and ``copy_gbs``."""
    _latency(session, findings)
    _bandwidth(session, findings)
    gbs = session.device.attributes.memory_peak_gbs
    if gbs:
        findings.add("memory.dram.peak_gbs", Estimate(gbs), "GB/s", "stated by the driver, not measured")


def _latency(session: Session, findings: Findings) -> None:
    points = [walk(session, "cg", REACH, stride) for stride in STRIDES]
    # Lines that lie apart, on pages that the TLB still holds.
    near = points[STRIDES.index(APART)]
    ns = near * (1000 / findings.clock_mhz)
    how = f"chain of loads {APART} bytes apart that miss the L2; {near.value:.1f} cycles"
    findings.add("memory.dram.latency_ns", ns, "ns", how, ns=ns.value)
    if max(p.value for p in points) < 1.05 * min(p.value for p in points):
        findings.silent["TLB"] = "Λ is the same at every stride: no miss of the TLB shows"
    findings.curves.append(
        Curve(
            "walk dram",
            "Λ of a load that misses the L2, over strides",
            "stride, bytes",
            "cycles",
            tuple(map(float, STRIDES)),
            tuple(p.value for p in points),
            tuple(p.spread for p in points),
        )
    )


def _bandwidth(session: Session, findings: Findings) -> None:
    grid = session.device.attributes.sm_count * BLOCKS_EACH
    width = grid * BLOCK * 16
    buffer = Zeros(width * STEPS[1])
    for macro, key, moved in (("READ", "read_gbs", 1), ("WRITE", "write_gbs", 1), ("COPY", "copy_gbs", 2)):
        program = Program("stream", ((macro, ""),))
        session.check(program, {"LDG": 0 if macro == "WRITE" else 4, "STG": 0 if macro == "READ" else 4}, at_most=48)
        arguments = {"from": buffer, "to": buffer, "out": Zeros(64)}
        times = [session.nanoseconds(Run(program, grid, BLOCK, {"steps": s, **arguments})) for s in STEPS]
        rate = (times[1] - times[0]).into(moved * width * (STEPS[1] - STEPS[0]))
        how = f"{macro.lower()} of {width * STEPS[1] >> 20} MiB, 16 bytes a lane"
        findings.add(f"memory.dram.{key}", rate, "GB/s", how)

"""Where the L2 ends: all SMs walk over footprints up to twice the L2 that the driver states, again and again.

Each turn over the footprint is a generation of blocks, one of one warp on every SM: few enough that Λ is what
shows. For the report: the GPU file has the driver's figure.
"""

from __future__ import annotations

from ..device import Program, Run, Value, Zeros
from ..estimate import Estimate
from ..fits.capacity import fit_capacity
from ..result import Curve, Findings
from ..session import Session

OF_L2 = (0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0)
PASSES = (1, 5)
"""Turns over the footprint: the first finds none of it in the L2, and is in both runs."""
REQUEST = 1024
"""Bytes of a warp's access: a sector of 32 bytes for each lane."""
UNROLLED = 4
MIB = 1 << 20


def measure(session: Session, findings: Findings) -> None:
    """Find the footprint from which on a walk no longer hits the L2 alone."""
    attributes = session.device.attributes
    row = attributes.sm_count * REQUEST
    steps = sorted({max(1, round(part * attributes.l2_bytes / row / UNROLLED)) * UNROLLED for part in OF_L2})
    sizes = [float(n * row) for n in steps]
    times = [_pass(session, n) for n in steps]
    fit = fit_capacity(sizes, times)
    stated = attributes.l2_bytes
    if fit.capacity is None:
        findings.silent["end of the L2"] = (
            f"the walk is as fast at {sizes[-1] / MIB:.4g} MiB as at {sizes[0] / MIB:.4g}"
        )
        told = "no end shows"
    else:
        end = fit.capacity / MIB
        beyond = "the part that fits stays" if fit.keeps else "nothing of it stays"
        told = f"end at {end.value:.4g} MiB, the driver states {stated / MIB:.4g}; beyond it {beyond}"
        how = f"all SMs walking over footprints; {fit.capacity.value / stated:.0%} of the {stated / MIB:.4g} MiB stated"
        findings.add("end of the L2", end, "MiB", how, in_file=False)
    findings.curves.append(
        Curve(
            "walk l2 size",
            "Λ of a load over footprints up to twice the L2",
            "footprint, bytes",
            "cycles",
            tuple(sizes),
            tuple((t.value - fit.overhead) / n for t, n in zip(times, steps, strict=True)),
            tuple(t.spread / n for t, n in zip(times, steps, strict=True)),
            tuple((fit.at(size) - fit.overhead) / n for size, n in zip(sizes, steps, strict=True)),
            told,
        )
    )


def _pass(session: Session, steps: int) -> Estimate:
    """Cycles of one more turn over a footprint of so many requests of each SM."""
    attributes = session.device.attributes
    sms = attributes.sm_count
    program = Program("sweep")
    session.check(program, {"LDG": UNROLLED}, at_most=12 * UNROLLED)
    arguments: dict[str, Value] = {"steps": steps, "parts": sms, "data": Zeros(steps * sms * REQUEST), "out": Zeros(64)}
    # So much shared memory that one block of a generation has an SM to itself.
    shared = attributes.shared_bytes_per_block_optin
    times = [session.cycles(Run(program, n * sms, 32, arguments, shared)) for n in PASSES]
    return (times[1] - times[0]) / (PASSES[1] - PASSES[0])

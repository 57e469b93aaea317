"""Λ towards other consumers: chains in which two classes take turns.

Such a chain tells Λ from the first to the second and back together; the figure is what that takes beyond the two
classes' own Λ.
"""

from __future__ import annotations

from ..result import Findings
from ..session import Session

CLASSES = {"FFMA": "fp32", "MUFU": "sfu", "IMAD": "imad", "SHF": "shift", "POPC": "bit", "SHFL": "shuffle"}
PAIRS = (
    ("FFMA", "SHF"),
    ("FFMA", "IMAD"),
    ("FFMA", "MUFU"),
    ("SHF", "POPC"),
    ("FFMA", "SHFL"),
    ("MUFU", "SHFL"),
)


def measure(session: Session, findings: Findings) -> None:
    """Note each pair's round trip; nothing of it goes to the file, which has one Λ for a class."""
    for first, second in PAIRS:
        step = session.per_instruction(
            "pair",
            {"FIRST": first, "SECOND": second},
            {first: 1, second: 1},
            session.device.attributes.sm_count,
            32,
            {"a": 3, "b": 5, "out": None},
        )
        name = f"Λ {first} to {second} and back"
        own = [findings.figures.get(f"classes.{CLASSES[op]}.latency") for op in (first, second)]
        known = [figure.value for figure in own if figure]
        how = "chain of the two in turn"
        if len(known) == 2:
            how += f"; {step.value - sum(known):+.2f} against the two classes' own Λ"
        findings.add(name, step, "cycles", how, in_file=False)

"""What a static walk says beside its profile: loops and their trips, what was assumed, access patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoopReport:
    """A loop: `trips` is the mean number of turns of a thread that comes to it (None where none did).

    `known` says how that is known: ``given`` by the user, ``derived`` from the code and the launch,
    ``assumed``, or ``not reached``. `fewest` and `most` are the extremes. `line` to `last_line` of `file`
    is where it stands (0: no source lines), `parent` the loop round it, or ``""``. `copies` is how many
    turns of the source's loop one turn makes, as far as the code shows.
    """

    name: str
    file: str
    line: int
    last_line: int
    parent: str
    trips: float | None
    fewest: int
    most: int
    known: str
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that nobody said and the code does not: what it is about, where, and what was assumed."""

    what: str
    file: str
    line: int
    assumed: str


@dataclass(frozen=True, slots=True)
class AccessReport:
    """How the addresses of a memory instruction move, in bytes.

    `coefficients` maps ``tid.x``, ``ctaid.x``, ``L1``, … to bytes per step where addresses are an affine
    function of these; `affine` false says that they are not (the coefficients are empty then). `known` is
    ``known``, ``assumed`` (it depends on arguments that were not given) or ``data``.
    """

    pc: int
    opcode: str
    file: str
    line: int
    space: str
    affine: bool
    known: str
    coefficients: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StaticReport:
    """All of it."""

    loops: tuple[LoopReport, ...]
    assumptions: tuple[Assumption, ...]
    accesses: tuple[AccessReport, ...] = ()


def static_dict(report: StaticReport) -> dict[str, object]:
    """The report as the documented JSON object (docs/json.md)."""
    return {
        "assumptions": [
            {"what": a.what, "file": a.file, "line": a.line, "assumed": a.assumed} for a in report.assumptions
        ],
        "loops": [loop_dict(loop) for loop in report.loops],
        "accesses": [
            {
                "pc": a.pc,
                "opcode": a.opcode,
                "file": a.file,
                "line": a.line,
                "space": a.space,
                "affine": a.affine,
                "known": a.known,
                "coefficients": dict(a.coefficients),
            }
            for a in report.accesses
        ],
    }


def loop_dict(loop: LoopReport) -> dict[str, object]:
    """One loop as a JSON object."""
    return {
        "name": loop.name,
        "file": loop.file,
        "line": loop.line,
        "last_line": loop.last_line,
        "parent": loop.parent or None,
        "trips": loop.trips,
        "fewest": loop.fewest,
        "most": loop.most,
        "known": loop.known,
        "copies": loop.copies,
    }

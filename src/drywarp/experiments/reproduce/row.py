"""Compares published numbers with those that drywarp computes.

Each row has a kind. `model`: a model or the simulation computed the number from the paper's inputs. `derived`: so it
did, but the paper prints only the equation or the cells from which the right answer follows. `input`: the number was
read back, or is a ratio, a sum or a unit conversion of printed ones, and says nothing about a model.

The tolerance is half a unit of the last printed digit, none for a number of one digit (a count, or exact), 2 % if the
paper says "about"; a row with another tolerance says why in its note. `inconsistent_in_source`: the paper's own
printed numbers contradict this one, and the note shows the arithmetic. `differs`: the number misses the printed one by
more than the tolerance without such a proof, and the note says what we believe the reason is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, get_args

from ...hardware import Gpu, load_gpu
from ...pipeline import LAUNCH_BUDGET, share_of, simulate
from ...workload.cost import BlockType, CostedNode, CostedPath, CostedWorkload, Item, Repeat, Subsystem, to_ticks

Status = Literal["reproduced", "differs", "inconsistent_in_source", "failed"]
Kind = Literal["model", "derived", "input"]

STATUSES: tuple[Status, ...] = get_args(Status)
KINDS: tuple[Kind, ...] = get_args(Kind)

ABOUT = 0.02
"""Tolerance, as a fraction, of a number that the paper qualifies with "about"."""

ROUNDING = 1e-9
"""Slack for binary fractions, as a fraction of the published number."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number: its place, the printed value, and the computed one.

    For kind `derived`, `published` is what the paper's equation or cells give; the paper does not print it.
    """

    paper: str
    place: str
    quantity: str
    published: float
    computed: float
    tolerance: float
    status: Status
    note: str = ""
    kind: Kind = "model"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Printed numbers without a row, and why."""

    paper: str
    what: str
    why: str


def tolerance_of(published: str, about: bool = False, rounded: bool = False) -> float:
    """Half a unit of the last digit of a number as printed, such as ``12.40`` or ``2.1E10``.

    A number of one digit is exact unless it is `rounded`; one that the paper qualifies with "about" has 2 %. Raises
    ValueError if it is not finite.
    """
    value = Decimal(published)
    sign_digits_exponent = value.as_tuple()
    if about:
        return abs(float(value)) * ABOUT
    exponent = sign_digits_exponent.exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{published!r} is not a finite number")
    if len(sign_digits_exponent.digits) == 1 and not rounded:
        return 0.0
    return 0.5 * 10.0**exponent


def _agrees(published: float, computed: float, tolerance: float) -> bool:
    return abs(computed - published) <= tolerance + ROUNDING * max(abs(published), 1e-3)


def row(
    paper: str,
    place: str,
    quantity: str,
    published: str,
    computed: float,
    about: bool = False,
    note: str = "",
    *,
    kind: Kind = "model",
    rounded: bool = False,
    tolerance: float | None = None,
) -> Row:
    """A number that should follow from the printed inputs; `published` is the string that the paper prints.

    `rounded` says that a number of one digit is not exact. A `tolerance` other than the digits' needs a note. Raises
    ValueError without one.
    """
    if (rounded or tolerance is not None) and not note:
        raise ValueError(f"{paper}, {place}, {quantity}: a tolerance other than that of the digits needs a reason")
    allowed, value = tolerance_of(published, about, rounded) if tolerance is None else tolerance, float(published)
    status: Status = "reproduced" if _agrees(value, computed, allowed) else "failed"
    return Row(paper, place, quantity, value, computed, allowed, status, note, kind)


def derived(
    paper: str, place: str, quantity: str, expected: float, computed: float, note: str = "", tolerance: float = 0.0
) -> Row:
    """A number that the paper does not print: `expected` follows from its equation, `computed` is the model's.

    The tolerance is a fraction of what is expected.
    """
    allowed = tolerance * abs(expected)
    status: Status = "reproduced" if _agrees(expected, computed, allowed) else "failed"
    return Row(paper, place, quantity, expected, computed, allowed, status, note, "derived")


def inconsistent(
    paper: str,
    place: str,
    quantity: str,
    published: str,
    computed: float,
    note: str,
    about: bool = False,
    *,
    kind: Kind = "model",
) -> Row:
    """A number that other numbers of the paper contradict; `note` shows the arithmetic. ValueError if it agrees."""
    tolerance = tolerance_of(published, about)
    return _misfit(
        Row(paper, place, quantity, float(published), computed, tolerance, "inconsistent_in_source", note, kind)
    )


def differs(
    paper: str, place: str, quantity: str, published: str, computed: float, note: str, *, kind: Kind = "model"
) -> Row:
    """A number that we do not obtain, without proof that the paper errs; `note` is the reason that we believe.

    ValueError if it agrees.
    """
    tolerance = tolerance_of(published)
    return _misfit(Row(paper, place, quantity, float(published), computed, tolerance, "differs", note, kind))


def _misfit(made: Row) -> Row:
    what = f"{made.paper}, {made.place}, {made.quantity}"
    if _agrees(made.published, made.computed, made.tolerance):
        raise ValueError(f"{what}: {made.computed} agrees with the printed {made.published:g}")
    if not made.note:
        raise ValueError(f"{what}: what does not agree needs its arithmetic or a reason")
    return made


def of_kind(kind: Kind, rows: Iterable[Row]) -> list[Row]:
    """The same rows with another kind."""
    return [replace(each, kind=kind) for each in rows]


# All rows of all papers: from every module named ``rows_…`` in this package, its function `rows` and its `LEFT_OUT`.


def _modules() -> list[Any]:
    package = import_module(__package__ or "drywarp.experiments.reproduce")
    names = sorted(info.name for info in iter_modules(package.__path__) if info.name.startswith("rows_"))
    return [import_module(f"{package.__name__}.{name}") for name in names]


def reproduce() -> list[Row]:
    """Every published number with the computed one, sorted by paper."""
    return sorted((each for module in _modules() for each in module.rows()), key=lambda row: row.paper)


def left_out() -> list[LeftOut]:
    """The printed numbers that have no row, sorted by paper."""
    return sorted((each for module in _modules() for each in module.LEFT_OUT), key=lambda each: each.paper)


def totals(rows: Sequence[Row], kind: Kind | None = None) -> dict[str, int]:
    """How many rows have each status: of all kinds, or of one."""
    count = Counter[str](row.status for row in rows if kind in (None, row.kind))
    return {status: count[status] for status in STATUSES}


# The papers' small kernels as bound workloads, on the papers' GPUs or with explicit λ and Λ.

CLOCK_HZ = 1e9
"""Only cycles matter here, so any clock will do."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Subsystem, λ and Λ of an instruction, in cycles."""

    subsystem: str
    lambda_: float
    latency: float


@dataclass(frozen=True, slots=True)
class Instruction:
    """A class, the kernel instructions that it waits for, and whether it is a store, for which nothing waits."""

    class_: str
    waits: tuple[int, ...] = ()
    store: bool = False


def costs_of(gpu: str | Gpu) -> dict[str, Cost]:
    """λ and Λ of every class of a GPU file."""
    machine = load_gpu(gpu) if isinstance(gpu, str) else gpu
    return {name: Cost(c.subsystem, c.lambda_, c.latency or 0.0) for name, c in machine.classes.items()}


def issue_limit_of(gpu: str) -> float:
    """IL of a GPU file, 0 if it has none."""
    return load_gpu(gpu).scheduler.issue_per_cycle or 0.0


def kernel(
    costs: Mapping[str, Cost],
    instructions: Sequence[Instruction],
    program: tuple[Item, ...] = (),
    issue_limit: float = 0.0,
    memory: Sequence[str] = (),
) -> CostedWorkload:
    """One warp per block, one block per unit of occupancy; `memory` are the classes of memory accesses.

    Without a `program` every instruction runs once, in order.
    """
    names = list(dict.fromkeys(cost.subsystem for cost in costs.values()))
    nodes = tuple(
        CostedNode(
            instruction=index,
            class_=i.class_,
            subsystem=names.index(costs[i.class_].subsystem),
            lambda_ticks=to_ticks(costs[i.class_].lambda_),
            latency_ticks=to_ticks(costs[i.class_].lambda_ if i.store else costs[i.class_].latency),
            waits=i.waits,
            sets=-1 if i.store else index,
            async_result=i.store,
        )
        for index, i in enumerate(instructions)
    )
    return CostedWorkload(
        paths=(CostedPath(nodes, program or tuple(range(len(nodes))), len(nodes)),),
        block_types=(BlockType((0,), 1.0),),
        subsystems=tuple(Subsystem(name, "sm") for name in names),
        partitions=1,
        issue_ticks=to_ticks(1 / issue_limit) if issue_limit else 0,
        policy="loose_round_robin",
        in_order=False,
        launch_ticks=0,
        blocks=1,
        warps_per_block=1,
        blocks_per_sm=1,
        max_blocks_per_sm=64,
        sm_count=1,
        clock_hz=CLOCK_HZ,
        runs=1,
        kinds={name: "memory" if name in memory else "computation" for name in costs},
    )


def example() -> CostedWorkload:
    """Fig. 1 of the analysis paper on its example GPU: c1 and c2, then c3, m1, c4, m2."""
    line = [
        Instruction("comp"),
        Instruction("comp"),
        Instruction("comp", (0, 1)),
        Instruction("mem", (2,)),
        Instruction("comp", (3,)),
        Instruction("mem", (4,)),
    ]
    return kernel(costs_of("papers/example"), line, memory=("mem",))


def chain(
    costs: Mapping[str, Cost], class_: str, length: int, issue_limit: float = 0.0, memory: Sequence[str] = ()
) -> CostedWorkload:
    """`length` instructions of a class, each waiting for the previous one."""
    return kernel(costs, [Instruction(class_, (0,))], (Repeat(length, (0,)),), issue_limit, memory)


def instruction_mix(
    costs: Mapping[str, Cost], first: str, second: str, beta: int, iterations: int, issue_limit: float = 0.0
) -> CostedWorkload:
    """Fig. 11 of the analysis paper: β instructions of one class, then one of another, all in one chain."""
    if beta == 1:
        pair = [Instruction(first, (1,)), Instruction(second, (0,))]
        return kernel(costs, pair, (Repeat(iterations, (0, 1)),), issue_limit)
    mix = [Instruction(first, (2,)), Instruction(first, (0, 1)), Instruction(second, (1,))]
    body: tuple[Item, ...] = (0, Repeat(beta - 1, (1,)), 2)
    return kernel(costs, mix, (Repeat(iterations, body),), issue_limit)


def simulated_cycles(workload: CostedWorkload, warps: int) -> float:
    """Cycles that the Pipeline simulation takes for ω warps that start together."""
    return simulate(workload, share_of(workload, warps), LAUNCH_BUDGET, stalls=False).cycles


def steady_ipc(shorter: CostedWorkload, longer: CostedWorkload, instructions: int, warps: int) -> float:
    """Steady-state IPC from two lengths of a kernel; `instructions` is the difference in instructions per warp."""
    return warps * instructions / (simulated_cycles(longer, warps) - simulated_cycles(shorter, warps))

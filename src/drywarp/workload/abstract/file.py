"""Abstract kernel files: a workload stated by hand, in TOML (docs/abstract-kernels.md describes them).

This module turns a file into an `AbstractKernel`, checked as far as possible without a GPU; `drywarp.workload.abstract`
assigns costs on a GPU.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FORMAT = 1
Kind = Literal["computation", "fp", "sfu", "shared", "memory", "barrier"]
Amount = int | float | str
"""A number, or an expression over the settings (and, in λ and Λ, `occupancy`)."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""


class Setting(Table, frozen=True):
    """`[settings.NAME]`: a value that `--set NAME=VALUE` changes."""

    default: int | float
    about: str = ""
    least: int | float | None = None
    most: int | float | None = None


class Launch(Table, frozen=True):
    """`[launch]`: how the warps run. `occupancy` is the launch's own, in warps per SM.

    `max_occupancy` is the maximum if the GPU does not state it. `blocks` makes it a grid of that many blocks over all
    SMs; without it each SM runs its own warps, once. `replaced` adds the GPU's Λ_launch; `in_order` overrides the
    GPU's.
    """

    warps_per_block: Amount = 1
    occupancy: Amount | None = None
    max_occupancy: Amount | None = None
    blocks: Amount | None = None
    data_bytes: Amount | None = None
    replaced: bool = False
    in_order: bool | None = None


class Measured(Table, frozen=True):
    """λ or Λ as a table over occupancy: linear (or stepwise) in between, constant beyond the ends."""

    occupancy: Annotated[list[float], msgspec.Meta(min_length=1)]
    cycles: Annotated[list[float], msgspec.Meta(min_length=1)]
    steps: bool = False


Cycles = Amount | Measured


class Own(Table, frozen=True, rename={"lambda_": "lambda"}):
    """Costs for a GPU that has none of the classes in `from`."""

    subsystem: str
    lambda_: Cycles
    latency: Cycles


class Costs(Table, frozen=True, rename={"from_": "from", "lambda_": "lambda"}):
    """The costs of a class: the GPU's first class of `from`, with values given here replacing its numbers.

    On a GPU of the papers, `dram_ratio` is R of analysis §6.3, the bytes that DRAM moves per byte that is accessed, and
    `cached` the GPU's class of accesses that a cache serves. `conflicts` is D, the degree of bank conflicts.
    """

    from_: str | list[str] | None = None
    subsystem: str | None = None
    lambda_: Cycles | None = None
    latency: Cycles | None = None
    transactions: Amount | None = None
    sectors: Amount | None = None
    l1_hit: Amount | None = None
    l2_hit: Amount | None = None
    dram_ratio: Amount | None = None
    cached: str | list[str] | None = None
    conflicts: Amount | None = None
    issues: Amount | None = None


class AbstractClass(Costs, frozen=True, rename={"from_": "from", "lambda_": "lambda"}):
    """`[classes.NAME]`: an instruction class. `when` changes it if a setting is not 0.

    Nothing waits for the result of a `store`. A `queued` instruction issues immediately and queues behind the
    subsystem's λ without blocking its warp.
    """

    kind: Kind = "computation"
    store: bool = False
    queued: bool = False
    fallback: Own | None = None
    when: dict[str, Costs] = {}


class Step(Table, frozen=True, rename={"class_": "class", "else_": "else"}):
    """An entry of `program`: an instruction (`id`, `class`), a loop (`loop`, `body`) or a branch (`branch`, `then`).

    A warp takes a branch with the probability `branch` and then runs `then`; with the probability `both` its threads
    diverge, and it runs `then` and `else`; otherwise it runs `else`.
    """

    id: str | None = None
    class_: str | None = None
    needs: list[str] = []
    previous: list[str] = []
    copies: Amount = 1
    stall: Amount | None = None
    loop: Amount | None = None
    body: list[Step] | None = None
    branch: Amount | None = None
    both: Amount = 0
    then: list[Step] | None = None
    else_: list[Step] = []


class Graph(Table, frozen=True):
    """`[graphs.NAME]`: the program of some of the warps."""

    program: Annotated[list[Step], msgspec.Meta(min_length=1)]


class Group(Table, frozen=True):
    """`[[groups]]`: a kind of thread block. `graphs` are those of its warps, repeated until every warp has one."""

    graphs: Annotated[list[str], msgspec.Meta(min_length=1)]
    weight: Amount = 1


class AbstractKernel(Table, frozen=True):
    """A complete file."""

    format: int
    title: str
    classes: Annotated[dict[str, AbstractClass], msgspec.Meta(min_length=1)]
    program: list[Step] = []
    graphs: dict[str, Graph] = {}
    groups: list[Group] = []
    source: str = ""
    about: str = ""
    gpu: str | None = None
    settings: dict[str, Setting] = {}
    subsystems: dict[str, Literal["sm", "partition"]] = {}
    launch: Launch = Launch()

    def programs(self) -> dict[str, list[Step]]:
        """The program of each graph by its name; "" if there is only `program`."""
        return {name: graph.program for name, graph in self.graphs.items()} or {"": self.program}

"""Warps that issue out of program order: an instruction dependence graph, unrolled.

The papers' GPUs take an abstract graph whose edges are dependences only; a warp may issue any node
whose producers are done. A barrier stands between what is before it and after it in the program:
it issues when all before it have issued, and what is after it waits until it opens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..bound import BoundPath, BoundWorkload
from ..errors import UsageError
from .blocks import Share
from .policies import Policy
from .program import Tables
from .result import Ticks

if TYPE_CHECKING:
    from .simulate import State

MOST_NODES = 8_000_000
"""Most unrolled nodes of all concurrent warps together."""

RESULT, READ, ISSUE = range(3)
"""What a consumer needs of its producer: its result, its operands read, or only that it has issued."""


@dataclass(frozen=True)
class Graph:
    """The unrolled graphs of all paths; nodes of a path count from 0, edges lie by producer."""

    node: Ticks
    producers: Ticks
    """How many edges lead to each node."""
    edge_from: Ticks
    edges: Ticks
    """Per edge: the consumer within its path, and what it needs."""
    path_from: Ticks


def unroll(workload: BoundWorkload, first_nodes: list[int]) -> Graph:
    """The graphs of all paths one after another; `first_nodes` is where each path's nodes begin."""
    node: list[int] = []
    producers: list[int] = []
    edge_from: list[int] = [0]
    edges: list[tuple[int, int]] = []
    path_from = [0]
    for path, first in zip(workload.paths, first_nodes, strict=True):
        program = list(path.expand())
        outgoing, incoming = _edges(path, program)
        node.extend(first + index for index in program)
        producers.extend(incoming)
        for consumers in outgoing:
            edges.extend(consumers)
            edge_from.append(len(edges))
        path_from.append(len(node))
    return Graph(
        node=np.array(node, dtype=np.int64),
        producers=np.array(producers, dtype=np.int64),
        edge_from=np.array(edge_from, dtype=np.int64),
        edges=np.array(edges, dtype=np.int64).reshape(len(edges), 2),
        path_from=np.array(path_from, dtype=np.int64),
    )


def _edges(path: BoundPath, program: list[int]) -> tuple[list[list[tuple[int, int]]], list[int]]:
    outgoing: list[list[tuple[int, int]]] = [[] for _ in program]
    incoming = [0] * len(program)
    writer = [-1] * path.slots
    barrier = -1
    for position, index in enumerate(program):
        node = path.nodes[index]
        needs: list[tuple[int, int]] = []
        for slot in dict.fromkeys(node.waits):
            producer = writer[slot]
            if producer >= 0:
                made = path.nodes[program[producer]]
                needs += [(producer, RESULT)] if made.sets == slot else []
                needs += [(producer, READ)] if made.sets_read == slot else []
        if barrier >= 0:
            needs.append((barrier, RESULT))
        if node.barrier:
            needs += [(earlier, ISSUE) for earlier in range(barrier + 1, position)]
            barrier = position
        for producer, need in needs:
            outgoing[producer].append((position, need))
        incoming[position] = len(needs)
        for slot in (node.sets, node.sets_read):
            if slot >= 0:
                writer[slot] = position
    return outgoing, incoming


def run(workload: BoundWorkload, tables: Tables, share: Share, kinds: Ticks, policy: Policy, state: State) -> int:
    """Simulate the share; returns the number of instructions issued."""
    warps = len(state.slots) * workload.warps_per_block
    longest = max((path.length for path in workload.paths), default=0)
    if warps * longest > MOST_NODES:
        raise UsageError(
            f"{warps} concurrent warps of {longest} instructions are too many to issue out of order:"
            f" the most is {MOST_NODES} instructions together; shorten the loops"
        )
    from .dataflow_loop import WARP_COLUMNS, run_dataflow

    first_nodes = np.cumsum([0, *(len(path.nodes) for path in workload.paths)]).tolist()
    graph = unroll(workload, first_nodes[:-1])
    return int(
        run_dataflow(
            workload.partitions,
            workload.issue_ticks,
            workload.launch_ticks,
            workload.warps_per_block,
            share.full,
            policy.greedy,
            policy.order,
            state.cycle,
            tables.nodes,
            tables.levels,
            graph.node,
            graph.producers,
            graph.edge_from,
            graph.edges,
            graph.path_from,
            tables.block_paths,
            kinds,
            np.full((warps, WARP_COLUMNS), -1, dtype=np.int64),
            state.rank,
            state.at_rank,
            np.zeros(warps, dtype=np.int64),
            np.zeros(workload.warps_per_block, dtype=np.int64),
            np.zeros((warps, longest), dtype=np.int64),
            np.zeros((warps, longest), dtype=np.int64),
            np.zeros((warps, longest), dtype=np.int64),
            np.zeros((warps, longest), dtype=np.int64),
            np.zeros((warps, longest), dtype=np.int64),
            state.slots,
            state.parts,
            state.free,
            state.busy,
            state.changed,
            state.pending,
            state.pending_from,
            state.warp_ends,
            state.blocks,
            state.stalls,
            state.spells,
            state.newest,
            state.table,
        )
    )

"""What the models were given, as text."""

from __future__ import annotations

from collections.abc import Mapping

from ..models.input_sources import in_words
from ..models.inputs import ModelInputs, Part
from .gpus import aligned

MOST_NODES = 24
"""Nodes of the work-flow graph, and intervals, that are shown."""


def render_inputs(inputs: ModelInputs, sources: Mapping[str, str]) -> str:
    """Instructions by kind and class, where figures came from, parallelism, latencies, requests, structure, machine."""
    parts = {
        "computation": inputs.computation,
        "of it floating point": inputs.fp,
        "of it special functions": inputs.sfu,
        "of it shared memory": inputs.shared,
        "memory": inputs.memory,
        "barriers": inputs.barrier,
    }
    rows = [["per warp", "α", "λ", "Λ"]]
    rows += [_row(name, part) for name, part in parts.items() if part.count or name in ("computation", "memory")]
    rows += [_row(f"class {name}", part) for name, part in inputs.by_class.items()]
    origin = "\n".join(["where they came from", *(f"  {source}: {names}" for source, names in in_words(sources))])
    return "\n\n".join(["\n".join(aligned(rows)), origin, "\n".join(aligned(_figures(inputs))), _structure(inputs)])


def _row(name: str, part: Part) -> list[str]:
    return [name, f"{part.count:.6g}", f"{part.lambda_:.4g}", f"{part.latency:.5g}"]


def _figures(inputs: ModelInputs) -> list[list[str]]:
    rate = "none" if inputs.issue_rate is None else f"{inputs.issue_rate:g} instructions a cycle"
    gbs = "not known" if inputs.memory_gbs is None else f"{inputs.memory_gbs:g} GB/s"
    moved = "not known" if inputs.data_bytes is None else f"{inputs.data_bytes:g} bytes"
    return [
        ["compute intensity CI", f"{inputs.intensity:.5g}"],
        ["ILP, MLP", f"{inputs.ilp:.4g}, {inputs.mlp:.4g}"],
        ["Λ_app, a warp alone", f"{inputs.latency_app:.6g} cycles"],
        ["AMAT, DRAM latency", f"{inputs.amat:.5g}, {inputs.dram_latency:.5g} cycles"],
        ["departure delay", f"{inputs.departure_delay:.5g} cycles"],
        ["transactions per access", f"{inputs.transactions:.4g}"],
        ["coalesced, uncoalesced", f"{inputs.coalesced:.6g}, {inputs.uncoalesced:.6g} accesses"],
        ["computation on one subsystem", f"{inputs.mixed_cycles:.6g} cycles"],
        ["bank conflicts", f"{inputs.conflict_cycles:.5g} cycles"],
        ["roof", f"{inputs.roof:.5g} warps a cycle, by {inputs.roof_bound}"],
        ["issue limit", rate],
        ["warps per SM", f"{inputs.warps} in {inputs.blocks_per_sm} blocks of {inputs.warps_per_block}"],
        ["warps in all, repetitions", f"{inputs.total_warps}, {inputs.repetitions:.4g}"],
        ["SMs, clock", f"{inputs.active_sms} of {inputs.sm_count}, {inputs.clock_hz / 1e6:g} MHz"],
        ["DRAM bandwidth, data", f"{gbs}, {moved}"],
    ]


def _structure(inputs: ModelInputs) -> str:
    lines = ["work-flow graph (node: kind, instructions, times, λ, Λ, ILP, needs)"]
    for number, node in enumerate(inputs.graph[:MOST_NODES]):
        needs = ", ".join(map(str, node.needs)) or "–"
        lines.append(
            f"  {number}: {node.kind}, {node.instructions}, {node.times}, {node.lambda_:.4g}, {node.latency:.5g}, "
            f"{node.ilp:.3g}, {needs}"
        )
    lines += [f"  and {len(inputs.graph) - MOST_NODES} more"] if len(inputs.graph) > MOST_NODES else []
    lines.append("intervals (instructions, then stall cycles, times)")
    lines += [f"  {i.instructions}, {i.stall:.5g}, {i.times}" for i in inputs.intervals[:MOST_NODES]]
    lines += [f"  and {len(inputs.intervals) - MOST_NODES} more"] if len(inputs.intervals) > MOST_NODES else []
    return "\n".join(lines)

"""The answer that users receive: the documented JSON object (docs/json.md), figures and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._version import __version__
from ...execution.symbolic.report import static_dict
from ...kernel.profile import Sampling
from ...pipeline.occupancy import OccupancyTrace
from ...support.by_name import figures, notebook
from ...support.text import json_of
from .answer import Answer

SCHEMA_VERSION = 2
"""Version of the JSON contract; incremented when a key is renamed or changes its meaning."""
HEAD = "kernel source_file arch gpu gpu_title gpu_hash"
"""Keys that each object about one kernel on one GPU begins with."""


def headed(**tools: str) -> dict[str, Any]:
    """What every JSON object begins with: the version of the contract, and those of drywarp and of `tools`."""
    return {"schema_version": SCHEMA_VERSION, "versions": {"drywarp": __version__, **tools}}


def analysis_dict(analysis: Answer) -> dict[str, Any]:
    """Plain values under the documented keys."""
    primary = analysis.prediction
    run_s = primary.time_s - analysis.start_s
    return {
        "schema_version": SCHEMA_VERSION,
        "versions": dict(analysis.versions),
        **json_of(analysis, HEAD),
        "assumptions": {"clock_hz": analysis.clock_hz, "l2": analysis.l2_state, "scheduler": analysis.scheduler},
        "launch": {
            "grid": list(analysis.grid),
            "block": list(analysis.block),
            **({"cluster": list(analysis.cluster)} if analysis.cluster != (1, 1, 1) else {}),
            "dynamic_shared_bytes": analysis.dynamic_shared,
            "arguments": dict(analysis.arguments),
            "warps_per_block": analysis.warps_per_block,
            "waves": analysis.waves,
            "sampled_blocks": analysis.sampled_blocks,
        },
        "resources": {
            "registers": analysis.resources.registers,
            "shared_bytes": analysis.resources.shared_bytes + analysis.dynamic_shared,
            "static_shared_bytes": analysis.resources.shared_bytes,
            "local_bytes": analysis.resources.local_bytes,
            "spill_bytes": analysis.resources.spill_bytes,
        },
        "occupancy": {
            **json_of(analysis.occupancy),
            "achieved_warps_per_sm": primary.achieved_occupancy_warps,
        },
        "instructions": {
            "warp_instructions": _count(analysis.warp_instructions),
            "by_class": {name: _count(value) for name, value in analysis.by_class.items()},
        },
        **({"sampling": _sampling(analysis.sampling)} if analysis.sampling else {}),
        "memory": json_of(analysis.memory),
        "prediction": {
            "time_s": primary.time_s,
            "start_s": analysis.start_s,
            **({} if (tail := primary.tail_s) is None else {"steady_s": run_s - tail, "tail_s": tail}),
            "cycles": primary.cycles,
            "model": primary.model,
            "limiter": primary.limiter,
            "verdict": analysis.verdict,
            "utilization": dict(primary.utilization),
            "cycles_if_only_limit": dict(primary.headroom),
        },
        "throughput": json_of(analysis.throughput),
        **({"doubts": list(analysis.doubts)} if analysis.doubts else {}),
        **({"band": analysis.band.to_dict()} if analysis.band else {}),
        **({"bounds": analysis.bounds.to_dict()} if analysis.bounds else {}),
        "models": {
            name: {"time_s": p.time_s, "cycles": p.cycles, "limiter": p.limiter}
            for name, p in analysis.predictions.items()
        },
        "curve": {name: json_of(p.curve) for name, p in analysis.predictions.items()},
        "stalls": dict(primary.stalls),
        "lines": json_of(analysis.lines),
        "findings": [finding.to_dict(analysis.source_file) for finding in analysis.findings],
        **({"advice": analysis.advice.to_dict()} if analysis.advice else {}),
        **({"measured": analysis.measured.to_dict()} if analysis.measured else {}),
        **({"compare_to": json_of(analysis.compared)} if analysis.compared else {}),
        **({"occupancy_trace": _trace(primary.occupancy_trace)} if primary.occupancy_trace else {}),
        **({"static": static_dict(analysis.static)} if analysis.static else {}),
        "timing": json_of(analysis.timing),
        "notes": list(analysis.notes),
    }


def _count(value: float) -> int | float:
    """Whole numbers as integers; a sampled estimate may have a fraction."""
    return round(value) if abs(value - round(value)) < 1e-6 * max(1.0, value) else value


def _sampling(sampling: Sampling) -> dict[str, Any]:
    return {
        "blocks": sampling.blocks,
        "of": sampling.of,
        "estimate": _count(sampling.estimate),
        "low": None if sampling.low is None else _count(sampling.low),
        "high": None if sampling.high is None else _count(sampling.high),
        "confidence": sampling.confidence,
        **({"extrapolated_loops": sampling.extrapolated_loops} if sampling.extrapolated_loops else {}),
        "basis": sampling.basis,
    }


def _trace(trace: OccupancyTrace) -> dict[str, Any]:
    """Interval boundaries in cycles (one more than intervals), and the active warps in each interval."""
    return {
        "cycles": trace.cycles.tolist(),
        "active_warps": trace.active.tolist(),
        "active_warps_by_partition": trace.by_partition.tolist(),
        "mean_warps": trace.mean,
        "peak_warps": trace.peak,
        "imbalance": trace.imbalance,
        "extrapolated": trace.extrapolated,
    }


@dataclass(frozen=True)
class Analysis(Answer):
    """The answer for one kernel, launch and GPU: what `drywarp.analyze` returns."""

    def _repr_html_(self) -> str:
        """Compact notebook view of the answer, without scripts."""
        return str(notebook().summary_html(self.to_dict(), self.verdict))

    def figure(self, name: str, **settings: Any) -> Any:
        """A Matplotlib figure of the answer, such as ``"occupancy"`` (docs/figures.md lists all).

        `settings` are `theme` ("light" or "dark"), `width` in inches, and the parameters of the figure's function in
        `drywarp.report.figures`. Raises UsageError for an unknown name, if the answer lacks the data, or without
        Matplotlib.
        """
        return figures().figure(self, name, **settings)

    def to_pandas(self, table: str = "lines") -> Any:
        """A table of the answer as a pandas DataFrame: `lines`, `curve`, `stalls`, `utilization` or `models`.

        Its columns are the keys of the JSON object. Raises UsageError for an unknown name, or without pandas.
        """
        return notebook().frame(self.to_dict(), table)

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        return analysis_dict(self)

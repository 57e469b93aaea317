"""Arrays as base64 of the smallest integers that hold them."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import numpy.typing as npt

from ...detail import Events

_TYPES = (("u8", "<u1", 2**8), ("u16", "<u2", 2**16), ("u32", "<u4", 2**32))


def packed(values: npt.NDArray[np.int64]) -> dict[str, str]:
    """`type` and `data` of one column, little-endian; what exceeds 32 bits is held as doubles."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    name, kind = "f64", "<f8"
    if low >= 0:
        name, kind = next(((short, narrow) for short, narrow, end in _TYPES if high < end), (name, kind))
    elif low >= -(2**31) and high < 2**31:
        name, kind = "i32", "<i4"
    return {"type": name, "data": b64encode(values.astype(kind).tobytes()).decode("ascii")}


def packed_events(events: Events, opcodes: dict[int, str]) -> dict[str, object]:
    """The execution profile for the page: times are steps from issue to issue, and durations, in ticks."""
    return {
        "count": len(events.issue),
        "total": events.total,
        "ticks_per_cycle": events.ticks_per_cycle,
        "partitions": events.partitions,
        "warps_per_block": events.warps_per_block,
        "lanes": [{"name": lane.name, "instances": lane.instances} for lane in events.lanes],
        "nodes": [[node.instruction, node.lane, node.lambda_ticks] for node in events.nodes],
        "opcodes": opcodes,
        "columns": {
            "step": packed(np.diff(events.issue, prepend=events.issue[:1])),
            "duration": packed(np.maximum(0, events.completion - events.issue)),
            "warp": packed(events.warp),
            "block": packed(events.block),
            "node": packed(events.node),
            "reason": packed(events.reason),
            "awaited": packed(events.awaited),
        },
    }

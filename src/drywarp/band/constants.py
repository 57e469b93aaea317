"""Which weakly sourced constants a kernel's time may depend on, and a GPU with some of them scaled."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ..hardware import Gpu
from ..models.base import Prediction
from .uncertainty import Uncertainty

LEAST_USE = 0.5
"""Utilisation up to which a subsystem, slowed down by its uncertainty, is taken not to matter."""
LEAST_WAIT = 0.05
"""Share of the warps' time up to which waiting for something is taken not to matter."""
_FAR = ("long_scoreboard", "lg_throttle")
_NEAR = ("short_scoreboard", "mio_throttle", "barrier", "membar", "drain")


@dataclass(frozen=True)
class Group:
    """Constants that are scaled together: `logs` maps dotted keys to half the width of each on a logarithmic scale."""

    name: str
    logs: Mapping[str, float]
    reason: str


def weak_groups(gpu: Gpu, prediction: Prediction, classes: Collection[str], known: Uncertainty) -> list[Group]:
    """What of the GPU's weak constants this kernel may depend on, grouped by what they say.

    `classes` are those of the GPU file that the kernel's instructions have. Where the simulated subsystem is little
    used, or warps hardly wait, the group is left out.
    """
    logs = {key: log for key, fact in gpu.facts() if (log := known.of(key, fact)) > 0}
    groups = [
        _of(gpu, "DRAM bandwidth", logs, [k for k in logs if k.startswith("memory.dram.") and k.endswith("_gbs")]),
        _of(gpu, "L2 bandwidth", logs, [k for k in logs if k.startswith("memory.l2.bytes_per_cycle")]),
    ]
    used = {"DRAM bandwidth": "dram", "L2 bandwidth": "l2"}
    for name in gpu.subsystems:
        own = [f"classes.{c}.lambda" for c in classes if gpu.classes[c].subsystem == name]
        if name == "lsu":
            own += ["memory.l1.bytes_per_cycle", "memory.shared.bytes_per_cycle"]
        title = f"λ of the {name} pipe"
        groups.append(_of(gpu, title, logs, [key for key in own if key in logs]))
        used[title] = name
    busy = prediction.utilization
    rates = [g for g in groups if g.logs and busy.get(used[g.name], 0.0) * math.exp(max(g.logs.values())) > LEAST_USE]
    far = [key for key in logs if key.startswith(("memory.l2.", "memory.l3.", "memory.dram.")) and "latency" in key]
    near = [f"classes.{c}.latency" for c in classes]
    near += ["memory.l1.latency", "memory.shared.latency", "device.block_launch_latency"]
    waits = [
        (_of(gpu, "memory latency", logs, far), far_share(prediction)),
        (_of(gpu, "other latencies", logs, [key for key in near if key in logs]), _share(prediction, _NEAR)),
    ]
    return rates + [group for group, share in waits if group.logs and share > LEAST_WAIT]


def _of(gpu: Gpu, name: str, logs: Mapping[str, float], keys: Collection[str]) -> Group:
    kinds = sorted({gpu.fact(key).kind for key in keys})
    reason = f"{', '.join(sorted(keys)[:3])}{', …' if len(keys) > 3 else ''}: {' and '.join(kinds)}"
    return Group(name, {key: logs[key] for key in sorted(keys)}, reason)


def far_share(prediction: Prediction) -> float:
    """The share of the warps' time that goes by waiting for memory; all where the prediction does not say."""
    return _share(prediction, _FAR)


def _share(prediction: Prediction, reasons: Collection[str]) -> float:
    """The share of the warps' time that goes by for these reasons; all where the prediction does not say."""
    whole = sum(prediction.stalls.values())
    return sum(prediction.stalls.get(reason, 0.0) for reason in reasons) / whole if whole else 1.0


def scaled(gpu: Gpu, factors: Mapping[str, float]) -> Gpu:
    """The GPU with constants multiplied, by dotted key."""
    classes, sections = dict(gpu.classes), dict(gpu.sections)
    for key, factor in factors.items():
        first, *rest = key.split(".")
        if first == "classes":
            name, field = rest
            classes[name] = _times(classes[name], [{"lambda": "lambda_"}.get(field, field)], factor)
        else:
            sections[first] = _times(sections[first], rest, factor)
    return replace(gpu, classes=classes, sections=sections)


def _times(section: Any, path: list[str], factor: float) -> Any:
    name, *rest = path
    held = getattr(section, name)
    return msgspec.structs.replace(section, **{name: _times(held, rest, factor) if rest else held * factor})

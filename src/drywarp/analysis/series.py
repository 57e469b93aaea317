"""Analyses of every launch of a launches file, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..frontends.loaded import read_launches
from ..hardware import Gpu, load_gpu
from ..support.by_name import notebook
from ..support.text import time_text
from .request import Options
from .result import SCHEMA_VERSION, Analysis
from .stages import analyze


@dataclass(frozen=True, slots=True)
class LaunchAnswer:
    """One launch of a series: its name, how often it runs, and its answer."""

    name: str
    times: int
    analysis: Analysis


@dataclass(frozen=True)
class LaunchSeries:
    """The analysed launches of a launches file, in order."""

    launches: tuple[LaunchAnswer, ...]

    @property
    def time_s(self) -> float:
        """Total duration of all launches and their repetitions, without the gaps between them."""
        return sum(launch.times * launch.analysis.time_s for launch in self.launches)

    def _repr_html_(self) -> str:
        """Notebook view: the launches and their total time."""
        rows = [
            {
                "launch": each.name, "times": str(each.times), "time each": time_text(each.analysis.time_s),
                "limited by": each.analysis.limiter,
            }
            for each in self.launches
        ]  # fmt: skip
        return str(notebook().table_html(f"{time_text(self.time_s)} in total", rows))

    def to_pandas(self) -> Any:
        """One row per launch as a pandas DataFrame. Raises UsageError if pandas is not installed."""
        answers = [(each, each.analysis) for each in self.launches]
        return notebook().frame_of(
            [{"name": n.name, "times": n.times, "time_s": a.time_s, "limiter": a.limiter} for n, a in answers]
        )

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON object (docs/json.md)."""
        first = self.launches[0].analysis
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(first.versions),
            "gpu": first.gpu,
            "gpu_hash": first.gpu_hash,
            "time_s": self.time_s,
            "launches": [{"name": a.name, "times": a.times, **a.analysis.to_dict()} for a in self.launches],
        }


def analyze_launches(
    source: object,
    launches: str | Path,
    *,
    gpu: str | Path | Gpu = "a100",
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    options: Options | None = None,
    **compiler: Any,
) -> LaunchSeries:
    """Dry-run every launch of a launches file (see `drywarp.frontends.loaded`) in order.

    `compiler` are the other keywords of `drywarp.analyze` that concern compilation.
    """
    machine = gpu if isinstance(gpu, Gpu) else load_gpu(str(gpu))
    done = []
    for number, item in enumerate(read_launches(Path(launches)), 1):
        place = f"{launches}: launch {number}"
        try:
            answer = analyze(
                source,
                gpu=machine,
                entry=item.kernel or entry,
                grid=item.grid,
                block=item.block,
                args=item.args,
                shared=item.shared,
                cluster=item.cluster,
                constants=item.constants,
                config=item.config,
                defines={**(defines or {}), **{name: str(value) for name, value in item.defines.items()}},
                options=options,
                **compiler,
            )
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from None
        done.append(LaunchAnswer(item.name or answer.kernel, item.times, answer))
    return LaunchSeries(tuple(done))

"""The most recently analysed kernel, and its data for the page: numbers, curve, one wave's execution profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...analysis.detail import code_lines, issue_events
from ...analysis.prepare import prepare_kernel
from ...analysis.prepared import Prepared
from ...analysis.request import Options
from ...analysis.result import limit_words
from ...analysis.stages import answer_prepared
from ...errors import DrywarpError, UsageError
from ...execution.emulator import Limits
from ...models.base import Prediction
from ...models.comparison import curve_occupancies
from ...models.pipeline import Pipeline
from ...pipeline.extrapolate import instructions
from ...support.text import json_of
from ...workload.cost import CostedWorkload
from ..html.payload import opcode_of, packed_events
from .asked import MOST_EVENTS, Analyse, Resimulate, ServeLimits, check_source, read_launch
from .change import SmallLaunch, lambdas, latencies, offered_gpus, scaled

MODELS = ("pipeline",)


class Session:
    """Handles requests sequentially; holds one kernel."""

    def __init__(self, limits: ServeLimits) -> None:
        self.limits = limits
        self.number = 0
        self._kernel: Prepared | None = None
        self._stand_in: SmallLaunch | None = None
        self._time_s = 0.0

    def answer(self, request: Analyse | Resimulate) -> dict[str, Any]:
        """The response as a JSON object. Raises DrywarpError."""
        return self.analyse(request) if isinstance(request, Analyse) else self.resimulate(request)

    def analyse(self, request: Analyse) -> dict[str, Any]:
        """Compile, emulate and simulate a kernel, for the sliders to vary."""
        check_source(request.source)
        launch = read_launch(request.launch).stated()
        gpus = dict(offered_gpus())
        if request.gpu not in gpus:
            raise UsageError(f"gpu {request.gpu[:40]!r}: unknown; expected {', '.join(gpus)}")
        options = Options(models=MODELS, findings=False, limits=Limits(self.limits.lane_steps))
        prepared = prepare_kernel(
            request.source + "\n",  # a line break marks it as source, never a path
            gpu=request.gpu,
            **launch,
            options=options,
        )
        answer = answer_prepared(prepared, options)
        self._kernel, self._time_s = prepared, answer.time_s
        self._stand_in = None
        self.number += 1
        costed, prediction = prepared.costed, answer.prediction
        code = code_lines(prepared, prediction.node_stalls)[0]
        opcodes = {line.index: opcode_of(line.text) for line in code}
        return {
            "number": self.number,
            **json_of(answer, "kernel verdict grid block notes"),
            "gpu": answer.gpu_title,
            "band": [answer.band.low_at_clock_s, answer.band.high_at_clock_s] if answer.band else None,
            "clock": answer.clock_hz,
            "registers": answer.resources.registers,
            "limited_by": answer.occupancy.limited_by,
            "warps_per_block": costed.warps_per_block,
            "occupancy": costed.warps_per_sm,
            "most_occupancy": costed.max_blocks_per_sm * costed.warps_per_block,
            "lambda": lambdas(costed),
            "latency": latencies(costed),
            "code": {
                "index": [line.index for line in code],
                "text": [line.text for line in code],
                "line": [line.line if line.file == prepared.kernel.source_file else 0 for line in code],
            },
            **_figures(costed, prediction),
            **_profile(costed, opcodes),
        }

    def resimulate(self, request: Resimulate) -> dict[str, Any]:
        """Simulate the same kernel at another occupancy, or with other λ and Λ; nothing else is recomputed.

        While a slider moves, a stand-in for the launch (a few tens of thousands of instructions) estimates how the
        time changes; once settled, the launch itself is simulated.
        """
        kernel = self._kernel
        if kernel is None or request.number != self.number:
            raise UsageError("another kernel has been analysed in the meantime; analyse this one again")
        costed = _changed(kernel.costed, request)
        told = {"number": self.number, "settled": request.settled, "occupancy": costed.warps_per_sm}
        if request.settled:
            occupancies = curve_occupancies(costed, None)
            prediction = Pipeline().predict(costed, occupancies)
            opcodes = {n: opcode_of(ins.text) for n, ins in enumerate(kernel.kernel.instructions)}
            return {**told, **_figures(costed, prediction), **_profile(costed, opcodes)}
        self._stand_in = self._stand_in or SmallLaunch(kernel.costed)
        ratio, limiter = self._stand_in.ratio(costed)
        time_s = self._time_s * ratio
        return {
            **told,
            "time_s": time_s,
            "limiter": limit_words(limiter),
            "point": [costed.warps_per_sm, _rate(costed, (time_s - costed.start_s) * costed.clock_hz), time_s, limiter],
        }


def _changed(costed: CostedWorkload, request: Resimulate) -> CostedWorkload:
    if request.occupancy is not None:
        blocks, rest = divmod(request.occupancy, costed.warps_per_block)
        if rest or not 0 < blocks <= costed.max_blocks_per_sm:
            raise UsageError(
                f"occupancy {request.occupancy}: expected a multiple of {costed.warps_per_block} warps (one block) up "
                f"to {costed.max_blocks_per_sm * costed.warps_per_block}"
            )
        costed = replace(costed, blocks_per_sm=blocks)
    return scaled(costed, request.lambda_factors, request.latency_factors)


def _rate(costed: CostedWorkload, cycles: float) -> float | None:
    """Warps completed per cycle per SM, as in a point of the curve."""
    return -(-costed.blocks // costed.sm_count) * costed.warps_per_block / cycles if cycles else None


def _figures(costed: CostedWorkload, prediction: Prediction) -> dict[str, Any]:
    return {
        "time_s": prediction.time_s,
        "limiter": limit_words(prediction.limiter),
        "cycles": prediction.cycles,
        "achieved": prediction.achieved_occupancy_warps,
        "stalls": {name: cycles / prediction.cycles for name, cycles in prediction.stalls.items() if cycles}
        if prediction.cycles
        else {},
        "utilization": prediction.utilization,
        "curve": [
            [p.occupancy_warps, p.warps_per_cycle if p.time_s else None, p.time_s, p.bound] for p in prediction.curve
        ],
        "point": [costed.warps_per_sm, _rate(costed, prediction.cycles), prediction.time_s, prediction.limiter],
    }


def _profile(costed: CostedWorkload, opcodes: dict[int, str]) -> dict[str, Any]:
    """The first wave's issues, up to the limit; if there are none, the reason."""
    wave = max(1, min(MOST_EVENTS, instructions(costed, costed.blocks_per_sm)))
    try:
        events = issue_events(costed, wave)
    except DrywarpError as reason:
        return {"events": None, "no_events": str(reason)}
    if events is None:
        return {"events": None, "no_events": "the kernel issues no instructions"}
    used = {node.instruction for node in events.nodes}
    names = {index: name for index, name in opcodes.items() if index in used}
    return {"events": packed_events(events, names), "reasons": list(events.reasons)}

"""Reductions whose threads take few elements each before the block combines them."""

from __future__ import annotations

from ..case import Case
from ..whatifs.coarser import coarser
from .base import Documentation, Suspicion, register

_TIMES, _MOST_LOADS, _LEAST_RATIO = 4, 8.0, 4.0


@register
class IdleThreads:
    """Elements per thread in kernels that store much less than they load."""

    name = "idle-threads"
    title = "each thread takes few elements, then most threads idle while the block combines them"
    documentation = Documentation(
        what="Finds kernels with barriers or shuffles that load at least four times what they store, and where "
        "each thread loads eight elements or fewer, while nothing in the machine is in use all the time.",
        why="Combining the threads' results costs the same however many elements each has taken: barriers, index "
        "arithmetic, and steps in which half, a quarter, an eighth of the threads do something.",
        evidence="Loads per thread, and what is stored of them. The gain is that of simulating four times the loads "
        "per thread in a quarter of the blocks.",
        change="Let each thread add up several elements in a register before the block begins, with a grid-stride "
        "loop over a grid of a few waves.",
        before="float sum = x[blockIdx.x * blockDim.x + threadIdx.x];\ncombine(sum);",
        after="float sum = 0;\n"
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];\n"
        "combine(sum);",
    )

    def look(self, case: Case) -> Suspicion | None:
        """The loads, where they are few and their results are combined."""
        setting = case.setting
        loads = setting.indices("global_load")
        combining = setting.indices("barrier", "shuffle", "reduce")
        lanes = setting.profile.thread_instructions.sum(axis=0)
        stored = float(sum(lanes[index] for index in setting.indices("global_store", "global_atomic")))
        loaded = float(sum(lanes[index] for index in loads))
        launch = setting.workload.launch
        per_thread = loaded / (len(setting.profile.blocks) * launch.threads_per_block)
        few = 0 < per_thread <= _MOST_LOADS and loaded >= _LEAST_RATIO * stored
        waves = setting.bound.blocks / setting.bound.sm_count / setting.bound.blocks_per_sm
        if not few or not combining or waves < _TIMES or case.prediction.limiter != "latency":
            return None
        return Suspicion(
            coarser(frozenset(loads), _TIMES),
            setting.places([*case.costliest(loads), *case.costliest(combining)]),
            f"each thread loads {per_thread:.3g} elements, and {stored / loaded:.2g} results are stored for each",
            "let each thread combine several elements in registers first, in a loop over a smaller grid",
            1 - max(case.use("dram"), 1 / _TIMES),
        )

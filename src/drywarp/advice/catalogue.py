"""Every what-if that is asked with `--advice`, but for those that compile the kernel again."""

from __future__ import annotations

from ..models.throughput import ISSUE
from .case import Case
from .reuse import reuse_by_buffer
from .setting import Setting
from .whatifs.balanced import balanced_partitions
from .whatifs.base import WhatIf
from .whatifs.coalesced import coalesced
from .whatifs.conflict_free import conflict_free
from .whatifs.even_grid import even_grid
from .whatifs.ideal_latency import LEVELS, ideal_latency, ideal_level, no_fixed_latency
from .whatifs.ideal_rate import ideal_rate, used
from .whatifs.l1_split import splits
from .whatifs.loaded_once import loaded_once
from .whatifs.no_barriers import no_barriers
from .whatifs.no_divergence import no_divergence
from .whatifs.shorter_latency import more_independent_instructions, more_loads_in_flight


def ideals(setting: Setting) -> list[WhatIf]:
    """Each part of the machine that is used, at no cost: every λ, every Λ of a pipe, and the levels of memory."""
    bound = setting.bound
    names = [s.name for s in bound.subsystems if used(bound, s.name)]
    pipes = [s.name for s in bound.subsystems if s.upstream and s.name in names and s.name != "lsu"]
    return [
        *(ideal_rate(name) for name in dict.fromkeys((*names, ISSUE))),
        no_fixed_latency(),
        *(ideal_latency(name) for name in pipes),
        *(ideal_level(level) for level in LEVELS),
    ]


def kernels(setting: Setting) -> list[WhatIf]:
    """Idealised code, the launch without a tail, and other splits of the L1."""
    loads = {i: use.times for use in reuse_by_buffer(setting).values() if use.times > 1 for i in use.instructions}
    return [
        coalesced(),
        conflict_free(),
        no_divergence(),
        no_barriers(),
        loaded_once(loads),
        more_loads_in_flight(),
        more_independent_instructions(),
        balanced_partitions(),
        even_grid(),
        *splits(setting),
    ]


def what_ifs(case: Case) -> list[WhatIf]:
    """All of them."""
    return [*ideals(case.setting), *kernels(case.setting)]

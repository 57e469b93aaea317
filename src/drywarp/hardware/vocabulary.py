"""The names that a GPU file may use: instruction classes, scheduler policies, tensor input types."""

from __future__ import annotations

from typing import Literal

Policy = Literal[
    "loose_round_robin", "greedy_then_round_robin", "greedy_then_oldest", "greedy_then_youngest", "oldest_first"
]
Scope = Literal["partition", "sm"]

MEMORY_CLASSES = frozenset(
    (
        *("global_load", "global_store", "global_atomic", "local_load", "local_store"),
        *("shared_load", "shared_store", "shared_atomic", "async_copy", "bulk_copy", "texture"),
    )
)
"""Classes whose λ is per wavefront and whose Λ follows from where the data is found."""

CLASS_NAMES = MEMORY_CLASSES | frozenset(
    (
        *("fp32", "fp32_compare", "fp16", "fp64", "int", "imad", "imad_wide", "shift", "move", "bit", "sfu"),
        *("convert", "convert_fast", "predicate", "vote", "shuffle", "reduce", "uniform", "special_register"),
        *("branch", "convergence", "barrier", "mbarrier", "fence", "nop", "tensor", "wgmma", "constant_load"),
        "unknown",
    )
)
"""Every instruction class of a machine-code kernel; a GPU that takes such kernels gives costs for all."""

AMD_CLASS_NAMES = CLASS_NAMES - {"predicate", "vote", "reduce", "convergence", "mbarrier", "wgmma", "bulk_copy"}
"""Those that AMD machine code has instructions of."""

TENSOR_TYPES = (
    *("fp16", "bf16", "tf32", "fp64", "int8", "fp8"),
    *("fp32", "bf16_narrow", "fp32_blocks", "fp16_blocks", "bf16_blocks", "int8_blocks", "fp64_blocks"),
    *("fp16_sparse", "bf16_sparse", "int8_sparse", "fp8_sparse"),
)
"""Input types that section `[tensor]` may give a rate for; those of the second and third line are AMD's."""

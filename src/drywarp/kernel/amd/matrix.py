"""Matrix instructions of AMD GPUs, as their names spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"v_s?mfma[c]?_[fi]\d+_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_?([a-z0-9_]+)$")
_TYPES = {"f16": "fp16", "bf16": "bf16", "bf16_1k": "bf16", "f32": "fp32", "xf32": "tf32", "f64": "fp64", "i8": "int8"}
_OLD_BLOCKS = {
    ("32", "32", "1", "f32"): 2, ("16", "16", "1", "f32"): 4, ("4", "4", "1", "f32"): 16,
    ("32", "32", "4", "f16"): 2, ("16", "16", "4", "f16"): 4, ("4", "4", "4", "f16"): 16,
    ("32", "32", "4", "i8"): 2, ("16", "16", "4", "i8"): 4, ("4", "4", "4", "i8"): 16,
    ("32", "32", "2", "bf16"): 2, ("16", "16", "2", "bf16"): 4, ("4", "4", "2", "bf16"): 16,
    ("32", "32", "4", "bf16_1k"): 2, ("16", "16", "4", "bf16_1k"): 4, ("4", "4", "4", "bf16_1k"): 16,
    ("4", "4", "4", "f64"): 4,
}  # fmt: skip
"""How many matrices names without a number of blocks stand for (GFX908 and GFX90A)."""


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """Shape of one block, how many blocks, the input type in the words of `[tensor]`, and whether A is sparse."""

    m: int
    n: int
    k: int
    blocks: int
    input_type: str
    sparse: bool

    @property
    def multiplications(self) -> int:
        """Multiply-adds of the instruction, those with the zeros of a sparse A included."""
        return self.m * self.n * self.k * self.blocks


def matrix_shape(opcode: str) -> MatrixShape | None:
    """What `v_mfma_f32_32x32x8_f16` and its kin multiply; None where the name is not understood.

    The input type of GFX908's narrow bf16 instructions, which run at half the rate of the ``_1k`` ones on
    GFX90A, is ``bf16_narrow``; that of instructions on several blocks ends in ``_blocks``, and of sparse
    ones in ``_sparse``: their rates may differ.
    """
    match = _NAME.match(opcode)
    if match is None:
        return None
    m, n, k, stated, kind = match.groups()
    blocks = int(stated) if stated else _OLD_BLOCKS.get((m, n, k, kind), 1)
    sparse = opcode.startswith("v_smfmac")
    name = "fp8" if "fp8" in kind or "bf8" in kind else _TYPES.get(kind)
    if name is None:
        return None
    if kind == "bf16" and f"{k}bf16" in opcode:
        name = "bf16_narrow"
    elif blocks > 1:
        name += "_blocks"
    elif sparse:
        name += "_sparse"
    return MatrixShape(int(m), int(n), int(k), blocks, name, sparse)
